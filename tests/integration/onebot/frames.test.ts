import { Universal, type Context, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { WebSocket } from 'ws'
import { guardConnections } from '../../../src/platform/keeper/guard'
import { relayFor } from '../../support/relay'
import { until } from '../../support/until'
import { addReverse, botOf, startApp, startPair, startSimulator, untilSends, untilStatus, type TestApp } from './support'

/** Frames that are no OneBot 11. At most of them adapter-onebot 6.9.4 throws where nobody can catch it. */
const frames = [
  '5', 'null', '"x"', 'true', '[]', '[{"post_type":"message"}]', '', '{', 'post_type', '{}',
  '{"echo":"__proto__"}', '{"echo":"constructor","retcode":0}', '{"echo":"__defineGetter__"}', '{"echo":"toString"}', '{"echo":["__proto__"]}',
  '{"echo":{"toString":1}}', '{"echo":null}', '{"echo":"relay-1"}', '{"status":"failed","retcode":1403,"message":"token验证失败","echo":null}',
  '{"post_type":null}', '{"post_type":5}', '{"post_type":"message"}', '{"post_type":"message","message_id":1}',
  '{"post_type":"message","message_id":1,"message":[null],"sender":{"user_id":1}}',
  '{"post_type":"message","message_id":1,"message":[{"type":"text"}],"sender":{"user_id":1}}',
  '{"post_type":"message","message_id":1,"message":"a","sender":null}', '{"post_type":"message_sent","message_id":1,"message":"a","sender":{}}',
]

/** Loads the guard; what it logs is among the app's logs. */
function addGuard({ app, logger }: TestApp): ForkScope {
  return app.plugin({ name: 'guard', inject: ['server'], apply: (ctx: Context) => guardConnections(ctx, logger, () => undefined) })
}

/** The lines about frames that were dropped. */
function droppedOf(logs: readonly string[]): string[] {
  return logs.filter(line => line.includes('not OneBot 11'))
}

describe('frames that are no OneBot 11', { concurrency: 4 }, () => {
  test('are dropped from the first one on, with one line in the log, and the relay sends', async t => {
    const relay = await relayFor(t, { simulator: { firstFrames: frames } })
    for (const frame of frames) relay.simulator.transmit(frame)
    const { status, body } = await relay.send({ group_id: '123456', msg: 'a' })
    assert.equal(status, 200, body.msg)
    assert.equal(relay.simulator.ledger.length, 1)
    // Of this relay: other tests run beside it, and the targets of the logger are of the process.
    assert.deepEqual(droppedOf(relay.logs).filter(line => line.startsWith('message-relay ')), [
      'message-relay warn the bot onebot:10000 sent a frame that is not OneBot 11, which was dropped: it is not a JSON object',
    ])
    assert(!relay.logs.some(line => line.includes('cannot parse message')))
  })

  test('are dropped over a reverse connection as well', async t => {
    const started = await startApp(t)
    addGuard(started)
    addReverse(started.app)
    const simulator = await startSimulator(t, { firstFrames: frames, reverse: { url: `ws://${started.host}/onebot`, redialInterval: 100 } })
    const bot = botOf(started.app)
    await untilStatus(bot, Universal.Status.ONLINE)
    for (const frame of frames) simulator.transmit(frame)
    await untilSends(bot, simulator, 'a')
    assert.equal(simulator.connections, 1)
    assert.equal(droppedOf(started.logs).length, 1)
  })

  for (const mode of ['forward', 'reverse'] as const) {
    test(`are dropped over a ${mode} connection that was there before, and after the plugin is unloaded`, async t => {
      const pair = await startPair(t, mode)
      const guard = addGuard(pair)
      const shake = async (text: string): Promise<void> => {
        for (const frame of frames) pair.simulator.transmit(frame)
        await untilSends(pair.bot, pair.simulator, text)
      }
      await shake('loaded')
      assert.equal(droppedOf(pair.logs).length, 1)
      guard.dispose()
      await shake('unloaded')
      assert.equal(pair.simulator.connections, 1)
    })
  }
})

describe('on the server that the bot shares', { concurrency: 4 }, () => {
  test('a OneBot that does not say whose it is is turned away', async t => {
    const started = await startApp(t)
    addGuard(started)
    addReverse(started.app)
    const socket = new WebSocket(`ws://${started.host}/onebot`, { headers: { 'X-Client-Role': 'Universal' } })
    const closed: unknown[] = await once(socket, 'close')
    assert.equal(closed[0], 1008)
  })

  for (const path of ['/onebot', '/nowhere']) {
    test(`a malformed WebSocket frame at ${path} closes the connection, and no more`, async t => {
      const started = await startApp(t)
      addGuard(started)
      addReverse(started.app)
      const status = await sendMalformed(t, started.host, path)
      assert.match(status, /^HTTP\/1\.1 101 /)
      const simulator = await startSimulator(t, { reverse: { url: `ws://${started.host}/onebot`, redialInterval: 100 } })
      await untilSends(botOf(started.app), simulator, 'a')
    })
  }

  test('nothing is left behind when the plugin is unloaded', async t => {
    const started = await startApp(t)
    const { _ws: server } = started.app.server
    const before = server.listeners('connection')
    const guard = addGuard(started)
    assert.equal(server.listeners('connection').length, before.length + 1)
    guard.dispose()
    assert.deepEqual(server.listeners('connection'), before)
  })
})

/** Opens a WebSocket as a OneBot, sends a frame that no WebSocket may send, and waits for the end. Gives what came back, as text. */
async function sendMalformed(t: TestContext, host: string, path: string): Promise<string> {
  const { hostname, port } = new URL(`http://${host}`)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())
  let received = ''
  socket.on('data', (data: Buffer) => {
    received += data.toString('latin1')
  })
  socket.on('error', () => undefined)
  socket.write([
    `GET ${path} HTTP/1.1`, `Host: ${host}`, 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', 'X-Client-Role: Universal', 'X-Self-ID: 10000', '', '',
  ].join('\r\n'))
  await until('it is a WebSocket', () => received.includes('\r\n\r\n'))
  const closed = once(socket, 'close')
  // All three reserved bits set.
  socket.write(Buffer.from([0xf1, 0x80, 0, 0, 0, 0]))
  await closed
  return received
}
