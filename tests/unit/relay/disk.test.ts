import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../src/errors'
import { chat, Core, fates } from '../../support/core'
import { say, words } from '../../../src/texts/text'

const hour = 3_600_000
const chats = Array.from({ length: 5_000 }, (_, index) => ({ kind: 'group', id: String(index + 2) }) as const)
const [second, third] = chats

/** What has to be kept before it is answered. */
function durable(core: Core): Parameters<Core['submit']>[1][] {
  return [
    { key: 'k' }, { deferred: { wait: 0 } }, { sendAt: { at: core.clock.wall() + hour, written: '' } },
    { policy: { name: 'ops', quiet: { from: 0, to: 24 * 60 - 1, zone: 'UTC' } } }, { route: { name: 'oncall', ways: [{ target: { kind: 'group', id: '1' } }], after: hour, whenUnknown: 'stop' } },
  ]
}

describe('without a file that can be used', () => {
  const broken = { code: 'store-down', message: 'the data folder of the relay is read-only: make it writable' } as const

  test('a message whose caller waits leaves without a record, and everything else is refused in the words of the failure', async () => {
    const core = new Core()
    core.storage.failure = new RelayError(broken.code, words(broken.message))
    await core.run(10)
    for (const more of [{}, { thread: 't' }]) await core.run(1_000, core.submit('plain', more))
    for (const more of durable(core)) await assert.rejects(core.submit('kept', more), broken)
    const { relay } = core
    await assert.rejects(relay.retry(uuid(), () => undefined), broken)
    await assert.rejects(relay.withdraw(uuid()), broken)
    await assert.rejects(async () => (await relay.history()).list({ limit: 1 }), broken)
    assert.deepEqual([core.called, core.rows, relay.store.failure?.message], [['plain', 'plain'], [], broken.message])
  })

  test('the relay goes on as soon as it can be', async () => {
    const core = new Core()
    core.storage.failure = new RelayError(broken.code, words(broken.message))
    await core.run(10)
    core.storage.failure = undefined
    await core.run(2_000)
    await core.run(1_000, core.later('x'))
    assert.deepEqual([core.log, core.called, core.states], [['x accepted'], ['x'], ['sent']])
  })
})

test('a full disk takes nothing that has to be kept, and nothing of it is sent later', async () => {
  const core = await Core.ready()
  core.storage.isFull = true
  for (const more of durable(core)) await assert.rejects(core.submit('kept', more), { code: 'storage-full', status: 507, outcome: undefined })
  await core.run(1_000, core.submit('plain'))
  core.storage.isFull = false
  await core.run(2 * hour)
  assert.deepEqual([core.called, core.states, core.relay.queues()], [['plain'], ['sent'], []])
})

test('the end of a message is written within a second after the disk has room again', async () => {
  const core = await Core.ready({ fates: [{ arrives: 500, answered: 500 }] })
  await core.run(100, core.later('x'))
  core.storage.isFull = true
  await core.run(10_000)
  assert.deepEqual([core.port.texts, core.states], [['x'], ['sending']])
  core.storage.isFull = false
  await core.run(1_000)
  assert.deepEqual([core.states, core.called], [['sent'], ['x']])
  assert.deepEqual([core.warnings.length, core.notes.filter(line => line === 'what has happened is written again').length], [1, 1])
})

describe('a slow disk', () => {
  test('holds up the answer that a message is kept, and its call', async () => {
    const core = await Core.ready()
    core.storage.flushTakes = 5_000
    void core.later('later')
    void core.submit('keyed', { key: 'k', target: second })
    void core.submit('plain', { target: third })
    await core.run(4_999)
    assert.deepEqual([core.log, core.called], [['plain sent'], ['plain']])
    await core.run(5_100)
    assert.deepEqual([core.log, core.called.toSorted()], [['plain sent', 'later accepted', 'keyed sent'], ['keyed', 'later', 'plain']])
  })

  test('holds up the answer how a deferred message ended: whoever waits no longer hears that it is accepted', async () => {
    const core = await Core.ready({ fates: [fates.refused], retries: 0 })
    for (const wait of [3_000, 30_000]) void core.later(`${wait}`, { deferred: { wait }, target: wait === 3_000 ? chat : second })
    await core.run()
    core.storage.flushTakes = 5_000
    await core.run(11_000)
    assert.deepEqual([core.log, core.states], [['3000 accepted', '30000 sent'], ['failed', 'sent']])
  })

  test('is waited for once by all who came during a flush', async () => {
    const core = await Core.ready()
    core.storage.flushTakes = 5_000
    await core.run(1_000, core.later('first'))
    for (const target of [second, third]) void core.later('next', { target })
    await core.run(8_990)
    assert.deepEqual(core.log, ['first accepted'])
    await core.run(100)
    assert.deepEqual(core.log, ['first accepted', 'next accepted', 'next accepted'])
  })

  test('that does not keep what was written leaves the answer open, and nothing is called before the file was opened again', async () => {
    const core = await Core.ready()
    Object.assign(core.storage, { flushTakes: 100, isFlushFailing: true })
    await core.run(150, core.later('x'))
    assert.deepEqual([core.log, core.called], [['x unanswered'], []])
    // The next store finds it as if its call were under way, and waits until that would have settled.
    await core.run(60_000)
    assert.deepEqual([core.called, core.states], [['x'], ['sent']])
  })
})

test('a relay that lost its folder calls nobody any more, and goes on when it has it again', async () => {
  const core = await Core.ready({ fates: [{ arrives: 500, answered: 500 }] })
  for (const text of ['leaving', 'waiting']) void core.later(text)
  await core.run(100)
  core.storage.flushTakes = 1_000
  void core.later('flushing', { target: second })
  await core.run(100)
  core.storage.owner = say('other-process')
  await core.run(2_000)
  await core.run(1_000, core.submit('caller'))
  assert.deepEqual([core.called, core.log.slice(2)], [['leaving'], ['flushing unanswered', 'caller standby 5']])
  core.storage.owner = undefined
  await core.run(100_000)
  assert.deepEqual([core.called.toSorted(), core.states], [['flushing', 'leaving', 'waiting'], ['sent', 'sent', 'sent']])
})

test('a queue has one timer while it waits, and none once it is empty', async () => {
  const core = await Core.ready()
  const pending = new Set<object>()
  const after = core.clock.after.bind(core.clock)
  core.clock.after = (ms, callback) => {
    const timer = {}
    pending.add(timer)
    const cancel = after(ms, () => {
      pending.delete(timer)
      callback()
    })
    return () => {
      pending.delete(timer)
      cancel()
    }
  }
  await core.run(5_000)
  const idle = pending.size
  core.port.chat = { cause: 'muted', until: core.clock.wall() + hour }
  core.port.tellOfChat(core.port.chat)
  for (let count = 0; count < 1_000; count++) void core.later('waiting')
  for (const target of chats) void core.submit('leaving', { target })
  await core.run(30_000)
  assert.deepEqual([core.called.length, core.relay.queues().map(({ waiting }) => waiting)], [5_000, [1_000]])
  assert.ok(pending.size <= idle + 1, `${pending.size} timers, ${idle} before`)
})
