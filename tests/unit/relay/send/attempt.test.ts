import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SendError } from '../../../../src/platform/port'
import { backoff } from '../../../../src/relay/send/attempt'
import { settlingTime } from '../../../../src/relay/send/compose'
import { Core, fates, type Fate } from '../../../support/core'

describe('the back-off', () => {
  test('doubles from 200 ms to 30 s, with up to half of it as jitter', () => {
    assert.deepEqual([1, 2, 3, 50].map(failures => backoff(failures, 0)), [200, 400, 800, 30_000])
    assert.equal(backoff(1, 0.999).toFixed(0), '300')
  })
})

describe('the settling time', () => {
  for (const [what, items, time] of [
    ['a text', [{ type: 'text', bytes: 10 }], 30_000],
    ['a picture of 10 MiB', [{ type: 'image', bytes: 10 * 1024 * 1024 }], 70_000],
    ['a picture of unknown size', [{ type: 'image', bytes: undefined }], 600_000],
    ['a file', [{ type: 'file', bytes: 1 }], 600_000],
  ] as const) {
    test(`of ${what} is ${time / 1000} s`, () => assert.equal(Math.round(settlingTime(items, 30_000) / 1000) * 1000, time))
  }
})

type PortOptions = Partial<Pick<Core['port'], 'hasHistory' | 'isHistorySilent' | 'retriesUnanswered' | 'idempotentFor'>>

interface Case {
  what: string
  fates: Fate[]
  options?: ConstructorParameters<typeof Core>[0] & PortOptions & { isFile?: boolean }
  /** What a caller is told, how many calls are made of its message, and how often it arrives. */
  caller?: [told: string, calls: number, arrived: number]
  /** In which state a deferred delivery is after ten minutes, and the same. */
  deferred?: [state: string, calls: number, arrived: number]
}

const { refused, muted, removed, silent, lost } = fates
/** The message is there, and its answer says that it failed, without a known cause. */
const misreported: Fate = { ...refused, arrives: 0 }
const link = { kind: 'remote', url: 'http://example.com/x' } as const

const bare = { hasHistory: false, retriesUnanswered: false } as const

/** The time-out is 10 s, a text settles in 30 s, and there are two further calls where nothing else is said. */
const cases: Case[] = [
  { what: 'was refused once', fates: [refused], caller: ['sent', 2, 1], deferred: ['sent', 2, 1] },
  { what: 'is refused', fates: [refused, refused, refused], caller: ['refused', 3, 0], deferred: ['failed', 3, 0] },
  { what: 'is refused for good because of its target', fates: [removed], caller: ['refused', 1, 0], deferred: ['failed', 1, 0] },
  { what: 'is refused for a while because of its target', fates: [muted], caller: ['refused', 1, 0], deferred: ['sent', 2, 1] },
  { what: 'arrived, and its answer is lost', fates: [lost], caller: ['sent', 1, 1], deferred: ['sent', 1, 1] },
  { what: 'did not arrive, with a settling time as long as a call', fates: [silent], options: { settleTime: 10_000 }, caller: ['sent', 2, 1] },
  { what: 'did not arrive, and cannot settle while its caller waits', fates: [silent], caller: ['unanswered', 1, 0], deferred: ['sent', 2, 1] },
  { what: 'does not arrive', fates: [silent, silent, silent], deferred: ['unanswered', 3, 0] },
  { what: 'cannot be looked up', fates: [silent], options: { hasHistory: false }, caller: ['sent', 2, 1], deferred: ['sent', 2, 1] },
  {
    what: 'cannot be looked up, and must not come twice', fates: [silent], options: { hasHistory: false, retryUnanswered: false },
    caller: ['unanswered', 1, 0], deferred: ['unanswered', 1, 0],
  },
  { what: 'is a file that cannot be looked up', fates: [silent], options: { hasHistory: false, isFile: true }, caller: ['unanswered', 1, 0], deferred: ['unanswered', 1, 0] },
  { what: 'is carried out slowly, after its time-out', fates: [{ arrives: 12_000, answered: 12_000 }], caller: ['sent', 1, 1], deferred: ['sent', 1, 1] },
  {
    what: 'is refused by a second call, while the first may have arrived', fates: [silent, refused], options: { hasHistory: false, retries: 1 },
    caller: ['unanswered', 2, 0], deferred: ['unanswered', 2, 0],
  },
  {
    what: 'is on a platform that can tell nothing', fates: [lost], options: { hasHistory: false, retriesUnanswered: false },
    caller: ['unanswered', 1, 1], deferred: ['unanswered', 1, 1],
  },
  {
    what: 'may be called for again without harm', fates: [lost], options: { ...bare, idempotentFor: 20_000 },
    caller: ['sent', 2, 1], deferred: ['sent', 2, 1],
  },
  {
    what: 'may be called for again without harm, but not for as long as a call takes', fates: [lost],
    options: { ...bare, idempotentFor: 9_000 },
    caller: ['unanswered', 1, 1], deferred: ['unanswered', 1, 1],
  },
  {
    what: 'may be called for again without harm, but not for as long as the wait before that', fates: [lost],
    options: { ...bare, idempotentFor: 10_100 },
    deferred: ['unanswered', 1, 1],
  },
  {
    what: 'is refused by a further call without harm, while the first may arrive', fates: [silent, refused, refused],
    options: { idempotentFor: 60_000 },
    caller: ['unanswered', 3, 0],
  },
  { what: 'arrived, although it is refused', fates: [misreported], caller: ['sent', 1, 1], deferred: ['sent', 1, 1] },
  { what: 'arrived by its last call, although it is refused', fates: [refused, refused, misreported], caller: ['sent', 3, 1], deferred: ['sent', 3, 1] },
  { what: 'arrived, and its only call is refused', fates: [misreported], options: { retries: 0 }, caller: ['sent', 1, 1] },
  { what: 'is a file that arrived, although it is refused', fates: [misreported], options: { isFile: true }, caller: ['sent', 1, 1] },
  { what: 'is a file that is refused', fates: [refused], options: { isFile: true }, caller: ['sent', 2, 1], deferred: ['sent', 2, 1] },
  {
    what: 'is a file that is refused where there is no history', fates: [refused], options: { isFile: true, hasHistory: false },
    caller: ['sent', 2, 1], deferred: ['sent', 2, 1],
  },
  {
    what: 'is a file that is refused, and the history does not answer', fates: [refused], options: { isFile: true, isHistorySilent: true },
    caller: ['refused', 1, 0], deferred: ['failed', 1, 0],
  },
  { what: 'is refused, and the history does not answer', fates: [refused], options: { isHistorySilent: true }, caller: ['sent', 2, 1], deferred: ['sent', 2, 1] },
  {
    what: 'arrived, and is said to have failed for its file', fates: [{ ...misreported, error: new SendError('refused', 'no', { causeId: 'media-failed' }) }],
    caller: ['sent', 1, 1],
  },
  { what: 'is refused late', fates: [{ ...refused, answered: 12_000 }], deferred: ['sent', 2, 1] },
]

describe('a message that', () => {
  for (const { what, fates, options = {}, caller, deferred } of cases) {
    const { isFile = false, hasHistory = true, isHistorySilent = false, retriesUnanswered = true, idempotentFor, ...changes } = options
    const start = (): { core: Core, more: Parameters<Core['submit']>[1] } => {
      const core = new Core(changes)
      Object.assign(core.port, { hasHistory, isHistorySilent, retriesUnanswered, idempotentFor })
      core.port.fates.push(...fates)
      return { core, more: isFile ? { items: [{ type: 'file', link }] } : {} }
    }
    if (caller) {
      const [told, calls, arrived] = caller
      test(`${what}: its caller is told "${told}" after ${calls} calls`, async () => {
        const { core, more } = start()
        void core.submit('x', more)
        // As long as all calls may take, with their back-off.
        await core.run(32_000)
        assert.deepEqual([core.log, core.called.length, core.port.texts.length], [[`x ${told}`], calls, arrived])
      })
    }
    if (deferred) {
      const [state, calls, arrived] = deferred
      test(`${what}: accepted for later, it is ${state} after ${calls} calls`, async () => {
        const { core, more } = start()
        await core.run(600_000, core.later('x', more))
        assert.deepEqual([core.states, core.called.length, core.port.texts.length], [[state], calls, arrived])
      })
    }
  }

  test('is refused as a whole although it arrived is not divided', async () => {
    const core = new Core()
    core.port.fates.push(refused, refused, misreported)
    await core.run(30_000, core.submit('x', { mode: 'batch', items: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }))
    assert.deepEqual([core.log, core.port.texts], [['x sent,sent'], ['a+b']])
  })

  test('is refused while the relay stops is looked for by the next one', async () => {
    const core = new Core()
    core.port.fates.push(misreported)
    await core.run(20, core.later('x'))
    core.relay.end()
    await core.run(1_000)
    core.reload()
    await core.run(600_000)
    assert.deepEqual([core.states, core.called], [['sent'], ['x']])
  })

  for (const [what, more, calls] of [
    ['has a key', { key: 'k' }, ['refused', 'unanswered']], ['was accepted for later', { deferred: { wait: 0 } }, ['refused', 'unanswered', 'sent']],
  ] as const) {
    test(`${what} has all its calls in the record, also the one that a kill cut`, async () => {
      const core = new Core({ fates: [refused, silent] })
      await core.run(1_000, core.submit('x', more))
      core.restart()
      await core.run(100_000)
      const [{ attempts, summary } = assert.fail()] = core.rows
      assert.deepEqual([attempts, summary.calls.map(({ outcome }) => outcome)], [calls.length, calls])
    })
  }

  test('is not answered in time becomes sent by a late answer', async () => {
    const core = new Core({ retryUnanswered: false })
    core.port.hasHistory = false
    core.port.fates.push({ arrives: 50_000, answered: 50_000 })
    await core.run(40_000, core.submit('x', { key: 'k' }))
    assert.deepEqual([core.log, core.states], [['x unanswered'], ['unanswered']])
    await core.run(20_000)
    assert.deepEqual(core.states, ['sent'])
    await core.run(0, core.submit('x', { key: 'k' }))
    assert.equal(core.log[1], 'x replay sent')
  })

  test('went unanswered is looked for after a reload as well', async () => {
    const core = new Core({ retries: 0, fates: [fates.lost] })
    core.port.isHistorySilent = true
    const submitted = core.submit('x')
    await core.run(40_000)
    core.relay.end()
    await core.run(1_000)
    core.reload()
    core.port.isHistorySilent = false
    await core.run(400_000)
    const { delivery } = await submitted
    assert.deepEqual([core.log, (await core.relay.history()).get(delivery.id).state], [['x unanswered'], 'sent'])
  })

  test('was leaving when the connection was lost is looked for when it is back', async () => {
    const core = new Core({ fates: [lost] })
    await core.run(1_000, core.submit('x'))
    core.port.online = false
    await core.run(3_000)
    core.port.online = true
    await core.run(1_000)
    assert.deepEqual([core.log, core.called], [['x sent'], ['x']])
  })

  test('is found where an equal one before it was refused and not called again', async () => {
    const core = new Core({ fates: [refused, lost] })
    await core.run(5, core.submit('x', { key: 'k' }))
    core.storage.isFull = true
    await core.run(1_000)
    core.storage.isFull = false
    await core.run(10_000)
    await core.run(100_000, core.submit('x', { key: 'l' }))
    assert.deepEqual([core.log, core.called], [['x unsent', 'x sent'], ['x', 'x']])
  })

  for (const [what, more, order] of [
    ['a text holds its queue until it has settled', {}, ['x', 'x', 'next']],
    ['a file steps aside', { items: [{ type: 'file', link }] }, ['file', 'next']],
  ] as const) {
    test(`was accepted for later and is not answered: ${what}`, async () => {
      const core = new Core({ fates: [silent] })
      await core.run(60_000, core.later('x', more), core.later('next'))
      assert.deepEqual(core.called, order)
    })
  }

  test('was accepted for later waits for its files for longer than for a call, and has the time of a call after that', async () => {
    const core = new Core({ retries: 0 })
    core.port.filesTake = 45_000
    core.port.fates.push({ arrives: 9_000, answered: 9_000 })
    void core.later('slow', { items: [{ type: 'file', link: { kind: 'remote', url: 'http://x/a' } }] })
    void core.later('next')
    await core.run(60_000)
    assert.deepEqual([core.called, core.states, core.port.reads], [['file', 'next'], ['sent', 'sent'], 1])
  })

  test('was accepted for later and cannot be made ready fails, and holds up the rest only until then', async () => {
    const core = new Core({ retries: 1 })
    core.port.filesTake = Infinity
    void core.later('slow', { items: [{ type: 'file', link: { kind: 'remote', url: 'http://x/a' } }] })
    void core.later('next')
    await core.run(180_000)
    assert.deepEqual([core.called, core.states], [['next'], ['failed', 'sent']])
  })

  test('was refused as a whole goes once more item by item', async () => {
    const core = new Core({ retries: 0, fates: [refused, fates.sent, refused] })
    await core.run(1_000, core.submit('x', { mode: 'batch', items: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }))
    assert.deepEqual([core.called, core.log], [['a+b', 'a', 'b'], ['x sent,refused']])
  })

  for (const [what, left] of [['a caller waited for', { key: 'k' }], ['was accepted for later', { deferred: { wait: 0 } }]] as const) {
    test(`${what} and was leaving at a stop is found by the next relay, and not called again`, async () => {
      const core = new Core({ fates: [lost] })
      await core.run(1_000, core.submit('x', left))
      core.relay.end()
      const finished = core.relay.ended
      await core.run(1_000)
      await finished
      core.reload()
      await core.run(100_000)
      assert.deepEqual([core.called, core.states], [['x'], ['sent']])
    })
  }
})
