// A malformed frame from any client, on any path, is an uncaught exception: the server's WebSockets have no listener for errors.
const { once } = require('node:events')
const { Context } = require('koishi')
const Server = require('@koishijs/plugin-server').default
const { WebSocket } = require('ws')

async function main() {
  const app = new Context()
  app.plugin(Server, { host: '127.0.0.1' })
  app.inject(['server'], ({ server }) => server.ws('/example', () => undefined))
  await app.start()
  app.server._http.listen(0, '127.0.0.1')
  await once(app.server._http, 'listening')
  process.on('uncaughtException', error => end(0, `reproduced: uncaught ${error}`))
  const socket = new WebSocket(`ws://127.0.0.1:${app.server._http.address().port}/example`)
  await once(socket, 'open')
  // A frame with reserved bits.
  socket._socket.write(Buffer.from([0xff, 0x00]))
  await once(socket, 'close')
  end(1, 'mended: the server closed the connection')
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
