// A relay in its own process, for tests that kill it. It sends its address to the parent, and reports reloads.
import { Context, HTTP, Logger } from 'koishi'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import { once } from 'node:events'
import { join } from 'node:path'
import * as relay from '../../src'
import { loadAdapter } from '../support/adapter'
import type { Order, ProcessOptions } from './process'

function shortenWaits(times: number): void {
  const { setTimeout: wait } = globalThis
  const hasty = (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): NodeJS.Timeout => {
    return wait(callback, ms < 60_000 ? ms : ms / times, ...args)
  }
  Reflect.set(globalThis, 'setTimeout', Object.assign(hasty, { __promisify__: wait.__promisify__ }))
}

async function start({ config, apiKey, platform, folder, haste, mqtt }: ProcessOptions): Promise<void> {
  Logger.levels.base = Logger.SILENT
  if (haste !== undefined) shortenWaits(haste)
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(proxyAgent)
  app.plugin(Server, { host: '127.0.0.1', port: 0 })
  if ('adapter' in platform) {
    app.plugin(loadAdapter(platform.adapter.name), platform.adapter.config)
  } else {
    app.plugin<OneBotBot.Config>(OneBotBot, {
      protocol: 'ws', retryTimes: 6, retryInterval: 5_000, retryLazy: 60_000, responseTimeout: 2_000, proxyAgent: '', ...platform,
    })
  }
  const settings = Object.assign({ apiKey, uploadDir: join(folder, 'uploads'), dataDir: join(folder, 'data') }, config)
  let fork = app.plugin(relay, settings)
  if (mqtt) app.plugin(await import('../../plugins/mqtt/src'), mqtt)
  process.on('message', (order: Order) => {
    fork.dispose()
    const load = (): void => {
      fork = app.plugin(relay, settings)
      void app.lifecycle.flush().then(() => process.send?.('reloaded'))
    }
    if (order.after > 0) setTimeout(load, order.after)
    else load()
  })
  process.on('SIGTERM', () => {
    void app.parallel('exit', 'SIGTERM').finally(() => process.exit())
  })
  process.on('disconnect', () => process.exit())
  // Adapters do not handle the failures of their logins.
  process.on('unhandledRejection', () => undefined)
  await app.start()
  const { _http: server } = app.server
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address === 'object') process.send?.(`http://127.0.0.1:${address?.port ?? 0}`)
}

void start(JSON.parse(process.argv[2] ?? '') as ProcessOptions)
