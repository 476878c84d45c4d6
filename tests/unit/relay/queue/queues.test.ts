import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../../src/errors'
import { SendError } from '../../../../src/platform/port'
import { Core, fates, queue, limited } from '../../../support/core'

describe('a queue', () => {
  test('sends one after another, in the order of acceptance, with or without a waiting caller', async () => {
    const core = new Core({ fates: [{ arrives: 500, answered: 500 }] })
    void core.submit('one')
    void core.later('two')
    void core.submit('three', { key: 'k' })
    // The fingerprint of a request with an Idempotency-Key is made first.
    await core.run(1)
    await core.run(498, core.later('four'))
    assert.deepEqual([core.called, core.log], [['one'], ['two accepted', 'four accepted']])
    await core.run(100)
    assert.deepEqual(core.port.texts, ['one', 'two', 'three', 'four'])
  })

  test('does not wait for another one', async () => {
    const core = new Core({ fates: [{ arrives: 500, answered: 500 }] })
    await core.run(20, core.submit('one'), core.submit('two', { target: { kind: 'group', id: '2' } }))
    assert.deepEqual(core.port.texts, ['two'])
  })

  test('keeps its interval from the end of a call to the next one, and for nobody who comes later', async () => {
    const core = new Core({ interval: 1000 })
    const items = [{ type: 'file', link: { kind: 'remote', url: 'http://x/a' } }, { type: 'file', link: { kind: 'remote', url: 'http://x/b' } }] as const
    await core.run(10_000, core.submit('one'), core.submit('batch', { mode: 'batch', items }))
    assert.deepEqual(core.port.calls.map(({ at }) => at), [0, 1010, 2020])
    await core.run(0, core.submit('late'))
    assert.equal(core.port.calls.at(-1)?.at, 10_000)
  })

  test('takes turns with the other queues of its account, also after an outage', async () => {
    const core = await Core.ready({ accountInterval: 1000 })
    const target = (id: string) => ({ target: { kind: 'group', id } } as const)
    const times = (): unknown => core.port.calls.splice(0).map(({ text, at }) => [text, Math.round(at / 100) / 10])
    core.port.online = false
    for (const text of ['1 a', '1 b', '2 a', '3 a', '3 b']) await core.run(1, core.later(text, target(text.slice(0, 1))))
    await core.run(60_000 - core.clock.now())
    core.port.online = true
    await core.run(2_500)
    // A turn that nobody takes is not lost for the others.
    core.port.online = false
    await core.run(1000)
    core.port.online = true
    await core.run(6_500)
    assert.deepEqual(times(), [['1 a', 60], ['2 a', 61], ['3 a', 62], ['1 b', 63.5], ['3 b', 64.5]])
    const leaving = new AbortController()
    const items = [{ type: 'file', link: { kind: 'remote', url: 'http://x/a' } }, { type: 'file', link: { kind: 'remote', url: 'http://x/b' } }] as const
    await core.run(0, core.submit('4', { ...target('4'), mode: 'batch', items }), core.submit('gone', { ...target('5'), signal: () => leaving.signal }), core.submit('6', target('6')))
    leaving.abort()
    await core.run(10_000)
    assert.deepEqual(times(), [['file', 70], ['6', 71], ['file', 72]])
    assert.equal(core.log.find(line => line.startsWith('gone')), 'gone unsent')
  })

  test('lets nothing overtake a delivery that is not saved yet', async () => {
    const core = await Core.ready()
    await core.run(100, core.later('one'), core.submit('two'))
    assert.deepEqual(core.called, ['one', 'two'])
  })

  for (const [capacity, accepted] of [[0, 1], [2, 3]] as const) {
    test(`of capacity ${capacity} takes ${accepted} at once, and says when to come again`, async () => {
      const core = new Core({ capacity })
      for (const text of ['1', '2', '3', '4'].slice(0, accepted)) void core.submit(text)
      await core.run(1000, core.later('too many'))
      assert.equal(core.log[0], 'too many queue-full 1')
      assert.equal(core.called.length, accepted)
      await core.run(100, core.submit('after'))
      assert.equal(core.log.at(-1), 'after sent')
    })
  }

  test('lets a caller go who has gone away, or whose time is over, and only that one', async () => {
    const core = new Core()
    const gone = new AbortController()
    core.port.fates.push({ arrives: 500, answered: 500 })
    void core.submit('one')
    void core.submit('gone', { signal: () => gone.signal })
    void core.submit('short', { expiresIn: 200 })
    void core.submit('there')
    await core.run(100)
    gone.abort()
    await core.run(1000)
    assert.deepEqual(core.log, ['one sent', 'gone unsent', 'short expired', 'there sent'])
  })

  test('drops what was accepted for later when its time is over, also while its bot is offline', async () => {
    const core = await Core.ready()
    core.port.online = false
    await core.run(10_000, core.later('short', { expiresIn: 3_000 }), core.later('long'))
    assert.deepEqual(core.states, ['expired', 'queued'])
    core.port.online = true
    await core.run(2_000)
    assert.deepEqual([core.called, core.states], [['long'], ['expired', 'sent']])
  })

  test('drops what has expired while no relay ran', async () => {
    const core = await Core.ready()
    core.port.online = false
    await core.run(100, core.later('x', { expiresIn: 3_000 }))
    core.relay.end()
    await core.run(10_000)
    core.port.online = true
    core.restart()
    await core.run(1_000)
    assert.deepEqual([core.called, core.states], [[], ['expired']])
  })

  test('is held while its bot is offline: callers behind are refused, the rest goes on when it is back', async () => {
    const core = new Core({ fates: [{ arrives: 500, answered: 500 }] })
    for (const text of ['one', 'two']) void core.later(text)
    await core.run(100, core.submit('caller'))
    core.port.online = false
    await core.run(3_000)
    assert.equal(core.log.at(-1), 'caller unsent')
    assert.deepEqual(core.relay.queues().map(({ state, waiting }) => [state, waiting]), [['offline', 1]])
    core.port.online = true
    await core.run(2_000)
    assert.deepEqual(core.port.texts, ['one', 'two'])
  })

  test('ends what waits in it when an operator drops it, but not what is leaving', async () => {
    const core = new Core({ fates: [{ arrives: 500, answered: 500 }] })
    await core.run(100, core.submit('one'), core.submit('two'), core.later('three'))
    assert.equal(await Promise.race([core.relay.drop(queue), core.run(1)]), 2)
    await core.run(1000)
    assert.deepEqual(core.called, ['one'])
    assert.deepEqual(core.log.slice(1), ['two unsent', 'one sent'])
    assert.deepEqual(core.states, ['sent', 'failed', 'failed'])
    await assert.rejects(core.relay.drop('nonsense'))
  })

  test('waits for a text that was leaving when the relay ended, until that has settled', async () => {
    const core = new Core()
    await core.run(100, core.submit('before'))
    core.port.fates.push(fates.silent)
    await core.run(5_000, core.later('leaving'), core.later('next'))
    core.restart()
    const restartedAt = core.clock.now()
    await core.run(120_000)
    const [, , again, next] = core.port.calls
    assert.deepEqual(core.called, ['before', 'leaving', 'leaving', 'next'])
    assert.ok(again && next && again.at >= restartedAt + 30_000)
  })
})

describe('whoever waits in a queue that is closed meanwhile is turned away:', () => {
  const other = { kind: 'group', id: '2' } as const

  test('a caller who waits when the account is limited through another chat', async () => {
    const core = await Core.ready({ retries: 0 })
    core.port.fates.push({ arrives: 400, answered: 400 }, { ...limited(300_000, 'account'), answered: 100 })
    await core.run(1_000, core.submit('first'), core.submit('behind'), core.submit('limited', { target: other }))
    assert.deepEqual(core.log.map(line => line.split(' ').slice(0, 2).join(' ')), ['limited unsent', 'first sent', 'behind unsent'])
  })

  test('callers behind a message that waits for room on the disk', async () => {
    const core = await Core.ready({ fates: [{ arrives: 500, answered: 500 }] })
    await core.run(100, core.submit('first'), core.later('deferred'))
    core.storage.isFull = true
    await core.run(10_000, core.submit('caller'))
    await core.run(1_000, core.submit('next'), core.submit('elsewhere', { target: other }))
    assert.deepEqual(core.log, ['deferred accepted', 'first sent', 'caller storage-full', 'next storage-full', 'elsewhere sent'])
    core.storage.isFull = false
    await core.run(2_000)
    assert.deepEqual(core.port.texts, ['first', 'elsewhere', 'deferred'])
  })

  test('callers behind a message that cannot be looked for before its bot is back', async () => {
    const core = await Core.ready({ fates: [{}] })
    await core.run(100, core.later('deferred'))
    void core.submit('caller')
    core.port.online = false
    await core.run(6_000)
    assert.deepEqual(core.log, ['deferred accepted', 'caller unsent'])
  })
})

describe('a bot that is online and cannot be reached', () => {
  const refused = { answered: 5, error: new SendError('unsent', 'connection refused', { causeId: 'unreachable' }) }
  /** Seconds from one call to the next. */
  const waits = ({ port: { calls } }: Core): number[] => (
    calls.slice(1).map(({ at }, index) => Math.round((at - (calls[index]?.at ?? 0)) / 1000))
  )

  test('is tried less and less often, at least once a minute, whatever comes meanwhile; callers behind it are told', async () => {
    const core = new Core({ fates: [...Array.from({ length: 9 }, () => refused)] })
    await core.run(100, core.later('head'))
    void core.submit('caller')
    for (let count = 0; count < 100; count++) await core.run(2_000, core.later('more'))
    assert.deepEqual(waits(core), [1, 2, 4, 8, 16, 32, 60, 60])
    assert.equal(core.log.find(line => line.startsWith('caller')), 'caller unsent 1')
    assert.deepEqual(core.relay.queues().map(({ state, block }) => [state, String(block?.reason)]), [['held', 'the platform cannot be reached']])
    await core.run(60_000)
    assert.deepEqual([core.port.texts.length, core.relay.queues()], [101, []])
  })

  test('is tried at once when it reports that it is online, and what it refuses then holds nothing up', async () => {
    const core = new Core({ fates: [...Array.from({ length: 7 }, () => refused), fates.refused, fates.refused, fates.refused] })
    await core.run(64_000, core.later('refused'), core.later('next'))
    core.port.online = false
    core.port.online = true
    await core.run(5_000)
    assert.deepEqual([core.called.length, core.port.texts, core.relay.queues()], [11, ['next'], []])
  })

  test('is called for each caller where nothing waits, and its chat is not held for long after what waited has expired', async () => {
    const core = new Core({ retries: 0, fates: [...Array.from({ length: 5 }, () => refused)] })
    await Promise.all([core.submit('caller 1'), core.submit('caller 2'), core.run(100)])
    assert.deepEqual([core.called, core.relay.queues()], [['caller 1', 'caller 2'], []])
    await core.run(4_100, core.later('head', { expiresIn: 3_000 }))
    assert.deepEqual([core.states.at(-1), core.relay.queues().map(({ state }) => state)], ['expired', ['held']])
    await core.run(61_000)
    assert.deepEqual(core.relay.queues(), [])
  })
})

describe('a message that is withdrawn while it waits for its bot', () => {
  async function withWaiting(): Promise<{ core: Core, id: string }> {
    const core = await Core.ready()
    core.port.online = false
    const id = uuid()
    await core.run(1_000, core.submit('withdrawn', { id, deferred: { wait: 60_000 } }))
    return { core, id }
  }

  test('is told at once to whoever waits for it', async () => {
    const { core, id } = await withWaiting()
    await Promise.all([core.relay.withdraw(id), core.run(100)])
    assert.deepEqual(core.log, ['withdrawn unsent'])
  })

  test('waits on where the disk is too full to remove it, until there is room', async () => {
    const { core, id } = await withWaiting()
    core.storage.isFull = true
    await assert.rejects(core.relay.withdraw(id), { code: 'storage-full' })
    await core.run(100)
    assert.deepEqual([core.log, core.states], [[], ['queued']])
    core.storage.isFull = false
    await Promise.all([core.relay.withdraw(id), core.run(100)])
    assert.deepEqual([core.log, core.rows], [['withdrawn unsent'], []])
  })
})

describe('a pause', () => {
  const closed = async (core: Core, times: number): Promise<void> => {
    core.port.fates.push(...Array.from({ length: times }, () => fates.removed))
    for (let index = 0; index < times; index++) await core.run(100, core.submit('x'))
    core.log.length = 0
  }

  test('begins with so many failures in a row, and tells when it ends', async () => {
    const core = new Core({ pauseAfter: 3 })
    await closed(core, 2)
    await core.run(100, core.submit('good'))
    await closed(core, 3)
    const paused = core.submit('paused')
    await core.run(100, paused, core.later('waits'), core.submit('other', { target: { kind: 'group', id: '2' } }))
    assert.deepEqual(core.log, ['paused paused 60', 'waits accepted', 'other sent'])
    const refusal = await paused.catch((error: unknown) => RelayError.from(error))
    assert(refusal instanceof RelayError)
    assert.match(refusal.message, /^this target is paused after repeated failures \(.*not in this group.*\): nothing was sent/)
    assert.doesNotMatch(String(refusal.logText), /not in this group/)
    const [state] = core.relay.queues()
    assert.deepEqual([state?.state, state?.waiting, state?.block?.cause], ['paused', 1, 'paused'])
    assert.match(String(state?.block?.reason), /not in this group/)
    const [waiting] = await (await core.relay.history()).list({ states: ['queued'], limit: 1 })
    const wait = waiting && core.relay.waitOf(waiting)
    assert.deepEqual([wait?.cause, wait?.reason, wait?.until], ['paused', state?.block?.reason, state?.block?.until])
    assert.deepEqual([...core.relay.failing().keys()], [queue])
    await core.run(60_000)
    assert.equal(core.port.texts.at(-1), 'waits')
    assert.equal(core.relay.failing().size, 0)
  })

  test('does not count what says nothing of its chat, and counts a batch once', async () => {
    const core = new Core({ pauseAfter: 2, retries: 0 })
    const items = [{ type: 'text', text: 'a' }, { type: 'file', link: { kind: 'remote', url: 'http://x/a' } }] as const
    core.port.fates.push(fates.refused, fates.refused, fates.refused, fates.removed, fates.removed)
    for (const more of [{}, {}, {}, { mode: 'batch', items }, { mode: 'batch', items }, {}] as const) {
      await core.run(100, core.submit('x', more))
    }
    const batch = 'x refused,refused'
    assert.deepEqual(core.log, ['x refused', 'x refused', 'x refused', batch, batch, 'x paused 60'])
  })

  test('turns callers away who wait, and is prolonged by a probe that fails', async () => {
    const core = new Core({ pauseAfter: 1, fates: [{ ...fates.removed, answered: 500 }, fates.removed] })
    await core.run(1000, core.submit('first'), core.submit('waiting'))
    assert.deepEqual(core.log.sort(), ['first refused', 'waiting paused 60'])
    await core.run(60_000)
    await core.run(100, core.submit('probe'))
    await core.run(100, core.submit('behind'))
    assert.deepEqual(core.log.slice(2), ['probe refused', 'behind paused 60'])
  })

  test('is told and forgotten after a reload as well, where nobody writes to its chat any more', async () => {
    const core = new Core({ pauseAfter: 1, fates: [fates.removed] })
    await core.run(100, core.submit('x'))
    core.relay.end()
    await core.run(400)
    core.reload()
    await core.run(100)
    assert.deepEqual([core.relay.queues().map(({ state }) => state), [...core.relay.failing().keys()]], [['paused'], [queue]])
    await core.run(3_600_000)
    assert.deepEqual([core.relay.queues(), core.relay.failing().size], [[], 0])
  })

  test('ends when an operator wants it, or for good with a success', async () => {
    const core = new Core({ pauseAfter: 2 })
    await closed(core, 2)
    void core.relay.resume(queue)
    await closed(core, 1)
    await core.run(100, core.submit('probe'))
    await closed(core, 1)
    await core.run(100, core.submit('good'))
    assert.deepEqual(core.log, ['good sent'])
  })
})

describe('an end', () => {
  test('answers callers, leaves the rest to the next relay, and forgets neither interval nor pause', async () => {
    const core = new Core({ interval: 1000, pauseAfter: 1, fates: [fates.sent, { ...fates.removed }] })
    await core.run(100, core.submit('one'), core.submit('muted', { target: { kind: 'group', id: '2' } }))
    await core.run(100, core.later('two'), core.submit('caller'))
    core.isStopping = true
    core.relay.end()
    const finished = core.relay.ended
    await core.run(400)
    await finished
    assert.deepEqual(core.log.slice(-1), ['caller stopping'])
    assert.deepEqual(core.called, ['one', 'muted'])
    core.isStopping = false
    core.reload()
    await core.run(100)
    await core.run(100, core.submit('paused', { target: { kind: 'group', id: '2' } }))
    assert.equal(core.log.at(-1), 'paused paused 60')
    await core.run(2000)
    assert.deepEqual(core.port.calls.filter(({ text }) => text !== 'muted').map(({ text, at }) => [text, at]), [['one', 0], ['two', 1010]])
  })

  test('leaves a message whose files are still being loaded to the next relay', async () => {
    const core = await Core.ready({ retries: 0 })
    core.port.filesTake = 10_000
    await core.run(1000, core.later('x', { items: [{ type: 'file', link: { kind: 'remote', url: 'http://x/a' } }] }))
    core.relay.end()
    await core.run(1000)
    assert.deepEqual([core.states, core.called], [['queued'], []])
    core.reload()
    await core.run(20_000)
    assert.deepEqual([core.states, core.called], [['sent'], ['file']])
  })

  test('begins nothing more before it that nobody waits for, also where the relay has only just begun', async () => {
    const core = await Core.ready()
    core.isStopping = true
    await core.run(1000, core.later('later'))
    core.restart()
    await core.run(1000)
    assert.deepEqual([core.called, core.states], [[], ['queued']])
  })
})
