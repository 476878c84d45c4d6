import { createServer, type RequestListener } from 'node:http'
import type { TestContext } from 'node:test'
import type { SimulatorOptions } from '../../../simulator'
import type { Config } from '../../../src'
import { listen } from '../../support/listen'
import { startRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

export const group = '123456'
export const user = '10001'

/** Where commands are posted to. */
export interface Endpoint {
  url: string
  /** How many connections there were at most at a time. */
  mostConnections: () => number
}

/** Serves a callback until the test ends. */
export async function serveCallback(t: TestContext, listener: RequestListener): Promise<Endpoint> {
  let connections = 0
  let most = 0
  const server = createServer(listener)
  server.on('connection', socket => {
    most = Math.max(most, ++connections)
    socket.on('close', () => connections--)
  })
  const port = await listen(server)
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${port}/`, mostConnections: () => most }
}

/** A relay with this callback, and the texts that went on to the other middlewares, as they do when nothing was replied. */
export async function startWith(
  t: TestContext, { url }: Pick<Endpoint, 'url'>, config: Config, simulator: SimulatorOptions = {},
): Promise<{ relay: TestRelay, passed: string[] }> {
  const passed: string[] = []
  const relay = await startRelay({
    simulator,
    config: Object.assign({ commandCallbackUrl: url }, config),
    setup: app => {
      app.middleware((session, next) => {
        passed.push(session.content ?? '')
        return next()
      })
    },
  })
  t.after(() => relay.stop())
  return { relay, passed }
}

/** What the bot replied, after a member has said something and Koishi is done with it. */
export async function say(
  { simulator }: TestRelay, passed: string[], text: string, from: { group?: string, user?: string } = {},
): Promise<string | undefined> {
  const [count, sent] = [passed.length, simulator.ledger.length]
  simulator.say({ group, user, ...from, text })
  await until('it is handled', () => passed.length > count || simulator.ledger.length > sent)
  return simulator.ledger.slice(sent)[0]?.text
}
