import type {} from '@koishijs/loader'
import type { Context } from 'koishi'
import { createHmac } from 'node:crypto'
import { resolve } from 'node:path'
import { listen } from './commands'
import { createReplier } from './commands/reply'
import { generateKey } from './config/api-key'
import type { Config } from './config/schema'
import { resolveSettings } from './config/settings'
import { Delivery } from './delivery/delivery'
import { unwrap } from './delivery/unwrap'
import { Gate } from './gate'
import { createKeyCheck } from './http/auth'
import { healthRoute } from './http/health'
import { createLinker, mediaRoute } from './http/media'
import { registerRoutes } from './http/routes'
import { uploadRoute } from './http/upload'
import { webhookRoute } from './http/webhook'
import { scheduleSweeps } from './housekeeping'
import { reportBots, reportSettings } from './report'
import { parseExtensions } from './uploads/extensions'

import { UploadStore } from './uploads/store'

export { Config } from './config/schema'
export { usage } from './usage'

export const name = 'message-relay'
export const inject = ['server']

/** How long requests under way may take to end when the bot stops, in milliseconds (contract, "Running it"). */
const grace = 4_000
/** How long their answers may take to get out after that. */
const flushTime = 500

/** Wires the parts together. */
export function apply(ctx: Context, config: Config): void {
  const logger = ctx.logger(name)
  const { settings, origins, warnings } = resolveSettings(config, process.env)
  for (const warning of warnings) logger.warn(warning)
  reportSettings(logger, origins)
  reportBots(ctx, logger)

  let apiKey = settings.apiKey
  if (apiKey) {
    logger.info('the API key is configured')
  } else {
    const generated = generateKey(resolve(ctx.baseDir, settings.dataDir))
    apiKey = generated.key
    logger.info('%s', `the API key was generated: it is in the file ${generated.file}`)
  }

  const stop = new AbortController()
  const gate = new Gate()
  const store = new UploadStore(resolve(ctx.baseDir, settings.uploadDir))
  const signingKey = createHmac('sha256', apiKey).update('media links').digest()
  const { server } = ctx
  const delivery = new Delivery({
    bots: unwrap(ctx.bots),
    timeout: settings.chatApiTimeout * 1000,
    retries: settings.chatApiMaxRetries,
    media: {
      transport: settings.mediaTransport,
      resolve: id => store.resolve(id),
      link: createLinker(() => (settings.selfUrl || server.config.selfUrl || server.selfUrl) + settings.path, signingKey),
    },
    hold: id => store.hold(id),
    stop: stop.signal,
  })

  registerRoutes(server, [
    healthRoute,
    uploadRoute(store, {
      maxFileSize: settings.maxUploadSize,
      allowedExtensions: parseExtensions(settings.allowedExtensions.join()),
    }, stop.signal),
    webhookRoute(delivery, settings.maxBodySize),
    mediaRoute(store, signingKey),
  ], { prefix: settings.path, isAuthorized: createKeyCheck(apiKey), gate, logger })

  scheduleSweeps(ctx, store, logger)

  if (settings.commandCallbackUrl) {
    listen(ctx, {
      prefix: settings.commandPrefix,
      length: settings.commandLength,
      callbackUrl: settings.commandCallbackUrl,
      timeout: settings.chatApiTimeout * 1000,
    }, createReplier(delivery, gate, logger))
  }

  const end = async (): Promise<void> => {
    gate.close()
    await gate.drain(grace)
    stop.abort()
    await gate.drain(flushTime)
  }
  ctx.on('exit', end)
  ctx.on('dispose', end)
}
