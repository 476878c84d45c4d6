import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { Access } from '../../../src/access/access'
import { Refusals } from '../../../src/access/refusals'
import { InFlight } from '../../../src/lib/async'
import { readyRoute } from '../../../src/http/monitoring'
import { registerRoutes, type Route } from '../../../src/http/routes'
import { startApp } from './support'

/** Serves one route; the address has the path already. */
async function serve(t: TestContext, route: Route): Promise<string> {
  const { app, host } = await startApp(t)
  const logger = app.logger('routes')
  registerRoutes(app.server, [route], {
    prefix: '', access: new Access('a-key', []), trustedProxies: 0, inFlight: new InFlight(), refusals: new Refusals(), logger,
    observer: { answered: () => undefined }, stop: new AbortController().signal,
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
    ['the database does not answer', () => Promise.reject(new Error('disk /secret is gone')), true, 'the database of the relay does not answer'],
    ['the check of the database throws', () => { throw new Error('disk /secret is gone') }, true, 'the database of the relay does not answer'],
    ['the check of the database does not end', () => new Promise(() => undefined), true, 'the database of the relay does not answer'],
  ]
  for (const [what, ping, isOnline, reason] of nots) {
    test(`answers "not ready" and the reason when ${what}`, { timeout: 5_000 }, async t => {
      const response = await fetch(await serve(t, readyRoute({ ping, standsBehind: undefined }, () => isOnline)))
      assert.equal(response.status, 503)
      assert.deepEqual(await response.json(), { code: 503, msg: `not ready: ${reason}`, data: null })
    })
  }
})
