import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { upload } from '../webhook/support'
import { group, other, relayWith, useStored } from './support'

/** One that no other test uses. */
let key = { 'idempotency-key': '' }
let count = 0
beforeEach(() => {
  key = { 'idempotency-key': `build-${++count}` }
})

const hello = { group_id: group, msg: 'hello' }
/** Answers are given up soon. */
const hasty = { chatApiTimeout: 0.3, chatApiMaxRetries: 0 }

describe('an Idempotency-Key', () => {
  const relay = useStored({ config: { chatApiMaxRetries: 0 } })

  test('makes a repeat get the stored answer, and sends nothing; another message is refused', async () => {
    const first = await relay.post(hello, key)
    const second = await relay.post(hello, { 'idempotency-key': `"${key['idempotency-key']}"` })
    assert.equal(first.status, 200)
    assert.equal(first.headers.get('idempotent-replayed'), null)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(second.data, first.data)
    assert.equal(second.headers.get('relay-outcome'), 'sent')
    const { status, headers, msg } = await relay.post({ ...hello, msg: 'other' }, key)
    assert.equal(status, 422)
    assert.match(msg, /was used for a different request/)
    assert.equal(headers.get('idempotent-replayed'), null)
    assert.deepEqual(relay.texts(), ['hello'])
  })

  test('goes by what the request means, and not by how it is written', async () => {
    const first = await relay.post({ group_id: group, type: 'text', msg: 'hello', expires_in: 60 }, key)
    const second = await relay.post({ unknown: 1, expires_in: 60, msg: 'hello', platform: null, group_id: Number(group) }, key)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(second.data, { ...first.data, ignored: ['unknown'] })
    for (const other of [{ ...hello, expires_in: 61 }, hello, { group_id: group, messages: [{ msg: 'hello' }], expires_in: 60 }]) {
      assert.equal((await relay.post(other, key)).status, 422)
    }
    assert.deepEqual(relay.texts(), ['hello'])
  })

  test('takes a file that is uploaded again for the same, and other bytes or another name for something else', async () => {
    const first = await relay.post({ group_id: group, type: 'file', url: await upload(relay, 'report.txt', 'all is well') }, key)
    assert.equal(first.status, 200, first.msg)
    const second = await relay.post({ group_id: group, type: 'file', url: await upload(relay, 'report.txt', 'all is well') }, key)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(second.data, first.data)
    for (const [name, content] of [['report.txt', 'all is lost'], ['other.txt', 'all is well'], ['report.txt', '']] as const) {
      const { status } = await relay.post({ group_id: group, type: 'file', url: await upload(relay, name, content) }, key)
      assert.equal(status, 422, name)
    }
    assert.deepEqual(relay.simulator.ledger.map(({ media }) => media.map(({ name }) => name)), [['report.txt']])
  })

  test('does not go by the name of a picture, which nobody sees', async () => {
    const send = async (name: string, more: readonly object[] = []) => relay.post({
      group_id: group, messages: [{ msg: 'look' }, { type: 'image', url: await upload(relay, name, 'picture') }, ...more],
    }, key)
    assert.equal((await send('a.png')).data.success, 2)
    assert.equal((await send('b.png')).headers.get('idempotent-replayed'), 'true')
    assert.equal((await send('b.png', [{ type: 'video', url: await upload(relay, 'b.png', 'picture') }])).status, 422)
    assert.equal(relay.simulator.ledger.length, 1)
  })

  test('goes by the ID of a file that is gone', async () => {
    const gone = { type: 'file', url: '3f0c2f4e-1111-4222-8333-444455556666/report.txt' }
    const known = { type: 'file', url: await upload(relay, 'report.txt', 'all is well') }
    const send = (...messages: object[]) => relay.post({ group_id: group, messages }, key)
    assert.equal((await send(known, gone)).data.success, 1)
    assert.equal((await send(known, gone)).headers.get('idempotent-replayed'), 'true')
    assert.equal((await send(known, { ...gone, url: gone.url.replace('1111', '2222') })).status, 422)
    // What it held when it was sent is not compared any more.
    await rm(join(relay.uploadDir, known.url))
    assert.equal((await send(known, gone)).status, 422)
  })

  test('lets one of two equal requests through that come at once', async () => {
    const answers = await Promise.all([relay.post(hello, key), relay.post(hello, key), relay.post({ ...hello, msg: 'other' }, key)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 422])
    assert.equal(answers.find(({ status }) => status === 409)?.headers.get('retry-after'), '1')
    assert.equal(relay.simulator.ledger.length, 1)
  })
})

describe('a repeat of what went unanswered', () => {
  test('for several targets is told for each when it may come', async t => {
    const relay = await relayWith(t, { config: { ...hasty, chatSettleTime: 30 } })
    relay.simulator.fault({ fault: { kind: 'silent' }, times: 2 })
    const { data } = await relay.post({ to: [`group:${group}`, `group:${other}`], msg: 'hello' }, key)
    assert(Array.isArray(data.deliveries))
    const told = data.deliveries.map((entry: Record<string, unknown>) => [entry.code, Number(entry.retry_after) > 20])
    assert.deepEqual(told, [[504, true], [504, true]])
  })

  test('sends it once it has settled and did not arrive, but no file where that is not known', async t => {
    const relay = await relayWith(t, { config: hasty })
    const file = { group_id: group, type: 'file', url: 'base64://YQ==' }
    for (const [body, again] of [[hello, 200], [file, 504]] as const) {
      relay.simulator.fault({ fault: { kind: 'silent' }, times: Infinity })
      const header = { 'idempotency-key': String(again) }
      assert.equal((await relay.post(body, header)).status, 504)
      relay.simulator.clearFaults()
      const { status, headers } = await relay.post(body, header)
      assert.equal(status, again)
      // The record is that of the first request.
      const record = await relay.ask(headers.get('content-location') ?? '')
      assert.equal(record.data.state, again === 200 ? 'sent' : 'unanswered')
    }
    assert.deepEqual(relay.texts(), ['hello'])
  })
})

test('a malformed Idempotency-Key is a 400', async t => {
  const relay = await relayWith(t)
  for (const value of ['', '""', 'a b', '"a b"', '"a', '"a"b"', 'x'.repeat(256), 'schlüssel', '"a", "b"']) {
    assert.equal((await relay.post(hello, { 'idempotency-key': value })).status, 400, value)
  }
  for (const value of ['!', 'a"b', '"a\\"b"', `"${'x'.repeat(255)}"`]) {
    assert.equal((await relay.post(hello, { 'idempotency-key': value })).status, 200, value)
  }
})
