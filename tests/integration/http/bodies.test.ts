import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { apiKey, read, useRelay } from '../../support/relay'
import { until } from '../../support/until'
import { assertFailure, Wire } from './support'

const relay = useRelay({ config: { maxBodySize: 100_000 } })

const head = ['POST /webhook HTTP/1.1', 'Host: relay', `X-API-Key: ${apiKey}`]

async function post(body: string | Buffer, headers: Record<string, string> = {}) {
  return read(await relay.request('/webhook', { method: 'POST', body, headers }))
}

/** A message whose body has exactly this many bytes. */
function messageOf(size: number): string {
  const empty = JSON.stringify({ group_id: '123456', msg: '' })
  return JSON.stringify({ group_id: '123456', msg: 'x'.repeat(size - empty.length) })
}

function texts(): string[] {
  return relay.simulator.ledger.map(entry => entry.text)
}

describe('a body that is no JSON is a 400 that says so', () => {
  const notUtf8 = 'the JSON is not UTF-8, as the console of Windows writes it: save it as UTF-8, or send the text to /send'
  const early = (column: number, line = 1): RegExp => new RegExp(`^invalid json: it ends too early \\(line ${line}, column ${column}\\): close each`)
  const quotes = /^invalid json: its double quotes are missing \(line 1, column \d+\): shells of Windows take them away: .*-d "@file"$/
  const bodies: [what: string, body: string | Buffer, msg: string | RegExp][] = [
    ['nothing', '', early(1)],
    ['blanks', ' \r\n\t ', early(3, 2)],
    ['half an object', '{"group_id":"1"', early(16)],
    ['single quotes', '{\'group_id\':\'1\'}', quotes],
    ['a comma too many', '{"group_id":"1",}', /^invalid json: this cannot stand here \(line 1, column 17\)/],
    ['something behind it', '{"group_id":"123456","msg":"x"} x', /^invalid json: this cannot stand here \(line 1, column 33\)/],
    ['a form', 'group_id=123456&msg=x', /^invalid json: this cannot stand here \(line 1, column 1\): .*\/send\/<target>$/],
    ['NaN', '{"group_id":NaN,"msg":"x"}', quotes],
    // As in `entrypoint.sh` of sbets/webhook-action and `src/test/resources/send_slack_notification.sh` of sperftest/gatling-tests.
    ['a line break in a string', '{"group_id":"123456","msg":"a\nb"}', /^invalid json: a string has a raw line break .*\(line 1, column 30\): encode the text with "jq -Rs \.", or .*\/send/],
    ['a double quote in a string', '{"group_id":"123456","msg":"say "hi""}', /^invalid json: a text has a double quote .*\(line 1, column 34\): .*jq -Rs/],
    ['UTF-8 cut off in a character', Buffer.concat([Buffer.from('{"group_id":"123456","msg":"'), Buffer.from('好').subarray(0, 2), Buffer.from('"}')]), notUtf8],
    ['Latin-1', Buffer.from('{"group_id":"123456","msg":"caf\xe9"}', 'latin1'), notUtf8],
    ['a surrogate in UTF-8', Buffer.concat([Buffer.from('{"group_id":"123456","msg":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]), notUtf8],
    ['UTF-16', Buffer.from('\ufeff{"group_id":"123456","msg":"x"}', 'utf16le'), notUtf8],
    ['brackets without end', '['.repeat(64), early(65)],
    ['bytes', Buffer.from(Array.from({ length: 256 }, (_, index) => index)), notUtf8],
  ]
  for (const [what, body, why] of bodies) {
    test(what, async () => {
      const { status, body: { msg, data } } = await post(body)
      assert.deepEqual([status, data], [400, null])
      assert.match(msg, typeof why === 'string' ? new RegExp(`^${why}$`) : why)
      assert.deepEqual(texts(), [])
    })
  }
})

test('a form in the place of JSON is a 400 that says where forms go', async () => {
  const form = new FormData()
  form.append('group_id', '123456')
  form.append('file', new Blob([new Uint8Array([0x89, 0x50, 0xff])]), 'chart.png')
  for (const body of [form, new URLSearchParams({ group_id: '123456', msg: 'x' })]) {
    const { status, body: { msg } } = await read(await relay.request('/webhook', { method: 'POST', body }))
    assert.deepEqual([status, msg], [400, 'the body must be JSON: send a text, or a form with files, to /send/<target>'])
  }
  assert.equal((await post('{"group_id":"123456",}', { 'content-type': 'application/x-www-form-urlencoded' })).body.msg.slice(0, 14), 'invalid json: ')
})

test('JSON that a shell of Windows has changed is a 400 that says how to send it', async () => {
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const body of ['{group_id: 123456, msg: The disk is full}', '\'{group_id:', '{\\"group_id\\": \\"123456\\"}']) {
    assert.match((await post(body, type)).body.msg, /^invalid json: its double quotes are missing/)
  }
  // What `>` of PowerShell 5.1 writes.
  assert.match((await post(Buffer.from('\ufeff{"group_id":"123456","msg":"x"}', 'utf16le'), type)).body.msg, /^the JSON is not UTF-8/)
})

test('a body that is no object is a 400', async () => {
  for (const body of ['null', 'true', '0', '1e400', '"text"', '[]', '[{"group_id":"123456","msg":"x"}]', `${'['.repeat(64)}${']'.repeat(64)}`]) {
    const { status, body: { msg } } = await post(body)
    assert.deepEqual([status, msg], [400, 'the body must be a JSON object'], body)
  }
})

describe('a body is read as JSON', () => {
  for (const type of ['', 'text/plain; charset=utf-8', 'application/x-www-form-urlencoded', 'application/json; charset=gbk', 'multipart/form-data; boundary=x', 'nonsense']) {
    test(`whatever its Content-Type: ${type || 'none'}`, async () => {
      assert.equal((await post('{"group_id":"123456","msg":"a=b&c=%20+你好"}', { 'content-type': type })).status, 200)
      assert.deepEqual(texts(), ['a=b&c=%20+你好'])
    })
  }

  test('behind a byte order mark', async () => {
    assert.equal((await post('\ufeff{"group_id":"123456","msg":"x"}')).status, 200)
    assert.deepEqual(texts(), ['x'])
  })

  test('in which __proto__ and constructor are nothing special', async () => {
    for (const name of ['__proto__', 'constructor', 'prototype']) {
      const answer = await post(`{"${name}":{"group_id":"123456","msg":"polluted"},"msg":"x"}`)
      assert.equal(answer.body.msg, `to, group_id or user_id is required: found "${name}" instead`)
    }
    assert.equal(Reflect.get({}, 'group_id'), undefined)
    assert.equal((await post('{"group_id":"123456","msg":"x","__proto__":null,"toString":1}')).status, 200)
  })
})

describe('the bounds of what a body holds', () => {
  const message = '"group_id":"123456","msg":"x"'
  const more = (levels: number): string => `{${message},"more":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  const items = (count: number): string => `{"group_id":"123456","messages":[${Array<string>(count).fill('{"type":"image"}').join(',')}]}`

  test('are met exactly', async () => {
    assert.equal((await post(more(64))).status, 200)
    assert.equal((await post(`{${message},"more":[${'0,'.repeat(19_995)}0]}`)).status, 200)
    assert.equal((await post(items(1000))).status, 200)
  })

  const wrong: [what: string, body: string, msg: string][] = [
    ['65 levels', more(65), 'the body has more than 64 levels'],
    ['5,000 levels', more(5_000), 'the body has more than 64 levels'],
    ['brackets without end', '['.repeat(99_000), 'the body has more than 64 levels'],
    ['20,001 values', `{${message},"more":[${'0,'.repeat(19_996)}0]}`, 'the body has more than 20000 values'],
    ['30,000 empty objects', `{"group_id":"123456","messages":[${'{},'.repeat(30_000)}{}]}`, 'the body has more than 20000 values'],
    ['1,001 items', items(1001), 'messages must hold at most 1000 items'],
  ]
  for (const [what, body, msg] of wrong) {
    test(`refuse ${what}, with and without a key, and when it is to be sent later`, async () => {
      for (const headers of [{}, { 'idempotency-key': what.replace(/ /g, '-') }, { prefer: 'respond-async' }] as Record<string, string>[]) {
        const answer = await post(body, headers)
        assert.equal(answer.status, 400)
        assert.equal(answer.body.msg, msg)
      }
      assert.deepEqual(texts(), [])
    })
  }
})

describe('the limit of a body', () => {
  test('is met exactly, with and without a Content-Length', async () => {
    assert.equal((await post(messageOf(100_000))).status, 200)
    const wire = await Wire.open(relay.url)
    wire.send([...head, 'Transfer-Encoding: chunked'], `186a0\r\n${messageOf(100_000)}\r\n0\r\n\r\n`)
    assert.equal((await wire.answer()).status, 200)
    assert.deepEqual(texts().map(({ length }) => length), [99_970, 99_970])
  })

  test('is exceeded by one byte, and the connection goes on', async () => {
    const wire = await Wire.open(relay.url)
    const text = 'the request body is larger than 97.6 KB: the setting maxBodySize allows no more; /upload and /send take larger files'
    wire.send([...head, 'Content-Length: 100001'], messageOf(100_001))
    assertFailure(await wire.answer(), 413, text)
    wire.send([...head, 'Transfer-Encoding: chunked'], `186a1\r\n${messageOf(100_001)}\r\n0\r\n\r\n`)
    assertFailure(await wire.answer(), 413, text)
    wire.send([...head, 'Content-Length: 32'], '{"group_id":"123456","msg":"ok"}')
    assert.equal((await wire.answer()).status, 200)
    assert.deepEqual(texts(), ['ok'])
  })

  test('is told at once to a client that announces more', async () => {
    const wire = await Wire.open(relay.url)
    wire.send([...head, 'Content-Length: 9007199254740993'])
    assertFailure(await wire.answer(), 413)
  })
})

test('a body of another length than announced that goes on is another request, and no HTTP', async () => {
  const wire = await Wire.open(relay.url)
  wire.send([...head, 'Content-Length: 1'], '{"group_id":"123456","msg":"x"}')
  await wire.closed()
  assert.deepEqual(texts(), [])
  assert.equal((await post('{"group_id":"123456","msg":"next"}')).status, 200)
})

describe('a connection', () => {
  test('takes pipelined requests and answers them in their order', async () => {
    const wire = await Wire.open(relay.url)
    const bodies = ['{"group_id":"123456","msg":"one"}', '{', '{"group_id":"123456","msg":"two"}', '']
    const requests = bodies.map(body => `${[...head, `Content-Length: ${body.length}`, '', ''].join('\r\n')}${body}`)
    wire.socket.write(requests.join(''))
    assert.equal((await wire.answer()).status, 200)
    assertFailure(await wire.answer(), 400)
    assert.equal((await wire.answer()).status, 200)
    assertFailure(await wire.answer(), 400)
    assert.deepEqual(texts(), ['one', 'two'])
  })

  test('handles no request before the answers to its earlier ones have left, and none of a client that went away', async () => {
    const logged = (request: string): number => relay.logs.filter(line => line.includes(request)).length
    const [sent, probed] = [logged('POST /webhook'), logged('GET /healthz')]
    relay.simulator.fault({ fault: { kind: 'late', ms: 500 } })
    const wire = await Wire.open(relay.url)
    const probe = 'GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n'
    wire.send([...head, 'Content-Length: 33'], `{"group_id":"123456","msg":"one"}${probe.repeat(20)}`)
    await relay.simulator.until(({ ledger }) => ledger.length === 1)
    assert.equal((await relay.request('/targets')).status, 200)
    assert.equal(logged('GET /healthz'), probed)
    wire.socket.destroy()
    await until('the first is done', () => logged('POST /webhook') > sent)
    assert.equal((await relay.request('/targets')).status, 200)
    assert(logged('GET /healthz') - probed <= 1, 'the one whose turn it was')
  })

  test('may ask whether to go on', async () => {
    const wire = await Wire.open(relay.url)
    wire.send([...head, 'Content-Length: 31', 'Expect: 100-continue'])
    wire.socket.write('{"group_id":"123456","msg":"x"}')
    assert.equal((await wire.answer()).status, 200)
    wire.send([...head, 'Content-Length: 100001', 'Expect: 100-continue'])
    assertFailure(await wire.answer(), 413)
  })
})

test('a compressed body is a 415 that says what to do, and the connection goes on; an encoding that is none is no hindrance', async () => {
  for (const encoding of ['', 'identity', 'Identity']) {
    assert.equal((await post('{"group_id":"123456","msg":"x"}', { 'content-encoding': encoding })).status, 200)
  }
  const body = gzipSync('{"group_id":"123456","msg":"x"}')
  const wire = await Wire.open(relay.url)
  for (const path of ['/webhook', '/upload']) {
    const type = 'Content-Type: multipart/form-data; boundary=limit'
    wire.send([`POST ${path} HTTP/1.1`, ...head.slice(1), type, 'Content-Encoding: gzip', `Content-Length: ${body.length}`], body)
    assertFailure(await wire.answer(), 415, 'compressed bodies are not accepted: send the body as it is, without a Content-Encoding')
  }
})

test('fifty clients that go away in the middle leave nothing open', async () => {
  const lines = relay.logs.length
  await Promise.all(Array.from({ length: 50 }, () => new Promise<void>(resolve => {
    const client = request(`${relay.url}/webhook`, { method: 'POST', headers: { 'x-api-key': apiKey, 'content-length': 100 } })
    client.on('error', () => resolve())
    client.write('some of it', () => client.destroy())
  })))
  await until('all are given up', () => relay.logs.slice(lines).filter(line => line.includes('ended early')).length === 50)
})
