import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Core, fates } from '../../support/core'

const minute = 60_000

test('a question for the history that is never answered does not keep further looks from being made', async () => {
  const core = new Core({ retries: 0, retryUnanswered: false })
  await core.run()
  core.port.isHistorySilent = true
  core.port.fates.push(fates.lost)
  void core.submit('lost')
  await core.run(2 * minute)
  assert.deepEqual(core.log, ['lost unanswered'])
  core.port.isHistorySilent = false
  await core.run(4 * minute)
  assert.deepEqual(core.states, ['sent'])
})
