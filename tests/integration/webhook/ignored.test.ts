import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { read, useRelay, type Reply } from '../../support/relay'
import { failureOf, group } from './support'

const relay = useRelay()

/** A body as it stands. */
async function post(body: string): Promise<Reply> {
  return read(await relay.request('/webhook', { method: 'POST', body }))
}

function ignoredOf({ status, msg, data: { ignored } }: Reply): unknown {
  assert.equal(status, 200, msg)
  return ignored
}

describe('fields that have no meaning', () => {
  test('are named in the answer and in the log, and the message is sent', async () => {
    const reply = await relay.send({ group_id: group, msg: 'x', dry_run: true, expire_in: 60, send_at: null })
    assert.deepEqual(ignoredOf(reply), ['dry_run', 'expire_in'])
    assert.equal(relay.simulator.ledger.length, 1)
    const id = reply.headers.get('x-request-id') ?? ''
    assert.match(relay.logs.find(line => line.includes(id)) ?? '', / 200 sent \(ignored: "dry_run", "expire_in"\) [\d.]+ ms$/)
    assert.equal(reply.headers.get('preference-applied'), null)
  })

  test('are those of items of another type', async () => {
    assert.deepEqual(ignoredOf(await relay.send({ group_id: group, msg: 'x', url: 'https://example.com/a.png' })), ['url'])
    const image = { type: 'image', url: 'https://example.com/a.png', msg: 'a caption' }
    assert.deepEqual(ignoredOf(await relay.send({ group_id: group, ...image })), ['msg'])
    assert.deepEqual(ignoredOf(await relay.send({ group_id: group, messages: [{ msg: 'x', url: '' }, image] })), ['messages[1].msg'])
  })

  test('are named with their place in a batch', async () => {
    const reply = await relay.send({
      group_id: group, retries: 3, messages: [{ msg: 'a' }, 'no item', { type: 'text', msg: 'b', caption: 'c', group_id: '1' }],
    })
    assert.deepEqual(ignoredOf(reply), ['retries', 'messages[2].caption', 'messages[2].group_id'])
  })

  test('are those of a single message beside a batch', async () => {
    const reply = await relay.send({ group_id: group, msg: 'x', at: '10001', reply_to: '1', url: null, messages: [{ msg: 'a' }] })
    assert.deepEqual(ignoredOf(reply), ['msg', 'at', 'reply_to'])
  })

  test('are not mentioned where there are none', async () => {
    const reply = await relay.send({ group_id: group, user_id: null, type: 'text', msg: 'x', url: null, platform: '', self_id: '', messages: null })
    assert.deepEqual(Object.keys(reply.body.data ?? {}), ['message_ids', 'delivery_id'])
    const line = relay.logs.find(each => each.includes(reply.headers.get('x-request-id') ?? '')) ?? ''
    assert.match(line, / 200 sent [\d.]+ ms$/)
  })

  test('are named anew for each request with the same key', async () => {
    const headers = { 'idempotency-key': 'ignored-1' }
    assert.equal(ignoredOf(await relay.send({ group_id: group, msg: 'x' }, headers)), undefined)
    const again = await relay.send({ group_id: group, msg: 'x', ttl: 5 }, headers)
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(ignoredOf(again), ['ttl'])
  })

  test('are cut, and hold nothing that is not fit for a line', async () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`field${index}`, index]))
    const named = ignoredOf(await relay.send({ group_id: group, ...many, messages: [{ msg: 'y', more: 1 }] }))
    assert.deepEqual(named, Array.from({ length: 20 }, (_, index) => `field${index}`))
    const odd = ignoredOf(await post(`{"group_id":"${group}","msg":"x","a\\n\\u202eb":1,"${'🚀'.repeat(100)}":1,"${'y'.repeat(63)}🚀":1,"__proto__":1,"":1}`))
    assert.deepEqual(odd, ['a\ufffd\ufffdb', '🚀'.repeat(32), `${'y'.repeat(63)}\ufffd`, '__proto__', ''])
  })
})

describe('with Prefer: handling=strict', () => {
  test('they are a 400 that names them', async () => {
    const prefer = 'respond-async, handling=strict'
    const reply = await relay.send({ group_id: group, msg: 'x', messages: [{ msg: 'y', foo: 1 }], dry_run: true }, { prefer })
    assert.equal(failureOf(reply, 400), 'these fields have no meaning here, leave them out: msg, dry_run, messages[0].foo')
    assert.equal(reply.headers.get('preference-applied'), 'handling=strict')
    assert.equal(relay.simulator.ledger.length, 0)
  })

  test('a request without any is carried out', async () => {
    const reply = await relay.send({ group_id: group, msg: 'x', url: null }, { prefer: 'handling=strict' })
    assert.equal(ignoredOf(reply), undefined)
    assert.equal(reply.headers.get('preference-applied'), 'handling=strict')
  })
})
