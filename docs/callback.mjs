import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

const secret = process.env.COMMAND_CALLBACK_SECRET ?? ''
const webhook = secret === '' ? null : secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(Buffer.from(secret), { format: 'raw' })

function answer({ command, content, user_id }) {
  if (command === 'ping') return { reply: `pong ${content}` }
  if (command === 'whoi') return { messages: [{ type: 'text', msg: `You are ${user_id}` }] }
  return {}
}

function isGenuine(body, headers) {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
  try {
    webhook?.verify(body, Object.fromEntries(names.map(name => [name, String(headers[name] ?? '')])))
    return true
  } catch {
    return false
  }
}

createServer((request, response) => {
  text(request).then(body => {
    if (isGenuine(body, request.headers)) response.end(JSON.stringify(answer(JSON.parse(body))))
    else response.writeHead(401).end()
  }).catch(() => response.writeHead(400).end())
}).listen(3000, '127.0.0.1')
