import { Context, HTTP, Logger, Universal } from 'koishi'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import * as relay from '../../../src'
import { watchAnswers } from '../../support/openapi'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'
import { TestDriver } from './driver'
import type { SharedOptions } from './options'

/** A relay in a Koishi app of its own, with a database. */
export interface SharedRelay {
  app: Context
  /** Address without a slash at its end. */
  url: string
  stop: () => void
}

Logger.levels.base = Logger.SILENT

/** Starts one in this process; resolves when its tables are there and it listens. */
export async function startShared(options: SharedOptions): Promise<SharedRelay> {
  const { access, folder, endpoint, timeout = 2, settle = 0.001, online = true } = options
  const app = new Context()
  watchAnswers(app)
  const forks = [
    app.plugin(HTTP),
    app.plugin(proxyAgent),
    app.plugin(Server, { host: '127.0.0.1', port: 0 }),
    app.plugin<OneBotBot.Config>(OneBotBot, {
      protocol: 'ws', retryTimes: 6, retryInterval: 1_000, retryLazy: 60_000, proxyAgent: '', endpoint, selfId: '10000',
      // The adapter never clears its timers: a process does not end by itself before the last of them.
      responseTimeout: timeout * 1000,
    }),
    app.plugin(TestDriver, access),
    app.plugin(relay, {
      apiKey, uploadDir: join(folder, 'uploads'), dataDir: join(folder, 'data'), chatApiTimeout: timeout, chatSettleTime: settle,
    }),
  ]
  await app.start()
  const { _http: server } = app.server
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  await until('the tables are there', () => app.get('database') !== undefined && 'message_relay_lease' in app.model.tables)
  await app.model.prepared()
  if (online) await until('the bot is online', () => app.bots.some(bot => bot.platform === 'onebot' && bot.status === Universal.Status.ONLINE))
  return {
    app,
    url: `http://127.0.0.1:${address.port}`,
    stop() {
      server.closeAllConnections()
      for (const fork of forks.reverse()) fork.dispose()
    },
  }
}
