// A WebSocket without the header X-Self-ID makes adapter-onebot throw where nothing catches the error: `koishi start` ends the process.
const { once } = require('node:events')
const { Context, HTTP } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default
const Server = require('@koishijs/plugin-server').default
const { WebSocket } = require('ws')

async function main() {
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(Server, { host: '127.0.0.1' })
  app.plugin(OneBot, { selfId: '1', protocol: 'ws-reverse', path: '/onebot', responseTimeout: 10, advanced: {} })
  await app.start()
  app.server._http.listen(0, '127.0.0.1')
  await once(app.server._http, 'listening')
  process.on('uncaughtException', error => end(0, `reproduced: uncaught ${error}`))
  const socket = new WebSocket(`ws://127.0.0.1:${app.server._http.address().port}/onebot`, { headers: { 'X-Client-Role': 'Universal' } })
  await once(socket, 'close')
  end(1, 'mended: the adapter closed the connection')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
