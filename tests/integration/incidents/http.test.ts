import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { RelayIncident, RelayIncidentEntry } from '../../../src'
import { fieldsOf, isObject, type JsonObject } from '../../../src/lib/shape'
import { hour } from '../../../src/lib/time'
import { serve } from '../../support/listen'
import { apiKey, askAs, relayFor, useRelay, type Reply, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

const ack = { from: 'warning', escalate: [{ after: '5m', mention: 'all' }] }
const keys = [
  { name: '看板', key: 'the-key-that-reads', allow: ['read'], targets: ['ops'] },
  { name: 'duty', key: 'the-key-that-acts', allow: ['manage'], targets: ['ops'] },
  { name: 'partly', key: 'the-key-of-one-chat', allow: ['read', 'manage'], targets: ['group:3'] },
  { name: 'sender', key: 'the-key-that-sends', allow: ['send'] },
  { name: 'boss', key: 'the-key-for-any-target', allow: ['manage'] },
]
const [reads, acts, partly, sends, boss] = keys.map(({ key }) => key)
const targets = { ops: { to: 'group:1', ack }, db: { to: ['group:2', 'group:3'], ack }, plain: 'group:1' }
const people = { 'li-lei': { onebot: 10001, name: '李雷' } }
const relay = useRelay({ config: { keys, targets, people } })

const ask = (method: string, path: string, body?: unknown, key = apiKey): Promise<Reply> => askAs(relay, key, method, path, body)

let count = 0

/** An event that begins an incident. @returns the incident */
async function begin(to = 'ops', title = 'the disk is full', severity = 'critical'): Promise<JsonObject> {
  const thread = `thread ${++count}`
  assert.equal((await ask('POST', '/webhook', { to, msg: title, severity, thread })).status, 200)
  const found = (await list()).find(each => each.thread === thread)
  assert(found, `there is no incident of ${title}`)
  return found
}

async function list(query = '', key?: string): Promise<JsonObject[]> {
  const { status, msg, data: { incidents } } = await ask('GET', `/incidents${query}`, undefined, key)
  assert.equal(status, 200, msg)
  assert(Array.isArray(incidents))
  return incidents.filter(isObject)
}

const show = async (id: unknown): Promise<JsonObject> => (await ask('GET', `/incidents/${String(id)}`)).data
const act = (id: unknown, action: string, body?: unknown, key?: string): Promise<Reply> => ask('POST', `/incidents/${String(id)}/${action}`, body, key)
const timeline = ({ timeline: entries }: JsonObject): JsonObject[] => Array.isArray(entries) ? entries.filter(isObject) : []
const near = (time: unknown, expected: number): boolean => Math.abs(Date.parse(String(time)) - expected) < 60_000

describe('an incident over HTTP', () => {
  test('is listed, taken, silenced, released and resolved, with who did it by which key', async () => {
    const now = Date.now()
    const { id, since, next_step_at: step, thread, ...rest } = await begin()
    assert.deepEqual(rest, { name: 'ops', state: 'open', severity: 'critical', target: 'ops', title: 'the disk is full', events: 1 })
    assert(near(since, now) && near(step, now + 300_000), `${String(since)} ${String(step)} ${String(thread)}`)
    assert.match(String(id), /^[a-z0-9]{5}$/)

    const taken = await act(id, 'take', { by: '韩梅梅' }, acts)
    assert.deepEqual([taken.status, taken.data.state, taken.data.owner, taken.data.next_step_at], [200, 'taken', '韩梅梅', undefined])
    const again = await act(String(id).toUpperCase(), 'take', undefined, acts)
    assert.deepEqual([again.status, again.data.owner, timeline(again.data).length], [200, '韩梅梅', 2])

    const silenced = await act(id, 'silence', { until: '2h', by: 'li-lei' }, acts)
    assert(silenced.data.state === 'silenced' && near(silenced.data.silenced_until, Date.now() + 2 * hour))
    assert.equal((await act(id, 'release', {})).data.state, 'taken')
    assert.equal((await act(id, 'release')).data.state, 'open')
    const { data: resolved } = await act(id, 'resolve', { by: '' }, acts)
    assert(resolved.state === 'resolved' && near(resolved.resolved_at, Date.now()))
    assert.deepEqual(timeline(await show(id)).map(({ at, until: end, ...entry }) => [String(at).length, typeof end, entry]), [
      [24, 'undefined', { kind: 'opened' }],
      [24, 'undefined', { kind: 'taken', by: '韩梅梅', way: 'http', key_name: 'duty' }],
      [24, 'string', { kind: 'silenced', by: '李雷', way: 'http', person: 'li-lei', key_name: 'duty' }],
      [24, 'undefined', { kind: 'released', by: 'master key', way: 'http' }],
      [24, 'undefined', { kind: 'released', by: 'master key', way: 'http' }],
      [24, 'undefined', { kind: 'resolved', by: 'duty', way: 'http', key_name: 'duty' }],
    ])
    const late = await act(id, 'take', undefined, acts)
    assert.deepEqual([late.status, late.data.state], [200, 'resolved'])
    assert(relay.logs.some(line => line.includes(`incident ${String(id)} is taken (by the key "duty" from 127.0.0.1)`)), relay.logs.at(-1))
  })

  test('tells its chats', async () => {
    const { id } = await begin()
    relay.simulator.clear()
    await act(id, 'take', { by: '韩梅梅' })
    await until('the group knows', () => relay.simulator.ledger.some(({ text: said }) => said.includes('韩梅梅')))
  })

  test('is found by state, name and time', async () => {
    const [one, two] = [await begin(), await begin('db')]
    await act(two.id, 'take')
    const ids = async (query: string): Promise<unknown[]> =>
      (await list(query)).map(({ id }) => id).filter(id => id === one.id || id === two.id)
    assert.deepEqual(await ids(''), [two.id, one.id])
    assert.deepEqual(await ids('?state=open'), [one.id])
    assert.deepEqual(await ids('?state=taken,silenced&target='), [two.id])
    assert.deepEqual(await ids('?target=ops'), [one.id])
    assert.deepEqual(await ids('?target=nobody'), [])
    assert.deepEqual(await ids(`?since=${encodeURIComponent(String(two.since))}`), [two.id])
    assert.deepEqual(await ids('?since=2999-01-01T00:00:00%2B08:00'), [])
  })

  test('belongs to keys that may send to its name', async () => {
    const [ops, db] = [await begin(), await begin('db')]
    for (const { name } of await list('', reads)) assert.equal(name, 'ops')
    assert((await list('?target=ops', reads)).some(({ id }) => id === ops.id))
    assert.deepEqual([await list('?target=db', reads), await list('', partly)], [[], []])
    assert.equal((await ask('GET', '/incidents', undefined, sends)).status, 403)
    for (const key of [acts, partly]) {
      for (const reply of [await ask('GET', `/incidents/${String(db.id)}`, undefined, key), await act(db.id, 'take', undefined, key)]) assert.equal(reply.status, 404)
    }
    assert.equal((await act(ops.id, 'take', undefined, reads)).status, 403)
    assert.deepEqual([(await show(ops.id)).state, (await show(db.id)).state], ['open', 'open'])
  })

  test('is taken by exactly one of many', async () => {
    const { id } = await begin()
    const replies = await Promise.all(Array.from({ length: 50 }, (_, index) => act(id, 'take', { by: `member ${index}` })))
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200])
    assert.equal(new Set(replies.map(({ data }) => data.owner)).size, 1)
    assert.equal(timeline(await show(id)).filter(({ kind }) => kind === 'taken').length, 1)
  })

  test('refuses what is wrong, by the name of the field, and changes nothing', async () => {
    const { id } = await begin()
    const wrong: [action: string, body: unknown, field: RegExp][] = [
      ...[7, ['a'], 'a\nb', 'x\u0000', '\u202eevil', 'x'.repeat(65), '\ud800'].map((by): [string, unknown, RegExp] => ['take', { by }, /^by must/]),
      ['take', { until: '2h' }, /until/], ['resolve', { who: 'me' }, /who/], ['take', [], /JSON object/], ['take', 'me', /JSON object/],
      ...['59', '59s', '8d', 604_801, -1, 1e300, '1y', 'tomorrow', '2999-01-01T00:00:00Z', '2026-02-30T00:00:00Z', '2026-11-28T12:00', true, {}, []]
        .map((until): [string, unknown, RegExp] => ['silence', { until }, /^until must/]),
    ]
    for (const [action, body, field] of wrong) {
      const { status, msg } = await act(id, action, body)
      assert.equal(status, 400, JSON.stringify(body))
      assert.match(msg, field)
    }
    for (const query of ['state=new', 'state=open,', 'since=yesterday', 'since=7', 'target=group:1', 'target=a%00', 'target=%F0%9F%98%80']) {
      assert.equal((await ask('GET', `/incidents?${query}`)).status, 400, query)
    }
    for (const path of ['none', `${String(id)}%00`, '%00', `${String(id)}'--`, 'é', 'x'.repeat(5_000)]) {
      assert.deepEqual([(await ask('GET', `/incidents/${path}`)).status, (await act(path, 'take')).status], [404, 404], path)
    }
    assert.equal((await act(id, 'delete')).status, 404)
    assert.deepEqual([(await show(id)).state, timeline(await show(id)).length], ['open', 1])
  })

  test('is silenced until a time with an offset', async () => {
    const { id } = await begin()
    const end = new Date(Math.floor(Date.now() / 1000) * 1000 + 2 * hour)
    const written = new Date(end.getTime() + 8 * hour).toISOString().replace('.000Z', '+08:00')
    assert.equal((await act(id, 'silence', { until: written })).data.silenced_until, end.toISOString())
    const { data } = await act(id, 'silence', { until: 3600 })
    assert(near(data.silenced_until, Date.now() + hour))
  })

  test('stays with the master key once its name is gone', async () => {
    const { id } = await begin()
    await relay.reload({ keys, targets: { plain: targets.plain } })
    assert.deepEqual([(await show(id)).state, (await ask('GET', `/incidents/${String(id)}`, undefined, boss)).status], ['open', 404])
    assert.equal((await act(id, 'resolve')).data.state, 'resolved')
    await relay.reload()
    assert.equal((await ask('GET', `/incidents/${String(id)}`, undefined, boss)).status, 200)
  })

  test('counts in the metrics', async () => {
    const metric = async (name: string): Promise<number> => {
      const body = await (await relay.request('/metrics')).text()
      return Number(new RegExp(`^message_relay_${name} (\\S+)$`, 'm').exec(body)?.[1])
    }
    const [open, taken] = [await metric('incidents{state="open"}'), await metric('incident_taken_seconds_count')]
    const { id } = await begin()
    assert.equal(await metric('incidents{state="open"}'), open + 1)
    await act(id, 'take')
    await until('it is counted', async () => await metric('incident_taken_seconds_count') > taken)
    assert.equal(await metric('incidents{state="open"}'), open)
  })
})

test('what happens to incidents is posted to the callback and told to plugins, also what a relay before had no time for', async t => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const posts = new Map<string, string>()
  let isDown = true
  const url = await serve(t, (request, response) => void text(request).then(body => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    new Webhook(secret).verify(body, headers)
    const { type, data } = fieldsOf(JSON.parse(body))
    if (!isDown) posts.set(headers['webhook-id'] ?? '', `${String(type)} by ${String(fieldsOf(fieldsOf(data).entry).by)}`)
    response.writeHead(isDown ? 503 : 200).end()
  }))
  const other: TestRelay = await relayFor(t, { config: { targets, incidentCallbackUrl: url, incidentCallbackSecret: secret } })
  const heard: [RelayIncident, RelayIncidentEntry][] = []
  other.app.on('message-relay/incident', (incident, entry) => void heard.push([incident, entry]))
  await other.send({ to: 'ops', msg: 'the disk is full', severity: 'critical', thread: 'db1' })
  await until('a plugin knows', () => heard.length === 1)
  const [incident, entry] = heard[0] ?? []
  assert.deepEqual([incident?.title, incident?.state, entry?.kind], ['the disk is full', 'open', 'opened'])
  await other.reload()
  isDown = false
  assert.equal((await askAs(other, apiKey, 'POST', `/incidents/${incident?.id ?? ''}/take`, { by: '李雷' })).status, 200)
  await until('the callback knows', () => posts.size === 2)
  assert.deepEqual([...posts.values()], ['incident.opened by undefined', 'incident.taken by 李雷'])
})
