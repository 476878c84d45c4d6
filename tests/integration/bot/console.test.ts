import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { freePort } from '../../support/process'
import { until } from '../../support/until'
import { Checkout, isTaken, type StartedBot } from './support'

let checkout: Checkout
/** One with a console, and the port of that. */
let bot: StartedBot
let port: number

before(async () => {
  checkout = await Checkout.create()
  const started = await start()
  bot = started.bot
  port = started.port
})
after(() => checkout.remove())

/** Starts a bot with a console; gives the port of that. */
async function start(env: Record<string, string> = {}): Promise<{ bot: StartedBot, port: number }> {
  const bot = await checkout.start({ CONSOLE_PORT: String(await freePort()), ...env })
  const [, port] = await bot.line(/the page of the relay: http:\/\/127\.0\.0\.1:(\d+)\/message-relay$/m)
  await bot.ready()
  return { bot, port: Number(port) }
}

/** The status of a GET with these headers, and the body. */
async function get(port: number, path: string, headers: Record<string, string> = {}): Promise<{ status: number, text: string }> {
  const outgoing = request({ host: '127.0.0.1', port, path, headers, agent: false }).end()
  const [incoming] = await once(outgoing, 'response') as [import('node:http').IncomingMessage]
  let text = ''
  for await (const chunk of incoming) text += String(chunk)
  return { status: incoming.statusCode ?? 0, text }
}

/** 101 where a WebSocket is opened, otherwise the status of the refusal. */
async function upgrade(port: number, headers: Record<string, string>): Promise<number> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/status`, { headers })
  return new Promise(resolve => {
    socket.once('open', () => {
      socket.terminate()
      resolve(101)
    })
    socket.once('unexpected-response', (_request, response) => {
      socket.terminate()
      resolve(response.statusCode ?? 0)
    })
    socket.on('error', () => undefined)
  })
}

describe('the console', () => {
  test('is on a port of its own, whose address the log names, and not on that of the callers', async () => {
    const { status, text } = await get(port, '/message-relay')
    assert.equal(status, 200)
    assert.match(text, /KOISHI_CONFIG/)
    assert.equal((await fetch(`${bot.url}/message-relay`)).status, 404)
    const socket = new WebSocket(`${bot.url.replace('http', 'ws')}/status`)
    socket.on('error', () => undefined)
    await once(socket, 'close')
  })

  test('ends no bot at a frame that is malformed', async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write(['GET /status HTTP/1.1', `Host: 127.0.0.1:${port}`, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', '', ''].join('\r\n'))
    await once(socket, 'data')
    socket.on('error', () => undefined).end(Buffer.from('ffff0000', 'hex'))
    await once(socket.resume(), 'close')
    assert.equal((await get(port, '/message-relay')).status, 200)
  })

  test('serves the page of the relay', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/status`)
    const files = await new Promise<string[]>(resolve => {
      socket.on('message', (data: Buffer) => {
        const found = /\/@plugin-[a-z0-9]+\/(?:index\.js|style\.css)/g
        if (data.includes('"entry"')) resolve(data.toString().match(found) ?? [])
      })
    })
    socket.terminate()
    assert(files.length > 0)
    for (const file of files) assert.equal((await get(port, file)).status, 200, file)
    const { text } = await get(port, files.find(file => file.endsWith('.js')) ?? '')
    assert.match(text, /from"\.\.\/vue\.js"/)
  })

  test('answers only requests that were meant for it', async () => {
    const right = [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]
    const wrong = ['127.0.0.1', `127.0.0.1:${port + 1}`, `example.com:${port}`, `localhost.example.com:${port}`, `10.0.0.1:${port}`, 'null']
    for (const host of right) {
      assert.equal((await get(port, '/', { host })).status, 200, host)
      assert.equal(await upgrade(port, { host }), 101, host)
      assert.equal(await upgrade(port, { host, origin: `http://${host}` }), 101, host)
    }
    for (const host of wrong) {
      assert.equal((await get(port, '/', { host })).status, 403, host)
      assert.equal(await upgrade(port, { host, origin: `http://${host}` }), 403, host)
    }
    const host = `127.0.0.1:${port}`
    for (const origin of ['http://example.com', `http://localhost:${port}`, `https://${host}`, `http://${host}.example.com`, 'null', '']) {
      assert.equal((await get(port, '/', { host, origin })).status, 403, origin)
      assert.equal(await upgrade(port, { host, origin }), 403, origin)
    }
  })

  test('takes the next port where its own is taken, and says so', async () => {
    const taken = createServer()
    const busy = await freePort()
    await once(taken.listen(busy, '127.0.0.1'), 'listening')
    try {
      const other = await start({ CONSOLE_PORT: String(busy) })
      assert(other.port > busy)
      assert.match(other.bot.log, new RegExp(`\\[W\\] console port ${busy} is taken: the console takes ${other.port}; set CONSOLE_PORT`))
    } finally {
      taken.close()
    }
  })

  test('is left out where its address does not exist, and the bot goes on', async () => {
    const next = await checkout.start({ CONSOLE_HOST: '203.0.113.1' })
    await next.ready()
    const why = 'it cannot listen on 203.0.113.1:5140 (EADDRNOTAVAIL); set CONSOLE_HOST'
    await until('the log says why', () => next.log.includes(`[W] console there is no console: ${why}`))
  })

  test('ends with the bot, also while somebody is connected', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/status`)
    await once(socket, 'open')
    socket.on('error', () => undefined)
    assert(await bot.end('SIGTERM') < 5_000)
    assert.equal(await isTaken(String(port)), false)
    assert(!bot.log.includes('    at '), bot.log)
  })
})
