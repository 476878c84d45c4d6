import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { apiKey, read, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { failureOf, group, idsOf, only, outline, relayFor, sends, upload } from './support'

/** Everything that a plugin may leave behind. */
function traces({ app }: TestRelay): Record<string, number> {
  const counts: Record<string, number> = {
    'routes': app.server.stack.length,
    'sockets': app.server.wsStack.length,
    'middlewares': app.$processor._hooks.length,
    'exit listeners of the process': process.listenerCount('exit') + process.listenerCount('SIGTERM') + process.listenerCount('SIGINT'),
    'timers': process.getActiveResourcesInfo().filter(name => name === 'Timeout' || name === 'Immediate').length,
    'open files': process.getActiveResourcesInfo().filter(name => name.startsWith('FS')).length,
  }
  for (const [name, hooks] of Object.entries(app.lifecycle._hooks)) if (hooks.length > 0) counts[`listeners for ${name}`] = hooks.length
  return counts
}

/** A message that need not get an envelope in answer: the relay may be gone. */
function post(relay: TestRelay, path: string, key = apiKey): Promise<Response> {
  return fetch(relay.url + path, { method: 'POST', headers: { 'x-api-key': key }, body: JSON.stringify({ group_id: group, msg: 'hello' }) })
}

const commands = { commandCallbackUrl: 'http://127.0.0.1:9/' }

test('unloading the relay leaves no route, listener or timer, however often it is loaded', async t => {
  const relay = await relayFor(t, { config: commands })
  relay.unload()
  // What the start of the app itself leaves for a moment.
  let clean = traces(relay)
  let since = performance.now()
  await until('the app has come to rest', async () => {
    const previous = clean
    await relay.app.lifecycle.flush()
    clean = traces(relay)
    if (JSON.stringify(previous) !== JSON.stringify(clean) || clean['open files'] !== 0) since = performance.now()
    // The adapter's timers take two seconds.
    return performance.now() - since > 2_100
  })
  for (let round = 0; round < 3; round++) {
    await relay.reload()
    const loaded = traces(relay)
    assert(Number(loaded.routes) > Number(clean.routes))
    assert(Number(loaded.middlewares) > Number(clean.middlewares))
    assert(Number(loaded.timers) > Number(clean.timers))
    relay.unload()
    await until('everything is gone', () => JSON.stringify(traces(relay)) === JSON.stringify(clean), 2_000).catch((error: unknown) => {
      assert.deepEqual(traces(relay), clean)
      throw error
    })
  }
})

// Each of these has a relay of its own and mostly waits.
describe('unloading the relay', { concurrency: true }, () => {
  test('takes its routes away, and nothing of the app besides', async t => {
    const relay = await relayFor(t)
    idsOf(await relay.send({ group_id: group, msg: 'a' }))
    relay.unload()
    for (const path of ['/webhook', '/upload', '/healthz', '/media/x/y']) {
      const response = await relay.request(path, { method: path === '/healthz' ? 'GET' : 'POST' })
      assert.equal(response.status, 404)
      assert.equal(response.headers.get('x-request-id'), null)
      await response.text()
    }
    assert.equal(relay.simulator.connections, 1)
    assert.equal(outline(relay).length, 1)
  })

  test('lets a request that is under way be answered', async t => {
    const relay = await relayFor(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 300, delivered: 'then' } })
    const reply = relay.send({ group_id: group, msg: 'slow' })
    await relay.simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    relay.unload()
    assert.deepEqual(idsOf(await reply), [String(only(relay.simulator.ledger).messageId)])
  })

  test('lets a batch that is under way be sent to its end', async t => {
    const relay = await relayFor(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 200 } })
    const picture = await upload(relay, 'x.png', 'PNG')
    const reply = relay.send({ group_id: group, messages: [{ msg: 'a' }, { type: 'video', url: picture }, { type: 'file', url: picture }] })
    await relay.simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    relay.unload()
    assert.equal((await reply).status, 200)
    assert.deepEqual(outline(relay), ['a', '[video]', '[file]'])
  })

  test('answers a request whose call to the platform is open with 504 after four seconds', async t => {
    const relay = await relayFor(t)
    relay.simulator.fault({ fault: { kind: 'silent' }, times: Infinity })
    const reply = relay.send({ group_id: group, msg: 'a' })
    await relay.simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    const start = performance.now()
    relay.unload()
    failureOf(await reply, 504)
    const elapsed = performance.now() - start
    assert(elapsed >= 3_900 && elapsed < 5_000, `${elapsed} ms`)
    assert.equal(outline(relay).length, 0)
  })

  test('answers a request that waits for its next attempt with 503, and does not make the attempt', async t => {
    // Refused and waiting: the back-off grows past the time that is left.
    const relay = await relayFor(t, { config: { chatApiMaxRetries: 20 } })
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
    const reply = relay.send({ group_id: group, msg: 'a' })
    await relay.simulator.until(({ calls }) => calls.filter(({ action }) => action === 'send_group_msg').length >= 4)
    relay.unload()
    failureOf(await reply, 503)
    const made = sends(relay).length
    relay.simulator.clearFaults()
    await relay.reload()
    idsOf(await relay.send({ group_id: group, msg: 'b' }))
    assert.equal(sends(relay).length, made + 1)
    assert.deepEqual(outline(relay), ['b'])
  })
})

describe('loading the relay again', () => {
  test('works as before', async t => {
    const relay = await relayFor(t)
    for (let round = 0; round < 3; round++) {
      await relay.reload()
      idsOf(await relay.send({ group_id: group, msg: `round ${round}` }))
    }
    assert.deepEqual(outline(relay), ['round 0', 'round 1', 'round 2'])
  })

  test('keeps the uploads', async t => {
    const relay = await relayFor(t)
    const id = await upload(relay, 'x.png', 'PNG')
    await relay.reload()
    idsOf(await relay.send({ group_id: group, type: 'image', url: id }))
  })

  test('with another path moves every route', async t => {
    const relay = await relayFor(t)
    await relay.reload({ path: 'relay' })
    for (const path of ['/webhook', '/upload']) assert.equal((await post(relay, path)).status, 404)
    assert.equal((await fetch(`${relay.url}/healthz`)).status, 404)
    assert.equal((await fetch(`${relay.url}/relay/healthz`)).status, 200)
    idsOf(await read(await post(relay, '/relay/webhook')))
    await relay.reload({ path: '/other/deep/' })
    assert.equal((await post(relay, '/relay/webhook')).status, 404)
    idsOf(await read(await post(relay, '/other/deep/webhook')))
  })

  test('with another key refuses the old one', async t => {
    const relay = await relayFor(t)
    await relay.reload({ apiKey: 'another key' })
    failureOf(await read(await post(relay, '/webhook')), 401)
    idsOf(await read(await post(relay, '/webhook', 'another key')))
    assert.equal(outline(relay).length, 1)
  })

  test('while a request is under way answers both', async t => {
    const relay = await relayFor(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 300 } })
    const first = relay.send({ group_id: group, msg: 'first' })
    await relay.simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    await relay.reload()
    const second = relay.send({ group_id: '654321', msg: 'second' })
    idsOf(await second)
    idsOf(await first)
    assert.deepEqual(outline(relay).sort(), ['first', 'second'])
  })

  test('listens for commands once', async t => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url ?? '')
      request.resume()
      response.end('{"reply":"pong"}')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const address = server.address()
    assert(typeof address === 'object' && address !== null)
    const config = { commandCallbackUrl: `http://127.0.0.1:${address.port}/` }
    const relay = await relayFor(t, { config })
    for (let round = 0; round < 3; round++) await relay.reload()
    relay.simulator.say({ group, user: '10001', text: '#ping x' })
    await relay.simulator.until(({ ledger }) => ledger.length > 0)
    assert.deepEqual(outline(relay), ['pong'])
    relay.unload()
    relay.simulator.say({ group, user: '10001', text: '#ping y' })
    await relay.reload({})
    idsOf(await relay.send({ group_id: group, msg: 'end' }))
    assert.deepEqual(outline(relay), ['pong', 'end'])
    assert.equal(asked.length, 1)
  })
})
