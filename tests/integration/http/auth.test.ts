import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { apiKey, read, useRelay } from '../../support/relay'
import { assertFailure, multipart, Wire } from './support'

const relay = useRelay()

const message = JSON.stringify({ group_id: '123456', msg: 'hello' })

async function post(path: string, headers: Record<string, string>, body = message) {
  return read(await fetch(relay.url + path, { method: 'POST', headers, body }))
}

describe('the API key', () => {
  const right: [string, Record<string, string>][] = [
    ['as a bearer token', { authorization: `Bearer ${apiKey}` }],
    ['with the scheme in lower case', { authorization: `bearer ${apiKey}` }],
    ['with the scheme in upper case and more blanks', { authorization: `BEARER   ${apiKey}` }],
    ['as X-API-Key', { 'x-api-key': apiKey }],
    ['in one header, with a wrong one in the other', { 'authorization': 'Bearer wrong', 'x-api-key': apiKey }],
    ['in the other header, with a wrong one in the first', { 'authorization': `Bearer ${apiKey}`, 'x-api-key': 'wrong' }],
    ['beside other credentials', { 'authorization': 'Basic dTpw', 'x-api-key': apiKey }],
  ]
  for (const [how, headers] of right) {
    test(`is taken ${how}`, async () => {
      assert.equal((await post('/webhook', headers)).status, 200)
      assert.equal(relay.simulator.ledger.length, 1)
    })
  }

  const wrong: [string, Record<string, string>][] = [
    ['is missing', {}],
    ['is empty', { 'x-api-key': '' }],
    ['is an empty bearer token', { authorization: 'Bearer ' }],
    ['is the bare scheme', { authorization: 'Bearer' }],
    ['has no scheme', { authorization: apiKey }],
    ['has another scheme', { authorization: `Basic ${apiKey}` }],
    ['is shorter', { 'x-api-key': apiKey.slice(0, -1) }],
    ['is longer', { 'x-api-key': `${apiKey}x` }],
    ['is of the same length', { 'x-api-key': apiKey.replace(/./g, 'a') }],
    ['differs in case', { 'x-api-key': apiKey.toUpperCase() }],
    ['is in quotes', { authorization: `Bearer "${apiKey}"` }],
    ['is given twice in one header', { 'x-api-key': `${apiKey}, ${apiKey}` }],
    ['is very long', { 'x-api-key': 'k'.repeat(12_000) }],
    ['comes as a cookie', { cookie: `api_key=${apiKey}; x-api-key=${apiKey}` }],
  ]
  for (const [how, headers] of wrong) {
    test(`is refused when it ${how}`, async () => {
      const { status, headers: answered, body } = await post('/webhook', headers)
      assert.equal(status, 401)
      assert.equal(answered.get('www-authenticate'), 'Bearer')
      assert.match(body.msg, /missing or wrong API key/)
      assert.equal(body.data, null)
      assert.equal(relay.simulator.calls.filter(call => call.action.startsWith('send')).length, 0)
    })
  }

  const noBearer = 'the header Authorization does not begin with "Bearer" and a blank'
  const notAlone = 'after "Bearer" comes the key alone, without quotes, brackets or another "Bearer"'
  const nothing = 'after "Bearer" there is nothing: is the variable with the key empty?'
  // `Token` as in authtoken of Django REST framework, `key=` as in FCM, and the key alone as in many scripts.
  const forms: [header: string, value: string, flaw: string][] = [
    ...['', 'Token ', 'bearer:', 'Bearer: ', 'Bearer', 'key='].map((before): [string, string, string] => ['authorization', before + apiKey, noBearer]),
    ...[`"${apiKey}"`, `<${apiKey}>`, '$KEY', `Bearer ${apiKey}`].map((after): [string, string, string] => ['authorization', `Bearer ${after}`, notAlone]),
    ['authorization', 'Bearer ', nothing], ['x-api-key', `Bearer ${apiKey}`, 'X-API-Key takes the key alone, without "Bearer"'],
    ['authorization', 'Bearer wrong', ''], ['authorization', 'Basic dTpw', ''], ['x-api-key', 'wrong', ''],
  ]
  test('is refused with what is wrong about its form', async () => {
    for (const [name, value, flaw] of forms) {
      for (const path of ['/webhook', '/send/ops', '/hooks/grafana/ops']) {
        const { status, body: { msg } } = await post(path, { [name]: value })
        assert.deepEqual([status, msg.split('; ').slice(1).join('; ')], [401, flaw], `${path} ${value}`)
      }
    }
  })

  test('is not taken from the query, nor from the body', async () => {
    for (const name of ['key', 'api_key', 'apiKey', 'x-api-key', 'access_token', 'authorization']) {
      assert.equal((await post(`/webhook?${name}=${apiKey}`, {}, JSON.stringify({ [name]: apiKey, group_id: '123456', msg: 'hello' }))).status, 401)
    }
  })

  test('is refused in a header that comes twice, right or not, and taken from the other', async () => {
    const wire = await Wire.open(relay.url)
    const head = ['GET /webhook HTTP/1.1', 'Host: relay']
    wire.send([...head, `X-API-Key: ${apiKey}`, 'X-API-Key: other'])
    assertFailure(await wire.answer(), 401)
    // Of Authorization, Node.js keeps the first.
    wire.send([...head, 'Authorization: Bearer other', `Authorization: Bearer ${apiKey}`])
    assertFailure(await wire.answer(), 401)
    wire.send([...head, 'X-API-Key: other', 'X-API-Key: other', `Authorization: Bearer ${apiKey}`])
    assertFailure(await wire.answer(), 405)
  })

  // Each route with its own methods is in access.test.ts.
  test('is wanted for methods that a path does not have, and however the path is written', async () => {
    for (const [method, path] of [['GET', '/webhook'], ['PUT', '/webhook'], ['OPTIONS', '/webhook'], ['DELETE', '/upload'], ['POST', '/WebHook/']] as const) {
      assert.equal((await read(await fetch(relay.url + path, { method }))).status, 401)
    }
  })

  test('may hold any characters, sent as UTF-8', async () => {
    await relay.reload({ apiKey: 'schlüssel 钥匙 🔑' })
    const wire = await Wire.open(relay.url)
    const raw = Buffer.from('schlüssel 钥匙 🔑').toString('latin1')
    for (const header of [`X-API-Key: ${raw}`, `Authorization: Bearer ${raw}`]) {
      wire.send(['GET /webhook HTTP/1.1', 'Host: relay', header])
      assertFailure(await wire.answer(), 405)
    }
    wire.send(['GET /webhook HTTP/1.1', 'Host: relay', 'X-API-Key: schl\xfcssel'])
    assertFailure(await wire.answer(), 401)
    await relay.reload()
  })
})

describe('without the key', () => {
  test('a body is neither waited for nor looked at', async () => {
    const wire = await Wire.open(relay.url)
    // Not one byte of the body has been sent, and it will be no JSON and too large.
    wire.send(['POST /webhook HTTP/1.1', 'Host: relay', 'Content-Length: 20000000'])
    assertFailure(await wire.answer(), 401)
    await wire.pour(Buffer.alloc(1_000_000, 'x'), 20)
    wire.send(['GET /healthz HTTP/1.1', 'Host: relay'])
    assert.equal((await wire.answer()).status, 200)
  })

  test('an upload leaves nothing behind', async () => {
    const wire = await Wire.open(relay.url)
    const body = multipart([['a.txt', 'abc'.repeat(100_000)]])
    wire.send(['POST /upload HTTP/1.1', 'Host: relay', 'Content-Type: multipart/form-data; boundary=limit', `Content-Length: ${body.length}`], body)
    assertFailure(await wire.answer(), 401)
    await assert.rejects(readdir(relay.uploadDir), { code: 'ENOENT' })
  })

  test('a client that closes the connection afterwards still gets its answer', async () => {
    for (const head of [['POST /upload HTTP/1.1', 'Host: relay', 'Connection: close'], ['POST /upload HTTP/1.0']]) {
      const wire = await Wire.open(relay.url)
      // It looks at nothing until all is sent, as Python's urllib does.
      wire.socket.pause()
      wire.send([...head, 'Content-Type: multipart/form-data; boundary=limit', 'Content-Length: 20000000'])
      await wire.pour(Buffer.alloc(1_000_000), 20)
      wire.socket.resume()
      assertFailure(await wire.answer(), 401)
      await wire.closed()
    }
  })
})
