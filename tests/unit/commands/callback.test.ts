import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { describe, test, type TestContext } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { CallbackError, postCommand } from '../../../src/commands/callback'
import { matchCommand } from '../../../src/commands/matcher'
import { parseEndpoint } from '../../../src/lib/endpoint'
import { listen } from '../../support/listen'

const body = { command: 'ping', content: 'x', raw_message: '#ping x', user_id: '10001', message_id: '-5' }
const limit = 1024 * 1024

/** A callback server. Its end waits until no connection is left: one that the client leaks fails the test. */
async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.keepAliveTimeout = 0
  t.after(() => new Promise(resolve => server.close(resolve)), { timeout: 5000 })
  return `http://127.0.0.1:${await listen(server)}/hook`
}

function post(url: string, options: { timeout?: number, stop?: AbortSignal } = {}) {
  const endpoint = parseEndpoint(url)
  assert.ok(endpoint)
  return postCommand(endpoint, body, { timeout: 5000, stop: new AbortController().signal, ...options })
}

const failure = (reason: string | RegExp) => (error: unknown) => {
  assert.ok(error instanceof CallbackError)
  if (typeof reason === 'string') assert.equal(error.message, reason)
  else assert.match(error.message, reason)
  return true
}

function answer(status: number, content: string | Buffer, headers: Record<string, string> = {}): RequestListener {
  return (request, response) => {
    request.resume()
    response.writeHead(status, headers).end(content)
  }
}

const json = (size: number) => `{"a":"${'x'.repeat(size - '{"a":""}'.length)}"}`

describe('a callback', () => {
  test('gets the credentials of its address as a header, and is left without an idle connection', async t => {
    let header: string | undefined
    let closed = Promise.resolve()
    const { host } = new URL(await serve(t, (request, response) => {
      header = request.headers.authorization
      closed = once(request.socket, 'close').then(() => undefined)
      response.end()
    }))
    await post(`http://us%3Aer:p%40ss%C3%A9%@${host}/`)
    assert.equal(header, `Basic ${Buffer.from('us:er:p@ssé%').toString('base64')}`)
    await post(`http://user:p%40ss%C3%A9@${host}/`)
    assert.equal(header, `Basic ${Buffer.from('user:p@ssé').toString('base64')}`)
    await closed
  })

  test('that says nothing gives no reply', async t => {
    for (const content of ['', ' \r\n', '{}', 'null', '{ }']) assert.equal(await post(await serve(t, answer(200, content))), undefined)
    assert.equal(await post(await serve(t, answer(204, ''))), undefined)
  })

  test('answers with JSON whatever its content type says, in any 2xx, compressed or not, and up to 1 MiB', async t => {
    assert.deepEqual(await post(await serve(t, answer(201, '\ufeff{"a":"é"}', { 'content-type': 'text/html; charset=gbk' }))), { a: 'é' })
    assert.deepEqual(await post(await serve(t, answer(200, gzipSync('{"a":1}'), { 'content-encoding': 'gzip' }))), { a: 1 })
    assert.deepEqual(await post(await serve(t, answer(200, deflateSync('{"a":1}'), { 'content-encoding': 'deflate' }))), { a: 1 })
    assert.equal(Object.keys(await post(await serve(t, answer(200, json(limit)))) ?? {}).length, 1)
  })

  test('has an address that is an http(s) link, logged without credentials, path, query and fragment', () => {
    const endpoint = parseEndpoint('https://user:pass@example.com/a/b?token=1#x')
    assert.equal(endpoint?.origin, 'https://example.com')
    assert.equal(endpoint.url, 'https://example.com/a/b?token=1')
    for (const address of ['', 'callback', 'ftp://example.com/', 'file:///etc/passwd', 'http://']) assert.equal(parseEndpoint(address), undefined)
  })
})

const incomplete = 'no complete answer within 0.15 s'
const failures: [what: string, listener: RequestListener, reason: string | RegExp][] = [
  ['an error status, even with a JSON object', answer(500, '{"reply":"pong"}'), 'status 500'],
  ['not found', answer(404, ''), 'status 404'],
  ['no JSON', answer(200, 'secret<html>'), 'the answer is not valid JSON'],
  ['a JSON array', answer(200, '[{"reply":"pong"}]'), 'the answer is not a JSON object'],
  ['a JSON string', answer(200, '"pong"'), 'the answer is not a JSON object'],
  ['no UTF-8', answer(200, Buffer.from('{"reply":"\xe9"}', 'latin1')), 'the answer is not UTF-8'],
  ['too long', answer(200, json(limit + 1)), 'an answer of more than 1 MB'],
  ['too many levels', answer(200, `{"reply":"x","more":${'['.repeat(64)}${']'.repeat(64)}}`), 'an answer of more than 64 levels'],
  ['too many values', answer(200, `{"messages":[${'{},'.repeat(20_000)}{}]}`), 'an answer of more than 20000 values'],
  ['a redirect, which is not followed', answer(307, '{}', { location: '/elsewhere' }), 'a redirect (status 307), which is not followed'],
  ['no answer in time', () => undefined, incomplete],
  ['an answer that is not complete in time', (_, response) => response.writeHead(200).write('{"reply":'), incomplete],
  ['an answer that trickles, however steadily', (_, response) => {
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  }, incomplete],
  ['no gzip where gzip was announced', answer(200, '{}', { 'content-encoding': 'gzip' }), 'the answer is not compressed as it says (Z_DATA_ERROR)'],
  ['a connection closed within the answer', (_, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{"reply":', () => response.destroy())
  }, 'connection closed before the answer was complete (UND_ERR_RES_CONTENT_LENGTH_MISMATCH)'],
  // undici takes the end of a connection that was to be closed anyway for the end of the answer, unless its parser sees it first.
  ['a connection closed within a chunked answer', (_, response) => {
    response.writeHead(200).write('{"reply":', () => response.destroy())
  }, /^the answer is not valid (?:JSON|HTTP \(HTTPParserError\))$/],
  ['a connection closed before the answer', request => request.socket.destroy(), /^connection closed before the answer was complete \(\w+\)$/],
  ['no HTTP', request => request.socket.end('secret\r\n\r\n'), 'the answer is not valid HTTP (HTTPParserError)'],
]

describe('a failure of a callback is', () => {
  for (const [what, listener, reason] of failures) {
    test(what, async t => {
      let requests = 0
      const url = await serve(t, (request, response) => {
        requests++
        listener(request, response)
      })
      await assert.rejects(post(url, reason === incomplete ? { timeout: 150 } : {}), failure(reason))
      assert.equal(requests, 1)
    })
  }

  test('an answer of 30 MB, cut off early', async t => {
    const chunk = Buffer.alloc(100_000, ' ')
    let sent = 0
    const url = await serve(t, (_, response) => {
      const write = () => {
        while (sent < 30e6 && !response.destroyed) {
          sent += chunk.length
          if (!response.write(chunk)) return
        }
        response.end()
      }
      response.on('drain', write)
      write()
    })
    await assert.rejects(post(url), failure('an answer of more than 1 MB'))
    assert.ok(sent < 20e6)
  })

  test('a bomb: 200 MB in 200 kB', async t => {
    const url = await serve(t, answer(200, gzipSync(Buffer.alloc(200e6, ' ')), { 'content-encoding': 'gzip' }))
    const before = process.memoryUsage().rss
    await assert.rejects(post(url), failure('an answer of more than 1 MB'))
    assert.ok(process.memoryUsage().rss - before < 100e6)
  })

  test('no connection, no TLS on the other side, and a port that fetch never connects to', async t => {
    const { host } = new URL(await serve(t, () => undefined))
    await assert.rejects(post('http://127.0.0.1:1/'), failure('a port that fetch does not connect to'))
    await assert.rejects(post('http://127.0.0.1:2/'), failure('connection refused (ECONNREFUSED)'))
    await assert.rejects(post(`https://${host}/`), failure(/^no TLS connection \(\w+\)$/))
  })

  test('the end of the relay, before which nothing is sent any more, and of which all exchanges have one listener', async t => {
    const controller = new AbortController()
    let requests = 0
    const url = await serve(t, () => {
      requests++
      controller.abort()
    })
    const { signal } = controller
    await post(await serve(t, answer(200, '{}')), { stop: signal })
    await assert.rejects(post(await serve(t, answer(500, '')), { stop: signal }))
    assert.equal(getEventListeners(signal, 'abort').length, 1)
    for (let count = 0; count < 2; count++) await assert.rejects(post(url, { stop: signal }), failure('the relay is stopping'))
    assert.equal(requests, 1)
  })
})

describe('a text', () => {
  const matches: [text: string, command: string, content: string, settings?: { prefix: string, length: number }][] = [
    ['#ping hello', 'ping', 'hello'], ['#ping   a \n\tb  ', 'ping', '  a \n\tb  '], ['#ping ', 'ping', ''],
    ['!!do x', 'do', 'x', { prefix: '!!', length: 2 }], ['ping x', 'ping', 'x', { prefix: '', length: 4 }],
    // Code points are counted, not UTF-16 units; a combining mark, a joiner and half a surrogate pair are one each.
    ['#🚀🚀🚀🚀 x', '🚀🚀🚀🚀', 'x'], ['🤖𠮷a 部署', '𠮷a', '部署', { prefix: '🤖', length: 2 }],
    ['#e\u0301ab x', 'e\u0301ab', 'x'], ['#👩\u200d💻a x', '👩\u200d💻a', 'x'], ['#\ud83dabc x', '\ud83dabc', 'x'],
    ['#a b  x', 'a b ', 'x'], ['#a\nb# x', 'a\nb#', 'x'],
  ]
  test('is a command with a prefix, a name of fixed length, a blank and the rest, letter for letter', () => {
    for (const [text, command, content, settings = { prefix: '#', length: 4 }] of matches) assert.deepEqual(matchCommand(text, settings), { command, content })
  })

  test('is none with anything else', () => {
    for (const text of [
      '', '#', '#pin x', '#pings x', '#pi', '#ping', '#ping\tx', '#ping\nx', '#ping\u3000x', '#ping\u00a0x', '＃ping x', ' #ping x', 'x #ping x', 'xping #', '#🚀🚀 x',
    ]) assert.equal(matchCommand(text, { prefix: '#', length: 4 }), undefined, text)
    assert.equal(matchCommand('!do x', { prefix: '!!', length: 2 }), undefined)
  })
})
