import Loader from '@koishijs/loader'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, relayWith, releaseHeld } from '../deliveries/support'
import { relayFor } from '../../support/relay'
import { until } from '../../support/until'
import { sends } from '../webhook/support'
import { place } from './support'

const key = { 'idempotency-key': 'build-42' }
const hello = { group_id: group, msg: 'hello' }

// What else outlives a reload is in tests/unit/relay.
describe('an edit on the config page', { concurrency: true }, () => {
  test('leaves a request under way alone: its key brings one copy and one answer', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 1_500, delivered: 'then' } })
    const { answer } = await place(relay, 'hello', key)
    const [id = ''] = (await relay.list()).map(delivery => delivery.id)
    await relay.update({ chatApiTimeout: 20 })
    const repeated = await relay.post(hello, key)
    const { status, data } = await answer
    assert.equal(status, 200)
    assert.equal(repeated.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(repeated.data, data)
    assert.equal((await relay.show(id)).state, 'sent')
    assert.equal(sends(relay).length, 1)
    assert.deepEqual(relay.texts(), ['hello'])
  })

  test('does not send a deferred delivery twice whose answer comes while the plugin is not loaded', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'hold' } })
    const id = await relay.queue('hello')
    await until('it is under way', () => relay.texts().length === 1)
    const reloaded = relay.update({ chatApiTimeout: 20 })
    await releaseHeld(relay)
    await reloaded
    await relay.reaches(id, 'sent')
    assert.deepEqual(relay.texts(), ['hello'])
  })

  test('hears what the platform reports of a last call once the plugin is unloaded', async t => {
    const relay = await relayWith(t, { config: { chatApiTimeout: 2, chatApiMaxRetries: 0 }, simulator: { history: false } })
    relay.simulator.fault({ fault: { kind: 'silent' } })
    const { answer } = await place(relay, 'hello')
    relay.unload()
    const report = { post_type: 'message_sent', message_type: 'group', self_id: 10000, group_id: Number(group), message_id: 77 }
    relay.simulator.transmit(JSON.stringify({ ...report, sender: { user_id: 10000 }, message: 'hello' }))
    assert.deepEqual((await answer).data.message_ids, ['77'])
  })

  test('keeps what koishi.yml takes from the environment', async t => {
    const loader = new Loader()
    loader.params.env = { ...process.env, RELAY_KEY: 'a-key-of-the-environment' }
    const relay = await relayFor(t, { setup: app => app.set('loader', loader) })
    await relay.update({ apiKey: '${{ env.RELAY_KEY }}' })
    for (const [key, status] of Object.entries({ 'a-key-of-the-environment': 200, '${{ env.RELAY_KEY }}': 401 })) {
      assert.equal((await fetch(`${relay.url}/statusz`, { headers: { 'x-api-key': key } })).status, status, key)
    }
  })
})
