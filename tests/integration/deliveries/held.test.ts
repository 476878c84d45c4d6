import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsOf, type JsonObject } from '../../../src/lib/shape'
import type { Simulator } from '../../../simulator'
import { freePort } from '../../support/process'
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

test('a group that is muted for a while gets all alerts when that is over, in their order, and none of them has failed', async t => {
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

test('what waits for an HTTP address that cannot be reached is held', async t => {
  const relay = await relayWith(t, { config: { targets: { closed: { first: [`http://127.0.0.1:${await freePort()}/`] } } } })
  assert.equal((await post(relay, 'message/closed', { message: 'waits' })).status, 200)
  const held = /"queue":"http:ways\/group:closed\/1",.*"waiting":1,"state":"held",.*"cause":"unreachable","reason":"the platform/
  await until('it is held', async () => held.test(JSON.stringify(await queue(relay))))
})
