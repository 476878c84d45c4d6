import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { read } from '../../support/relay'
import { until } from '../../support/until'
import { group, relayWith, takeOffline } from './support'

const minute = 60_000

/** A time of the day in UTC, so many minutes from now. */
function clockIn(minutes: number): string {
  return new Date(Date.now() + minutes * minute).toISOString().slice(11, 16)
}

/** Hours that began a while ago and last for another while. */
const quiet = { from: clockIn(-60), to: clockIn(60), zone: 'UTC' }

const targets = { night: { to: `group:${group}`, quiet }, hourly: { to: `group:${group}`, digest: 60 } }

test('quiet hours answer a caller at once, let what is urgent through, and are told', async t => {
  const relay = await relayWith(t, { config: { targets } })
  const held = await relay.post({ to: 'night', msg: 'backup done' })
  assert.equal(held.status, 202)
  assert.equal(held.data.state, 'queued')
  assert.match(JSON.stringify(held.data.held), new RegExp(`"cause":"quiet","reason":"quiet hours until ${quiet.to}"`))
  assert.equal((await relay.post({ to: 'night', msg: 'disk full', urgent: true })).status, 200)
  assert.equal((await relay.post({ group_id: group, msg: 'direct' })).status, 200)
  assert.deepEqual(relay.texts(), ['disk full', 'direct'])
  const { data: { queues } } = await relay.ask('/queues')
  assert.match(JSON.stringify(queues), /"waiting":1,.*"later":1,"later_by":\{"quiet":1\},"next_at":"/)
  assert.match(JSON.stringify((await relay.ask('/deliveries/counts')).data), /"states":\{"queued":1,/)
  const shown = await relay.show(String(held.data.delivery_id))
  assert.deepEqual([shown.state, shown.name], ['queued', 'night'])
  const { data } = await relay.ask(`/deliveries/${shown.id}`, 'DELETE')
  assert.equal(data.state, 'withdrawn')
})

describe('an order for later', () => {
  test('is listed by its state, with and without what else is queued', async t => {
    const relay = await relayWith(t, { config: { targets } })
    const held = String((await relay.post({ to: 'night', msg: 'held' })).data.delivery_id)
    const orders: string[] = []
    for (let index = 0; index < 3; index++) orders.unshift(String((await relay.post({ group_id: group, msg: 'x', send_at: 3600 })).data.delivery_id))
    assert.equal((await relay.post({ group_id: group, msg: 'now' })).status, 200)
    const idsOf = async (query: string): Promise<string[]> => (await relay.list(query)).map(({ id }) => id)
    assert.deepEqual(await idsOf('?state=scheduled'), orders)
    assert.deepEqual(await idsOf('?state=queued'), [...orders, held])
    assert.deepEqual(await idsOf('?state=queued,scheduled'), [...orders, held])
    assert.deepEqual(await idsOf('?state=waiting'), [held])
    assert.deepEqual(await idsOf('?state=waiting,scheduled'), [...orders, held])
    const { states } = (await relay.ask(`/deliveries/counts?target=group:${group}`)).data
    assert.match(JSON.stringify(states), /"queued":4,.*"scheduled":3/)
    assert.equal((await idsOf('?state=scheduled,sent')).length, 4)
    const { headers } = await relay.ask('/deliveries?state=scheduled&limit=2')
    const [, next = ''] = /<([^>]+)>/.exec(headers.get('link') ?? '') ?? []
    assert.deepEqual((await relay.ask(next)).data.deliveries, (await relay.list('?state=scheduled')).slice(2))
    const { status, msg } = await relay.ask('/deliveries?state=held')
    assert.deepEqual([status, msg], [400, 'state must be one of queued, sending, sent, failed, unanswered, expired, scheduled, waiting, or several with commas'])
  })

  test('may stand in the query, and in a part of a form', async t => {
    const relay = await relayWith(t)
    const asked = await relay.ask('/webhook?send_at=3600&expires_in=60', 'POST', { group_id: group, msg: 'x' })
    assert.deepEqual([asked.status, asked.data.state], [202, 'scheduled'])
    const form = new FormData()
    for (const [name, value] of [['msg', 'x'], ['send_at', '3600'], ['expires_in', '60']] as const) form.append(name, value)
    const sent = await read(await relay.request(`/send/group:${group}`, { method: 'POST', body: form }))
    const shown = await Promise.all([asked, sent].map(({ data }) => relay.show(String(data.delivery_id))))
    for (const { created_at: at, expires_at: until } of shown) {
      assert.equal(Math.round((Date.parse(String(until)) - Date.parse(String(at))) / 1000), 3660)
    }
  })

  test('is shown by a dry run, with what a name has it wait for', async t => {
    const relay = await relayWith(t, { config: { targets: { ...targets, oncall: { first: ['telegram:group:1', `group:${group}`, 'http://127.0.0.1:1/'] } } } })
    const dry = async (body: object): Promise<Record<string, unknown>> => {
      const reply = await relay.request('/webhook?dry_run=1', { method: 'POST', body: JSON.stringify({ msg: 'x', ...body }) })
      return fieldsOf(fieldsOf(await reply.json()).data)
    }
    const { state, send_at: at } = await dry({ to: `group:${group}`, send_at: '2020-01-01T10:00:00+08:00' })
    assert.deepEqual([state, at], [undefined, undefined], 'in the past is now')
    const order = await dry({ to: `group:${group}`, send_at: 3600 })
    assert.deepEqual([order.state, Date.parse(String(order.send_at)) > Date.now()], ['scheduled', true])
    assert.equal(fieldsOf((await dry({ to: 'night' })).held).cause, 'quiet')
    assert.equal((await dry({ to: 'night', urgent: true })).held, undefined)
    const { target, bot, ways, success } = await dry({ to: 'oncall' })
    assert.deepEqual([success, target, bot], [true, `group:${group}`, 'onebot:10000'])
    assert.deepEqual(ways, ['telegram:group:1', `group:${group}`, 'http:group:oncall/3'])
    assert.deepEqual([relay.texts(), await relay.list()], [[], []])
    assert.equal((await relay.post({ to: 'hourly', msg: 'x' })).status, 200)
    assert.equal(fieldsOf((await dry({ to: 'hourly' })).held).cause, 'digest')
    assert.equal((await dry({ to: 'hourly', msg: undefined, type: 'image', url: 'http://example.com/x.png' })).held, undefined)
  })
})

test('a backlog of hooks leaves as one message that says why it is late, and tells alerts without their labels', async t => {
  const relay = await relayWith(t)
  const goOnline = await takeOffline(relay)
  const hook = (source: string, payload: object): Promise<Response> => (
    relay.request(`/hooks/${source}/group:${group}`, { method: 'POST', body: JSON.stringify(payload), headers: { 'content-type': 'application/json' } }))
  for (let index = 0; index < 19; index++) await hook('message', { text: `line ${index}` })
  const labels = { alertname: 'DiskFull', severity: 'critical', instance: 'db-1' }
  await hook('alertmanager', { status: 'firing', alerts: [{ status: 'firing', labels, annotations: { summary: 'db-1: disk is full' } }], commonLabels: labels })
  await until('its queue is offline', async () => JSON.stringify(await relay.ask('/queues')).includes('"offline"'))
  await goOnline()
  await until('it was sent', () => relay.texts().length > 0)
  assert.match(relay.texts()[0] ?? '', /^📋 .*(离线|offline)[^]*line 18\n🔥 DiskFull: db-1: disk is full$/)
  assert.equal(relay.texts().length, 1)
  await until('the log names their digest', () => relay.logs.filter(line => / sent in digest [\w-]{36}$/.test(line)).length === 20)
})
