import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { freePort } from '../../support/process'
import { askAs } from '../../support/relay'
import { group, later, other, relayWith, takeOffline, type StoredRelay } from './support'

const targets = { oncall: { first: [`telegram:group:${other}`, `onebot:group:${group}`] } }
const keys = [
  { name: 'by name', key: 'key-that-has-the-name', targets: ['oncall'], allow: ['send', 'manage'] },
  { name: 'first', key: 'key-of-the-first-way', targets: [`telegram:group:${other}`], allow: ['send', 'manage'] },
]

async function sendAs(relay: StoredRelay, key: string, path: string, body?: object): Promise<[status: number, msg: string]> {
  const { status, msg } = await askAs(relay, key, 'POST', path, body)
  return [status, msg]
}

test('a name with several ways is tried again from its first way that has a bot, by a key that has it', async t => {
  const relay = await relayWith(t, { config: { targets, keys } })
  const goOnline = await takeOffline(relay)
  const { data } = await relay.post({ to: 'oncall', msg: 'x' }, later)
  const [id, [queue]] = [String(data.delivery_id), relay.app.bots.map(({ sid }) => `${sid}/group:${group}`)]
  await relay.ask(`/queues/${encodeURIComponent(String(queue))}`, 'DELETE')
  assert.equal((await relay.show(id)).state, 'failed')
  await goOnline()
  assert.deepEqual(await sendAs(relay, 'key-of-the-first-way', `/deliveries/${id}/retry`), [403, 'this key may not send to oncall'])
  assert.deepEqual(await sendAs(relay, 'key-that-has-the-name', `/deliveries/${id}/retry`), [202, 'ok'])
  await relay.reaches(id, 'sent')
})

test('the answer tells which ways failed while the next one waits, also of one target of a list', async t => {
  const first = [`group:${other}`, `http://127.0.0.1:${await freePort()}/`]
  const relay = await relayWith(t, { config: { targets: { oncall: { first } } } })
  relay.simulator.fault({ fault: { kind: 'not-member' }, target: other, times: Infinity })
  const prefer = { prefer: 'respond-async, wait=1' }
  const [one, list] = await Promise.all(['oncall', ['oncall', `group:${group}`]].map(to => relay.post({ to, msg: 'x' }, prefer)))
  const entries: unknown = list?.data.deliveries
  assert(Array.isArray(entries))
  for (const { state, route } of [one?.data ?? {}, fieldsOf(entries[0])]) {
    assert.deepEqual([state, JSON.stringify(route ?? []).match(/"outcome":"\w+"/g)], ['queued', ['"outcome":"refused"']])
  }
})
