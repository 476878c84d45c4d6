import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { requestOf } from '../../../src/platform/onebot/adapter'
import { SendError } from '../../../src/platform/port'
import { text } from '../../support/items'
import { read, startRelay } from '../../support/relay'
import { until } from '../../support/until'
import { begin, deliveredId, stage } from './stage'

const target = { kind: 'group', id: '123456' } as const
const body = { group_id: target.id, msg: 'a' }

describe('an answer that is neither a clear yes nor a clear no', () => {
  const config = { chatApiTimeout: 0.5, chatApiMaxRetries: 1, chatRetryUnanswered: false }
  const answers = [
    { status: 'ok', data: { message_id: 1 } }, { status: 'ok', retcode: '0', data: { message_id: 1 } }, { status: 'ok', retcode: null },
    {}, { status: 'async', retcode: 1, data: null }, { status: 'failed', retcode: 0, data: null }, { status: 'ok', retcode: 100, data: null },
  ]

  test('is told as no answer, and the message is there once', async t => {
    const relay = await startRelay({ config, simulator: { history: false } })
    t.after(() => relay.stop())
    for (const [index, answer] of answers.entries()) {
      relay.simulator.fault({ fault: { kind: 'answer', answer } })
      const reply = await relay.send({ group_id: String(600_000 + index), msg: `message ${index}` })
      assert.equal(reply.status, 504, JSON.stringify(answer))
      assert.equal(reply.headers.get('relay-outcome'), 'unanswered')
    }
    assert.deepEqual(relay.simulator.ledger.map(entry => entry.text), answers.map((_, index) => `message ${index}`))
  })
})

describe('an answer that comes late', () => {
  test('is heard long after the adapter has given its own calls up', async t => {
    // The adapter of this stage waits for a second.
    const { account, simulator } = await stage(t)
    simulator.fault({ fault: { kind: 'late', ms: 1_500 } })
    assert.deepEqual(await account.message(target, [text('a')]).send(begin), { messageIds: [deliveredId(simulator, 0)] })
  })

  test('is told to whoever asks with the same key', async t => {
    // The adapter of this relay waits for two seconds.
    const config = { chatApiTimeout: 0.2, chatApiMaxRetries: 0, chatRetryUnanswered: false }
    const relay = await startRelay({ config, simulator: { history: false } })
    t.after(() => relay.stop())
    relay.simulator.fault({ fault: { kind: 'late', ms: 2_500 } })
    const headers = { 'idempotency-key': 'a-key' }
    assert.equal((await relay.send(body, headers)).status, 504)
    await until('the answer has come', async () => (await relay.send(body, headers)).status === 200)
    const { simulator: { ledger } } = relay
    assert.equal(ledger.length, 1)
    const reply = await read(await relay.request('/webhook', { method: 'POST', headers, body: JSON.stringify(body) }))
    assert.deepEqual(reply.body.data, { message_ids: [String(ledger[0]?.messageId)] })
  })
})

describe('a call', () => {
  test('ends without an answer when its connection does', async t => {
    const { bot, simulator } = await stage(t)
    simulator.fault({ fault: { kind: 'silent' } })
    const answer = requestOf(bot)('send_group_msg', { group_id: 123456, message: 'a' })
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    simulator.disconnectAll()
    await assert.rejects(answer, (error: unknown) => error instanceof SendError && error.outcome === 'unanswered')
  })

  test('takes the first of two answers, and the second is not reported', async t => {
    const { account, simulator, call } = await stage(t)
    simulator.fault({ fault: { kind: 'duplicate-answer' } })
    const { messageIds } = await account.message(target, [text('a')]).send(begin)
    await call('get_status', {})
    assert.deepEqual(messageIds, [deliveredId(simulator, 0)])
  })
})
