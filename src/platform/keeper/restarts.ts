import { Universal, type Bot, type Context } from 'koishi'
import { unwrap } from '../../lib/koishi'
import type { Log } from '../../lib/log'
import { say } from '../../texts/text'

/** The `sid` of a bot, or only its platform: before its login, it may have no ID. */
export function nameOf({ platform, selfId }: Bot): string {
  return [platform, selfId].filter(Boolean).join(':')
}

/** Keeps one bot running. */
export interface Keeper {
  /** Called for each change of the bot's status. */
  update(): void
  dispose(): void
}

/**
 * Gives each bot that needs one a keeper, until the context is disposed.
 *
 * @param make returns `undefined` if the bot needs none now
 * @returns the present keepers, and a function that starts with the present bots
 */
export function attend<T extends Keeper>(
  ctx: Context, make: (bot: Bot) => T | undefined,
): { keepers: ReadonlyMap<Bot, T>, begin: () => void } {
  const bots = unwrap(ctx.bots)
  const keepers = new Map<Bot, T>()
  const update = (traced: Bot): void => {
    const bot = unwrap(traced)
    // While an adapter is reloaded, Koishi announces the last changes of the old bot in the name of the new one (upstream/14).
    if (!bots.some(each => unwrap(each) === bot)) return
    const keeper = keepers.get(bot) ?? make(bot)
    if (keeper) keepers.set(bot, keeper)
    keeper?.update()
  }
  ctx.on('bot-status-updated', update)
  ctx.on('bot-removed', bot => {
    keepers.get(unwrap(bot))?.dispose()
    keepers.delete(unwrap(bot))
  })
  ctx.on('dispose', () => keepers.forEach(keeper => keeper.dispose()))
  return { keepers, begin: () => bots.forEach(update) }
}

/**
 * How long a bot may be connecting, or offline because its adapter gave up, before it is started again, in milliseconds. The time doubles
 * with each start, up to the longest. A start while the last one is still in progress would make a second connection.
 */
const connectingPatience = 60_000
const offlinePatience = 5_000
const longestPatience = 600_000

/**
 * Starts bots again that stay "connecting", or whose adapters gave up, until the plugin is disposed. Left alone are bots that reconnect by
 * themselves, that a person has stopped, or that are hidden, because another bot starts these.
 *
 * @param isOther whether another part of the plugin keeps this bot connected
 */
export function restartStuck(ctx: Context, logger: Pick<Log, 'warn'>, isOther: (bot: Bot) => boolean): void {
  attend(ctx, bot => isOther(bot) ? undefined : new Starter(bot, logger)).begin()
}

class Starter implements Keeper {
  private timer: NodeJS.Timeout | undefined
  /** The number of starts since the bot was online. */
  private tries = 0
  /** Whether a start is in progress: a second one would make another connection (upstream/02). */
  private isStarting = false
  private isDisposed = false

  constructor(private readonly bot: Bot, private readonly logger: Pick<Log, 'warn'>) {}

  update(): void {
    const { bot, bot: { status, hidden } } = this
    clearTimeout(this.timer)
    if (status === Universal.Status.ONLINE) this.tries = 0
    const isStuck = status === Universal.Status.CONNECT || status === Universal.Status.OFFLINE
    if (!isStuck || hidden || this.isStarting || this.isDisposed) return
    const patience = Math.min((bot.isActive ? connectingPatience : offlinePatience) * 2 ** this.tries, longestPatience)
    this.timer = setTimeout(() => {
      // An adapter that gives up sets an error, after the change of status (upstream/13); a stop by a person sets none.
      if (bot.status === Universal.Status.OFFLINE && !bot.error) return
      // A failed start is repeated, like that of an adapter that gives up in silence.
      void this.restart(patience).catch(() => undefined).then(() => this.update())
    }, patience)
  }

  dispose(): void {
    this.isDisposed = true
    clearTimeout(this.timer)
  }

  private async restart(patience: number): Promise<void> {
    const { bot } = this
    this.logger.warn(say(bot.isActive ? 'started-again-connecting' : 'started-again-offline', { bot: nameOf(bot), seconds: patience / 1000 }))
    this.tries++
    await bot.stop()
    if (this.isDisposed) return
    this.isStarting = true
    await bot.start().finally(() => this.isStarting = false)
  }
}
