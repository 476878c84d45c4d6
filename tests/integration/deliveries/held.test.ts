import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fieldsOf, type JsonObject } from '../../../src/lib/shape'
import type { Simulator } from '../../../simulator'
import { until } from '../../support/until'
import { post } from '../hooks/support'
import { group, relayWith, takeOffline, type StoredRelay } from './support'

/** Posts as Alertmanager does. */
async function alert(relay: StoredRelay, name: string): Promise<void> {
  const alerts = [{ status: 'firing', labels: { alertname: name }, annotations: {} }]
  const { status, text } = await post(relay, `alertmanager/group:${group}`, { version: '4', status: 'firing', groupKey: name, alerts })
  assert.equal(status, 200, text)
}

/** What `GET /queues` shows of the only queue. */
async function queue(relay: StoredRelay): Promise<JsonObject> {
  const { queues } = (await relay.ask('/queues')).data
  assert(Array.isArray(queues) && queues.length <= 1)
  return fieldsOf(queues[0])
}

/** How often something was to be sent. */
const calls = (simulator: Simulator): number => simulator.calls.filter(({ action }) => action.startsWith('send_')).length

describe('a group that is muted for a while', { concurrency: 3 }, () => {
  test('gets all alerts when that is over, in their order, and none of them has failed', async t => {
    const relay = await relayWith(t, { config: { backlogDigest: 0 } })
    // Nobody is told of a mute while the bot is away.
    const online = await takeOffline(relay)
    relay.simulator.mute(group, true)
    for (const name of ['one', 'two', 'three']) await alert(relay, name)
    await online()
    await until('the first was refused', () => calls(relay.simulator) === 1)
    for (const name of ['four', 'five', 'six']) await alert(relay, name)
    await until('it is known until when', async () => JSON.stringify(await queue(relay)).includes('"until":"2'))
    const states = (await relay.list()).map(({ state }) => state)
    assert.deepEqual([calls(relay.simulator), ...states], [1, 'queued', 'queued', 'queued', 'queued', 'queued', 'queued'])
    relay.simulator.mute(group, true, 1)
    await until('all have arrived', () => relay.texts().length === 6, 10_000)
    assert.deepEqual(relay.texts().map(text => /one|two|three|four|five|six/.exec(text)?.[0]), ['one', 'two', 'three', 'four', 'five', 'six'])
    await until('that is known', async () => (await relay.list()).every(({ state }) => state === 'sent'))
    assert.deepEqual([calls(relay.simulator), await queue(relay)], [7, {}])
  })

  test('refuses the caller who found out, turns the next one away with the time, and takes the first one after that', async t => {
    const relay = await relayWith(t)
    const online = await takeOffline(relay)
    relay.simulator.mute(group, true, 600)
    await online()
    const body = { group_id: group, msg: 'a' }
    const found = await relay.post(body)
    assert.deepEqual([found.status, found.headers.get('relay-outcome')], [502, 'refused'])
    assert.match(found.msg, /: the bot is muted in this group \(platform: "/)
    await until('it is known until when', async () => JSON.stringify(await queue(relay)).includes('"until":"2'))
    const next = await relay.post(body)
    assert.deepEqual([next.status, next.headers.get('relay-outcome')], [503, 'unsent'])
    assert.match(next.msg, /^the bot is muted in this group/)
    const wait = Number(next.headers.get('retry-after'))
    assert(wait > 0 && wait <= 60, String(wait))
    const rest = Date.parse(String(next.data.held_until)) - Date.now()
    // The platform tells whole seconds.
    assert(rest > 550_000 && rest <= 601_000, String(rest))
    const waiting = await relay.queue('b')
    const { queue: name, state, reason, held, waiting: count } = await queue(relay)
    assert.deepEqual([name, state, reason, count], [`onebot:10000/group:${group}`, 'held', 'the bot is muted in this group', 1])
    const { cause, until: end } = fieldsOf(held)
    assert.deepEqual([cause, end], ['muted', next.data.held_until])
    assert.equal(calls(relay.simulator), 1)
    relay.simulator.mute(group, false)
    await relay.reaches(waiting, 'sent')
    assert.equal((await relay.post(body)).status, 200)
  })

  test('is held and released at once by notices, also of everybody', async t => {
    const relay = await relayWith(t)
    await until('it listens', async () => (await relay.request('/readyz')).status === 200)
    assert.equal((await relay.post({ group_id: group, msg: '0' })).status, 200)
    relay.simulator.turn('allMuted', true, { type: 'group', id: group })
    await until('it is held', async () => JSON.stringify(await queue(relay)).includes('"cause":"all-muted"'))
    const ids = [await relay.queue('1'), await relay.queue('2')]
    assert.equal((await relay.post({ group_id: group, msg: 'a' })).status, 503)
    assert.equal(calls(relay.simulator), 1)
    relay.simulator.turn('allMuted', false, { type: 'group', id: group })
    for (const id of ids) await relay.reaches(id, 'sent')
    assert.deepEqual(relay.texts(), ['0', '1', '2'])
  })
})
