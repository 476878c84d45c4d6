import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKey, read, useRelay } from '../../support/relay'
import { assertFailure, Wire } from './support'

const relay = useRelay()

describe('a method that a path does not know', () => {
  const methods = ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'SEARCH', 'TRACE', 'M-SEARCH', 'LINK']
  const paths = [
    ['/webhook', 'POST', 'GET'], ['/upload', 'POST', 'GET'], ['/healthz', 'GET, HEAD', 'POST'], ['/media/a/b', 'GET, HEAD', 'POST'], ['/deliveries', 'GET, HEAD', 'POST'],
    ['/statusz', 'GET, HEAD', 'POST'], ['/deliveries/x/retry', 'POST', 'GET'],
  ] as const
  test('is answered with 405 and what the path allows', async () => {
    const wire = await Wire.open(relay.url)
    for (const [path, allow, other] of paths) {
      for (const method of [...methods, other]) {
        wire.send([`${method} ${path} HTTP/1.1`, 'Host: relay', `X-API-Key: ${apiKey}`])
        const answer = await wire.answer()
        assertFailure(answer, 405, `use ${allow}`)
        assert.equal(answer.headers.get('allow'), allow)
      }
    }
  })

  test('is answered without a body to HEAD', async () => {
    const wire = await Wire.open(relay.url)
    wire.send(['HEAD /webhook HTTP/1.1', 'Host: relay', `X-API-Key: ${apiKey}`])
    const answer = await wire.answer(false)
    assert.equal(answer.status, 405)
    assert.equal(answer.headers.get('allow'), 'POST')
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    wire.send(['GET /healthz HTTP/1.1', 'Host: relay'])
    assert.equal((await wire.answer()).status, 200)
  })
})

describe('the health check', () => {
  test('answers HEAD like GET, without the body', async () => {
    for (const version of ['1.1', '1.0']) {
      const wire = await Wire.open(relay.url)
      wire.send([`HEAD /healthz HTTP/${version}`, 'Host: relay'])
      const answer = await wire.answer(false)
      assert.equal(answer.status, 200)
      assert.equal(answer.headers.get('content-length'), String('{"code":0,"msg":"ok","data":{"health":"ok"}}\n'.length))
    }
  })

  test('pays no attention to a body, a query, a key or a slash at the end', async () => {
    for (const path of ['/healthz?x=%', '/healthz/', '/HEALTHZ']) {
      const { status } = await read(await fetch(relay.url + path, { headers: { 'x-api-key': 'wrong' } }))
      assert.equal(status, 200)
    }
    const wire = await Wire.open(relay.url)
    wire.send(['GET /healthz HTTP/1.1', 'Host: relay', 'Content-Length: 3'], 'xyz')
    assert.equal((await wire.answer()).status, 200)
    wire.send(['GET /healthz HTTP/1.1', 'Host: relay'])
    assert.equal((await wire.answer()).status, 200)
  })

  test('is in the log only for those who look for trouble', async () => {
    const { headers } = await read(await fetch(`${relay.url}/healthz`))
    const line = relay.logs.find(each => each.includes(headers.get('x-request-id') ?? '-'))
    assert.match(line ?? '', /^message-relay debug .* GET \/healthz - 200 ok [\d.]+ ms$/)
  })
})

describe('every answer', () => {
  test('has an ID of its own, which the log line has too', async () => {
    const ids = new Set<string>()
    for (const [path, init] of [
      ['/webhook', { method: 'POST', body: '{"group_id":"123456","msg":"x"}' }],
      ['/webhook', { method: 'POST', body: '{' }],
      ['/webhook', { method: 'PUT' }],
      ['/upload', { method: 'POST' }],
    ] as const) {
      const { status, headers } = await read(await relay.request(path, init))
      const id = headers.get('x-request-id') ?? ''
      ids.add(id)
      const lines = relay.logs.filter(line => line.includes(id))
      assert.equal(lines.length, 1)
      assert.match(lines[0] ?? '', new RegExp(`^message-relay info ${id} \\w+ /[\\w/:]+ .* ${status} .* \\d+\\.\\d ms$`))
    }
    assert.equal(ids.size, 4)
  })

  test('is the envelope whatever the Host header says', async () => {
    const wire = await Wire.open(relay.url)
    for (const host of ['', '[', 'a b', 'http://x/']) {
      wire.send(['GET /healthz HTTP/1.1', `Host: ${host}`])
      assert.equal((await wire.answer()).status, 200)
      wire.send(['GET /media/a/b?expires=1&signature=x HTTP/1.1', `Host: ${host}`])
      assertFailure(await wire.answer(), 401)
    }
  })

  test('keeps to our paths: an encoded letter, an empty segment or a dot names no other', async () => {
    const wire = await Wire.open(relay.url)
    for (const path of ['/%68ealthz', '//healthz', '/./healthz', '/webhook/x', '/webhook%2f', '/%2e%2e/webhook', '*']) {
      wire.send([`${path === '*' ? 'OPTIONS' : 'POST'} ${path} HTTP/1.1`, 'Host: relay', 'Content-Length: 0'])
      assert.equal((await wire.answer()).status, 404, path)
    }
    // An absolute address names the path it holds.
    wire.send(['GET http://elsewhere/healthz HTTP/1.1', 'Host: relay'])
    assert.equal((await wire.answer()).status, 200)
    wire.send(['POST http://elsewhere/webhook HTTP/1.1', 'Host: relay', 'Content-Length: 0'])
    assertFailure(await wire.answer(), 401)
  })
})

test('with a prefix all paths are below it and nowhere else, however it is written', async () => {
  for (const path of ['relay/v1', '/relay/v1/']) {
    await relay.reload({ path })
    assert.equal((await read(await relay.request('/relay/v1/healthz'))).status, 200)
    assert.equal((await read(await relay.request('/relay/v1/webhook', { method: 'POST', body: '{"group_id":"123456","msg":"x"}' }))).status, 200)
    assert.equal((await read(await fetch(`${relay.url}/relay/v1/upload`, { method: 'POST' }))).status, 401)
    assert.equal((await read(await relay.request('/relay/v1/media/a/b'))).status, 401)
    for (const bare of ['/healthz', '/webhook', '/upload', '/relay/v1']) assert.equal((await relay.request(bare)).status, 404)
  }
  await relay.reload()
})
