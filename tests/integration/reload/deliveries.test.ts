import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Config } from '../../../src'
import { group, relayWith, releaseHeld, type StoredRelay } from '../deliveries/support'
import { until } from '../../support/until'
import { sends } from '../webhook/support'
import { place } from './support'

const key = { 'idempotency-key': 'build-42' }
const hello = { group_id: group, msg: 'hello' }

const edit = (relay: StoredRelay, config: Config): Promise<void> => relay.update(config)

async function pause(relay: StoredRelay, config: Config): Promise<void> {
  relay.unload()
  await relay.app.lifecycle.flush()
  await new Promise(resolve => setImmediate(resolve))
  await relay.reload(config)
}

// With a database and without one, an edit, which is what people do, and the other way. What else outlives it is in tests/unit/relay.
for (const [way, reload, path] of [
  ['an edit on the config page', edit, undefined], ['unloading, and loading a moment later', pause, null],
] as const) {
  describe(`${way}: what is kept in ${path === null ? 'memory' : 'the database'}`, { concurrency: true }, () => {
    test('stays of a request under way: its key brings one copy and one answer', async t => {
      const relay = await relayWith(t, { path })
      relay.simulator.fault({ fault: { kind: 'late', ms: 1_500, delivered: 'then' } })
      const { answer } = await place(relay, 'hello', key)
      const [id = ''] = (await relay.list()).map(delivery => delivery.id)
      await reload(relay, { chatApiTimeout: 20 })
      const repeated = await relay.post(hello, key)
      const { status, data } = await answer
      assert.equal(status, 200)
      assert.equal(repeated.headers.get('idempotent-replayed'), 'true')
      assert.deepEqual(repeated.data, data)
      assert.equal((await relay.show(id)).state, 'sent')
      assert.equal(sends(relay).length, 1)
      assert.deepEqual(relay.texts(), ['hello'])
    })
  })

  describe(`${way}: a deferred delivery`, { concurrency: true }, () => {
    test('whose answer comes while the plugin is not loaded is not sent twice', async t => {
      const relay = await relayWith(t)
      relay.simulator.fault({ fault: { kind: 'hold' } })
      const id = await relay.queue('hello')
      await until('it is under way', () => relay.texts().length === 1)
      const reloaded = reload(relay, { chatApiTimeout: 20 })
      await releaseHeld(relay)
      await reloaded
      await relay.reaches(id, 'sent')
      assert.deepEqual(relay.texts(), ['hello'])
    })

    test('keeps its place, and those behind it are told to come again', async t => {
      const relay = await relayWith(t)
      relay.simulator.fault({ fault: { kind: 'late', ms: 2_500, delivered: 'then' } })
      const { answer: first } = await place(relay, 'first')
      const second = await relay.queue('second')
      const { answer: third } = await place(relay, 'third')
      await reload(relay, { chatApiTimeout: 20 })
      const { answer: fourth } = await place(relay, 'fourth')
      const fifth = await relay.queue('fifth')
      assert.deepEqual((await Promise.all([first, third, fourth])).map(({ status }) => status), [200, 503, 200])
      for (const id of [second, fifth]) await relay.reaches(id, 'sent')
      assert.deepEqual(relay.texts(), ['first', 'second', 'fourth', 'fifth'])
    })
  })
}
