import { Universal, type Bot, type Context, type Logger } from 'koishi'
import { unwrap } from '../lib/unwrap'

/** How long a bot may be connecting before it is started again, in milliseconds; twice as long each further time, up to the longest. */
const firstPatience = 60_000
const longestPatience = 600_000

/**
 * Starts bots again that stay "connecting", or whose adapters gave up, until the plugin is disposed. With adapter-telegram 4.5.11, either
 * happens when the platform cannot be reached at the start, or polls fail. A bot whose adapter says that it reconnects is left alone, and
 * so is one that a person has stopped, or that is hidden, because another bot starts it.
 *
 * @param isOther whether something else keeps this bot connected
 */
export function restartStuck(ctx: Context, logger: Pick<Logger, 'warn'>, isOther: (bot: Bot) => boolean): void {
  const bots = unwrap(ctx.bots)
  const timers = new Map<Bot, NodeJS.Timeout>()
  /** How often each bot was started again since it was online. */
  const tries = new Map<Bot, number>()
  /** Bots whose start is under way: a second one beside a slow login would make two connections. */
  const starting = new Set<Bot>()
  let isDisposed = false

  const update = (bot: Bot): void => {
    clearTimeout(timers.get(bot))
    if (bot.status === Universal.Status.ONLINE) tries.delete(bot)
    const isStuck = bot.status === Universal.Status.CONNECT || bot.status === Universal.Status.OFFLINE
    if (!isStuck || bot.hidden || starting.has(bot) || isOther(bot)) return
    // While an adapter is reloaded, Koishi announces the last changes of the old bot in the name of the new one.
    if (isDisposed || !bots.some(each => unwrap(each) === bot)) return
    const patience = Math.min(firstPatience * 2 ** (tries.get(bot) ?? 0), longestPatience)
    timers.set(bot, setTimeout(() => {
      // An adapter that gives up notes why, after the change of the status. A person who stops a bot leaves no reason.
      if (bot.status === Universal.Status.OFFLINE && !bot.error) return
      // A start that fails is tried again, as one that gives up in silence.
      void restart(bot, patience).catch(() => undefined).then(() => update(bot))
    }, patience))
  }

  const restart = async (bot: Bot, patience: number): Promise<void> => {
    logger.warn('%s', `the bot ${bot.sid} is started again: it has been ${bot.isActive ? 'connecting' : 'offline'} for ${patience / 1000} s`)
    tries.set(bot, (tries.get(bot) ?? 0) + 1)
    await bot.stop()
    if (isDisposed || !bots.some(each => unwrap(each) === bot)) return
    starting.add(bot)
    await bot.start().finally(() => starting.delete(bot))
  }

  for (const bot of bots) update(unwrap(bot))
  ctx.on('bot-status-updated', bot => update(unwrap(bot)))
  ctx.on('bot-removed', traced => {
    const bot = unwrap(traced)
    clearTimeout(timers.get(bot))
    timers.delete(bot)
    tries.delete(bot)
  })
  ctx.on('dispose', () => {
    isDisposed = true
    for (const timer of timers.values()) clearTimeout(timer)
  })
}
