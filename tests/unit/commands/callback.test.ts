import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { CallbackError, postCommand } from '../../../src/commands/callback'
import { parseEndpoint } from '../../../src/lib/endpoint'

const body = { command: 'ping', content: 'x', raw_message: '#ping x', user_id: '10001', message_id: '-5' }
const limit = 1024 * 1024

async function open(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address)
  return address.port
}

/** Resolves when the next connection that is opened has been closed. */
function closing(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.once('connection', socket => socket.once('close', () => {
      resolve()
    }))
  })
}

/** A callback server. Its end waits until no connection is left: one that the client leaks fails the test. */
async function serve(t: TestContext, listener: RequestListener) {
  const server = createServer(listener)
  server.keepAliveTimeout = 0
  const port = await open(server)
  t.after(() => new Promise(resolve => server.close(resolve)), { timeout: 5000 })
  return { port, url: `http://127.0.0.1:${port}/hook`, server }
}

function post(url: string, options: { timeout?: number, signal?: AbortSignal } = {}) {
  const endpoint = parseEndpoint(url)
  assert.ok(endpoint)
  return postCommand(endpoint, body, { timeout: 5000, signal: new AbortController().signal, ...options })
}

const failure = (reason: string | RegExp) => (error: unknown) => {
  assert.ok(error instanceof CallbackError)
  if (typeof reason === 'string') assert.equal(error.message, reason)
  else assert.match(error.message, reason)
  return true
}

async function answering(t: TestContext, status: number, content: string | Buffer, headers: Record<string, string> = {}) {
  const { url } = await serve(t, (request, response) => {
    request.resume()
    response.writeHead(status, headers).end(content)
  })
  return url
}

describe('a callback', () => {
  test('gets the command as JSON', async t => {
    let request: IncomingMessage | undefined
    let received = ''
    const { url } = await serve(t, (incoming, response) => {
      request = incoming
      void text(incoming).then(content => {
        received = content
        response.end('{"reply":"pong"}')
      })
    })
    assert.deepEqual(await post(`${url}?token=1`), { reply: 'pong' })
    assert.equal(request?.method, 'POST')
    assert.equal(request.url, '/hook?token=1')
    assert.equal(request.headers['content-type'], 'application/json')
    assert.equal(request.headers.authorization, undefined)
    assert.deepEqual(JSON.parse(received), body)
  })

  test('gets the credentials of its address as a header', async t => {
    let header: string | undefined
    const { port } = await serve(t, (request, response) => {
      header = request.headers.authorization
      response.end()
    })
    await post(`http://us%3Aer:p%40ss%C3%A9%@127.0.0.1:${port}/`)
    assert.equal(header, `Basic ${Buffer.from('us:er:p%40ss%C3%A9%').toString('base64')}`)
    await post(`http://user:p%40ss%C3%A9@127.0.0.1:${port}/`)
    assert.equal(header, `Basic ${Buffer.from('user:p@ssé').toString('base64')}`)
  })

  test('is left without an idle connection', async t => {
    const { url, server } = await serve(t, (_, response) => response.end('{"reply":"pong"}'))
    const closed = closing(server)
    await post(url)
    await closed
  })
})

describe('no reply is', () => {
  for (const content of ['', ' \r\n', '{}', 'null', '{ }']) {
    test(JSON.stringify(content), async t => {
      assert.equal(await post(await answering(t, 200, content)), undefined)
    })
  }
  test('status 204', async t => {
    assert.equal(await post(await answering(t, 204, '')), undefined)
  })
})

describe('an answer', () => {
  test('is JSON whatever its content type says, in any 2xx', async t => {
    assert.deepEqual(await post(await answering(t, 201, '\ufeff{"a":"é"}', { 'content-type': 'text/html; charset=gbk' })), { a: 'é' })
  })

  test('may be compressed', async t => {
    assert.deepEqual(await post(await answering(t, 200, gzipSync('{"a":1}'), { 'content-encoding': 'gzip' })), { a: 1 })
    assert.deepEqual(await post(await answering(t, 200, deflateSync('{"a":1}'), { 'content-encoding': 'deflate' })), { a: 1 })
  })

  test('may be 1 MiB long, and no byte longer', async t => {
    const json = (size: number) => `{"a":"${'x'.repeat(size - '{"a":""}'.length)}"}`
    assert.equal(Object.keys(await post(await answering(t, 200, json(limit))) ?? {}).length, 1)
    await assert.rejects(post(await answering(t, 200, json(limit + 1))), failure('an answer of more than 1048576 bytes'))
  })
})

describe('a failure is', () => {
  const refusals: Record<string, [status: number, content: string | Buffer, reason: string | RegExp]> = {
    'an error status, even with a JSON object': [500, '{"reply":"pong"}', 'status 500'],
    'not found': [404, '', 'status 404'],
    'no JSON': [200, 'secret<html>', 'the answer is not valid JSON'],
    'a JSON array': [200, '[{"reply":"pong"}]', 'the answer is not a JSON object'],
    'a JSON string': [200, '"pong"', 'the answer is not a JSON object'],
    'no UTF-8': [200, Buffer.from('{"reply":"\xe9"}', 'latin1'), 'the answer is not UTF-8'],
  }
  for (const [name, [status, content, reason]] of Object.entries(refusals)) {
    test(name, async t => {
      await assert.rejects(post(await answering(t, status, content)), failure(reason))
    })
  }

  test('an answer of too many levels or values', async t => {
    const deep = `{"reply":"x","more":${'['.repeat(64)}${']'.repeat(64)}}`
    await assert.rejects(post(await answering(t, 200, deep)), failure('an answer of more than 64 levels'))
    const wide = `{"messages":[${'{},'.repeat(20_000)}{}]}`
    await assert.rejects(post(await answering(t, 200, wide)), failure('an answer of more than 20000 values'))
  })

  test('a redirect, which is not followed', async t => {
    const visited: string[] = []
    const { url } = await serve(t, (request, response) => {
      visited.push(request.url ?? '')
      response.writeHead(307, { location: '/elsewhere' }).end('{"reply":"pong"}')
    })
    await assert.rejects(post(url), failure('a redirect (status 307), which is not followed'))
    assert.deepEqual(visited, ['/hook'])
  })

  test('no answer in time', async t => {
    const { url } = await serve(t, () => undefined)
    const start = performance.now()
    await assert.rejects(post(url, { timeout: 150 }), failure('no complete answer within 0.15 s'))
    assert.ok(performance.now() - start < 2000)
  })

  test('an answer that is not complete in time', async t => {
    const { url } = await serve(t, (_, response) => response.writeHead(200).write('{"reply":'))
    await assert.rejects(post(url, { timeout: 150 }), failure('no complete answer within 0.15 s'))
  })

  test('an answer that trickles, however steadily', async t => {
    const { url } = await serve(t, (_, response) => {
      const timer = setInterval(() => response.write(' '), 20)
      response.on('close', () => {
        clearInterval(timer)
      })
    })
    await assert.rejects(post(url, { timeout: 200 }), failure('no complete answer within 0.2 s'))
  })

  test('an answer of 30 MB, cut off early', async t => {
    const chunk = Buffer.alloc(100_000, ' ')
    let sent = 0
    const { url } = await serve(t, (_, response) => {
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
    await assert.rejects(post(url), failure('an answer of more than 1048576 bytes'))
    assert.ok(sent < 20e6)
  })

  test('a bomb: 200 MB in 200 kB', async t => {
    const bomb = gzipSync(Buffer.alloc(200e6, ' '))
    const before = process.memoryUsage().rss
    await assert.rejects(post(await answering(t, 200, bomb, { 'content-encoding': 'gzip' })), failure('an answer of more than 1048576 bytes'))
    assert.ok(process.memoryUsage().rss - before < 100e6)
  })

  test('no gzip where gzip was announced', async t => {
    const url = await answering(t, 200, '{"reply":"pong"}', { 'content-encoding': 'gzip' })
    await assert.rejects(post(url), failure('the answer is not compressed as it says (Z_DATA_ERROR)'))
  })

  test('a connection closed within the answer', async t => {
    const { url } = await serve(t, (_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"reply":', () => response.destroy())
    })
    await assert.rejects(post(url), failure('connection closed before the answer was complete (UND_ERR_RES_CONTENT_LENGTH_MISMATCH)'))
  })

  test('a connection closed within a chunked answer', async t => {
    const { url } = await serve(t, (_, response) => {
      response.writeHead(200).write('{"reply":', () => response.destroy())
    })
    // undici takes the end of a connection that was to be closed anyway for the end of the answer.
    await assert.rejects(post(url), failure('the answer is not valid JSON'))
  })

  test('a connection closed before the answer', async t => {
    const { url } = await serve(t, request => request.socket.destroy())
    await assert.rejects(post(url), failure(/^connection closed before the answer was complete \(\w+\)$/))
  })

  test('no HTTP', async t => {
    const { url } = await serve(t, request => request.socket.end('secret\r\n\r\n'))
    await assert.rejects(post(url), failure(/^the answer is not valid HTTP \(HPE_\w+\)$/))
  })

  test('a refused connection', async () => {
    const server = createServer()
    const port = await open(server)
    await new Promise(resolve => server.close(resolve))
    await assert.rejects(post(`http://127.0.0.1:${port}/`), failure('connection refused (ECONNREFUSED)'))
  })

  test('no TLS on the other side', async t => {
    const { port } = await serve(t, () => undefined)
    await assert.rejects(post(`https://127.0.0.1:${port}/`), failure(/^no TLS connection \(\w+\)$/))
  })

  test('a port that fetch never connects to', async () => {
    await assert.rejects(post('http://127.0.0.1:6667/'), failure('a port that fetch does not connect to'))
  })

  test('being stopped while waiting', async t => {
    const controller = new AbortController()
    const { url } = await serve(t, () => {
      controller.abort()
    })
    await assert.rejects(post(url, { signal: controller.signal }), failure('the relay is stopping'))
  })

  test('being stopped before, and then nothing is sent', async t => {
    let requests = 0
    const { url } = await serve(t, (_, response) => {
      requests++
      response.end('{"reply":"pong"}')
    })
    await assert.rejects(post(url, { signal: AbortSignal.abort() }), failure('the relay is stopping'))
    await post(url)
    assert.equal(requests, 1)
  })
})

test('all exchanges share one listener on the signal', async t => {
  const { signal } = new AbortController()
  await post(await answering(t, 200, '{}'), { signal })
  await assert.rejects(post(await answering(t, 500, ''), { signal }))
  assert.equal(getEventListeners(signal, 'abort').length, 1)
})

test('a timeout longer than a timer can be does not end the exchange at once', async t => {
  const url = await answering(t, 200, '{"a":1}')
  assert.deepEqual(await post(url, { timeout: 2 ** 40 }), { a: 1 })
})

describe('a callback address', () => {
  test('is logged without credentials, path, query and fragment', () => {
    const endpoint = parseEndpoint('https://user:pass@example.com/a/b?token=1#x')
    assert.equal(endpoint?.origin, 'https://example.com')
    assert.equal(endpoint.url, 'https://example.com/a/b?token=1')
  })

  test('is an http(s) link', () => {
    for (const address of ['', 'callback', 'ftp://example.com/', 'file:///etc/passwd', 'http://']) {
      assert.equal(parseEndpoint(address), undefined)
    }
  })
})
