// A bot that is stopped while it dials comes online all the same: `Adapter.WsClient` closes only a socket that is open already.
const { once } = require('node:events')
const { createServer } = require('node:http')
const { setTimeout: delay } = require('node:timers/promises')
const { Adapter, Bot, Context, HTTP } = require('koishi')
const { WebSocketServer } = require('ws')

class Client extends Adapter.WsClient {
  prepare() {
    return this.ctx.http.ws(this.bot.config.endpoint)
  }

  accept() {
    this.bot.online()
  }
}

async function main() {
  const http = createServer().listen(0, '127.0.0.1')
  await once(http, 'listening')
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(class extends Bot {
    constructor(ctx, config) {
      super(ctx, config, 'example')
      ctx.plugin(Client, this)
    }
  }, { selfId: '1', endpoint: `ws://127.0.0.1:${http.address().port}`, retryTimes: 0, retryInterval: 10, retryLazy: 10 })
  const dialled = once(http, 'upgrade')
  await app.start()
  const [request, socket, head] = await dialled
  const [bot] = app.bots
  await bot.stop()
  const server = new WebSocketServer({ noServer: true })
  server.handleUpgrade(request, socket, head, () => undefined)
  for (let n = 0; n < 100 && !bot.isActive; n++) await delay(10)
  if (bot.isActive) end(0, 'reproduced: the bot came online after it had been stopped')
  end(1, 'mended: the stopped bot did not come online within 1 s')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
