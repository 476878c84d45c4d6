import { Context, Logger, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test, type TestContext } from 'node:test'
import { v4 as uuid } from 'uuid'
import { DatabaseLeases } from '../../../src/relay/store/lease'
import { until } from '../../support/until'
import { TestDriver } from './driver'
import { missing, MariaDb, type Access } from './mariadb'

Logger.levels.base = Logger.SILENT

/** In milliseconds. */
const lease = 900

/** A relay's leases, without the relay. */
interface Holder {
  leases: DatabaseLeases
  app: Context
  /** Ends it without a word to the others. */
  die: () => void
}

async function start(t: TestContext, access: Access): Promise<Holder> {
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(TestDriver, access)]
  const leases = await new Promise<DatabaseLeases>(resolve => {
    const load = (ctx: Context): unknown => ctx.inject(['database'], inner => {
      const leases = new DatabaseLeases(inner, uuid(), lease)
      leases.keep(inner)
      resolve(leases)
    })
    forks.push(app.plugin({ name: 'leases', apply: load }))
    void app.start()
  })
  const die = (): void => {
    for (const fork of forks.splice(0).reverse()) fork.dispose()
  }
  t.after(die)
  await app.model.prepared()
  return { leases, app, die }
}

/** Asks for a queue again and again; gives how long it took to get it, in milliseconds. */
async function takeOver({ leases }: Holder, queue: string): Promise<number> {
  const start = performance.now()
  await until('the queue is leased', () => leases.acquire(queue))
  return performance.now() - start
}

describe('leases of queues', { skip: missing }, () => {
  let server: MariaDb
  let access: Access

  before(async () => {
    server = await MariaDb.start()
  })
  after(() => server.stop())
  beforeEach(async () => {
    access = await server.create()
  })

  test('exclude other relays until they are released', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.leases.acquire('queue'))
    assert(one.leases.holds('queue') && !two.leases.holds('queue'))
    assert(await one.leases.acquire('queue'))
    assert(!await two.leases.acquire('queue'))
    assert(await two.leases.acquire('another queue'))
    await one.leases.release('queue')
    assert(!one.leases.holds('queue'))
    assert(await two.leases.acquire('queue'))
    assert(!await one.leases.acquire('queue'))
  })

  test('are not released by another relay', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.leases.acquire('queue'))
    await two.leases.release('queue')
    assert(!await two.leases.acquire('queue'))
  })

  test('go to one of several relays that ask at once', async t => {
    const all = [await start(t, access), await start(t, access), await start(t, access)]
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(all.map(({ leases }) => leases.acquire(`queue ${round}`)))
      assert.equal(answers.filter(Boolean).length, 1, `round ${round}: ${answers.join()}`)
    }
  })

  test('of a dead relay go to one of several that ask at once, after a lease', async t => {
    const dead = await start(t, access)
    const all = [await start(t, access), await start(t, access), await start(t, access)]
    assert(await dead.leases.acquire('queue'))
    dead.die()
    const began = performance.now()
    let answers: boolean[] = []
    await until('the queue is leased', async () => {
      answers = await Promise.all(all.map(({ leases }) => leases.acquire('queue')))
      return answers.includes(true)
    })
    const waited = performance.now() - began
    assert.equal(answers.filter(Boolean).length, 1)
    assert(waited >= lease && waited < 2 * lease, `after ${waited} ms`)
    assert.equal((await Promise.all(all.map(({ leases }) => leases.acquire('queue')))).filter(Boolean).length, 1)
  })

  test('hold as long as they are renewed', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.leases.acquire('queue'))
    const end = performance.now() + 3 * lease
    await until('three leases are over', async () => {
      assert(!await two.leases.acquire('queue'))
      assert(one.leases.holds('queue'))
      return performance.now() > end
    })
  })

  test('that another relay has taken are not renewed, and not relied on', async t => {
    const one = await start(t, access)
    assert(await one.leases.acquire('queue'))
    assert(await one.leases.acquire('another queue'))
    const [row] = await one.app.database.get('message_relay_lease', {})
    assert(row)
    await one.app.database.set('message_relay_lease', { queue: row.queue }, { owner: 'somebody else' })
    const lost = (): string[] => ['queue', 'another queue'].filter(queue => !one.leases.holds(queue))
    await until('the loss is seen', () => lost().length > 0, lease / 2)
    const [queue] = lost()
    assert(queue !== undefined && !await one.leases.acquire(queue))
    assert.equal(lost().length, 1)
  })

  test('of a live relay hold for their duration at most, however many ask at once', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    await one.leases.announce()
    const [owner] = await two.leases.others()
    assert(owner !== undefined)
    const lives = await Promise.all(Array.from({ length: 20 }, () => two.leases.lifeOf(owner)))
    assert(lives.every(life => life > 0 && life <= lease), lives.join())
  })

  test('tell queues apart that differ in case, and take any length', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.leases.acquire('matrix:@bot/group:!abc'))
    assert(await two.leases.acquire('matrix:@bot/group:!ABC'))
    assert(await one.leases.acquire('l'.repeat(600)))
    assert(!await two.leases.acquire('l'.repeat(600)))
    assert(await two.leases.acquire(`${'l'.repeat(599)}m`))
  })

  test('are not relied on while the database is away, and are there again after it', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.leases.acquire('queue'))
    await server.halt('SIGKILL')
    assert(one.leases.holds('queue'))
    await until('it is not relied on', () => !one.leases.holds('queue'), lease)
    await assert.rejects(one.leases.acquire('queue'))
    await server.resume()
    await until('it is held again', () => one.leases.acquire('queue').catch(() => false))
    assert(!await two.leases.acquire('queue').catch(() => false))
  })

  test('whose release failed run out, although others are renewed', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.leases.acquire('kept'))
    assert(await one.leases.acquire('queue'))
    await server.halt('SIGKILL')
    await assert.rejects(one.leases.release('queue'))
    await server.resume()
    await until('the other one is held', () => one.leases.acquire('kept').catch(() => false))
    assert(await takeOver(two, 'queue') < 2 * lease)
    assert(!await two.leases.acquire('kept'))
  })

  test('are all that is kept: a released queue leaves no row', async t => {
    const one = await start(t, access)
    for (const queue of ['a', 'b', 'c']) {
      assert(await one.leases.acquire(queue))
      await one.leases.release(queue)
    }
    assert.deepEqual(await one.app.database.get('message_relay_lease', {}), [])
  })
})
