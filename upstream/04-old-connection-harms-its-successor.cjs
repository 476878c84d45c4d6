// A reverse connection that closes after its successor has opened takes away the successor's function for calls, and marks the bot offline.
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const { Context, HTTP } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default
const Server = require('@koishijs/plugin-server').default
const { WebSocket } = require('ws')

async function main() {
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(Server, { host: '127.0.0.1' })
  app.plugin(OneBot, { selfId: '1', protocol: 'ws-reverse', path: '/onebot', responseTimeout: 60_000, advanced: {} })
  await app.start()
  app.server._http.listen(0, '127.0.0.1')
  await once(app.server._http, 'listening')
  const [bot] = app.bots

  const connect = async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${app.server._http.address().port}/onebot`, {
      headers: { 'X-Self-ID': '1', 'X-Client-Role': 'Universal' },
    })
    // The first call of the adapter shows that it has accepted the connection.
    await once(socket, 'message')
    return socket
  }
  const first = await connect()
  await connect()
  const closed = once([...app.server._ws.clients][0], 'close')
  first.close()
  await closed
  await delay(50)
  if (bot.internal._request) end(1, 'mended: the second connection still makes calls')
  end(0, 'reproduced: the second connection is open, and bot.internal._request is gone')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
