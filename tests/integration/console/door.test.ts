import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { isObject, type JsonObject } from '../../../src/lib/shape'
import { apiKey, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { ConsoleClient, startWithConsole } from './support'

const secret = 'the-secret-of-the-pipeline'
const config = {
  path: '/relay',
  chatApiMaxRetries: 0,
  targets: { ops: 'group:123456', all: ['group:123456', 'discord:group:3'] },
  keys: [{ name: 'ci', key: secret, targets: ['ops', 'private:*'], allow: ['send', 'hooks'], expires: '2030-06-01T12:00:00Z' }],
}

let relay: TestRelay
let client: ConsoleClient

before(async () => {
  relay = await startWithConsole({ config })
})
after(() => relay.stop())
beforeEach(async () => {
  client = await ConsoleClient.connect(relay.url)
})
afterEach(() => {
  client.close()
  relay.simulator.clear()
})

function dataOf(json: JsonObject | undefined): JsonObject {
  assert(isObject(json?.data))
  return json.data
}

describe('what the page asks for', () => {
  test('is a request like that of any caller, under a key of its own that the log names', async () => {
    const { status, json } = await client.request('POST', '/webhook', { body: JSON.stringify({ to: 'ops', msg: 'from the page' }) })
    assert.equal(status, 200)
    assert(Array.isArray(dataOf(json).message_ids))
    assert.equal(relay.simulator.ledger.at(-1)?.text, 'from the page')
    assert(relay.logs.some(line => line.includes('POST /webhook group:123456 key "console" 200')))
    const { keys } = dataOf((await client.request('GET', '/statusz')).json)
    assert(Array.isArray(keys))
    assert(keys.some(key => isObject(key) && key.name === 'console' && key.messages === 1))
  })

  test('is a debug line where it only reads, since an open page asks all the time, and a line like any other where it fails or does more', async () => {
    const start = relay.logs.length
    for (const path of ['/deliveries', '/deliveries/counts', '/queues']) assert.equal((await client.request('GET', path)).status, 200)
    assert.equal((await client.request('GET', '/deliveries', { query: { limit: '0' } })).status, 400)
    assert.equal((await client.request('GET', '/hooks/message/ops', { query: { text: 'x' } })).status, 200)
    const lines = (): string[] => relay.logs.slice(start).flatMap(line => / (\w+) \S+ GET (\S+) .*key "console" (\d+)/.exec(line)?.slice(1).join(' ') ?? [])
    await until('all have their lines', () => lines().length === 5)
    assert.deepEqual(lines(), [
      'debug /deliveries 200', 'debug /deliveries/counts 200', 'debug /queues 200', 'info /deliveries 400', 'info /hooks/message/:targets 200',
    ])
    const others = relay.logs.length
    await relay.request('/relay/deliveries')
    assert(relay.logs.slice(others).some(line => / info \S+ GET \/deliveries - 200 /.test(line)))
  })

  test('has its query, its headers and the headers of the answer', async () => {
    const first = await client.request('POST', '/webhook', {
      query: { dry_run: '1' }, headers: { 'idempotency-key': 'a' }, body: JSON.stringify({ to: 'ops', msg: 'x' }),
    })
    assert.equal(dataOf(first.json).dry_run, true)
    assert.match(String(first.headers['x-request-id']), /^[0-9a-f-]{36}$/)
    assert.equal(relay.simulator.ledger.length, 0)
  })

  test('may be bytes', async () => {
    const base64 = Buffer.from([0, 1, 254, 255]).toString('base64')
    const { status } = await client.request('PUT', '/send/ops/report.bin', { body: { base64 } })
    assert.equal(status, 200)
    assert.deepEqual(relay.simulator.ledger.at(-1)?.media.map(({ name, size }) => [name, size]), [['report.bin', 4]])
  })

  test('may be a picture, whatever its caller says that it is, and its bytes come as they are', async () => {
    const base64 = Buffer.from('hello').toString('base64')
    for (const type of ['application/json', 'text/plain', 'image/png']) {
      relay.simulator.fault({ fault: { kind: 'refuse' } })
      const failed = await client.request('POST', '/webhook', { body: JSON.stringify({ to: 'ops', type: 'image', url: `data:${type};base64,${base64}` }) })
      assert.equal(failed.status, 502)
      const { status, headers, ...content } = await client.request('GET', `/deliveries/${String(failed.headers['x-request-id'])}/items/0`)
      assert.equal(status, 200, JSON.stringify(headers))
      assert.deepEqual(content, { base64 })
    }
  })

  test('is refused by the same code: a wrong target, a wrong method', async () => {
    assert.equal((await client.request('POST', '/webhook', { body: '{"to":"nobody","msg":"x"}' })).status, 404)
    assert.equal((await client.request('DELETE', '/statusz')).status, 405)
  })

  test('does not leave the routes of the page', async () => {
    const start = relay.logs.length
    for (const path of [
      '/', '/onebot/send_msg', '/media/x/y', '/healthz', '/statuszz', '/deliveries/../media/x', '/deliveries/%2e%2e/media/x',
      '/../deliveries', 'statusz', '@127.0.0.1:1/statusz', '//example.com/statusz', '/\\example.com/statusz', '',
    ]) assert.equal((await client.request('GET', path)).status, 404, path)
    assert.deepEqual(relay.logs.slice(start).filter(line => line.includes(' GET ')), [])
  })

  test('is refused with 400 where it is malformed, or has a header that says who asks', async () => {
    const statusz = { method: 'GET', path: '/statusz' }
    for (const request of [
      undefined, { ...statusz, method: 'PATCH' }, { method: 'GET' }, { ...statusz, query: { a: 1 } }, { method: 'POST', path: '/webhook', body: 5 },
      ...Object.entries({ 'X-API-Key': apiKey, 'authorization': 'Bearer x', 'x-forwarded-for': '1.2.3.4', 'host': 'x' })
        .map(([name, value]) => ({ ...statusz, headers: { [name]: value } })),
    ]) {
      const { status, json } = await client.send('message-relay/request', request)
      assert.equal(status, 400, JSON.stringify(request))
      assert(isObject(json) && json.code === 400 && typeof json.msg === 'string')
    }
  })
})

describe('what the page is told', () => {
  test('is what the operator has entered, without a secret', async () => {
    const about = await client.send('message-relay/about')
    assert.equal(about.maxUploadSize, 20 * 2 ** 20)
    assert.equal(about.isPublic, false)
    assert(Array.isArray(about.sources) && about.sources.includes('github'))
    await client.request('GET', '/statusz')
    assert(!client.received.includes(secret))
    assert(!client.received.includes(apiKey))
    assert.equal(about.keyFile, undefined)
  })

  test('is in which file the key lies that the relay has made', async () => {
    const other = await startWithConsole({ config: { apiKey: '' } })
    const page = await ConsoleClient.connect(other.url)
    assert.match(String((await page.send('message-relay/about')).keyFile), /data\/api-key$/)
    page.close()
    await other.stop()
  })

  test('are the last refusals of so many doors', async () => {
    for (let count = 0; count < 120; count++) {
      assert.equal((await fetch(`${relay.url}/relay/hooks/scan-${count}/ops`, { method: 'POST', body: '{}' })).status, 401)
    }
    assert.equal((await fetch(`${relay.url}/relay/hooks/${'x'.repeat(1000)}/ops`, { method: 'POST', body: '{}' })).status, 401)
    const { refusals } = dataOf((await client.request('GET', '/statusz')).json)
    assert(Array.isArray(refusals) && refusals.length === 100)
    const [last] = refusals.filter(isObject)
    assert.deepEqual([last?.door, last?.reason, typeof last?.at], ['hooks/scan-119', 'no API key', 'string'])
  })
})

test('the end of the plugin takes the page, its listeners and its key away; the next load brings them back', async () => {
  const { console } = relay.app
  const names = (): string[] => Object.keys(console.listeners).filter(name => name.startsWith('message-relay/'))
  const before = Object.keys(console.entries).length
  relay.unload()
  assert.deepEqual(names(), [])
  assert.equal(Object.keys(console.entries).length, before - 1)
  await relay.reload(config)
  assert.equal(names().length, 2)
  assert.equal(Object.keys(console.entries).length, before)
  assert.equal((await client.request('GET', '/statusz')).status, 200)
})
