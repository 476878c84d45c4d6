// Frames that adapter-onebot cannot read make it throw where nothing catches the error: `koishi start` ends the process for the first two.
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const { Context, HTTP } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default
const Server = require('@koishijs/plugin-server').default
const { WebSocket } = require('ws')

const frames = [
  'null',
  '{"echo":"__proto__"}',
  '{"post_type":"message","message_type":"private","self_id":1,"message":"no ID and no sender"}',
]

async function main() {
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(Server, { host: '127.0.0.1' })
  app.plugin(OneBot, { selfId: '1', protocol: 'ws-reverse', path: '/onebot', responseTimeout: 60_000, advanced: {} })
  await app.start()
  app.server._http.listen(0, '127.0.0.1')
  await once(app.server._http, 'listening')
  const errors = []
  process.on('uncaughtException', error => errors.push(`uncaught ${error}`))
  process.on('unhandledRejection', error => errors.push(`unhandled ${error}`))
  for (const frame of frames) {
    const socket = new WebSocket(`ws://127.0.0.1:${app.server._http.address().port}/onebot`, {
      headers: { 'X-Self-ID': '1', 'X-Client-Role': 'Universal' },
    })
    await once(socket, 'message')
    socket.send(frame)
    for (let n = 0, { length } = errors; n < 50 && errors.length === length; n++) await delay(10)
    socket.terminate()
  }
  if (errors.length > 0) end(0, `reproduced: ${errors.join('; ')}`)
  end(1, 'mended: no frame led to an error')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
