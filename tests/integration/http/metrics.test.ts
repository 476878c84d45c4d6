import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { serve } from '../../support/listen'
import { missing, promtool } from '../../support/promtool'
import { apiKey, useRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { relayWith, takeOffline } from '../deliveries/support'

const group = '123456'
const other = '654321'

/** The metrics with their values, by name and labels as they stand there, without the part that all names have in common. */
async function metricsOf(relay: Pick<TestRelay, 'request'>): Promise<Map<string, number>> {
  const response = await relay.request('/metrics')
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const lines = (await response.text()).split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(lines.map(line => {
    const [, name = '', value] = /^message_relay_(\S+(?:\{.*\})?) (\S+)$/.exec(line) ?? []
    return [name, Number(value)]
  }))
}

/** How much the metrics grow meanwhile, without those that do not. */
async function growth(relay: Pick<TestRelay, 'request'>, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await metricsOf(relay)
  await work()
  const grown = [...await metricsOf(relay)].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const)
  return Object.fromEntries(grown.filter(([name, value]) => value !== 0 && !name.includes('/metrics')))
}

describe('GET /metrics', () => {
  const relay = useRelay({ config: { chatApiTimeout: 0.5, chatApiMaxRetries: 1, chatPauseAfter: 3, targets: { ops: `group:${other}` } } })

  test('tells of each door what became of its messages, and how long that took', async () => {
    const grown = await growth(relay, async () => {
      await relay.send({ group_id: group, msg: 'a' })
      await relay.request(`/send/group:${group},private:10001`, { method: 'POST', body: 'b' })
      await relay.request(`/hooks/message/group:${group}`, { method: 'POST', body: '{"text":"c"}' })
      const json = { 'content-type': 'application/json' }
      await relay.request('/onebot/send_group_msg', { method: 'POST', headers: json, body: JSON.stringify({ group_id: group, message: 'd' }) })
      relay.simulator.fault({ fault: { kind: 'refuse' }, times: 2 })
      await relay.send({ group_id: group, msg: 'e' })
    })
    for (const [door, sent] of [['webhook', 1], ['send', 2], ['hooks/message', 1], ['onebot', 1]] as const) {
      assert.equal(grown[`deliveries_total{door="${door}",outcome="sent"}`], sent, door)
      assert.equal(grown[`delivery_duration_seconds_count{door="${door}"}`], sent, door)
    }
    assert.equal(grown['deliveries_total{door="webhook",outcome="refused"}'], 1)
    assert.equal(grown['call_duration_seconds_count{outcome="sent"}'], 5)
    assert.equal(grown['call_duration_seconds_count{outcome="refused"}'], 2)
    assert.equal(grown['http_requests_total{route="/webhook",method="POST",status="200"}'], 1)
    assert.equal(grown['http_requests_total{route="/webhook",method="POST",status="502"}'], 1)
    assert.equal(grown['http_requests_total{route="/send/:targets",method="POST",status="200"}'], 1)
    assert.equal(grown['http_requests_total{route="/hooks/:source/:targets",method="POST",status="200"}'], 1)
  })

  test('tells of replies to commands', async t => {
    await relay.reload({ commandCallbackUrl: await serve(t, (_, response) => response.end('{"reply":"pong"}')) })
    const grown = await growth(relay, async () => {
      relay.simulator.say({ group, user: '10001', text: '#ping ' })
      await until('there is a reply', async () => ((await metricsOf(relay)).get('deliveries_total{door="commands",outcome="sent"}') ?? 0) > 0)
    })
    assert.equal(grown['deliveries_total{door="commands",outcome="sent"}'], 1)
    await relay.reload()
  })

  test('tells of calls without an answer, and what was found then', async () => {
    const grown = await growth(relay, async () => {
      relay.simulator.fault({ fault: { kind: 'late', ms: 0, answered: false } })
      assert.equal((await relay.send({ group_id: group, msg: 'found in the history' })).status, 200)
    })
    assert.equal(grown['call_duration_seconds_count{outcome="unanswered"}'], 1)
    assert((grown['lookups_total{finding="found"}'] ?? 0) >= 1, JSON.stringify(grown))
    assert.equal(grown['deliveries_total{door="webhook",outcome="sent"}'], 1)
  })

  test('tells of uploads, of refused keys, and of methods that a path does not have', async () => {
    const grown = await growth(relay, async () => {
      const form = new FormData()
      form.append('a', new Blob(['12345']), 'a.txt')
      form.append('b', new Blob(['123']), 'b.txt')
      assert.equal((await relay.request('/upload', { method: 'POST', body: form })).status, 200)
      await fetch(`${relay.url}/webhook`, { method: 'POST' })
      await relay.request('/webhook', { method: 'PATCH' })
    })
    assert.deepEqual([grown.uploads_total, grown.upload_bytes_total], [2, 8])
    assert.equal(grown['refusals_total{reason="unauthorized"}'], 1)
    assert.equal(grown['http_requests_total{route="/webhook",method="POST",status="401"}'], 1)
    assert.equal(grown['http_requests_total{route="/webhook",method="other",status="405"}'], 1)
  })

  test('tells of what waits and is paused', async () => {
    relay.simulator.fault({ fault: { kind: 'late', ms: 500 }, target: other })
    const answers = ['a', 'b', 'c'].map(msg => relay.send({ to: 'ops', msg }))
    await until('two wait', async () => (await metricsOf(relay)).get('queue_waiting') === 2)
    const waiting = await metricsOf(relay)
    assert.equal(waiting.get('queue_waiting_longest'), 2)
    assert((waiting.get('oldest_waiting_seconds') ?? 0) > 0)
    await Promise.all(answers)
    relay.simulator.fault({ fault: { kind: 'not-member' }, times: 3 })
    const grown = await growth(relay, async () => {
      for (let i = 0; i < 3; i++) assert.equal((await relay.send({ to: 'ops', msg: 'a' })).status, 502)
    })
    assert.equal(grown.pauses_total, 1)
    assert.equal(grown.queues_paused, 1)
    assert.equal((await metricsOf(relay)).get('bots{status="online"}'), 1)
  })

  test('goes on counting when the plugin is loaded again', async () => {
    const before = await metricsOf(relay)
    await relay.reload()
    await relay.send({ group_id: group, msg: 'after' })
    const name = 'deliveries_total{door="webhook",outcome="sent"}'
    assert.equal((await metricsOf(relay)).get(name), (before.get(name) ?? 0) + 1)
  })

  test('names no target, key, file or template, and nothing that was sent', async () => {
    await relay.reload({ keys: [{ name: 'the-name-of-a-key', key: 'the-secret-of-a-key' }] })
    await relay.send({ group_id: group, msg: 'the-text' })
    const labels = [...(await metricsOf(relay)).keys()].join('\n')
    for (const secret of [group, other, '10000', '10001', 'ops', 'the-name', 'the-secret', 'the-text', 'a.txt', apiKey]) assert(!labels.includes(secret), secret)
  })

  test('is what Prometheus reads', { skip: missing }, async () => {
    const { code, text } = await promtool(['check', 'metrics'], await (await relay.request('/metrics')).text())
    assert.deepEqual({ code, text }, { code: 0, text: '' })
  })
})

test('GET /metrics tells what waits to be sent later, and of which door it was when it has left', async t => {
  const relay = await relayWith(t)
  const online = await takeOffline(relay)
  await relay.queue('a')
  await relay.queue('b')
  await until('they wait', async () => (await metricsOf(relay)).get('outbox_waiting') === 2)
  assert((await metricsOf(relay)).get('oldest_waiting_seconds') !== undefined)
  assert.equal((await metricsOf(relay)).get('bots{status="online"}'), 0)
  await online()
  await until('they were sent', async () => (await metricsOf(relay)).get('deliveries_total{door="webhook",outcome="sent"}') === 2)
  assert.equal((await metricsOf(relay)).get('outbox_waiting'), 0)
})
