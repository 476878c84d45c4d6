import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chat } from '../../support/core'
import { IncidentCore, other, person } from '../../support/incidents'
import { hour, minute } from '../../../src/lib/time'

describe('an incident', () => {
  it('begins with the first event of a thread, calls who is on duty once, and ends with its source', async () => {
    const world = await IncidentCore.ready()
    await world.event('db is down')
    await world.event('db is still down')
    await world.pass(4)
    assert.deepEqual(world.texts, ['at+ db is down', 'db is still down'])
    const { state, events, called, title } = world.only
    assert.deepEqual({ state, events, called, title }, { state: 'open', events: 2, called: ['li-lei'], title: 'db is down' })
    await world.event('db is up', { severity: 'ok' })
    assert.equal(world.texts.at(-1), 'db is up\n持续 4 分钟，无人认领')
    assert.equal(world.only.state, 'resolved')
    assert.deepEqual(world.told, ['opened', 'event', 'resolved'])
  })

  it('escalates step by step while nobody takes it', async () => {
    const world = await IncidentCore.ready()
    await world.event('db is down')
    await world.pass(31)
    const { id } = world.only
    assert.deepEqual(world.texts.slice(1), [
      `at+ 5 分钟没有人认领（${id}）：db is down\n引用这条消息回复“我来”即可认领`,
      `at+ 15 分钟没有人认领（${id}）：db is down\n引用这条消息回复“我来”即可认领`,
      `30 分钟没有人认领（${id}）：db is down\n引用这条消息回复“我来”即可认领`,
    ])
    await world.pass(120)
    assert.equal(world.texts.length, 4)
    assert.deepEqual(world.only.called, ['li-lei', 'all'])
  })

  it('repeats the last step where that is asked for', async () => {
    const world = await IncidentCore.ready({ escalate: [{ after: minute, mention: ['oncall'], again: 10 * minute }] })
    await world.event('db is down')
    await world.pass(32)
    assert.equal(world.texts.length, 5)
  })

  it('is quiet once somebody takes it, tells the second one who has it, and says who handled it', async () => {
    const world = await IncidentCore.ready()
    await world.event('db is down')
    await world.pass(2)
    const { id } = world.only
    const from = { bot: { platform: 'onebot', selfId: '1' }, target: { kind: 'group', id: '1' } } as const
    await Promise.all([world.incidents.act(id, 'take', person, { from }), world.incidents.act(id, 'take', other, { from }), world.core.run(1_000)])
    const [first = '', second = ''] = world.texts.slice(1)
    assert.match(first, /^李雷 在看（\d\d:\d\d，已响 2 分钟）$/)
    assert.equal(second, first)
    await world.pass(60)
    assert.equal(world.texts.length, 3)
    await world.event('db is up', { severity: 'ok' })
    assert.equal(world.texts.at(-1), 'db is up\n持续 1 小时 2 分钟，李雷处理')
  })

  it('counts in silence, and says at its end how many came', async () => {
    const world = await IncidentCore.ready()
    await world.event('db is down')
    const { id } = world.only
    await world.incidents.act(id, 'silence', person)
    assert.deepEqual(await world.event('one'), { skipped: 'silenced' })
    assert.deepEqual(await world.event('two'), { skipped: 'silenced' })
    await world.event('another thread', { thread: 'web' })
    await world.pass(61)
    const texts = world.texts.filter(text => !text.includes('没有人认领'))
    assert.equal(texts.at(-1), '静默结束，期间 2 条，最新：two')
    assert(texts.includes('at+ another thread'))
    assert(!texts.includes('one'))
    const back = world.incidents.get(id)
    assert.equal(back?.state, 'open')
    assert.equal(back.events, 3)
  })

  it('begins its steps anew when its owner gives it back, and reminds an owner', async () => {
    const world = await IncidentCore.ready({ remind: 4 * hour })
    await world.event('db is down')
    const { id } = world.only
    await world.incidents.act(id, 'take', person)
    await world.pass(8 * 60 + 1)
    assert.equal(world.texts.filter(text => text.includes('前认领，还没有解决')).length, 2)
    await world.incidents.act(id, 'release', person)
    await world.pass(4)
    assert.equal(world.only.steps.next, 0)
    await world.pass(2)
    assert.equal(world.only.steps.next, 1)
  })

  it('is a new one after a new start only', async () => {
    const world = await IncidentCore.ready()
    await world.event('db is down', { begunAt: 'b' })
    await world.incidents.act(world.only.id, 'resolve', person)
    // The same start, a reminder, and what is left of a group when the newest alert is over.
    for (const begunAt of ['b', '', 'a']) await world.event('db is down', { begunAt })
    assert.equal(world.all.length, 1)
    await world.event('db is down', { begunAt: 'c' })
    assert.deepEqual(world.all.map(({ state }) => state), ['open', 'resolved'])
    assert.equal(world.texts.at(-1), 'at+ db is down')
  })

  it('is none for an event that is less bad than its name wants', async () => {
    const world = await IncidentCore.ready()
    await world.event('a note', { severity: 'info' })
    assert.deepEqual(world.all, [])
    await world.event('worse', { severity: 'critical' })
    assert.equal(world.texts.at(-1), 'at+ worse')
    assert.equal(world.only.severity, 'critical')
  })

  it('goes on after a kill: each step once, those that were missed as the furthest one', async () => {
    const world = await IncidentCore.ready()
    await world.event('db is down')
    await world.pass(6)
    await world.restart()
    await world.pass(1)
    assert.equal(world.texts.length, 2)
    world.core.relay.end()
    await world.pass(30)
    await world.restart()
    await world.pass(1)
    assert.match(world.texts.at(-1) ?? '', /^3\d 分钟没有人认领/)
    assert.equal(world.texts.length, 3)
  })

  it('repeats no step when the process is killed between its acceptance and its note', async () => {
    for (const commit of [1, 2, 3, 4, 5, 6]) {
      const world = await IncidentCore.ready({ escalate: [{ after: minute, mention: ['oncall'] }] })
      await world.event('db is down')
      const before = world.core.storage.folder.end
      world.core.killAt = before + commit
      await world.pass(1)
      await world.restart()
      await world.pass(3)
      assert.equal(world.texts.filter(text => text.includes('没有人认领')).length, 1, `commit ${commit}`)
    }
  })

  it('knows its messages, and lets only who may act', async () => {
    const world = await IncidentCore.ready({ who: ['han-mei'] }, { mention: {} })
    await world.event('db is down')
    await world.pass(1)
    const { id } = world.only
    assert.deepEqual(world.incidents.ofMessage('onebot:1 group:1', '1').map(each => each.id), [id])
    assert.deepEqual(world.incidents.ofMessage('onebot:2 group:1', '1'), [])
    assert.deepEqual(world.incidents.ofChat('onebot:1 group:1').map(each => each.id), [id])
    assert.equal(world.incidents.mayAct(world.only, person), false)
    assert.equal(world.incidents.mayAct(world.only, other), true)
    await world.pass(5)
    assert.equal(world.incidents.mayAct(world.only, person), true)
    assert.deepEqual(world.incidents.ofMessage('onebot:1 group:1', '2').map(each => each.id), [id])
  })

  it('has a message of a step in another chat as well', async () => {
    const world = await IncidentCore.ready({ escalate: [{ after: minute, mention: [], to: 'private:7' }] })
    await world.event('db is down')
    await world.pass(2)
    assert.deepEqual(world.incidents.ofMessage('onebot:1 private:7', '2').map(each => each.id), [world.only.id])
  })

  it('leaves plain messages, and names without rules, alone', async () => {
    const world = await IncidentCore.ready()
    await world.event('a note', { policy: undefined })
    await world.event('no severity', { severity: undefined })
    assert.deepEqual(world.all, [])
    assert.deepEqual(world.texts, ['a note', 'no severity'])
  })

  it('calls who is on duty at the time of a step', async () => {
    const world = await IncidentCore.ready()
    await world.event('db is down')
    world.onDuty = { person: 'han-mei', name: '韩梅梅', userId: '10002' }
    await world.pass(6)
    assert.deepEqual(world.only.called, ['li-lei', 'han-mei'])
  })

  it('stops a step in the moment in which somebody takes it', async () => {
    const world = await IncidentCore.ready({ escalate: [{ after: minute, mention: [] }] }, { addresses: [{ target: chat }, { target: { kind: 'group', id: '2' } }] })
    await world.event('db is down')
    world.core.storage.flushTakes = 400
    await world.core.clock.runUntil('the first chat has the step', () => world.core.rows.some(({ door }) => door === 'incidents'), 2 * minute)
    void world.incidents.act(world.only.id, 'take', person)
    await world.pass(5)
    assert.equal(world.core.rows.filter(({ summary }) => JSON.stringify(summary).includes('没有人认领')).length, 1)
  })
})
