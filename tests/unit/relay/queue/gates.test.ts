import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SendError } from '../../../../src/platform/port'
import { outcomeOf } from '../../../../src/relay/delivery/delivery'
import { Core, fates, queue } from '../../../support/core'
import { say } from '../../../../src/texts/text'

const minute = 60_000
const { muted, removed, sent, silent } = fates
const file = { type: 'file', link: { kind: 'remote', url: 'http://example.com/x' } } as const
const swallowed = { answered: 10, error: new SendError('unanswered', 'Timeout: NTEvent', { causeId: 'swallowed' }) } as const

/** The states of what was accepted for later, in its order. */
function deferred({ rows }: Core): string[] {
  return rows.flatMap(({ deferred, state }) => deferred ? [state] : [])
}

/** When each call was made, in minutes since the start. */
const times = (core: Core): number[] => core.port.calls.map(({ at }) => Math.round(at / minute * 10) / 10)

describe('a chat that is closed for a while', () => {
  test('loses nothing that was accepted for later, and keeps its order', async () => {
    const core = new Core({ fates: [muted, muted] })
    for (const text of ['1', '2', '3']) void core.later(text)
    await core.run(2 * minute)
    assert.deepEqual([deferred(core), core.called], [['queued', 'queued', 'queued'], ['1', '1']])
    const [state] = core.relay.queues()
    assert.deepEqual([state?.state, state?.waiting, state?.block?.cause, String(state?.block?.reason)], ['held', 3, 'muted', 'the bot is muted in this group'])
    await core.run(2 * minute)
    assert.deepEqual([deferred(core), core.port.texts], [['sent', 'sent', 'sent'], ['1', '2', '3']])
    assert.deepEqual(core.relay.queues(), [])
  })

  test('tries the head after 1, 2, 4, 8 and then every 15 minutes where nobody can tell', async () => {
    const core = new Core({ fates: [...Array.from({ length: 7 }, () => muted)] })
    void core.later('x')
    await core.run(75 * minute)
    assert.deepEqual(times(core), [0, 1, 3, 7, 15, 30, 45, 60])
    assert.deepEqual(deferred(core), ['sent'])
  })

  test('refuses the caller whose call found out, and every later one without a call, until a try is due', async () => {
    const core = new Core({ fates: [muted] })
    await core.run(100, core.submit('first'), core.submit('behind'))
    void core.submit('later')
    await core.run(minute - 1000)
    assert.deepEqual([core.log.sort(), core.called], [['behind unsent 60', 'first refused', 'later unsent 60'], ['first']])
    await core.run(1000)
    await core.run(100, core.submit('again'))
    assert.deepEqual([core.log.at(-1), core.called], ['again sent', ['first', 'again']])
  })

  test('keeps no caller waiting behind its try once the bot is offline', async () => {
    const core = await Core.ready({ fates: [muted, silent] })
    await core.run(minute + 100, core.submit('first'))
    await core.run(500, core.submit('try'), core.submit('behind'))
    core.port.online = false
    await core.run(1000)
    assert.deepEqual(core.log, ['first refused', 'behind unsent'])
  })

  test('waits until the platform says that it is over, however long', async () => {
    const core = new Core({ fates: [muted] })
    await core.run(1000, core.later('x'))
    core.port.chat = { cause: 'muted', until: core.clock.wall() + 40 * minute }
    await core.run(39 * minute)
    assert.deepEqual([times(core), deferred(core)], [[0], ['queued']])
    await core.run(100, core.submit('caller'))
    assert.equal(core.log.at(-1), 'caller unsent 60')
    core.port.chat = 'open'
    await core.run(2 * minute)
    assert.deepEqual(deferred(core), ['sent'])
  })

  test('is asked at once until when it takes nothing, where the platform can tell', async () => {
    const core = new Core({ fates: [muted] })
    core.port.chat = { cause: 'all-muted', until: core.clock.wall() + 0.5 * minute }
    await core.run(100, core.later('x'))
    assert.deepEqual(core.relay.queues()[0]?.block, {
      state: 'held', cause: 'all-muted', reason: say('cause-all-muted'), since: core.clock.wall() - 90, until: core.port.chat.until,
    })
    core.port.chat = 'open'
    await core.run(0.6 * minute)
    assert.deepEqual([times(core), deferred(core)], [[0, 0.5], ['sent']])
  })

  test('is not asked any more once it refused after it was said to be open', async () => {
    const core = new Core({ fates: [muted, muted, muted] })
    core.port.chat = 'open'
    void core.later('x')
    await core.run(8 * minute)
    assert.deepEqual([times(core), deferred(core)], [[0, 1, 3, 7], ['sent']])
  })

  test('is held and released at once when the platform reports it', async () => {
    const core = await Core.ready()
    core.port.tellOfChat({ cause: 'all-muted', until: null })
    await core.run(1000, core.later('x'), core.submit('caller'))
    assert.deepEqual([core.called, core.log], [[], ['caller unsent 60', 'x accepted']])
    core.port.tellOfChat('open')
    await core.run(100)
    assert.deepEqual(deferred(core), ['sent'])
  })

  for (const time of [undefined, 10 * minute]) {
    test(`for ${time ?? 'an unknown number of'} ms is asked about whenever its bot is back, and called once it is open`, async () => {
      const core = await Core.ready()
      const closure = { cause: 'all-muted', until: time === undefined ? null : core.clock.wall() + time } as const
      core.port.tellOfChat(closure)
      await core.run(1000, core.later('x'))
      for (const state of [closure, undefined, 'open'] as const) {
        assert.deepEqual([deferred(core), core.port.calls.length], [['queued'], 0])
        core.port.online = false
        core.port.chat = state
        await core.run(1000)
        core.port.online = true
        await core.run(100)
      }
      assert.deepEqual([deferred(core), core.port.calls.length], [['sent'], 1])
    })
  }

  test('is told of to operators only once something was to be sent there', async () => {
    const core = await Core.ready()
    core.port.tellOfChat({ cause: 'all-muted', until: null })
    assert.deepEqual(core.relay.queues(), [])
    await core.run(100, core.submit('caller'))
    assert.deepEqual(core.relay.queues().map(({ state, waiting }) => [state, waiting]), [['held', 0]])
  })

  test('is held also where an earlier call of the message is still unanswered', async () => {
    const core = new Core({ retries: 1, fates: [{ answered: 10, error: new SendError('unanswered') }, muted] })
    core.port.hasHistory = false
    await core.run(10_000, core.submit('a'))
    await core.run(100, core.submit('b'))
    assert.deepEqual([core.log.map(line => line.slice(0, 8)), core.called], [['a unansw', 'b unsent'], ['a', 'a']])
  })

  test('ends a batch whose refused message may have arrived by an earlier call', async () => {
    const core = new Core({ retries: 1, fates: [{ answered: 10, error: new SendError('unanswered') }, muted] })
    core.port.hasHistory = false
    await core.run(10_000, core.submit('batch', { mode: 'batch', items: [{ type: 'text', text: 'a' }, file] }))
    assert.deepEqual([core.log, core.called], [['batch unanswered,refused'], ['a', 'a']])
  })

  test('leaves the rest of a batch unanswered where an earlier call may have brought it', async () => {
    const core = new Core({ retries: 0, fates: [silent, silent, muted] })
    core.port.hasHistory = false
    const [reply, a, b] = [{ type: 'reply', messageId: '1' }, { type: 'text', text: 'a' }, { type: 'text', text: 'b' }] as const
    void core.later('batch', { mode: 'batch', items: [reply, a, reply, b] })
    await core.run(2 * minute)
    const [{ id } = assert.fail()] = core.rows
    await core.relay.retry(id, () => undefined)
    await core.run(minute)
    const { results } = (await core.relay.history()).get(id)
    assert.deepEqual([results.map(outcomeOf), core.called], [Array(4).fill('unanswered'), ['reply 1+a', 'reply 1+b', 'reply 1+a']])
  })

  test('is tried where the platform does not answer in the time of a call whether it is closed', async () => {
    const core = new Core({ fates: [muted] })
    void core.later('held')
    await core.run(minute - 1_000)
    core.port.chatTakes = 60 * minute
    await core.run(30_000)
    assert.deepEqual(core.called, ['held', 'held'])
  })

  test('is not held for ever where nothing waits', async () => {
    const core = new Core({ fates: [muted] })
    core.port.chat = { cause: 'muted', until: core.clock.wall() + 20 * minute }
    void core.submit('caller')
    await core.run(19 * minute)
    assert.equal(core.relay.queues()[0]?.state, 'held')
    core.port.chat = 'open'
    await core.run(minute)
    assert.deepEqual([core.relay.queues(), core.called], [[], ['caller']])
  })

  test('is held as long as callers are refused, where the platform cannot say until when', async () => {
    const core = new Core({ retries: 0 })
    for (let count = 0; count < 100; count++) core.port.fates.push(muted)
    const opened: number[] = []
    for (let minutes = 0; minutes < 180; minutes += 4) {
      void core.submit('caller')
      await core.run(4 * minute)
      if (core.relay.queues()[0]?.state !== 'held') opened.push(minutes)
    }
    assert.deepEqual([opened, core.called.length], [[], 12])
    await core.run(40 * minute)
    assert.deepEqual(core.relay.queues(), [])
  })

  test('is held again after a restart, until the platform is asked', async () => {
    const core = new Core({ fates: [muted] })
    await core.run(1000, core.later('x'))
    core.relay.end()
    await core.relay.ended
    core.port.chat = { cause: 'muted', until: core.clock.wall() + 10 * minute }
    const relay = core.restart()
    await core.run(5 * minute)
    assert.deepEqual([core.called, relay.queues()[0]?.block?.cause], [['x'], 'muted'])
    core.port.chat = 'open'
    await core.run(6 * minute)
    assert.deepEqual(deferred(core), ['sent'])
  })

  for (const [what, fate] of [['closed for a while', muted], ['closed for good', removed]] as const) {
    test(`is called once for a key that is repeated, where it is ${what}`, async () => {
      const core = new Core({ fates: [fate, sent, fate, fate] })
      const repeat = (): Promise<unknown> => core.submit('x', { key: 'k' }).then(() => core.run(100))
      for (let minutes = 0; minutes < 5; minutes++) {
        void repeat()
        await core.run(minute - 1)
      }
      assert.deepEqual([core.called, core.log], [['x'], ['x refused', ...Array.from({ length: 4 }, () => 'x replay refused')]])
      void core.relay.resume(queue)
      void repeat()
      await core.run(100)
      assert.deepEqual([core.log.at(-1), core.called.length], ['x sent', 2])
    })
  }

  test('is tried at once when an operator says so', async () => {
    const core = new Core({ fates: [muted, muted, muted] })
    void core.later('x')
    await core.run(4 * minute)
    void core.relay.resume(queue)
    await core.run(100)
    assert.deepEqual([times(core), deferred(core)], [[0, 1, 3, 4], ['sent']])
  })
})

describe('an account', () => {
  test('that is logged out although it is connected makes no calls, and sends what waits in order when it is back', async () => {
    const core = new Core({ fates: [{ answered: 10, error: new SendError('unsent', '网络连接异常', { causeId: 'logged-out' }) }] })
    await core.run(100, core.later('1'))
    core.port.online = false
    void core.later('2')
    void core.submit('caller')
    await core.run(60 * minute)
    assert.deepEqual([core.called, core.log.at(-1)], [['1'], '2 accepted'])
    assert(core.log.includes('caller unsent'))
    core.port.online = true
    await core.run(100)
    assert.deepEqual([core.port.texts, deferred(core)], [['1', '2'], ['sent', 'sent']])
  })

  test('that is back holds no queue in which nothing waits', async () => {
    const core = new Core({ fates: [{ answered: 10, error: new SendError('unsent', '网络连接异常', { causeId: 'logged-out' }) }] })
    void core.submit('caller')
    await core.run(100)
    assert.equal(core.relay.queues()[0]?.state, 'held')
    core.port.online = false
    await core.run(5 * minute)
    core.port.online = true
    await core.run(100)
    assert.deepEqual(core.relay.queues(), [])
  })

  test('that its platform calls online although it can send nothing is tried less and less often', async () => {
    const core = new Core()
    core.port.fates.push(...Array.from({ length: 5 }, () => ({ answered: 10, error: new SendError('unsent', '网络连接异常', { causeId: 'logged-out' }) })))
    void core.later('x')
    for (let flaps = 0; flaps < 190; flaps++) {
      await core.run(5_000)
      core.port.online = flaps % 2 === 1
    }
    assert.deepEqual([times(core).map(Math.floor), deferred(core)], [[0, 0, 2, 6, 14], ['queued']])
    core.port.online = true
    await core.run(16 * minute)
    assert.deepEqual(deferred(core), ['sent'])
  })

  const targets = ['1', '2', '3'].map(id => ({ kind: 'group', id } as const))
  const vanish = async (fate: typeof swallowed | typeof silent): Promise<Core> => {
    const core = new Core({ retries: 0, fates: [fate, fate, fate] })
    for (const target of targets) void core.submit(target.id, { target })
    await core.run(minute)
    return core
  }

  for (const [what, fate] of [['are swallowed', swallowed], ['are never seen', silent]] as const) {
    test(`whose messages ${what} sends one at a time, from 30 s to 5 min apart, until one arrives`, async () => {
      const core = await vanish(fate)
      assert.deepEqual([...core.relay.restricted().keys()], ['onebot:1'])
      core.port.fates.push(...Array.from({ length: 2 }, () => fate))
      for (const target of targets) void core.later(`later ${target.id}`, { target })
      await core.run(100)
      const blocks = core.relay.queues().map(({ state, block }) => [state, block?.cause])
      assert.deepEqual(blocks, targets.slice(1).map(() => ['limited', 'restricted-account']))
      void core.submit('caller', { target: { kind: 'group', id: '4' } })
      await core.run(30 * minute)
      assert(core.log.includes('caller unsent 30'), core.log.join())
      const gaps = times(core).slice(3).map((time, index, all) => time - (all[index - 1] ?? time)).slice(1)
      assert(gaps.every(gap => gap >= 1), gaps.join())
      assert.deepEqual([core.relay.restricted().size, deferred(core).includes('sent')], [0, true])
    })
  }

  test('that is restricted sends at once what comes when its wait is over', async () => {
    const core = await vanish(swallowed)
    await core.run(minute)
    await core.run(1000, core.submit('caller'))
    assert.deepEqual(core.log.slice(3), ['caller sent'])
  })

  test('is not restricted where its connection was lost, one chat is silent, or a message arrived between', async () => {
    for (const change of [
      async (core: Core) => {
        for (const target of targets) void core.submit(target.id, { target })
        await core.run(100)
        core.port.online = false
        await core.run(minute)
        core.port.online = true
      },
      async (core: Core) => {
        for (const text of ['a', 'b', 'c']) void core.submit(text)
        await core.run(minute)
      },
      async (core: Core) => {
        for (const target of targets.slice(1)) void core.submit(target.id, { target })
        await core.run(minute)
        core.port.fates.unshift(sent)
        await core.run(100, core.submit('between', { target: { kind: 'group', id: '2' } }))
        void core.submit('last')
        await core.run(minute)
      },
    ]) {
      const core = new Core({ retries: 0, fates: [silent, silent, silent] })
      await change(core)
      await core.run(minute)
      assert.equal(core.relay.restricted().size, 0)
    }
  })
})
