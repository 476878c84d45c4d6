// While `Adapter.WsClient` dials again, the bot does not say why the last dial failed: a wrong access token looks like a
// server that is down.
const { once } = require('node:events')
const { createServer } = require('node:http')
const { setTimeout: delay } = require('node:timers/promises')
const { Context, HTTP, Universal } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default

async function main() {
  const http = createServer().listen(0, '127.0.0.1')
  await once(http, 'listening')
  http.on('upgrade', (request, socket) => socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n'))
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(OneBot, {
    selfId: '1', protocol: 'ws', endpoint: `ws://127.0.0.1:${http.address().port}`, retryTimes: 6, retryInterval: 60_000, retryLazy: 60_000,
    responseTimeout: 10, advanced: {},
  })
  await app.start()
  const [bot] = app.bots
  while (bot.status === Universal.Status.CONNECT) await delay(5)
  await delay(50)
  if (bot.error) end(1, `mended: bot.error says "${bot.error.message}"`)
  end(0, 'reproduced: the server answered 401, and bot.error is undefined')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
