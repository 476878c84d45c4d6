import type {} from '@koishijs/loader'
import type { Context } from 'koishi'
import { setMaxListeners } from 'node:events'
import { resolve } from 'node:path'
import { listenForCommands } from './commands'
import { provideKey } from './config/api-key'
import type { Config } from './config/schema'
import { resolveSettings } from './config/settings'
import { createEngine } from './engine'
import { createKeyCheck, MediaLinks, serveHttp } from './http'
import { InFlight, shutDown } from './lib/in-flight'
import { unwrap } from './lib/unwrap'
import { isOnline } from './platform/bots'
import { keepConnected } from './platform/onebot/reconnect'
import { describeBots } from './platform/status'
import { reportBots, reportSettings } from './report'
import { UploadStore } from './uploads/store'
import { scheduleSweeps } from './uploads/sweep'

export { Config } from './config/schema'
export { usage } from './usage'

export const name = 'message-relay'
export const inject = ['server']

/** Wires the parts together. */
export function apply(ctx: Context, config: Config): void {
  const logger = ctx.logger(name)
  const { settings, origins, warnings } = resolveSettings(config, process.env)
  for (const warning of warnings) logger.warn(warning)
  reportSettings(logger, origins)
  reportBots(ctx, logger)

  const apiKey = provideKey(settings.apiKey, resolve(ctx.baseDir, settings.dataDir), logger)
  if (apiKey === undefined) return

  const stop = new AbortController()
  // Everything that is under way listens to it.
  setMaxListeners(0, stop.signal)
  const bots = unwrap(ctx.bots)
  const inFlight = new InFlight()
  const uploads = new UploadStore(resolve(ctx.baseDir, settings.uploadDir))
  const { server } = ctx
  const links = new MediaLinks(() => (settings.selfUrl || server.config.selfUrl || server.selfUrl) + settings.path, apiKey)
  const engine = createEngine(ctx, settings, uploads, file => links.to(file), logger, stop.signal)
  const { delivery, submissions, registry, lanes, storage } = engine

  serveHttp(server, { prefix: settings.path, isAuthorized: createKeyCheck(apiKey), inFlight, logger }, {
    limits: settings,
    submissions,
    registry,
    uploads,
    links,
    isReady: async () => {
      await storage()?.records.ping()
      return bots.some(isOnline)
    },
    status: {
      bots: () => describeBots(bots),
      queues: () => lanes.states().map(({ lane, ...state }) => ({ queue: lane, ...state })),
      outbox: async () => storage()?.records.backlog(),
    },
    stop: stop.signal,
  })
  if (settings.commandCallbackUrl) {
    listenForCommands(ctx, {
      prefix: settings.commandPrefix,
      length: settings.commandLength,
      callbackUrl: settings.commandCallbackUrl,
      timeout: settings.chatApiTimeout * 1000,
    }, { send: reply => delivery.deliver(reply), inFlight, logger })
  }
  scheduleSweeps(ctx, options => uploads.sweep(Date.now(), options), logger)
  keepConnected(ctx, logger)

  const end = (): Promise<void> => shutDown(inFlight, stop)
  ctx.on('exit', end)
  ctx.on('dispose', end)
}
