import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { requestOf } from '../../../src/platform/onebot/private-fields'
import { SendError } from '../../../src/platform/port'
import { text } from '../../support/items'
import { relayFor } from '../../support/relay'
import { begin, deliveredId, stage } from './stage'

const target = { kind: 'group', id: '123456' } as const

describe('an answer that is neither a clear yes nor a clear no', () => {
  const config = { chatApiTimeout: 0.5, chatApiMaxRetries: 1, chatRetryUnanswered: false }
  const answers = [{ status: 'ok', data: { message_id: 1 } }, { status: 'async', retcode: 1, data: null }]

  test('is told as no answer, and the message is there once', async t => {
    const relay = await relayFor(t, { config, simulator: { history: false } })
    await Promise.all(answers.map(async (answer, index) => {
      const group = String(600_000 + index)
      relay.simulator.fault({ fault: { kind: 'answer', answer }, target: group })
      const { status, headers } = await relay.send({ group_id: group, msg: `message ${index}` })
      assert.deepEqual([status, headers.get('relay-outcome')], [504, 'unanswered'], JSON.stringify(answer))
    }))
    assert.deepEqual(relay.simulator.ledger.map(entry => entry.text).sort(), answers.map((_, index) => `message ${index}`))
  })
})

test('an answer that comes late is heard long after the adapter has given its own calls up', async t => {
  // The adapter of this stage waits for a second.
  const { account, simulator } = await stage(t)
  simulator.fault({ fault: { kind: 'late', ms: 1_500 } })
  assert.deepEqual(await account.message(target, [text('a')], 'x').send(begin), { messageIds: [deliveredId(simulator, 0)] })
})

test('a call ends without an answer when its connection does', async t => {
  const { bot, simulator } = await stage(t)
  simulator.fault({ fault: { kind: 'silent' } })
  const answer = requestOf(bot)('send_group_msg', { group_id: 123456, message: 'a' })
  await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
  simulator.disconnectAll()
  await assert.rejects(answer, (error: unknown) => error instanceof SendError && error.outcome === 'unanswered')
})
