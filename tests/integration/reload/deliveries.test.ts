import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, later, relayWith, releaseHeld } from '../deliveries/support'
import { until } from '../../support/until'
import { sends } from '../webhook/support'
import { edit, pause, place } from './support'

const key = { 'idempotency-key': 'build-42' }
const hello = { group_id: group, msg: 'hello' }

// With a database and without one, an edit, which is what people do, and the other way.
for (const [[way, reload], path] of [[edit, undefined], [pause, null]] as const) {
  describe(`${way}: what is kept in ${path === null ? 'memory' : 'the database'}`, { concurrency: true }, () => {
    test('stays: keys, and records', async t => {
      const relay = await relayWith(t, { path })
      const first = await relay.post(hello, key)
      const without = await relay.post({ ...hello, msg: 'without' })
      assert.deepEqual([first.status, without.status], [200, 200])
      const before = await relay.list()
      await reload(relay, { chatApiTimeout: 20 })
      assert.deepEqual(await relay.list(), before)
      assert.equal(before.length, 2)
      const repeated = await relay.post(hello, key)
      assert.equal(repeated.headers.get('idempotent-replayed'), 'true')
      assert.deepEqual(repeated.data, first.data)
      assert.equal((await relay.post({ ...hello, msg: 'other' }, key)).status, 422)
      assert.deepEqual(relay.texts(), ['hello', 'without'])
    })

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

    test('stays of a request that waits in its queue', async t => {
      const relay = await relayWith(t, { path })
      relay.simulator.fault({ fault: { kind: 'late', ms: 1_500 } })
      const { answer: first } = await place(relay, 'first')
      const { answer: second } = await place(relay, 'hello', key)
      await reload(relay, { chatApiTimeout: 20 })
      const repeated = await relay.post(hello, key)
      assert.equal((await first).status, 200)
      const { status, data } = await second
      assert.equal(status, 200)
      assert.deepEqual(repeated.data, data)
      assert.deepEqual(relay.texts(), ['first', 'hello'])
    })

    test('stays of a request that went unanswered and had arrived: its key finds it', async t => {
      const hasty = { chatApiTimeout: 0.5, chatApiMaxRetries: 0 }
      const relay = await relayWith(t, { path, config: hasty })
      relay.simulator.fault({ fault: { kind: 'lost-answer' } })
      const blind = relay.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: Infinity })
      assert.equal((await relay.post(hello, key)).status, 504)
      await reload(relay, { ...hasty, chatApiTimeout: 5 })
      blind.remove()
      assert.equal((await relay.post(hello, key)).status, 200)
      assert.deepEqual(relay.texts(), ['hello'])
    })

    test('includes what is known to be ours: an equal message is not taken for the one before', async t => {
      const relay = await relayWith(t, { path, config: { chatApiMaxRetries: 1, chatApiTimeout: 1 } })
      assert.equal((await relay.post(hello)).status, 200)
      await reload(relay, { chatApiMaxRetries: 0, chatApiTimeout: 1 })
      relay.simulator.fault({ fault: { kind: 'silent' } })
      assert.equal((await relay.post(hello)).status, 504)
      assert.deepEqual(relay.texts(), ['hello'])
    })
  })

  describe(`${way}: a deferred delivery`, { concurrency: true }, () => {
    test('that is under way is not sent twice, and its caller is told', async t => {
      const relay = await relayWith(t)
      relay.simulator.fault({ fault: { kind: 'late', ms: 1_500, delivered: 'then' } })
      const caller = relay.post(hello, { ...key, prefer: 'respond-async, wait=20' })
      await until('it is under way', () => sends(relay).length === 1)
      const behind = await relay.queue('behind')
      await reload(relay, { chatApiTimeout: 20 })
      const after = await relay.queue('after')
      assert.equal((await caller).status, 200)
      for (const id of [behind, after]) await relay.reaches(id, 'sent')
      assert.deepEqual((await relay.post(hello, { ...key, ...later })).data, (await caller).data)
      assert.deepEqual(relay.texts(), ['hello', 'behind', 'after'])
      assert.equal(sends(relay).length, 3)
    })

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
