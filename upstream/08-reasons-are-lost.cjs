// The error of a call that the platform refuses has the code of the answer, but not its words, which alone tell why.
const { setTimeout: delay } = require('node:timers/promises')
const { Context, HTTP } = require('koishi')
const OneBot = require('@koishijs/plugin-adapter-onebot').default
const { WebSocketServer } = require('ws')
const { once } = require('node:events')

async function main() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  server.on('connection', socket => socket.on('message', data => {
    const { action, echo } = JSON.parse(data)
    const answer = action === 'send_group_msg'
      ? { status: 'failed', retcode: 1200, data: null, message: 'result 120', wording: 'muted' }
      : { status: 'ok', retcode: 0, data: { user_id: 1 } }
    socket.send(JSON.stringify({ ...answer, echo }))
  }))
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(OneBot, {
    selfId: '1', protocol: 'ws', endpoint: `ws://127.0.0.1:${server.address().port}`, retryTimes: 6, retryInterval: 10, retryLazy: 10,
    responseTimeout: 60_000, advanced: {},
  })
  await app.start()
  const [bot] = app.bots
  while (!bot.internal._request) await delay(5)
  const error = await bot.internal.sendGroupMsg('2', 'hello').catch(error => error)
  const fields = Object.getOwnPropertyNames(error).map(name => JSON.stringify(error[name]))
  if (fields.some(value => /muted|result 120/.test(value))) end(1, 'mended: the error has the words of the answer')
  end(0, `reproduced: ${error.message}`)
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
