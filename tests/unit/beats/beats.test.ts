import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Sign } from '../../../src/beats/beat'
import { Beats } from '../../../src/beats/beats'
import { parseBeat, type BeatRule } from '../../../src/beats/rule'
import { fieldsOf } from '../../../src/lib/shape'
import { every } from '../../../src/relay/clock'
import { Core } from '../../support/core'
import { TestStorage } from '../../support/store'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const name = 'backup'

const good: Sign = { kind: 'good' }
const start: Sign = { kind: 'start' }

/** A relay with beats, in simulated time: it begins on Monday, 23 November 2026, 08:00 in Shanghai. */
class World {
  readonly rules = new Map<string, BeatRule>()
  beats: Beats
  /** How often the beats are checked. */
  private pace = second
  private stop: () => void = () => undefined

  private constructor(readonly core: Core, rule: object) {
    this.set(rule)
    this.beats = this.begin()
  }

  static async ready(rule: object = { every: '1d', grace: '1h' }): Promise<World> {
    const world = new World(await Core.ready(), rule)
    await world.run(second)
    return world
  }

  set(rule: object): void {
    this.rules.set(name, { ...parseBeat(name, { to: 'group:1', ...rule }), ...!('zone' in rule) && { zone: 'Asia/Shanghai' } })
  }

  async run(ms: number): Promise<void> {
    const fast = Math.max(ms - 2 * minute, 0)
    this.pace = 40 * second
    await this.core.run(fast)
    this.pace = second
    await this.core.run(ms - fast)
  }

  /** A sign comes, and a moment passes. */
  async sign(sign: Sign): Promise<void> {
    void this.beats.sign(name, sign).catch((error: unknown) => this.core.log.push(String(fieldsOf(error).code)))
    await this.run(2 * second)
  }

  get state(): string {
    return this.beats.read(name).beat.state
  }

  get texts(): string[] {
    return this.core.port.texts.map(text => text.replace(/^reply \d+\+/, ''))
  }

  /** The process ends, and another begins after a while. */
  async outage(ms: number, end: (storage: TestStorage) => void = storage => storage.kill()): Promise<void> {
    this.stop()
    end(this.core.storage)
    await this.run(ms)
    this.core.restart()
    this.beats = this.begin()
    await this.run(2 * second)
  }

  private begin(): Beats {
    const { core, rules } = this
    const beats = new Beats({
      clock: core.clock, store: () => core.relay.store, submit: submission => core.relay.submit(submission), names: new Map(), language: 'zh-CN',
      rules: {
        get: name => rules.get(name), inForce: () => [...rules].map(([name, entry]) => ({ name, entry, source: 'settings' })), remove: () => Promise.resolve(),
        put: (name, rule) => {
          this.set(fieldsOf(rule))
          return Promise.resolve({ listed: { name, entry: this.rules.get(name) ?? assert.fail(), source: 'made' }, isNew: false })
        },
      },
      logger: { info: () => undefined, warn: (line: unknown) => void core.warnings.push(String(line)) },
    })
    let hasEnded = false
    const check = (): void => {
      if (hasEnded) return
      core.clock.after(this.pace, check)
      void beats.check()
    }
    check()
    this.stop = () => void (hasEnded = true)
    return beats
  }
}

describe('a beat', () => {
  test('waits for its first sign, then tells once that none came in time, and that it is back', async () => {
    const world = await World.ready()
    await world.run(2 * day)
    assert.deepEqual([world.state, world.texts], ['new', []])
    await world.sign(start)
    await world.run(4 * minute - 2 * second)
    await world.sign(good)
    assert.equal(world.state, 'up')
    await world.run(day + hour - 5 * second)
    assert.deepEqual(world.texts, [])
    await world.run(2 * day)
    assert.deepEqual([world.state, world.texts], ['down', ['backup 没有按时报到：上次 昨天 08:04，用时 4 分钟']])
    await world.sign(good)
    await world.sign(good)
    assert.deepEqual([world.state, world.texts.slice(1)], ['up', ['backup 恢复，迟到 2 天']])
  })

  test('tells that a run does not end, even if it begins again and again', async () => {
    const world = await World.ready()
    for (let count = 0; count < 3; count++) {
      await world.sign(start)
      await world.run(25 * minute)
    }
    assert.deepEqual([world.state, world.texts], ['down', ['backup 08:00 开始后没有结束']])
    await world.sign(good)
    assert.deepEqual([world.state, world.texts.slice(1)], ['up', ['backup 恢复，用时 25 分钟']])
  })

  test('tells of a failure with its exit status and the end of its log, once', async () => {
    const world = await World.ready()
    await world.sign({ kind: 'log', log: 'an earlier one' })
    await world.sign(start)
    await world.sign({ kind: 'bad', status: 3, log: `${'x\n'.repeat(100)}2\n3\n4\r\n\u001b[31m5\n${'6'.repeat(300)}\n\n` })
    const text = `backup 失败：退出码 3，用时 2 秒\n2\n3\n4\n\ufffd[31m5\n${'6'.repeat(200)}`
    assert.deepEqual([world.state, world.texts], ['down', [text]])
    await world.sign({ kind: 'bad' })
    await world.run(2 * day)
    await world.sign(start)
    assert.deepEqual([world.state, world.texts], ['down', [text]])
    await world.sign(good)
    assert.deepEqual([world.state, world.texts.slice(1)], ['up', ['backup 恢复，2 天前失败']])
    await world.sign({ kind: 'log', log: 'it broke' })
    await world.sign({ kind: 'bad' })
    assert.deepEqual(world.texts.slice(2), ['backup 失败\nit broke'])
  })

  test('pairs each start with its end', async () => {
    const world = await World.ready()
    await world.sign({ ...start, run: 'a' })
    await world.run(30 * minute)
    await world.sign({ ...start, run: 'b' })
    await world.sign({ ...good, run: 'b' })
    assert.deepEqual([world.state, world.beats.read(name).beat.duration], ['started', 2 * second])
    await world.run(30 * minute)
    assert.deepEqual([world.state, world.texts], ['down', ['backup 08:00 开始后没有结束']])
    await world.sign({ ...start, run: 'c' })
    await world.sign({ ...good, run: 'c' })
    assert.equal(world.state, 'up')
  })

  test('is due by the clocks of its zone, and may be a minute early', async () => {
    const world = await World.ready({ cron: '30 2 * * *', zone: 'Europe/Berlin', grace: '10m' })
    // The clocks change on 28 March 2027.
    world.core.clock.step(Date.UTC(2027, 2, 27, 1, 29, 30) - world.core.clock.wall())
    await world.sign(good)
    await world.run(Date.UTC(2027, 2, 28, 1, 9) - world.core.clock.wall())
    assert.deepEqual(world.texts, [])
    await world.sign(good)
    await world.run(Date.UTC(2027, 2, 29, 0, 41) - world.core.clock.wall())
    assert.deepEqual(world.texts, ['backup 没有按时报到：上次 昨天 03:09'])
  })

  test('is not watched while it is paused', async () => {
    const world = await World.ready()
    await world.sign({ kind: 'bad' })
    void world.beats.setPaused(name, true)
    await world.run(2 * day)
    await world.sign({ kind: 'bad' })
    assert.deepEqual([world.state, world.texts.length], ['paused', 1])
    void world.beats.setPaused(name, false)
    await world.run(0)
    assert.equal(world.state, 'down')
    void world.beats.setPaused(name, true)
    await world.sign(good)
    assert.deepEqual([world.state, world.texts.length], ['paused', 2])
    await world.run(2 * day)
    void world.beats.setPaused(name, false)
    await world.run(hour)
    assert.deepEqual([world.state, world.texts.length], ['up', 2])
    await world.run(day)
    assert.deepEqual([world.state, world.texts.length], ['down', 3])
  })

  test('follows a changed schedule from then on', async () => {
    const world = await World.ready()
    await world.sign(good)
    await world.run(5 * hour)
    void world.beats.put(name, { every: '1h', grace: 60 })
    await world.run(58 * minute)
    void world.beats.put(name, { every: '1h', grace: 90 })
    await world.run(2 * minute)
    // It is late already. The same rule once more excuses nothing.
    void world.beats.put(name, { every: '1h', grace: 90 })
    await world.run(minute)
    assert.equal(world.state, 'up')
    await world.run(minute)
    assert.equal(world.state, 'down')
  })
})

describe('an outage of the relay', () => {
  test('alarms nobody: what was due meanwhile is awaited the next time', async () => {
    for (const lack of ['a sign', 'an end', 'the clock']) {
      const world = await World.ready()
      await world.sign(good)
      await world.run(day - hour)
      if (lack === 'an end') await world.sign(start)
      if (lack === 'the clock') world.core.clock.step(2 * day + 5 * hour)
      else await world.outage(2 * day + 5 * hour)
      await world.run(minute)
      assert.deepEqual([world.state, world.texts], ['up', []], lack)
      await world.run(21 * hour - 2 * minute)
      assert.deepEqual([world.state, world.texts], ['up', []], lack)
      await world.run(minute)
      assert.deepEqual([world.state, world.texts.length], ['down', 1], lack)
    }
  })

  test('neither loses nor repeats an alert, wherever the process is killed or the power cut', async () => {
    for (const [end, cause] of [['kill', 'late'], ['kill', 'failed'], ['cut', 'failed']] as const) {
      const ended: number[] = [0]
      for (let at = 1; ended.includes(at - 1); at++) {
        const world = await World.ready({ every: '10m', grace: '1m' })
        const { core } = world
        // As clients do, it repeats what was not answered.
        const send = async (sign: Sign): Promise<void> => {
          const kept: unknown[] = []
          while (kept.length === 0) {
            void world.beats.sign(name, sign).then(row => kept.push(row), () => undefined)
            await world.run(20 * second)
          }
        }
        await world.sign(good)
        if (cause === 'late') await world.run(11 * minute - 2 * second)
        core.storage.flushTakes = 7
        const before = core.storage.folder.end
        const watch = every(core.clock, 1, () => {
          if (ended.includes(at) || core.storage.folder.end < before + at) return
          ended.push(at)
          void world.outage(second, storage => storage[end]())
        })
        await (cause === 'late' ? world.run(minute) : send({ kind: 'bad', run: 'a' }))
        await send({ ...good, run: 'b' })
        await world.run(2 * minute)
        watch()
        assert.deepEqual(world.texts.map(text => text.slice(0, 9)), [`backup ${cause === 'late' ? '没有' : '失败'}`, 'backup 恢复'], `${end} after commit ${at}`)
      }
      assert(ended.length > 5)
    }
  })

  test('a sign is refused while it cannot be kept', async () => {
    const world = await World.ready()
    world.core.storage.isFlushFailing = true
    await world.sign(good)
    assert.deepEqual(world.core.log, ['store-down'])
  })

  test('an alert that cannot be accepted is tried again, with one line in the log', async () => {
    const world = await World.ready({ to: 'ops', every: '1d' })
    await world.sign({ kind: 'bad' })
    await world.run(minute)
    assert.equal(world.core.warnings.length, 1)
    assert.match(world.core.warnings.join(), /beat backup failed: not sent: no such target; trying again/)
    world.set({ every: '1d' })
    await world.run(2 * second)
    assert.deepEqual(world.texts, ['backup 失败'])
  })
})

test('a rule names the field that is wrong', () => {
  const wrong: [object, RegExp][] = [
    [{ every: 0 }, /^every /], [{ every: '1x' }, /^every /], [{}, /every or cron/], [{ every: 60, cron: '* * * * *' }, /every or cron/],
    [{ cron: '0 0 30 2 *' }, /^cron never comes/], [{ cron: '0 0 0 * * *' }, /^cron /], [{ cron: 5 }, /^cron /], [{ every: 60, zone: 'UTC' }, /^zone /],
    [{ cron: '@daily', zone: 'Nowhere' }, /^zone /], [{ every: 60, grace: -1 }, /^grace /], [{ every: 60, severity: 'ok' }, /^severity /],
    [{ every: 60, to: '' }, /^to /], [{ every: 60, to: 'nobody' }, /^to: no such target/], [{ every: 60, until: 1 }, /"until"/],
  ]
  for (const [fields, rule] of wrong) {
    assert.throws(() => parseBeat(name, { to: 'group:1', ...fields }, new Map()), { code: 'bad-request', message: rule }, JSON.stringify(fields))
  }
  assert.throws(() => parseBeat('a b', { to: 'group:1', every: 60 }), /a name must be/)
})
