import type { Context, Logger } from 'koishi'
import type { Origin } from './config/settings'
import { describeBots, type BotState } from './platform/status'

/** Logs the effective settings and where each came from; of the key only whether there is one. */
export function reportSettings(logger: Logger, origins: readonly Origin[]): void {
  for (const { field, variable, value, source } of origins) {
    if (field === 'apiKey') continue
    logger.info('%s', `${field} = ${JSON.stringify(withoutSecrets(value))} (${source === 'environment' ? variable : source})`)
  }
}

/** Addresses may hold credentials, and tokens in their query. */
function withoutSecrets(value: unknown): unknown {
  if (typeof value !== 'string' || !/^https?:/i.test(value) || !URL.canParse(value)) return value
  const { origin, pathname } = new URL(value)
  return origin + pathname
}

/** How long adapters may take to bring their bots before it is worth a warning, in milliseconds. */
const adapterTime = 10_000

/** Logs which bots there are once the app is ready, and from then on when the state of one changes. */
export function reportBots(ctx: Context, logger: Logger): void {
  ctx.on('ready', () => {
    logger.info('%s', `bots: ${describeBots(ctx.bots).map(describe).join(', ') || 'none yet'}`)
    ctx.setTimeout(() => {
      if (describeBots(ctx.bots).length === 0) logger.warn('there is still no bot: load an adapter, or nothing can be sent')
    }, adapterTime)
  })
  ctx.on('bot-status-updated', bot => {
    for (const state of describeBots([bot])) logger.info('%s', `bot ${describe(state)}`)
  })
}

function describe({ platform, self_id: selfId, status }: BotState): string {
  return `${platform}:${selfId} ${status}`
}
