// After the other side closes a forward connection, adapter-onebot marks the bot offline, which
// ends the reconnection of `Adapter.WsClient`.
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const { Context, HTTP, Universal } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default
const { WebSocketServer } = require('ws')

async function main() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  server.on('connection', socket => socket.on('message', data => {
    socket.send(JSON.stringify({ status: 'ok', retcode: 0, data: { user_id: 1 }, echo: JSON.parse(data).echo }))
  }))
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(OneBot, {
    selfId: '1', protocol: 'ws', endpoint: `ws://127.0.0.1:${server.address().port}`, retryTimes: 6, retryInterval: 10, retryLazy: 10,
    responseTimeout: 60_000, advanced: {},
  })
  const dialled = once(server, 'connection')
  await app.start()
  const [socket] = await dialled
  while (app.bots[0].status !== Universal.Status.ONLINE) await delay(5)
  const again = once(server, 'connection').then(() => true)
  socket.close()
  const hasDialled = await Promise.race([again, delay(1_000, false)])
  const { status } = app.bots[0]
  if (hasDialled) end(1, 'mended: the adapter dialled again')
  end(0, `reproduced: no second dial within 1 s at retryInterval 10 ms, status ${Universal.Status[status] ?? status}`)
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
