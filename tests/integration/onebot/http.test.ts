import { OneBotBot } from '@koishijs/plugin-adapter-onebot'
import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { test } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { listen } from '../../support/listen'
import { until } from '../../support/until'
import { relayWith } from '../deliveries/support'

const selfId = '20000'

/** What the platform does with a call to send, by its group. */
const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  1: response => response.end('{"status":"ok","retcode":0,"data":{"message_id":1}}'),
  // A connection that is closed, and answers that are no JSON, end early, and are no HTTP.
  2: response => response.destroy(),
  3: response => response.end('{"status":'),
  4: response => {
    response.setHeader('content-length', 100).write('{"status":"ok"')
    setTimeout(() => response.destroy(), 20)
  },
  5: response => response.socket?.end('nonsense\r\n\r\n'),
}

test('a bot whose calls are HTTP requests sends, may have sent what got no clear answer, and nothing where it cannot connect', async t => {
  const called: string[] = []
  const server = createServer((request, response) => {
    void json(request).then(body => {
      response.setHeader('content-type', 'application/json')
      const group = String(fieldsOf(body).group_id)
      const login = { status: 'ok', retcode: 0, data: { user_id: Number(selfId), nickname: 'bot' } }
      if (request.url === '/get_login_info') response.end(JSON.stringify(login))
      else if (request.url === '/send_group_msg') answers[group]?.(response)
      else response.end('{"status":"failed","retcode":1404,"data":null}')
      if (request.url === '/send_group_msg') called.push(group)
    })
  })
  const port = await listen(server)
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await once(server.close(), 'close')
  }
  t.after(close)
  const relay = await relayWith(t, { config: { chatApiTimeout: 1, chatApiMaxRetries: 2, chatRetryUnanswered: false } })
  const fork = relay.app.plugin<OneBotBot.Config>(OneBotBot, { protocol: 'http', selfId, endpoint: `http://127.0.0.1:${port}`, token: '', proxyAgent: '' })
  t.after(() => fork.dispose())
  await until('it is online', () => relay.app.bots.some(bot => bot.selfId === selfId && bot.status === Universal.Status.ONLINE))
  const send = async (group: string): Promise<string | null> => {
    return (await relay.post({ group_id: group, msg: 'hello', self_id: selfId })).headers.get('relay-outcome')
  }
  assert.deepEqual(await Promise.all(Object.keys(answers).map(send)), ['sent', 'unanswered', 'unanswered', 'unanswered', 'unanswered'])
  assert.deepEqual(called.sort(), Object.keys(answers))
  await close()
  assert.equal(await send('6'), 'unsent')
})
