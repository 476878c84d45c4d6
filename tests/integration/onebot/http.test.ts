import { OneBotBot } from '@koishijs/plugin-adapter-onebot'
import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { describe, test, type TestContext } from 'node:test'
import { listen } from '../../support/listen'
import { until } from '../../support/until'
import { group, relayWith, type StoredRelay } from '../deliveries/support'

const selfId = '20000'

/** A relay with a bot that calls its platform over HTTP, and what answers its calls to send. */
interface Stage {
  relay: StoredRelay
  /** How many calls to send there were. */
  calls: () => number
  /** Stops the platform. */
  close: () => Promise<void>
}

async function startHttp(t: TestContext, answer: (response: ServerResponse) => void): Promise<Stage> {
  let calls = 0
  const server = createServer((request, response) => {
    request.resume()
    if (request.url === '/send_group_msg') {
      calls++
      answer(response)
      return
    }
    const data = request.url === '/get_login_info' ? { user_id: Number(selfId), nickname: 'bot' } : null
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(data ? { status: 'ok', retcode: 0, data } : { status: 'failed', retcode: 1404, data }))
  })
  const port = await listen(server)
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await once(server.close(), 'close')
  }
  t.after(close)
  const relay = await relayWith(t, { path: null, config: { chatApiTimeout: 1, chatApiMaxRetries: 2, chatRetryUnanswered: false } })
  const fork = relay.app.plugin<OneBotBot.Config>(OneBotBot, { protocol: 'http', selfId, endpoint: `http://127.0.0.1:${port}`, token: '', proxyAgent: '' })
  t.after(() => fork.dispose())
  await until('it is online', () => relay.app.bots.some(bot => bot.selfId === selfId && bot.status === Universal.Status.ONLINE))
  return { relay, close, calls: () => calls }
}

/** @returns the outcome that is told */
async function send(relay: StoredRelay): Promise<string | null> {
  return (await relay.post({ group_id: group, msg: 'hello', self_id: selfId })).headers.get('relay-outcome')
}

describe('a bot whose calls are HTTP requests', () => {
  test('sends', async t => {
    const { relay, calls } = await startHttp(t, response => {
      response.setHeader('content-type', 'application/json').end('{"status":"ok","retcode":0,"data":{"message_id":1}}')
    })
    assert.equal(await send(relay), 'sent')
    assert.equal(calls(), 1)
  })

  const broken: [what: string, answer: (response: ServerResponse) => void][] = [
    ['a connection that is closed', response => response.destroy()],
    ['an answer that is no JSON', response => response.setHeader('content-type', 'application/json').end('{"status":')],
    ['an answer that ends early', response => {
      response.setHeader('content-type', 'application/json').setHeader('content-length', 100).write('{"status":"ok"')
      setTimeout(() => response.destroy(), 20)
    }],
    ['an answer that is no HTTP', response => response.socket?.end('nonsense\r\n\r\n')],
  ]
  for (const [what, answer] of broken) {
    test(`may have sent what it got no answer to: ${what}`, async t => {
      const { relay, calls } = await startHttp(t, answer)
      assert.equal(await send(relay), 'unanswered')
      assert.equal(calls(), 1)
    })
  }

  test('sends nothing where its platform takes no connections', async t => {
    const { relay, calls, close } = await startHttp(t, response => response.destroy())
    await close()
    assert.equal(await send(relay), 'unsent')
    assert.equal(calls(), 0)
  })
})
