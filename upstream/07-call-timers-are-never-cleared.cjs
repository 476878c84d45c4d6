// Adapter-onebot keeps the timer of a call, and with it the parameters, until the response timeout, although the answer has come.
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')

const responseTimeout = 54_321
const timers = new Set()
const { setTimeout: start, clearTimeout: clear } = globalThis
globalThis.setTimeout = (...args) => {
  const timer = start(...args)
  if (args[1] === responseTimeout) timers.add(timer)
  return timer
}
globalThis.clearTimeout = timer => {
  timers.delete(timer)
  clear(timer)
}
const { Context, HTTP } = require('koishi')
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
    responseTimeout, advanced: {},
  })
  await app.start()
  while (!app.bots[0].internal._request) await delay(5)
  await app.bots[0].internal.getLoginInfo()
  await delay(50)
  if (timers.size === 0) end(1, 'mended: no timer is left after the answers')
  end(0, `reproduced: ${timers.size} timers of answered calls are left`)
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
