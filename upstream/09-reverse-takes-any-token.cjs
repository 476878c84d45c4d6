// A reverse connection needs no access token, although the bot's configuration has one: whoever reaches the port can be the bot.
const { once } = require('node:events')
const { Context, HTTP } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default
const Server = require('@koishijs/plugin-server').default
const { WebSocket } = require('ws')

async function main() {
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(Server, { host: '127.0.0.1' })
  app.plugin(OneBot, { selfId: '1', token: 'secret', protocol: 'ws-reverse', path: '/onebot', responseTimeout: 60_000, advanced: {} })
  await app.start()
  app.server._http.listen(0, '127.0.0.1')
  await once(app.server._http, 'listening')
  const socket = new WebSocket(`ws://127.0.0.1:${app.server._http.address().port}/onebot`, {
    headers: { 'X-Self-ID': '1', 'X-Client-Role': 'Universal' },
  })
  socket.on('message', data => end(0, `reproduced: without a token, the adapter sent ${data}`))
  socket.on('error', error => end(1, `mended: ${error.message}`))
  socket.on('close', code => end(1, `mended: closed with ${code}`))
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
