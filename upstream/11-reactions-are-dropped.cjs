// Notices that adapter-onebot has no session for, such as reactions to a message, reach no plugin in any form.
const { once } = require('node:events')
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
  const socket = new WebSocket(`ws://127.0.0.1:${app.server._http.address().port}/onebot`, {
    headers: { 'X-Self-ID': '1', 'X-Client-Role': 'Universal' },
  })
  await once(socket, 'message')
  const heard = []
  app.on('internal/session', ({ type, onebot }) => {
    heard.push(onebot?.notice_type)
    if (type === 'friend-added') report(heard)
  })
  const notice = { post_type: 'notice', self_id: 1, time: 1, user_id: 2 }
  socket.send(JSON.stringify({ ...notice, notice_type: 'group_msg_emoji_like', group_id: 3, message_id: 4, likes: [{ emoji_id: '76', count: 1 }] }))
  socket.send(JSON.stringify({ ...notice, notice_type: 'friend_add' }))
}

function report(heard) {
  if (heard.includes('group_msg_emoji_like')) end(1, 'mended: the reaction reached plugins')
  end(0, 'reproduced: a reaction and a new friend came in, and plugins heard only of the friend')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
