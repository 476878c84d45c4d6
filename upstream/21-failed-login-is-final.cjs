// After a failed login, adapter-onebot neither closes the connection nor logs in again: the bot stays offline until somebody starts it.
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const { Context, HTTP } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default
const { WebSocketServer } = require('ws')

async function main() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  let logins = 0
  let closed = 0
  server.on('connection', socket => {
    socket.on('message', data => {
      const { action, echo } = JSON.parse(data)
      if (action === 'get_login_info') logins++
      // As while QQ is still starting.
      socket.send(JSON.stringify({ status: 'failed', retcode: 1200, data: null, wording: 'not logged in yet', echo }))
    })
    socket.on('close', () => closed++)
  })
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(OneBot, {
    selfId: '1', protocol: 'ws', endpoint: `ws://127.0.0.1:${server.address().port}`, retryTimes: 6, retryInterval: 10, retryLazy: 10,
    responseTimeout: 60_000, advanced: {},
  })
  await app.start()
  const [bot] = app.bots
  while (!bot.error && logins < 2) await delay(5)
  for (let n = 0; n < 100 && logins + closed < 2; n++) await delay(10)
  if (logins + closed > 1) end(1, 'mended: the adapter closed the connection, or logged in again')
  end(0, `reproduced: after "${bot.error.message}", the connection is open, and no second login came within 1 s`)
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
