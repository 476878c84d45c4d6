// After a failed login, a Telegram bot stays "connecting" for ever: adapter-telegram does not handle the rejection of
// `initialize`.
const { once } = require('node:events')
const { createServer } = require('node:http')
const { setTimeout: delay } = require('node:timers/promises')
const { Context, HTTP, Universal } = require('koishi')
const Telegram = require('@satorijs/adapter-telegram').default

async function main() {
  const http = createServer((request, response) => {
    response.writeHead(401, { 'Content-Type': 'application/json' }).end('{"ok":false,"error_code":401,"description":"Unauthorized"}')
  }).listen(0, '127.0.0.1')
  await once(http, 'listening')
  const rejected = once(process, 'unhandledRejection')
  const endpoint = `http://127.0.0.1:${http.address().port}`
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(Telegram, {
    token: '1:example', protocol: 'polling', endpoint, files: { endpoint }, pollingTimeout: 1_000, retryTimes: 0, retryInterval: 10,
    slash: false,
  })
  await app.start()
  const bot = app.bots.find(({ platform }) => platform === 'telegram')
  const failed = (async () => {
    while (bot.status === Universal.Status.CONNECT) await delay(10)
  })()
  await Promise.race([rejected, failed])
  await delay(200)
  if (bot.status === Universal.Status.CONNECT) end(0, 'reproduced: the rejection is unhandled, and the status is still CONNECT')
  end(1, `mended: the status is ${Universal.Status[bot.status] ?? bot.status}`)
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
