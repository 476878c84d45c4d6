import type {} from '@koishijs/loader'
import type { Context } from 'koishi'
import { createHmac } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { resolve } from 'node:path'
import { listen } from './commands'
import { createReplier } from './commands/reply'
import { provideKey } from './config/api-key'
import type { Config } from './config/schema'
import { describeSettings, resolveSettings } from './config/settings'
import { keepConnected } from './connections/reconnect'
import { describeBots } from './connections/status'
import { isOnline } from './delivery/bots'
import { unwrap } from './delivery/unwrap'
import { Gate, shut } from './gate'
import { createEngine } from './engine'
import { createKeyCheck } from './http/auth'
import { deliveryRoutes } from './http/deliveries'
import { healthRoute } from './http/health'
import { createLinker, mediaRoute } from './http/media'
import { readyRoute } from './http/ready'
import { registerRoutes } from './http/routes'
import { statusRoute } from './http/status'
import { uploadRoute } from './http/upload'
import { webhookRoute } from './http/webhook'
import { scheduleSweeps } from './housekeeping'
import { reportBots } from './report'
import { parseExtensions } from './uploads/extensions'
import { UploadStore } from './uploads/store'

export { Config } from './config/schema'
export { usage } from './usage'

export const name = 'message-relay'
export const inject = ['server']

/** Wires the parts together. */
export function apply(ctx: Context, config: Config): void {
  const logger = ctx.logger(name)
  const { settings, origins, warnings } = resolveSettings(config, process.env)
  for (const warning of warnings) logger.warn(warning)
  logger.info('%s', describeSettings(origins))
  reportBots(ctx, logger)

  const apiKey = provideKey(settings.apiKey, resolve(ctx.baseDir, settings.dataDir), logger)
  if (apiKey === undefined) return

  const stop = new AbortController()
  // Everything that is under way listens to it.
  setMaxListeners(0, stop.signal)
  const bots = unwrap(ctx.bots)
  const gate = new Gate()
  const store = new UploadStore(resolve(ctx.baseDir, settings.uploadDir))
  const signingKey = createHmac('sha256', apiKey).update('media links').digest()
  const { server } = ctx
  const link = createLinker(() => (settings.selfUrl || server.config.selfUrl || server.selfUrl) + settings.path, signingKey)
  const { delivery, submissions, registry, lanes, storage } = createEngine(ctx, settings, store, link, logger, stop.signal)

  registerRoutes(server, [
    healthRoute,
    readyRoute(async () => {
      await storage()?.records.ping()
      return bots.some(isOnline)
    }),
    statusRoute({
      bots: () => describeBots(bots),
      lanes: () => lanes.states(),
      outbox: async () => storage()?.records.backlog(),
    }),
    uploadRoute(store, {
      maxFileSize: settings.maxUploadSize,
      allowedExtensions: parseExtensions(settings.allowedExtensions.join()),
    }, stop.signal),
    webhookRoute(submissions, settings.path, { maxSize: settings.maxBodySize }, stop.signal),
    ...deliveryRoutes(registry, settings.path),
    mediaRoute(store, signingKey),
  ], { prefix: settings.path, isAuthorized: createKeyCheck(apiKey), gate, logger })

  scheduleSweeps(ctx, store, logger)
  keepConnected(ctx, logger)

  if (settings.commandCallbackUrl) {
    listen(ctx, {
      prefix: settings.commandPrefix,
      length: settings.commandLength,
      callbackUrl: settings.commandCallbackUrl,
      timeout: settings.chatApiTimeout * 1000,
    }, createReplier(delivery, gate, logger))
  }

  const end = (): Promise<void> => shut(gate, stop)
  ctx.on('exit', end)
  ctx.on('dispose', end)
}
