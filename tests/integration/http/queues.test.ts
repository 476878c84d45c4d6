import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, later, other, relayWith, releaseHeld, takeOffline, type StoredRelay } from '../deliveries/support'
import { apiKey } from '../../support/relay'
import { record, records } from '../../docs/support/json'
import { failFiles } from '../../support/data-file'
import { until } from '../../support/until'

const queue = `onebot:10000/group:${group}`
const path = `/queues/${encodeURIComponent(queue)}`

async function queues(relay: StoredRelay): Promise<unknown> {
  const { status, data, msg } = await relay.ask('/queues')
  assert.equal(status, 200, msg)
  return data.queues
}

describe('GET /queues', () => {
  test('shows what waits for a message that is on its way, callers and stored ones alike', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'hold' } })
    const answers = [relay.post({ group_id: group, msg: 'a' })]
    await until('it is under way', () => relay.simulator.calls.length > 0)
    answers.push(relay.post({ group_id: group, msg: 'b' }))
    await relay.queue('c')
    await relay.queue('d')
    await until('all of them wait', async () => JSON.stringify(await queues(relay)) === JSON.stringify([
      { queue, bot: 'onebot:10000', target: `group:${group}`, waiting: 3, state: 'busy' },
    ]))
    await releaseHeld(relay)
    await Promise.all(answers)
    await until('all have left', async () => relay.texts().length === 4 && JSON.stringify(await queues(relay)) === '[]')
  })

  for (const interval of ['chatSendInterval', 'chatAccountInterval']) {
    test(`shows no more a caller who goes away, also while only ${interval} is waited out`, async t => {
      const relay = await relayWith(t, { config: { [interval]: 0.5 } })
      assert.equal((await relay.post({ group_id: group, msg: 'first' })).status, 200)
      const gone = new AbortController()
      const request = relay.request('/webhook', { method: 'POST', body: JSON.stringify({ group_id: group, msg: 'gone' }), signal: gone.signal })
      await until('it waits', async () => JSON.stringify(await queues(relay)).includes('"waiting":1'))
      gone.abort()
      await assert.rejects(request)
      await until('it does not', async () => JSON.stringify(await queues(relay)) === '[]')
      assert.equal((await relay.post({ group_id: group, msg: 'last' })).status, 200)
      assert.deepEqual(relay.texts(), ['first', 'last'])
    })
  }

  test('and each place that shows what waits, says why one is held, and until when', async t => {
    const relay = await relayWith(t)
    const hook = async (targets: string): Promise<Record<string, unknown>> => {
      const headers = { 'content-type': 'application/json' }
      const answer: unknown = await (await relay.request(`/hooks/message/${targets}`, { method: 'POST', body: '{"message":"hook"}', headers })).json()
      return record(record(answer).data)
    }
    assert.equal((await relay.post({ group_id: group, msg: 'first' })).status, 200)
    relay.simulator.mute(group, true, 600)
    await until('it is held', async () => records(await queues(relay)).length === 1)
    const { held } = record(records(await queues(relay))[0])
    const { until: end, since, ...why } = record(held)
    assert.deepEqual(why, { cause: 'muted', reason: 'the bot is muted in this group' })
    assert(Math.abs(Date.parse(String(since)) - Date.now()) < 30_000)
    // The platform tells whole seconds.
    const rest = Date.parse(String(end)) - Date.now()
    assert(rest > 550_000 && rest <= 601_000, String(rest))

    const { data: { delivery_id: id, ...accepted } } = await relay.post({ group_id: group, msg: 'later' }, later)
    assert.deepEqual(accepted, { state: 'queued', held })
    assert.deepEqual((await hook(`group:${group}`)).held, held)
    assert.deepEqual(records((await hook(`group:${group},group:${other}`)).deliveries).map(entry => entry.held), [held, undefined])
    assert.deepEqual([(await relay.show(String(id))).held, (await relay.list('?state=queued')).at(-1)?.held], [held, held])
    const [shown] = records((await relay.ask('/statusz')).data.queues)
    assert.deepEqual(shown, { queue, waiting: 3, held })
    const metrics = await (await relay.request('/metrics')).text()
    assert.match(metrics, /^message_relay_queues_held 1$/m)
    assert.match(metrics, /^message_relay_bots\{status="restricted"\} 0$/m)

    const { status, headers, error } = await relay.post({ group_id: group, msg: 'waits' })
    assert.equal(status, 503)
    assert(Number(headers.get('retry-after')) <= 60)
    assert.equal(error.held_until, end)
    relay.simulator.mute(group, false)
    await until('all have left', () => relay.texts().length === 5)
    assert.equal((await relay.show(String(id))).held, undefined)
  })

  test('tells a bot that is offline from a pause', async t => {
    const relay = await relayWith(t)
    await takeOffline(relay)
    await relay.queue('a')
    const reason = 'the bot is not connected'
    assert.deepEqual(await queues(relay), [{ queue, bot: 'onebot:10000', target: `group:${group}`, waiting: 1, state: 'offline', reason }])
    const [shown] = await relay.list('?state=queued')
    const { data: { bots, outbox } } = await relay.ask('/statusz')
    assert.deepEqual(shown?.held, { cause: 'offline', reason, since: records(bots)[0]?.since, until: null })
    assert.match(JSON.stringify(bots), /^\[\{"platform":"onebot","self_id":"10000","status":"(?!online)\w+",/)
    assert.match(JSON.stringify(outbox), /^\{"size":1,"oldest":"20/)
  })

  test('shows a key no target but its own', async t => {
    const relay = await relayWith(t)
    await takeOffline(relay)
    await relay.queue('a')
    await relay.reload({ apiKey, keys: [{ name: 'other', key: 'the-secret-of-other', targets: [`group:${other}`], allow: ['read', 'manage'] }] })
    const ask = async (at: string, method = 'GET'): Promise<unknown> =>
      (await fetch(relay.url + at, { method, headers: { authorization: 'Bearer the-secret-of-other' } })).json()
    assert.deepEqual(await ask('/queues'), { code: 0, msg: 'ok', data: { queues: [] } })
    assert.deepEqual(record(record(await ask('/statusz')).data).queues, [])
    assert.deepEqual(await ask(path, 'DELETE'), { code: 404, msg: 'nothing is waiting in a queue of this name', data: null, error: { id: 'not-found' } })
  })
})

describe('POST /queues/<queue>/resume', () => {
  test('knows only queues in which something waits or that are paused', async t => {
    const relay = await relayWith(t)
    for (const name of [queue, 'x', '%00', encodeURIComponent('onebot:10000/group:')]) {
      assert.equal((await relay.ask(`/queues/${encodeURIComponent(name)}/resume`, 'POST')).status, 404)
    }
  })
})

describe('DELETE /queues/<queue>', () => {
  test('is written once the data file takes it down', async t => {
    const relay = await relayWith(t)
    await takeOffline(relay)
    const id = await relay.queue('stored')
    const restore = failFiles('run')
    assert.deepEqual((await relay.ask(path, 'DELETE')).data, { queue, dropped: 1 })
    restore()
    await relay.reload()
    assert.equal((await relay.show(id)).state, 'failed')
  })

  test('gives up what waits, tells its callers, and leaves what is on its way', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'hold' } })
    const first = relay.post({ group_id: group, msg: 'on its way' })
    await until('it is under way', () => relay.simulator.calls.length > 0)
    const waiting = relay.post({ group_id: group, msg: 'waits' })
    const ids = [await relay.queue('stored'), await relay.queue('stored as well')]
    await until('all of them wait', async () => JSON.stringify(await queues(relay)).includes('"waiting":3'))
    assert.deepEqual((await relay.ask(path, 'DELETE')).data, { queue, dropped: 3 })
    const { status, msg, headers } = await waiting
    assert.deepEqual([status, msg, headers.get('relay-outcome')], [503, 'dropped by an operator while it was waiting: nothing was sent', 'unsent'])
    await releaseHeld(relay)
    assert.equal((await first).status, 200)
    for (const id of ids) {
      const { state, results: [result] } = await relay.show(id)
      assert.deepEqual([state, result?.outcome, result?.msg], ['failed', 'unsent', msg])
    }
    assert.deepEqual(relay.texts(), ['on its way'])
    // What was stored can be sent after all.
    assert.equal((await relay.ask(`/deliveries/${ids[0]}/retry`, 'POST')).status, 202)
    await relay.reaches(String(ids[0]), 'sent')
  })
})
