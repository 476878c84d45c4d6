import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isObject, type JsonObject } from '../../../src/lib/shape'
import { apiKey, read, useRelay, type Reply } from '../../support/relay'
import { failureOf, group, outline, sha256, upload, user } from './support'

const other = '654321'
const targets = { ops: `group:${group}`, all: [`group:${group}`, `private:${user}`], boss: `private:${user}` }
const keys = [
  { name: 'narrow', key: 'the-secret-of-narrow', targets: ['ops'] },
  { name: 'slow', key: 'the-secret-of-slow', rate: 3 },
  { name: 'slower', key: 'the-secret-of-slower', rate: 3 },
  { name: 'loud', key: 'the-secret-of-loud', allow: ['send', 'mention-all'] },
  { name: 'quiet', key: 'the-secret-of-quiet' },
]
const relay = useRelay({ config: { chatApiTimeout: 5, chatApiMaxRetries: 0, targets, keys } })

async function send(body: object, query = '', headers: Record<string, string> = {}): Promise<Reply> {
  return read(await fetch(`${relay.url}/webhook${query}`, {
    method: 'POST', body: JSON.stringify(body), headers: { 'x-api-key': apiKey, 'content-type': 'application/json', ...headers },
  }))
}

/** The entries of an answer for several targets. */
function entriesOf(reply: Reply): JsonObject[] {
  const { deliveries, total, success, failed } = reply.status < 400 ? reply.data : reply.error
  assert(Array.isArray(deliveries))
  const entries = deliveries.filter(isObject)
  assert.deepEqual([total, success], [entries.length, entries.filter(entry => entry.success).length])
  assert.equal(failed, entries.length - Number(success))
  return entries
}

/** Where messages went, in the order in which they arrived. */
function places(): string[] {
  return relay.simulator.ledger.map(({ target: { type, id } }) => `${type}:${id}`)
}

describe('a request for several targets', () => {
  test('is a delivery for each, answered in the order asked for and without doubles', async () => {
    const reply = await send({ to: ['boss', `group:${group}`, 'all', `group:${other}`], msg: 'x' })
    assert.equal(reply.status, 200)
    const entries = entriesOf(reply)
    assert.deepEqual(entries.map(({ target }) => target), [`private:${user}`, `group:${group}`, `group:${other}`])
    assert.deepEqual(places().sort(), [`group:${group}`, `group:${other}`, `private:${user}`])
    for (const { delivery_id: id, message_ids: ids } of entries) {
      const { body: { data } } = await read(await fetch(`${relay.url}/deliveries/${String(id)}`, { headers: { 'x-api-key': apiKey } }))
      assert(isObject(data))
      assert.equal(data.state, 'sent')
      assert(Array.isArray(ids) && ids.length === 1)
    }
  })

  test('is answered with a list where it is a list of one, or a name for a list', async () => {
    for (const to of [['ops'], 'all']) entriesOf(await send({ to, msg: 'x' }))
    assert.deepEqual(Object.keys((await send({ to: 'ops', msg: 'x' })).data), ['message_ids', 'delivery_id'])
  })

  test('has an entry with the results of a batch', async () => {
    const [first, second] = entriesOf(await send({ to: 'all', messages: [{ msg: 'a' }, { type: 'image' }] }))
    for (const entry of [first, second]) {
      assert.equal(entry?.success, false)
      assert(Array.isArray(entry.results) && entry.results.length === 2)
    }
    assert.deepEqual(outline(relay), ['a', 'a'])
  })

  test('goes on where one of them fails', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, target: group })
    const [first, second, third] = entriesOf(await send({ to: ['ops', 'group:nobody', 'boss'], msg: 'x' }))
    assert.deepEqual([first?.code, first?.outcome, typeof first?.delivery_id], [502, 'refused', 'string'])
    // What is no group of OneBot has not become a delivery.
    assert.deepEqual([second?.code, second?.delivery_id], [400, undefined])
    assert.equal(third?.success, true)
    assert.deepEqual(places(), [`private:${user}`])
  })

  test('is a 502 with fail=any as soon as one failed, with the same results', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, target: group })
    const reply = await send({ to: 'all', msg: 'x' }, '?fail=any')
    assert.equal(reply.status, 502)
    assert.equal(reply.error.id, 'failed')
    assert.deepEqual(entriesOf(reply).map(({ success }) => success), [false, true])
    assert.equal((await send({ to: 'all', msg: 'x' }, '?fail=any')).status, 200)
  })

  test('sends nothing where one target is not allowed, does not exist, or is too much', async () => {
    const refused: [object, number, string][] = [
      [{ to: ['ops', 'boss'], msg: 'x' }, 403, 'the-secret-of-narrow'],
      [{ to: ['ops', 'nobody'], msg: 'x' }, 404, apiKey],
      [{ to: ['ops', 'boss'], messages: [{ msg: 'a' }, { msg: 'b' }] }, 429, 'the-secret-of-slow'],
    ]
    entriesOf(await send({ to: ['ops', 'boss'], msg: 'x' }, '', { 'x-api-key': 'the-secret-of-slow' }))
    relay.simulator.clear()
    for (const [body, status, key] of refused) failureOf(await send(body, '', { 'x-api-key': key }), status)
    assert.deepEqual(places(), [])
  })

  test('uses an Idempotency-Key for each target by itself', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, target: group })
    const headers = { 'idempotency-key': 'nightly' }
    entriesOf(await send({ to: 'all', msg: 'x' }, '', headers))
    assert.deepEqual(places(), [`private:${user}`])
    const again = entriesOf(await send({ to: ['boss', 'ops', `group:${other}`], msg: 'x' }, '', headers))
    assert.deepEqual(again.map(({ success, replayed }) => [success, replayed]), [[true, true], [true, undefined], [true, undefined]])
    assert.deepEqual(places().sort(), [`group:${group}`, `group:${other}`, `private:${user}`])
    const [changed] = entriesOf(await send({ to: ['boss'], msg: 'y' }, '', headers))
    assert.equal(changed?.code, 422)
  })
})

test('a mention of everybody needs a key that is allowed it', async () => {
  for (const body of [{ to: 'ops', msg: 'x', at: 'all' }, { to: 'ops', messages: [{ type: 'at', user_id: 'all' }, { msg: 'x' }] }]) {
    assert.match(failureOf(await send(body, '', { 'x-api-key': 'the-secret-of-quiet' }), 403), /permission mention-all/)
    assert.deepEqual(places(), [])
    assert.equal((await send(body, '', { 'x-api-key': 'the-secret-of-loud' })).status, 200)
    relay.simulator.clear()
  }
})

describe('a dry run', () => {
  test('shows the platform messages, and sends nothing', async () => {
    const file = await upload(relay, 'chart.png', 'picture')
    const messages = [
      { type: 'at', user_id: user }, { msg: 'a' }, { type: 'image', url: file }, { type: 'file', url: 'https://ci.example.com/build.log' },
      { type: 'image' }, { type: 'image', url: `base64://${Buffer.from('bytes').toString('base64')}` },
    ]
    const { data } = await send({ to: 'ops', messages }, '?dry_run=1', { 'idempotency-key': 'dry' })
    assert.deepEqual([data.dry_run, data.success, data.target, data.bot], [true, false, `group:${group}`, 'onebot:10000'])
    assert.deepEqual(data.messages, [
      [
        { type: 'at', user_id: user },
        { type: 'text', msg: 'a' },
        { type: 'image', name: 'chart.png', size: 7, sha256: sha256('picture') },
        { type: 'image', size: 5, sha256: sha256('bytes') },
      ],
      [{ type: 'file', url: 'https://ci.example.com/build.log' }],
    ])
    assert.deepEqual(data.wrong, [{ index: 4, code: 400, msg: 'url is required for type image' }])
    assert.deepEqual(places(), [])
    // The key is still free, for whatever it is used.
    assert.equal((await send({ to: 'ops', msg: 'x' }, '', { 'idempotency-key': 'dry' })).status, 200)
  })

  test('has the same rights and the same rate, and shows each of several targets', async () => {
    failureOf(await send({ to: 'boss', msg: 'x' }, '?dry_run=1', { 'x-api-key': 'the-secret-of-narrow' }), 403)
    const entries = entriesOf(await send({ to: ['ops', 'group:nobody'], msg: 'x' }, '?dry_run=true'))
    assert.deepEqual(entries.map(({ success, code }) => [success, code]), [[true, undefined], [false, 400]])
    failureOf(await send({ to: 'ops', type: 'image', url: '0b0e0f5e-9c7b-4a53-9a44-0123456789ab/gone.png' }, '?dry_run=1'), 404)
    const statuses: number[] = []
    for (let count = 0; count < 4; count++) statuses.push((await send({ to: 'ops', msg: 'x' }, '?dry_run=1', { 'x-api-key': 'the-secret-of-slower' })).status)
    assert.equal(statuses.at(-1), 429)
    assert.deepEqual(places(), [])
  })

  test('is refused where nobody knows what is meant', async () => {
    assert.match(failureOf(await send({ to: 'ops', msg: 'x' }, '?dry_run=maybe'), 400), /dry_run must be/)
  })
})
