import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { startRelay, type TestRelay } from '../support/relay'

let relay: TestRelay

before(async () => {
  relay = await startRelay()
})
after(() => relay.stop())
afterEach(() => {
  relay.simulator.clear()
  relay.simulator.clearFaults()
})

describe('a single message', () => {
  test('reaches a group, and the answer has the ID that the platform gave', async () => {
    const { status, body } = await relay.send({ group_id: '123456', msg: 'hello' })
    assert.equal(status, 200)
    const [entry] = relay.simulator.ledger
    assert.deepEqual(entry?.target, { type: 'group', id: '123456' })
    assert.equal(entry.text, 'hello')
    assert.deepEqual(body, { code: 0, msg: 'ok', data: { message_ids: [String(entry.messageId)] } })
  })
})
