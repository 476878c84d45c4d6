import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { Access } from '../../../src/access/access'
import { Refusals } from '../../../src/access/refusals'
import { describeBots } from '../../../src/platform/bots'
import { InFlight } from '../../../src/lib/in-flight'
import { readyRoute, statusRoute } from '../../../src/http/monitoring'
import { registerRoutes, type Route } from '../../../src/http/routes'
import type { LaneState } from '../../../src/relay/relay'
import { addForward, botOf, startApp, startSimulator, untilStatus } from './support'

/** Serves one route; the address has the path already. */
async function serve(t: TestContext, route: Route): Promise<string> {
  const { app, host } = await startApp(t)
  const logger = app.logger('routes')
  registerRoutes(app.server, [route], {
    prefix: '', access: new Access('a-key', []), trustedProxies: 0, inFlight: new InFlight(), refusals: new Refusals(), observer: { answered: () => undefined }, logger,
  })
  return `http://${host}${route.path}`
}

describe('GET /readyz', () => {
  test('says so to anyone when it is ready', async t => {
    const response = await fetch(await serve(t, readyRoute({ ping: () => Promise.resolve(), standsBehind: undefined }, () => true)))
    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), { code: 0, msg: 'ok', data: { ready: true } })
  })

  test('asks the database once a second, however many ask, and the bots each time', async t => {
    let now = 0
    let pings = 0
    let isOnline = true
    const ping = async (): Promise<void> => {
      if (++pings === 2) await Promise.reject(new Error('away'))
    }
    const url = await serve(t, readyRoute({ ping, standsBehind: undefined }, () => isOnline, () => now))
    const statuses = (times: number): Promise<number[]> =>
      Promise.all(Array.from({ length: times }, async () => (await fetch(url)).status))
    assert.deepEqual([await statuses(3), pings], [[200, 200, 200], 1])
    isOnline = false
    now = 999
    assert.deepEqual([await statuses(1), pings], [[503], 1])
    isOnline = true
    now = 1000
    assert.deepEqual([await statuses(2), pings], [[503, 503], 2])
    now = 2000
    assert.deepEqual([await statuses(2), pings], [[200, 200], 3])
  })

  const nots: [what: string, ping: () => Promise<void>, isOnline: boolean, reason: string][] = [
    ['no bot is online', () => Promise.resolve(), false, 'no bot is online'],
    ['the database does not answer', () => Promise.reject(new Error('disk /secret is gone')), true, 'the database of the bot does not answer'],
    ['the check of the database throws', () => { throw new Error('disk /secret is gone') }, true, 'the database of the bot does not answer'],
    ['the check of the database does not end', () => new Promise(() => undefined), true, 'the database of the bot does not answer'],
  ]
  for (const [what, ping, isOnline, reason] of nots) {
    test(`answers "not ready" and the reason when ${what}`, { timeout: 5_000 }, async t => {
      const response = await fetch(await serve(t, readyRoute({ ping, standsBehind: undefined }, () => isOnline)))
      assert.equal(response.status, 503)
      assert.deepEqual(await response.json(), { code: 503, msg: `not ready: ${reason}`, data: null })
    })
  }
})

describe('GET /statusz', () => {
  const unused = { usage: () => new Map() }

  test('shows what is read to whoever has the key', async t => {
    const { app } = await startApp(t)
    const simulator = await startSimulator(t)
    addForward(app, simulator.endpoint)
    await untilStatus(botOf(app), Universal.Status.ONLINE)
    const lane = { bot: 'onebot:10000', target: { kind: 'group', id: '1' } } as const
    const lanes: LaneState[] = [
      { ...lane, queue: 'onebot:10000/group:1', waiting: 2, state: 'paused', pausedUntil: 1_000 },
      { ...lane, queue: 'onebot:10000/group:2', waiting: 1, state: 'busy' },
    ]
    const relay = { lanes: () => lanes, backlog: () => ({ size: 3, oldest: 0 }), standsBehind: undefined }
    const url = await serve(t, statusRoute(relay, () => describeBots(app.bots), unused))
    assert.equal((await fetch(url)).status, 401)
    const response = await fetch(url, { headers: { 'x-api-key': 'a-key' } })
    assert.deepEqual(await response.json(), {
      code: 0,
      msg: 'ok',
      data: {
        bots: [{ platform: 'onebot', self_id: '10000', status: 'online' }],
        queues: [
          { queue: 'onebot:10000/group:1', waiting: 2, paused_until: '1970-01-01T00:00:01.000Z' }, { queue: 'onebot:10000/group:2', waiting: 1 },
        ],
        outbox: { size: 3, oldest: '1970-01-01T00:00:00.000Z' },
        keys: [],
      },
    })
  })

  test('has no outbox without a database, and says which relay it stands by for', async t => {
    const relay = { lanes: () => [], backlog: () => undefined, standsBehind: 'process 7 on host' }
    const url = await serve(t, statusRoute(relay, () => [], unused))
    const response = await fetch(url, { headers: { 'x-api-key': 'a-key' } })
    assert.deepEqual(await response.json(), {
      code: 0, msg: 'ok', data: { bots: [], queues: [], outbox: null, standby_for: 'process 7 on host', keys: [] },
    })
  })
})
