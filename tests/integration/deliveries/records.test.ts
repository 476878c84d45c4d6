import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, later, relayWith, type OutboxRelay } from './support'

/** Sends a text and gives the ID of its delivery. */
async function send(relay: OutboxRelay, body: object, headers: Record<string, string> = {}): Promise<string> {
  return (await relay.post({ group_id: group, ...body }, headers)).headers.get('x-request-id') ?? ''
}

describe('the record of a delivery', () => {
  test('names the door that it came through', async t => {
    const relay = await relayWith(t)
    await send(relay, { msg: 'one' })
    await relay.request(`/send/group:${group}`, { method: 'POST', body: 'two', headers: { 'content-type': 'text/plain' } })
    await relay.request(`/hooks/message/group:${group}`, { method: 'POST', body: '{"title":"three"}', headers: { 'content-type': 'application/json' } })
    await relay.request('/onebot/send_group_msg', {
      method: 'POST', body: JSON.stringify({ group_id: group, message: 'four' }), headers: { 'content-type': 'application/json' },
    })
    assert.deepEqual((await relay.list()).map(({ door }) => door).reverse(), ['webhook', 'send', 'hooks/message', 'onebot'])
  })

  test('tells what was to be sent, its files by name and size, and how its text begins', async t => {
    const relay = await relayWith(t)
    const form = new FormData()
    form.append('file', new Blob(['a report']), 'report.txt')
    const uploaded: unknown = await (await relay.request('/upload', { method: 'POST', body: form })).json()
    const path = /"path":"([^"]+)"/.exec(JSON.stringify(uploaded))?.[1]
    const long = '长'.repeat(150)
    const messages = [
      { msg: long }, { msg: long }, { msg: 'too late' }, { type: 'file', url: path }, { type: 'image', url: 'base64://aGVsbG8=' },
      { type: 'file', url: 'https://example.com/logs/build.log?token=secret' }, { type: 'image' }, { type: 'at', user_id: '10001' },
    ]
    for (const headers of [undefined, { 'idempotency-key': 'a' }]) {
      const { items } = await relay.show(await send(relay, { messages }, headers))
      assert.deepEqual(items, [
        { type: 'text', msg: long }, { type: 'text', msg: long.slice(0, 50), size: 450 }, { type: 'text', msg: '', size: 8 },
        { type: 'file', name: 'report.txt', size: 8 }, { type: 'image', name: 'file', size: 5 }, { type: 'file', name: 'build.log' },
        { type: 'invalid' }, { type: 'at' },
      ])
    }
  })

  test('tells kinds and sizes only where the setting says so', async t => {
    const relay = await relayWith(t, { config: { recordContent: 'none' } })
    const { items } = await relay.show(await send(relay, { messages: [{ msg: 'secret' }, { type: 'file', url: 'base64://aGVsbG8=' }] }))
    assert.deepEqual(items, [{ type: 'text', size: 6 }, { type: 'file', size: 5 }])
  })

  for (const [how, headers] of [['waited for', {}], ['with a key', { 'idempotency-key': 'a' }], ['sent later', later]] as const) {
    test(`tells of each call, and how long things took, of one ${how}`, async t => {
      const relay = await relayWith(t, { config: { chatApiMaxRetries: 1 } })
      relay.simulator.fault({ fault: { kind: 'refuse' } })
      const id = await send(relay, { msg: 'hello' }, headers)
      const { history, attempts, waited_ms: waited, platform_ms: took } = await relay.reaches(id, 'sent')
      assert.equal(attempts, 2)
      assert(Array.isArray(history))
      const calls = history.map((call: Record<string, unknown>) => call)
      assert.deepEqual(calls.map(({ outcome }) => outcome), ['refused', 'sent'])
      assert.equal(typeof calls[0]?.reason, 'string')
      assert(calls.every(({ at }) => Math.abs(Date.parse(String(at)) - Date.now()) < 60_000))
      assert(typeof waited === 'number' && waited >= 0)
      assert(typeof took === 'number' && took < 30_000)
    })
  }

  test('says of a call that was not answered how it ended, and how when the answer comes late', async t => {
    const relay = await relayWith(t, { config: { chatApiTimeout: 0.2, chatApiMaxRetries: 0 }, simulator: { history: false } })
    relay.simulator.fault({ fault: { kind: 'late', ms: 600 } })
    const id = await send(relay, { msg: 'hello' })
    const { history } = await relay.reaches(id, 'unanswered')
    assert.match(JSON.stringify(history), /"outcome":"unanswered","reason":"no answer in time"/)
    const after = await relay.reaches(id, 'sent')
    assert.match(JSON.stringify(after.history), /"took_ms":\d{3,},"outcome":"sent"/)
  })
})
