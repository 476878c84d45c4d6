import { Context, Logger, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test, type TestContext } from 'node:test'
import { Claims } from '../../../src/relay/lease'
import { until } from '../../support/until'
import { TestDriver } from './driver'
import { missing, MariaDb, type Access } from './mariadb'

Logger.levels.base = Logger.SILENT

/** In milliseconds. */
const lease = 900

/** A relay's claims, without the relay. */
interface Claimant {
  claims: Claims
  app: Context
  /** Ends it without a word to the others. */
  die: () => void
}

async function start(t: TestContext, access: Access): Promise<Claimant> {
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(TestDriver, access)]
  const claims = await new Promise<Claims>(resolve => {
    const load = (ctx: Context): unknown => ctx.inject(['database'], inner => resolve(new Claims(inner, lease)))
    forks.push(app.plugin({ name: 'claims', apply: load }))
    void app.start()
  })
  const die = (): void => {
    for (const fork of forks.splice(0).reverse()) fork.dispose()
  }
  t.after(die)
  await app.model.prepared()
  return { claims, app, die }
}

/** Asks for a lane again and again; gives how long it took to get it, in milliseconds. */
async function takeOver({ claims }: Claimant, lane: string): Promise<number> {
  const start = performance.now()
  await until('the lane is claimed', () => claims.acquire(lane))
  return performance.now() - start
}

describe('claims of lanes', { skip: missing }, () => {
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
    assert(await one.claims.acquire('lane'))
    assert(one.claims.holds('lane') && !two.claims.holds('lane'))
    assert(await one.claims.acquire('lane'))
    assert(!await two.claims.acquire('lane'))
    assert(await two.claims.acquire('another lane'))
    await one.claims.release('lane')
    assert(!one.claims.holds('lane'))
    assert(await two.claims.acquire('lane'))
    assert(!await one.claims.acquire('lane'))
  })

  test('are not released by another relay', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.claims.acquire('lane'))
    await two.claims.release('lane')
    assert(!await two.claims.acquire('lane'))
  })

  test('go to one of several relays that ask at once', async t => {
    const all = [await start(t, access), await start(t, access), await start(t, access)]
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(all.map(({ claims }) => claims.acquire(`lane ${round}`)))
      assert.equal(answers.filter(Boolean).length, 1, `round ${round}: ${answers.join()}`)
    }
  })

  test('of a dead relay go to one of several that ask at once, after a lease', async t => {
    const dead = await start(t, access)
    const all = [await start(t, access), await start(t, access), await start(t, access)]
    assert(await dead.claims.acquire('lane'))
    dead.die()
    const began = performance.now()
    let answers: boolean[] = []
    await until('the lane is claimed', async () => {
      answers = await Promise.all(all.map(({ claims }) => claims.acquire('lane')))
      return answers.includes(true)
    })
    const waited = performance.now() - began
    assert.equal(answers.filter(Boolean).length, 1)
    assert(waited >= lease && waited < 2 * lease, `after ${waited} ms`)
    assert.equal((await Promise.all(all.map(({ claims }) => claims.acquire('lane')))).filter(Boolean).length, 1)
  })

  test('hold as long as they are renewed', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.claims.acquire('lane'))
    const end = performance.now() + 3 * lease
    await until('three leases are over', async () => {
      assert(!await two.claims.acquire('lane'))
      assert(one.claims.holds('lane'))
      return performance.now() > end
    })
  })

  test('that another relay has taken are not renewed, and not relied on', async t => {
    const one = await start(t, access)
    assert(await one.claims.acquire('lane'))
    assert(await one.claims.acquire('another lane'))
    const [row] = await one.app.database.get('message_relay_lane', {})
    assert(row)
    await one.app.database.set('message_relay_lane', { lane: row.lane }, { owner: 'somebody else' })
    const lost = (): string[] => ['lane', 'another lane'].filter(lane => !one.claims.holds(lane))
    await until('the loss is seen', () => lost().length > 0, lease / 2)
    const [lane] = lost()
    assert(lane !== undefined && !await one.claims.acquire(lane))
    assert.equal(lost().length, 1)
  })

  test('tell lanes apart that differ in case, and take any length', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.claims.acquire('matrix:@bot/group:!abc'))
    assert(await two.claims.acquire('matrix:@bot/group:!ABC'))
    assert(await one.claims.acquire('l'.repeat(600)))
    assert(!await two.claims.acquire('l'.repeat(600)))
    assert(await two.claims.acquire(`${'l'.repeat(599)}m`))
  })

  test('are not relied on while the database is away, and are there again after it', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.claims.acquire('lane'))
    await server.halt('SIGKILL')
    assert(one.claims.holds('lane'))
    await until('it is not relied on', () => !one.claims.holds('lane'), lease)
    await assert.rejects(one.claims.acquire('lane'))
    await server.resume()
    await until('it is held again', () => one.claims.acquire('lane').catch(() => false))
    assert(!await two.claims.acquire('lane').catch(() => false))
  })

  test('whose release failed run out, although others are renewed', async t => {
    const one = await start(t, access)
    const two = await start(t, access)
    assert(await one.claims.acquire('kept'))
    assert(await one.claims.acquire('lane'))
    await server.halt('SIGKILL')
    await assert.rejects(one.claims.release('lane'))
    await server.resume()
    await until('the other one is held', () => one.claims.acquire('kept').catch(() => false))
    assert(await takeOver(two, 'lane') < 2 * lease)
    assert(!await two.claims.acquire('kept'))
  })

  test('are all that is kept: a released lane leaves no row', async t => {
    const one = await start(t, access)
    for (const lane of ['a', 'b', 'c']) {
      assert(await one.claims.acquire(lane))
      await one.claims.release(lane)
    }
    assert.deepEqual(await one.app.database.get('message_relay_lane', {}), [])
  })
})
