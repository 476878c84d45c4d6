import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { explain } from '../../../src/message/causes'
import type { MessageRequest } from '../../../src/message/model'
import { SendError } from '../../../src/platform/port'
import type { Delivery } from '../../../src/relay/delivery/delivery'
import { Core, fates } from '../../support/core'

const minute = 60_000
const ways = [{ target: { kind: 'group', id: '1' } }, { target: { kind: 'group', id: '2' } }] as const
const route: NonNullable<MessageRequest['route']> = { name: 'oncall', ways, after: 2 * minute, whenUnknown: 'stop' }

function only({ rows: [first = assert.fail()] }: Core): Delivery {
  return first
}

/** Where it went, and how each way before ended. */
function way(core: Core): unknown {
  const { target, state, flow } = only(core)
  return [target.id, state, flow.route?.past.map(({ target, outcome }) => `${target} ${outcome}`)]
}

describe('a delivery with several ways', () => {
  test('goes by the first that takes it, and its caller gets the result', async () => {
    const core = await Core.ready()
    await core.run(1_000, core.submit('a', { route }))
    assert.deepEqual([core.log, way(core)], [['a sent'], ['1', 'sent', []]])
  })

  test('goes on at once where one refuses it', async () => {
    const core = await Core.ready({ retries: 0, fates: [fates.refused] })
    await core.run(1_000, core.submit('a', { route }))
    assert.deepEqual([core.log, way(core)], [['a sent'], ['2', 'sent', ['group:1 refused']]])
  })

  test('comes with others where the first way was closed', async () => {
    const core = await Core.ready()
    core.port.chat = { cause: 'muted', until: null }
    core.port.tellOfChat(core.port.chat)
    for (const text of ['1', '2', '3', '4', '5', '6', '7']) void core.later(text, { route, door: 'hooks/x' })
    await core.run(3 * minute)
    assert.deepEqual(core.called, ['7 closed, 1 (1), 2 (1), 3 (1), 4 (1), 5 (1), 6 (1), 7 (1)'])
  })

  test('waits until its next way is tried, where there is one', async () => {
    const core = await Core.ready()
    core.port.chat = { cause: 'muted', until: core.clock.wall() + 10 * minute }
    core.port.tellOfChat(core.port.chat)
    const until = (): number | null | undefined => core.relay.waitOf(only(core))?.until
    await core.run(1_000, core.later('a', { route: { ...route, after: minute } }))
    const { createdAt } = only(core)
    assert.equal(until(), createdAt + minute)
    core.port.online = false
    await core.run(minute)
    assert.deepEqual([until(), way(core)], [null, ['2', 'queued', ['group:1 unsent']]])
  })

  test('ends where its last way is gone from its name', async () => {
    const core = await Core.ready({ fates: [fates.removed, { answered: 10, error: new SendError('unsent') }] })
    await core.run(500, core.submit('a', { route }))
    core.port.goneTarget = '2'
    await core.run(minute)
    assert.deepEqual(way(core), ['2', 'failed', ['group:1 refused']])
    assert.match(core.warnings.join('\n'), /^\S+ deferred group:2 failed after 2 attempts: bad request$/)
  })

  test('ends as the last one ends', async () => {
    const core = await Core.ready({ retries: 0, fates: [fates.refused, fates.refused] })
    await core.run(1_000, core.submit('a', { route }))
    assert.deepEqual([core.log, way(core)], [['a refused'], ['2', 'failed', ['group:1 refused']]])
  })

  test('ends where one goes unanswered', async () => {
    const core = await Core.ready({ retries: 0, fates: [fates.silent] })
    await core.run(30_000, core.submit('a', { route }))
    assert.deepEqual([core.log, way(core)], [['a unanswered'], ['1', 'unanswered', []]])
  })

  test('goes on where one goes unanswered and its name says so, with a line that says it', async () => {
    const core = await Core.ready({ retries: 0, fates: [fates.silent] })
    await core.run(30_000, core.submit('a', { route: { ...route, whenUnknown: 'next' } }))
    assert.deepEqual([core.log, way(core)], [['a sent'], ['2', 'sent', ['group:1 unanswered']]])
    assert.match(core.called[1] ?? '', /May be a repetition.*\na$/)
  })

  test('leaves by the next one although the platform makes one message of repeated calls', async () => {
    const core = await Core.ready({ retries: 0 })
    Object.assign(core.port, { idempotentFor: minute, hasHistory: false })
    core.port.fates.push(fates.lost)
    await core.run(30_000, core.submit('a', { route: { ...route, whenUnknown: 'next' } }))
    assert.deepEqual([core.log, core.port.texts.length], [['a sent'], 2])
  })

  test('waits for its time where a chat is closed, then goes on', async () => {
    const core = await Core.ready({ retries: 0, fates: [fates.muted, fates.muted] })
    void core.submit('a', { route })
    await core.run(2 * minute - 1)
    assert.deepEqual(only(core).target.id, '1')
    await core.run(5_001)
    assert.deepEqual(way(core), ['2', 'sent', ['group:1 unsent']])
    assert.deepEqual(core.log, ['a accepted'])
  })

  test('goes on at once where the account is logged out, however many wait', async () => {
    const core = await Core.ready()
    core.port.cause = 'logged-out'
    core.port.online = false
    for (const text of ['a', 'b', 'c']) void core.submit(text, { route: { ...route, ways: [...ways, { target: { kind: 'group', id: '3' } }] } })
    await core.run(2_000)
    assert.deepEqual(core.rows.map(delivery => delivery.target.id), ['3', '3', '3'])
    core.port.online = true
    await core.run(2_000)
    assert.deepEqual(core.port.texts, ['a', 'b', 'c'])
  })

  test('says so where its chat was held as well, and its next try is due', async () => {
    const core = await Core.ready({ fates: [{ answered: 10, error: new SendError('unsent', undefined, { causeId: 'logged-out' }) }] })
    await core.run(100, core.submit('refused'))
    core.port.cause = 'logged-out'
    core.port.online = false
    await core.run(2 * minute)
    await core.run(100, core.submit('a', { route }))
    const past = core.rows.flatMap(delivery => delivery.flow.route?.past ?? [])
    assert.deepEqual(past.map(({ reason }) => String(reason)), [`${String(explain('logged-out'))}: nothing was sent, try again later`])
  })

  test('that has arrived in part keeps no caller waiting behind it where the account is logged out', async () => {
    const core = await Core.ready()
    const link = { kind: 'remote', url: 'http://example.com/a.txt' } as const
    const away = { answered: 10, error: new SendError('unsent') }
    core.port.fates.push(fates.sent, away, away)
    await core.run(100, core.later('batch', { route, mode: 'batch', items: [{ type: 'text', text: 'batch' }, { type: 'file', link }] }))
    await core.run(100, core.submit('caller'))
    core.port.cause = 'logged-out'
    core.port.online = false
    // Before the look at all queues, which is made every five seconds.
    await core.run(3_000)
    assert.deepEqual(core.log, ['batch accepted', 'caller unsent'])
    core.port.online = true
    await core.run(3_000)
    assert.deepEqual(core.port.texts, ['batch', 'file'])
  })

  test('waits for its time where the connection is lost', async () => {
    const core = await Core.ready()
    core.port.online = false
    void core.submit('a', { route })
    await core.run(minute)
    assert.equal(only(core).target.id, '1')
    core.port.online = true
    await core.run(2_000)
    assert.deepEqual(way(core), ['1', 'sent', []])
  })

  test('counts its time from the end of its quiet hours', async () => {
    const core = await Core.ready()
    const now = Math.floor(core.clock.wall() / minute) % (24 * 60)
    void core.later('a', { route, policy: { name: 'oncall', quiet: { from: now, to: (now + 60) % (24 * 60), zone: 'UTC' } } })
    await core.run(61 * minute)
    assert.deepEqual(way(core), ['1', 'sent', []])
  })

  test('goes each way once where the process is killed between two', async () => {
    for (let at = 0; at <= 1_500; at += 50) {
      const core = await Core.ready({ fates: [fates.refused, fates.refused, fates.refused] })
      void core.submit('a', { route })
      await core.run(at)
      core.restart()
      await core.run(5 * minute)
      // Killed in its last call, nobody knows what became of it.
      assert.deepEqual([core.port.texts.length, only(core).state].join(), core.port.texts.length > 0 ? '1,sent' : '0,unanswered', `killed after ${at} ms`)
    }
  })

  test('is given to the next where the queue of the first is full', async () => {
    const core = await Core.ready({ capacity: 1, fates: [{ arrives: 500, answered: 500 }] })
    for (const text of ['x', 'y']) void core.submit(text)
    await core.run(100, core.submit('a', { route }))
    assert.deepEqual(core.log, ['a sent'])
  })

  test('that was accepted is taken by its last way, however full that is', async () => {
    const core = await Core.ready({ retries: 0, capacity: 1, fates: [{ arrives: 5_000, answered: 5_000 }, fates.refused] })
    for (const text of ['x', 'y']) await core.run(100, core.later(text, { target: ways[1].target }))
    await core.run(minute, core.later('a', { route }))
    assert.deepEqual(core.port.texts, ['x', 'y', 'a'])
  })

  test('begins with its first way where it is sent again', async () => {
    const core = await Core.ready({ retries: 0, fates: [fates.refused, fates.refused] })
    await core.run(1_000, core.submit('a', { route }))
    await Promise.all([core.relay.retry(only(core).id, () => undefined), core.run(1_000)])
    await core.run(1_000)
    assert.deepEqual(way(core), ['1', 'sent', ['group:1 refused', 'group:2 refused']])
  })

  test('waits for the account, which is not there yet right after a restart', async () => {
    const core = await Core.ready()
    core.port.online = false
    await core.run(1_000, core.submit('a', { route }))
    const find = core.port.find.bind(core.port)
    core.port.find = () => undefined
    core.restart()
    await core.run(10_000)
    core.port.find = find
    core.port.online = true
    await core.run(10_000)
    assert.deepEqual(way(core), ['1', 'sent', []])
  })

  test('that is ordered for later keeps its first way until then', async () => {
    const core = await Core.ready()
    await core.run(100, core.submit('a', { route, sendAt: { at: core.clock.wall() + 10 * minute, written: '' } }))
    core.port.cause = 'logged-out'
    core.port.online = false
    void core.submit('b', { route })
    await core.run(minute)
    core.port.online = true
    await core.run(10 * minute)
    const [first] = core.rows.filter(delivery => delivery.flow.sendAt !== undefined)
    assert.deepEqual([first?.target.id, first?.state], ['1', 'sent'])
  })

  test('goes on by its next way where its digest cannot leave to its chat any more', async () => {
    const core = await Core.ready({ retries: 0, fates: [fates.sent, fates.removed] })
    for (const text of ['0', '1', '2']) await core.run(20, core.later(text, { route, policy: { name: 'oncall', digest: 30_000 } }))
    await core.run(5 * minute)
    assert.deepEqual(core.rows.map(({ state }) => state), core.states.map(() => 'sent'))
    assert.deepEqual(core.called, ['0', '2, 1 (1), 2 (1)', '1', '2'])
  })
})
