import { Universal, type Bot, type Context, type Logger } from 'koishi'
import type { Origin } from './config/settings'

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
  const visible = (): Bot[] => [...ctx.bots].filter(bot => !bot.hidden)
  ctx.on('ready', () => {
    logger.info('%s', `bots: ${visible().map(describe).join(', ') || 'none yet'}`)
    ctx.setTimeout(() => {
      if (visible().length === 0) logger.warn('there is still no bot: load an adapter, or nothing can be sent')
    }, adapterTime)
  })
  ctx.on('bot-status-updated', bot => {
    if (!bot.hidden) logger.info('%s', `bot ${describe(bot)}`)
  })
}

const states: Readonly<Record<Universal.Status, string>> = {
  [Universal.Status.OFFLINE]: 'offline',
  [Universal.Status.ONLINE]: 'online',
  [Universal.Status.CONNECT]: 'connecting',
  [Universal.Status.DISCONNECT]: 'disconnecting',
  [Universal.Status.RECONNECT]: 'reconnecting',
}

function describe(bot: Bot): string {
  return `${bot.platform ?? 'unknown'}:${bot.selfId} ${states[bot.status]}`
}
