import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { discardBody, readBody, type BodyLimits } from '../../../src/http/body'
import { RelayError } from '../../../src/errors'
import { Wire } from '../../integration/http/support'
import { listen } from '../../support/listen'

let server: Server
let url: string
let handle: (request: IncomingMessage) => Promise<string>

before(async () => {
  server = createServer((request, response) => {
    handle(request).then(text => response.end(text), (error: unknown) => response.end(RelayError.from(error).code))
  })
  // Closed by nobody but those who are tested.
  server.keepAliveTimeout = 0
  url = `http://127.0.0.1:${await listen(server)}`
})
after(() => {
  server.closeAllConnections()
  server.close()
})

const head = ['POST / HTTP/1.1', 'Host: relay']
const never = new AbortController().signal

/** Reads every body within these limits and answers its length, or the code of the failure. */
function readAll(limits: BodyLimits, stop = never): void {
  handle = request => (
    readBody({ request, body: undefined, stop }, limits).then(({ length }) => String(length)).finally(() => discardBody(request))
  )
}

describe('reading a body', () => {
  test('gives up on one that arrives byte by byte, and on one that does not arrive at all', async () => {
    readAll({ maxSize: 1000, timeout: 100 })
    const wire = await Wire.open(url)
    wire.send([...head, 'Content-Length: 500'])
    const drip = setInterval(() => wire.socket.write('x'), 10)
    assert.equal((await wire.answer()).body, 'too-slow')
    clearInterval(drip)

    const silent = await Wire.open(url)
    silent.send([...head, 'Transfer-Encoding: chunked'])
    assert.equal((await silent.answer()).body, 'too-slow')
  })

  test('ends when the client goes away in the middle', async () => {
    const ended = new Promise<string>(resolve => {
      handle = async request => {
        const code = await readBody({ request, body: undefined, stop: never }, { maxSize: 1000 }).then(() => 'read', (error: unknown) => RelayError.from(error).code)
        resolve(code)
        return code
      }
    })
    const wire = await Wire.open(url)
    wire.send([...head, 'Content-Length: 500'], 'some of it')
    wire.socket.end()
    assert.equal(await ended, 'bad-request')
  })

  test('ends when the relay stops', async () => {
    const stop = new AbortController()
    const begun = new Promise<void>(resolve => {
      handle = request => {
        resolve()
        return readBody({ request, body: undefined, stop: stop.signal }, { maxSize: 1000 }).then(String)
      }
    })
    const wire = await Wire.open(url)
    wire.send([...head, 'Content-Length: 500'], 'some of it')
    await begun
    stop.abort()
    assert.equal((await wire.answer()).body, 'stopping')
  })

  test('leaves no listener and no timer behind', async () => {
    const counts: number[][] = []
    handle = async request => {
      const count = () => counts.push(['data', 'end', 'close', 'error'].map(name => request.listenerCount(name)))
      count()
      const { length } = await readBody({ request, body: undefined, stop: never }, { maxSize: 10 })
      count()
      return String(length)
    }
    const wire = await Wire.open(url)
    wire.send([...head, 'Content-Length: 10'], '0123456789')
    assert.equal((await wire.answer()).body, '10')
    assert.deepEqual(counts[1], counts[0])
  })
})

describe('discarding a body', () => {
  test('goes on until its end, and the connection with it', async () => {
    readAll({ maxSize: 10 })
    const wire = await Wire.open(url)
    for (const announced of ['Content-Length: 3000000', 'Transfer-Encoding: chunked']) {
      wire.send([...head, announced])
      const isChunked = announced.endsWith('chunked')
      if (isChunked) wire.socket.write('2dc6c0\r\n')
      await wire.pour(Buffer.alloc(1_000_000), 3)
      if (isChunked) wire.socket.write('\r\n0\r\n\r\n')
      assert.equal((await wire.answer()).body, 'too-large')
    }
  })

  test('ends with the connection when there is too much, or it takes too long', async () => {
    for (const [limits, announced, megabytes] of [[{ maxSize: 1_000_000 }, 100_000_000, 100], [{ timeout: 50 }, 100, 0]] as const) {
      handle = request => {
        discardBody(request, limits)
        return Promise.resolve('refused')
      }
      const wire = await Wire.open(url)
      wire.send([...head, `Content-Length: ${announced}`], 'a little')
      assert.equal((await wire.answer()).body, 'refused')
      await wire.pour(Buffer.alloc(1_000_000), megabytes)
      await wire.closed()
    }
  })
})
