// A login that ends after its connection has closed marks the bot online: the failure of its second call counts as a success.
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
  app.plugin(OneBot, { selfId: '1', protocol: 'ws-reverse', path: '/onebot', responseTimeout: 300, advanced: {} })
  await app.start()
  app.server._http.listen(0, '127.0.0.1')
  await once(app.server._http, 'listening')
  const socket = new WebSocket(`ws://127.0.0.1:${app.server._http.address().port}/onebot`, {
    headers: { 'X-Self-ID': '1', 'X-Client-Role': 'Universal' },
  })
  // Answers the first call of the login, get_login_info, and leaves before it answers the second, get_guild_service_profile.
  const [data] = await once(socket, 'message')
  socket.send(JSON.stringify({ status: 'ok', retcode: 0, data: { user_id: 1, nickname: 'bot' }, echo: JSON.parse(data).echo }))
  socket.close()
  await once(socket, 'close')
  for (let n = 0; n < 100 && !app.bots[0].isActive; n++) await delay(10)
  const { isActive, internal } = app.bots[0]
  if (isActive && !internal._request) end(0, 'reproduced: the bot is online without a connection')
  end(1, 'mended: the bot without a connection is not online')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
