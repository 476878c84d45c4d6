import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { watchHeartbeat } from '../../../src/platform/keeper/connection'
import { Wire } from '../../../src/platform/keeper/wire'
import { until } from '../../support/until'

/** Between two pings, in milliseconds. */
const interval = 20

/** A connection that ends with the test: the relay's end, and the other side's. */
async function connect(t: TestContext, autoPong: boolean): Promise<{ socket: WebSocket, other: WebSocket, pings: () => number }> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, autoPong })
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const others: WebSocket[] = []
  server.on('connection', other => others.push(other))
  const socket = new WebSocket(`ws://127.0.0.1:${address.port}`)
  t.after(() => {
    socket.terminate()
    for (const other of others) other.terminate()
    server.close()
  })
  await once(socket, 'open')
  await until('the other side has it', () => others.length === 1)
  const [other] = others
  assert(other)
  let pings = 0
  other.on('ping', () => pings++)
  return { socket, other, pings: () => pings }
}

function watch(socket: WebSocket, time = interval): () => void {
  const wire = Wire.of(socket, 'onebot:1')
  assert(wire)
  return watchHeartbeat(wire, time)
}

describe('the heartbeat of a connection', () => {
  test('keeps one that answers, and ends without a trace', async t => {
    const { socket, pings } = await connect(t, true)
    const before = socket.listenerCount('message') + socket.listenerCount('pong')
    const end = watch(socket)
    await until('it was asked often enough', () => pings() >= 10)
    assert.equal(socket.readyState, WebSocket.OPEN)
    end()
    assert.equal(socket.listenerCount('message') + socket.listenerCount('pong'), before)
  })

  test('cuts one that answers no more', async t => {
    const { socket, other } = await connect(t, true)
    t.after(watch(socket))
    await once(socket, 'pong')
    other.pause()
    await once(socket, 'close')
  })

  test('keeps one that never answers pings at all', async t => {
    const { socket, pings } = await connect(t, false)
    t.after(watch(socket))
    await until('it was asked often enough', () => pings() >= 10)
    assert.equal(socket.readyState, WebSocket.OPEN)
  })

  test('keeps one that answers pings no more but has something to say', async t => {
    const { socket, other, pings } = await connect(t, false)
    t.after(watch(socket))
    other.once('ping', () => other.pong())
    other.on('ping', () => other.send('{}'))
    await until('it was asked often enough', () => pings() >= 10)
    assert.equal(socket.readyState, WebSocket.OPEN)
  })

  test('keeps one that is still taking in what was sent', async t => {
    const { socket, other } = await connect(t, true)
    // What has left this end may lie in the system's buffers for as long as the other end takes to read those.
    t.after(watch(socket, 15 * interval))
    await once(socket, 'pong')
    const received = once(other, 'message')
    socket.send(Buffer.alloc(48 << 20))
    // Slowly enough for many heartbeats: pings are waiting behind the message.
    let pauses = 0
    const slow = setInterval(() => {
      if (pauses++ % 4 === 3) other.resume()
      else other.pause()
    }, 4)
    t.after(() => clearInterval(slow))
    await Promise.race([received, once(socket, 'close').then(() => assert.fail('it was cut'))])
    assert(pauses > 20)
  })
})
