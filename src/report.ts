import type { Context, Logger } from 'koishi'
import { describeBots, type BotState } from './connections/status'

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
