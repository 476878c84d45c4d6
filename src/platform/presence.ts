import type { Bot, Context } from 'koishi'
import { isOnline } from './bots'
import { unwrap } from '../lib/unwrap'

interface Waiter {
  readonly bot: Bot
  /** Whether it waits for the bot to be online, or not to be. */
  readonly online: boolean
  readonly settle: () => void
}

/**
 * Tells when bots come and go. A call that is under way when the connection closes is never answered and never rejected
 * (OneBot guide, "Connections"), so whoever waits for an answer has to watch the bot as well.
 *
 * It listens to the app once; to wait costs one entry in a list, because it is done for every message sent.
 */
export class Presence {
  /** In no order. No Set: under load, the tables that it outgrows keep whole requests from being collected. */
  private readonly waiters: Waiter[] = []

  /** Listens until the plugin is disposed; what waits then is told nothing more. */
  constructor(ctx: Context) {
    // All are looked at whichever bot it was: this is rare, and one bot's state can be another's (QQ guilds).
    ctx.on('bot-status-updated', () => this.settle(({ bot, online }) => isOnline(bot) === online))
    // A bot changes its status only after it was removed, and then tells nobody.
    ctx.on('bot-removed', removed => this.settle(({ bot, online }) => !online && bot === unwrap(removed)))
  }

  /** How many wait at present. */
  get size(): number {
    return this.waiters.length
  }

  /**
   * Calls back once when the bot is not online any more, or has been removed; at once when it is not online. The cheapest way
   * to watch a bot.
   *
   * @param callback must not throw
   * @returns what ends the watch
   */
  onOffline(bot: Bot, callback: () => void): () => void {
    return this.wait(unwrap(bot), false, callback)
  }

  /** Calls back once when the bot is online; at once when it is. Otherwise as `onOffline`. */
  onOnline(bot: Bot, callback: () => void): () => void {
    return this.wait(unwrap(bot), true, callback)
  }

  private wait(bot: Bot, online: boolean, settle: () => void): () => void {
    if (isOnline(bot) === online) {
      settle()
      return () => undefined
    }
    const waiter: Waiter = { bot, online, settle }
    this.waiters.push(waiter)
    return () => {
      removeFrom(this.waiters, waiter)
    }
  }

  private settle(applies: (waiter: Waiter) => boolean): void {
    for (const waiter of [...this.waiters]) {
      // One that is called back may end the watch of another.
      if (applies(waiter) && removeFrom(this.waiters, waiter)) waiter.settle()
    }
  }
}

/** @returns whether it was there */
function removeFrom<T>(list: T[], entry: T): boolean {
  const place = list.indexOf(entry)
  if (place < 0) return false
  const last = list.pop()
  if (last !== undefined && place < list.length) list[place] = last
  return true
}
