import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MessageRequest } from '../../../../src/message/model'
import { SendError } from '../../../../src/platform/port'
import type { Delivery } from '../../../../src/relay/delivery/delivery'
import { Core, fates } from '../../../support/core'

const minute = 60_000
const hour = 60 * minute

/** Quiet hours that last for two more hours. */
function quietIn(core: Core): NonNullable<MessageRequest['policy']> {
  const now = Math.floor(core.clock.wall() / minute) % (24 * 60)
  return { name: 'ops', quiet: { from: now, to: (now + 120) % (24 * 60), zone: 'UTC' } }
}

const digest = { name: 'ops', digest: 30_000 }

/** The delivery of this text in the file. */
function stored({ rows }: Core, text: string): Delivery | undefined {
  return rows.find(({ summary: { items: [item] } }) => item?.msg === text)
}

function statesOf(core: Core, ...texts: string[]): (string | undefined)[] {
  return texts.map(text => stored(core, text)?.state)
}

/** Sends three messages for later: the first leaves at once, and the others wait for their digest. */
async function three(core: Core): Promise<void> {
  await core.run()
  for (const text of ['0', '1', '2']) await core.run(20, core.later(text, { policy: digest }))
}

describe('quiet hours', () => {
  test('keep what comes while the bot is offline', async () => {
    const core = await Core.ready()
    core.port.online = false
    await core.run(10, core.submit('night', { policy: quietIn(core) }))
    assert.deepEqual(core.states, ['queued'])
  })

  test('hold back what is not urgent, and nothing that another name or address sends to the same chat', async () => {
    const core = await Core.ready()
    const policy = quietIn(core)
    void core.submit('night', { policy })
    void core.submit('alarm', { policy, urgent: true })
    void core.submit('other')
    await core.run(hour)
    assert.deepEqual(core.called, ['alarm', 'other'])
    assert.deepEqual(core.log, ['night accepted', 'alarm sent', 'other sent'])
    assert.deepEqual(core.relay.queues().map(({ waiting, later }) => [waiting, later?.count]), [[1, 1]])
    await core.run(hour)
    assert.deepEqual(core.called, ['alarm', 'other', 'night'])
  })

  test('hold it over a restart, in its order', async () => {
    const core = await Core.ready()
    const policy = quietIn(core)
    for (const text of ['one', 'two']) void core.later(text, { policy })
    await core.run(minute)
    core.relay.end()
    core.restart()
    await core.run(hour)
    assert.deepEqual(core.called, [])
    await core.run(hour)
    assert.deepEqual(core.called, ['one', 'two'])
  })

  test('hold back what was in line when they began', async () => {
    const core = await Core.ready()
    const now = Math.floor(core.clock.wall() / minute) % (24 * 60)
    const policy = { name: 'ops', quiet: { from: now + 30, to: now + 90, zone: 'UTC' } }
    core.port.online = false
    void core.later('evening', { policy })
    await core.run(45 * minute)
    core.port.online = true
    void core.later('other')
    await core.run(minute)
    assert.deepEqual(core.called, ['other'])
    await core.run(hour)
    assert.deepEqual(core.called, ['other', 'evening'])
  })

  test('let no more wait than a queue takes', async () => {
    const core = await Core.ready({ capacity: 2 })
    const policy = quietIn(core)
    for (const text of ['1', '2', '3']) void core.later(text, { policy })
    for (const text of ['4', '5', '6']) void core.later(text, { sendAt: { at: core.clock.wall() + 5 * hour, written: '' } })
    await core.run(100)
    assert.deepEqual(core.log.toSorted(), ['1 accepted', '2 accepted', '3 queue-full 1', '4 queue-full 1', '5 queue-full 1', '6 queue-full 1'])
    await core.run(100, core.submit('now'))
    assert.equal(core.log.at(-1), 'now sent')
  })

  test('are no delay: what waits for their end does not count as waiting long', async () => {
    const core = await Core.ready()
    void core.later('night', { policy: quietIn(core) })
    await core.run(hour)
    assert.deepEqual(core.relay.backlog(), { size: 1 })
  })

  test('let it expire', async () => {
    const core = await Core.ready()
    void core.later('short', { policy: quietIn(core), expiresIn: minute })
    await core.run(2 * hour)
    assert.deepEqual([core.called, core.states], [[], ['expired']])
  })
})

describe('what is ordered for later', () => {
  const at = (core: Core, ms: number): MessageRequest['sendAt'] => ({ at: core.clock.wall() + ms, written: '' })

  test('has its key until a day after its time', async () => {
    const core = await Core.ready()
    const more = { key: 'k', sendAt: at(core, 2 * hour) }
    void core.submit('later', more)
    await core.run(3 * hour)
    core.clock.step(22 * hour)
    await core.run(100, core.submit('later', more))
    assert.deepEqual([core.called, core.log], [['later'], ['later accepted', 'later replay sent']])
  })

  test('makes nothing late that comes after a restart', async () => {
    const core = await Core.ready()
    void core.submit('later', { sendAt: at(core, 10 * hour) })
    await core.run(minute)
    core.restart()
    await core.run(hour)
    for (let index = 0; index < 7; index++) void core.later(`${index}`, { door: 'hooks/message' })
    await core.run(minute)
    assert.equal(core.called.length, 7)
  })

  test('leaves at its time, and expires from then on', async () => {
    const core = await Core.ready()
    void core.submit('later', { sendAt: at(core, hour), expiresIn: minute })
    void core.submit('now')
    await core.run(hour - 1)
    assert.deepEqual([core.called, core.log], [['now'], ['later accepted', 'now sent']])
    await core.run(1_000)
    assert.deepEqual([core.called, core.states], [['now', 'later'], ['sent', 'sent']])
  })

  test('is withdrawn before its time', async () => {
    const core = await Core.ready()
    const { delivery } = await Promise.all([core.submit('later', { sendAt: at(core, hour) }), core.run(10)]).then(([submitted]) => submitted)
    await Promise.all([core.relay.withdraw(delivery.id), core.run(10)])
    await core.run(2 * hour)
    assert.deepEqual(core.called, [])
  })

  test('leaves once, however the clock of the machine is set', async () => {
    const core = await Core.ready()
    void core.submit('later', { sendAt: at(core, hour) })
    await core.run(minute)
    core.clock.step(2 * hour)
    await core.run(2 * minute)
    assert.deepEqual(core.called, ['later'])
    core.clock.step(-2 * hour)
    await core.run(2 * hour)
    assert.deepEqual(core.called, ['later'])
  })
})

describe('a digest', () => {
  test('leaves at most one message in its time: the first at once, then all that came meanwhile', async () => {
    const core = await Core.ready()
    for (let second = 0; second < 60; second++) {
      for (const name of second < 33 ? ['down', 'up'] : []) void core.later(`web-${second} ${name}`, { policy: digest, thread: `web-${second}` })
      if (second === 20) void core.later('alarm', { policy: digest, urgent: true })
      await core.run(1_000)
      if (second === 20) assert.equal(core.called.at(-1), 'alarm')
    }
    await core.run(minute)
    assert.equal(core.called.length, 4)
    const shown = core.called.join()
    for (let index = 1; index < 33; index++) assert.ok(shown.includes(`web-${index} up (2)`), String(index))
    const last = stored(core, 'web-32 up')
    assert.deepEqual(last?.state, 'sent')
    assert.deepEqual(last.results, [{ success: true, messageIds: ['4'] }])
    assert.deepEqual({ ...last.flow.digest, id: '' }, { id: '', count: 4, shown: true })
    assert.ok(core.states.every(state => state === 'sent'))
  })

  test('takes what comes while the first message is leaving, and does not wait where that does not arrive', async () => {
    for (const [fate, left] of [[{ arrives: 300, answered: 300 }, 30_300], [fates.refused, 10]] as const) {
      const core = new Core({ retries: 0, fates: [fate] })
      for (const text of ['0', '1', '2']) void core.submit(text, { policy: digest })
      await core.run(minute)
      assert.deepEqual([core.called, core.port.calls.at(-1)?.at], [['0', '2, 1 (1), 2 (1)'], left])
    }
  })

  test('waits for its own time where the same chat has a shorter one by another name, and for that of no other', async () => {
    const core = await Core.ready()
    const builds = { name: 'builds', digest: 2 * minute }
    for (const text of ['build 1', 'build 2']) await core.run(100, core.later(text, { policy: builds }))
    for (let count = 0; count < 20; count++) await core.run(10_000, core.later(`alarm ${count}`, { policy: digest }))
    assert.deepEqual(core.called.slice(0, 2), ['build 1', 'alarm 0'])
    const [, late] = core.port.calls.filter(({ text }) => text.includes('build'))
    assert.deepEqual([late?.text.includes('build 2'), Math.round((late?.at ?? 0) / minute)], [true, 2])
  })

  test('takes no pictures, which wait for none', async () => {
    const core = await Core.ready()
    const picture = { items: [{ type: 'image', link: { kind: 'remote', url: 'http://x/a' } }] } as const
    await core.run(100, core.later('0', { policy: digest }))
    for (const [text, more] of [['1', {}], ['2', {}], ['', picture], ['', picture], ['3', {}]] as const) void core.later(text, { policy: digest, ...more })
    await core.run(100)
    assert.deepEqual(core.called, ['0', 'image', 'image'])
    await core.run(minute)
    assert.deepEqual(core.called.slice(3), ['3, 1 (1), 2 (1), 3 (1)'])
  })

  test('has all lines of each text, in one', async () => {
    const core = await Core.ready()
    for (const text of ['0', 'InstanceDown\n  db-1\r\n\nunreachable\n', `InstanceDown\n${'y'.repeat(200)}`]) {
      await core.run(100, core.later(text, { policy: digest }))
    }
    await core.run(minute)
    assert.equal(core.called.at(-1), `2, InstanceDown · db-1 · unreachable (1), InstanceDown · ${'y'.repeat(184)}… (1)`)
  })

  test('is made in no time, however many blanks a text has', async () => {
    const core = await Core.ready()
    for (const text of ['0', `a${' '.repeat(50_000)}b`, '2']) void core.later(text, { policy: digest })
    const { user } = process.cpuUsage()
    await core.run(minute)
    assert(process.cpuUsage().user - user < 1_000_000)
    assert.match(String(core.called.at(-1)), /^3, 0 \(1\), a {198}… \(1\), 2 \(1\)$/)
  })

  test('is since the time that a message was ordered for', async () => {
    const core = await Core.ready()
    const at = core.clock.wall() + hour
    void core.later('ordered', { policy: digest, sendAt: { at, written: '' } })
    await core.run(hour - 10_000)
    for (const text of ['0', '1']) await core.run(9_000, core.later(text, { policy: digest }))
    await core.run(minute)
    assert.deepEqual([core.called, core.digestSince], [['0', '2, ordered (1), 1 (1)'], at - 1_000])
  })

  test('is no longer than a message of its platform, and counts the rest', async () => {
    const core = await Core.ready()
    core.port.longestText = 682
    for (let count = 0; count < 10; count++) await core.run(100, core.later('x'.repeat(100), { policy: digest }))
    await core.run(minute)
    assert.deepEqual([core.called.length, core.called[1]?.match(/x+/g)?.length], [2, 4])
    assert.equal(core.rows.filter(({ flow }) => flow.digest?.shown === false).length, 5)
  })

  test('is neither lost nor doubled where the process is killed right after any commit, or during its call', async () => {
    let commits = 0
    for (let at = 0; at <= commits; at++) {
      const core = await Core.ready({ fates: [fates.sent, { arrives: 0, answered: 500 }] })
      await core.run(20, core.later('0', { policy: digest }))
      for (const text of ['1', '2']) await core.run(10, core.later(text, { policy: digest }))
      const before = core.storage.folder.end
      if (at > 0) core.killAt = before + at
      await core.run(30_150)
      if (at === 0) core.restart()
      await core.run(3 * minute)
      if (at === 0) commits = core.storage.folder.end - before
      assert.deepEqual(core.port.texts, ['0', '2, 1 (1), 2 (1)'], `killed after ${at} of ${commits} commits`)
      assert.deepEqual(statesOf(core, '0', '1', '2'), ['sent', 'sent', 'sent'])
    }
    assert.ok(commits >= 3, String(commits))
  })

  test('that goes unanswered leaves its members unanswered, until it is found', async () => {
    const core = new Core({ retries: 0, fates: [fates.sent, { arrives: 25_000 }] })
    await three(core)
    await core.run(53_000)
    assert.deepEqual(statesOf(core, '1', '2'), ['unanswered', 'unanswered'])
    const member = stored(core, '1')
    await assert.rejects(Promise.race([core.relay.retry(member?.id ?? '', () => undefined), core.run(100)]), /retry that one/)
    await core.run(10 * minute)
    assert.deepEqual(statesOf(core, '1', '2'), ['sent', 'sent'])
    assert.equal(core.called.length, 2)
  })

  test('takes no other delivery for a member where the line changes while it is written', async () => {
    const core = await Core.ready()
    for (const [text, more] of [['0', {}], ['1', {}], ['2', { expiresIn: 32_000 }], ['3', {}]] as const) {
      await core.run(10, core.later(text, { policy: digest, ...more }))
    }
    core.digestTakes = 6_000
    await core.run(30_000)
    const [, , { id } = assert.fail()] = core.rows
    await assert.rejects(core.relay.withdraw(id), { code: 'conflict', message: /leaving in a digest/ })
    for (const text of ['4', '5']) void core.later(text)
    await core.run(minute)
    assert.deepEqual(core.called, ['0', '3, 1 (1), 2 (1), 3 (1)', '4', '5'])
    assert.deepEqual(statesOf(core, '1', '2', '3'), ['sent', 'sent', 'sent'])
  })

  test('that is refused for its content lets each member leave alone', async () => {
    const core = new Core({ retries: 0, fates: [fates.sent, fates.refused] })
    await three(core)
    await core.run(minute)
    assert.deepEqual(core.port.texts, ['0', '1', '2'])
  })

  test('that meets a chat that is gone fails its members, and only they are sent again', async () => {
    const core = new Core({ retries: 0, fates: [fates.sent, fates.removed] })
    await three(core)
    await core.run(minute)
    const failed = core.rows.flatMap(delivery => delivery.state === 'failed' ? [delivery] : [])
    assert.equal(failed.length, 2)
    for (const { id } of failed) await Promise.race([core.relay.retry(id, () => undefined), core.run(100)])
    await core.run(5 * minute)
    assert.deepEqual(core.port.texts, ['0', '1', '2'])
  })

  test('that meets a closed chat gives its members back, and takes more of them the next time', async () => {
    const core = new Core({ fates: [fates.sent, fates.muted] })
    await three(core)
    await core.run(31_000)
    assert.deepEqual(core.relay.queues().map(({ state, waiting }) => [state, waiting]), [['held', 2]])
    void core.later('3', { policy: digest })
    await core.run(20 * minute)
    assert.deepEqual(core.port.texts, ['0', '3, 1 (1), 2 (1), 3 (1)'])
  })
})

describe('a digest that cannot leave', () => {
  test('is made again a second later, and not at once', async () => {
    const core = await Core.ready()
    await core.run(20, core.later('0', { policy: digest }))
    core.port.fates.push(...Array.from({ length: 100 }, () => ({ answered: 5, error: new SendError('unsent') })))
    for (const text of ['1', '2']) void core.later(text, { policy: digest })
    await core.run(30_000)
    const calls = core.called.length
    await core.run(10_000)
    const more = core.called.length - calls
    assert.ok(more > 5 && more < 15, String(more))
  })

  test('loses none of its members where the disk is full meanwhile', async () => {
    const core = new Core({ fates: [fates.sent, { answered: 1_000, error: fates.muted.error }] })
    await three(core)
    await core.run(30_000)
    assert.equal(core.called.length, 2)
    core.storage.isFull = true
    await core.run(minute)
    core.storage.isFull = false
    await core.run(20 * minute)
    assert.deepEqual(core.port.texts, ['0', '2, 1 (1), 2 (1)'])
    assert.deepEqual(statesOf(core, '1', '2'), ['sent', 'sent'])
  })

  test('fails its members, which ended unanswered before, and lets them be sent again', async () => {
    const core = new Core({ retries: 1, fates: [fates.sent, fates.silent, fates.refused] })
    await three(core)
    core.port.isHistorySilent = true
    core.port.retriesUnanswered = false
    await core.run(80_000)
    assert.deepEqual(statesOf(core, '1', '2'), ['unanswered', 'unanswered'])
    core.port.isHistorySilent = false
    await core.run(20 * minute)
    assert.deepEqual(statesOf(core, '1', '2'), ['failed', 'failed'])
    for (const text of ['1', '2']) await Promise.race([core.relay.retry(stored(core, text)?.id ?? '', () => undefined), core.run(100)])
    await core.run(5 * minute)
    assert.deepEqual(core.port.texts, ['0', '1', '2'])
  })

  test('stays one where its members have ended unanswered', async () => {
    const core = new Core({ fates: [fates.sent, fates.silent, fates.muted] })
    await three(core)
    core.port.isHistorySilent = true
    core.port.retriesUnanswered = false
    await core.run(80_000)
    assert.deepEqual(statesOf(core, '1', '2'), ['unanswered', 'unanswered'])
    core.port.isHistorySilent = false
    await core.run(20 * minute)
    assert.equal(core.called.length, 4)
    assert.deepEqual(statesOf(core, '1', '2'), ['sent', 'sent'])
  })
})

describe('a backlog', () => {
  const door = 'hooks/uptime-kuma'

  test('of what came through hooks leaves as few messages, and says why it is late', async () => {
    const core = await Core.ready()
    core.port.online = false
    for (let index = 0; index < 500; index++) void core.later(`monitor ${index}`, { door })
    await core.run(minute)
    core.port.online = true
    await core.run(minute)
    assert.ok(core.called.length <= 6, String(core.called.length))
    assert.match(core.called[0] ?? '', /^500 offline, monitor /)
    assert.ok(core.states.every(state => state === 'sent'))
    for (const text of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) void core.later(text, { door })
    await core.run(minute)
    assert.deepEqual(core.called.slice(-7), ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  })

  test('is one as well where the chat was closed before any of it came, or its target is paused', async () => {
    for (const failures of [0, 2]) {
      const core = await Core.ready({ retries: 0, pauseAfter: 2 })
      if (failures === 0) core.port.tellOfChat({ cause: 'muted', until: null })
      for (let count = 0; count < failures; count++) {
        core.port.fates.push(fates.removed)
        await core.run(100, core.later('gone', { door }))
      }
      for (const text of ['1', '2', '3', '4', '5', '6']) void core.later(text, { door })
      await core.run(20_000)
      if (failures === 0) core.port.tellOfChat('open')
      await core.run(minute)
      assert.deepEqual(core.called.slice(failures), ['6 closed, 1 (1), 2 (1), 3 (1), 4 (1), 5 (1), 6 (1)'])
    }
  })

  test('leaves as it is where it is small, or came otherwise', async () => {
    const core = await Core.ready()
    core.port.online = false
    for (const text of ['1', '2', '3', '4', '5']) void core.later(text, { door })
    for (const text of ['6', '7', '8']) void core.later(text)
    await core.run(minute)
    core.port.online = true
    await core.run(minute)
    assert.deepEqual(core.called, ['1', '2', '3', '4', '5', '6', '7', '8'])
  })

  test('is one after a restart as well', async () => {
    const core = await Core.ready()
    core.port.online = false
    for (const text of ['1', '2', '3', '4', '5', '6']) void core.later(text, { door })
    await core.run(minute)
    core.restart()
    core.port.online = true
    await core.run(minute)
    assert.deepEqual(core.called, ['6 restarted, 1 (1), 2 (1), 3 (1), 4 (1), 5 (1), 6 (1)'])
  })

  test('is one of what failed and is sent again as well', async () => {
    const core = await Core.ready({ retries: 0, pauseAfter: 100 })
    for (let count = 0; count < 8; count++) core.port.fates.push(fates.refused)
    for (const text of ['1', '2', '3', '4', '5', '6', '7', '8']) await core.run(100, core.later(text, { door }))
    const ids = core.rows.map(({ id }) => id)
    core.port.fates.push({ arrives: 500, answered: 500 })
    for (const id of ids) {
      void core.relay.retry(id, () => undefined)
      await core.run(10)
    }
    await core.run(minute)
    assert.deepEqual(core.called.slice(8), ['1', '7 failed, 2 (1), 3 (1), 4 (1), 5 (1), 6 (1), 7 (1), 8 (1)'])
  })
})
