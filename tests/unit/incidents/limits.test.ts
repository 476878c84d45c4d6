import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RelayError } from '../../../src/errors'
import { actions, type Incident } from '../../../src/incidents/incident'
import { mostIncidents } from '../../../src/incidents/recorder'
import { saveIncident } from '../../../src/incidents/table'
import { fates } from '../../support/core'
import { ack, IncidentCore, person } from '../../support/incidents'

/** Makes many incidents after the pattern of one. */
function seed({ core, names }: IncidentCore, pattern: Incident, count: number, changes: Partial<Incident> = {}): void {
  core.relay.store.commit(writer => {
    for (let index = 0; index < count; index++) {
      const next = { ...pattern, id: `x${index}`, thread: `thread ${index}`, ...changes }
      saveIncident(writer, next, names.get(next.name)?.ack)
    }
  })
}

describe('many incidents', () => {
  test('are ten thousand at most: further events are sent without one, and the log says so once', async () => {
    const world = await IncidentCore.ready()
    await world.event('the first')
    const first = world.only
    seed(world, first, mostIncidents - 2, { state: 'taken' })
    for (const thread of ['a', 'b', 'c']) await world.event(thread, { thread })
    assert.deepEqual(world.texts.slice(-3).map(text => text.replace('at+ ', '')), ['a', 'b', 'c'])
    assert.deepEqual(world.warnings, ['10000 incidents are unresolved: events are sent without one until some are resolved'])
    assert.deepEqual(world.incidents.list({ states: ['open'] }).map(({ thread }) => thread), ['a', 'db'])

    const resolved = world.incidents.act(first.id, 'resolve', person)
    await world.core.run(1_000)
    await resolved
    await world.event('d', { thread: 'd' })
    assert.deepEqual(world.incidents.list({ states: ['open'] }).map(({ thread }) => thread), ['d', 'a'])
  })

  test('do not keep others waiting while their chat takes no more', async () => {
    const world = await IncidentCore.ready({ escalate: [{ after: 10_000, mention: ['oncall'] }] })
    const full = { kind: 'group', id: '2' } as const
    world.name('full', { ack: { ...ack, escalate: [{ after: 0, mention: [] }] }, addresses: [{ target: full }] })
    world.core.port.fates.push(fates.muted)
    const fill = Array.from({ length: 1_000 }, (_, index) => world.core.later(`${index}`, { target: full }))
    await world.core.run(1_000)
    await Promise.all(fill)
    await world.event('db is down')
    seed(world, world.only, 150, { name: 'full', severity: 'critical', heard: { 'group:2': 'critical' } })
    await world.core.run(12_000)
    assert.match(world.texts.at(-1) ?? '', /^at\+ 10 秒没有人认领/)
    assert(world.warnings.every(line => line.includes('is tried again: too many messages are waiting')), world.warnings.join('\n'))
  })
})

test('a full disk changes no incident, is told once, and what was due comes afterwards', async () => {
  const world = await IncidentCore.ready()
  await world.event('db is down')
  const { id } = world.only
  const before = world.only
  world.core.storage.isFull = true
  for (const action of actions) {
    await assert.rejects(world.incidents.act(id, action, person), (error: RelayError) => error.code === 'storage-full' && error.status === 507)
  }
  await world.pass(10)
  assert.deepEqual({ ...world.only, untold: 0 }, { ...before, untold: 0 })
  assert.equal(world.warnings.length, 1)
  assert.match(world.warnings[0] ?? '', /^incidents cannot go on: the disk of the relay is full/)
  world.core.storage.isFull = false
  await world.pass(1)
  assert.match(world.texts.at(-1) ?? '', /^at\+ 10 分钟没有人认领/)
  assert.equal(world.warnings.length, 1)
})

test('an action that is killed before its answer counts or does not, and what it made is told', async () => {
  for (const after of [1, 2, 3]) {
    const world = await IncidentCore.ready()
    await world.event('db is down')
    const { id } = world.only
    world.core.killAt = world.core.storage.folder.end + after
    void world.incidents.act(id, 'take', person).catch(() => undefined)
    await world.core.run(100)
    await world.restart()
    await world.pass(1)
    const { state, owner, timeline } = world.only
    assert.deepEqual([state, owner?.name, timeline.filter(({ kind }) => kind === 'taken').length], ['taken', '李雷', 1])
    assert(world.told.includes('taken'))
    await world.pass(60)
    assert(!world.texts.some(text => text.includes('没有人认领')))
  }
})
