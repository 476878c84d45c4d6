import assert from 'node:assert/strict'
import { test } from 'node:test'
import { text } from '../../support/items'
import { begin, deliveredId, stage } from './stage'

const target = { kind: 'group', id: '123456' } as const

test('an answer that comes late is heard long after the adapter has given its own calls up', async t => {
  // The adapter of this stage waits for a second.
  const { account, simulator } = await stage(t)
  simulator.fault({ fault: { kind: 'late', ms: 1_500 } })
  assert.deepEqual(await account.message(target, [text('a')], 'x').send(begin), { messageIds: [deliveredId(simulator, 0)] })
})
