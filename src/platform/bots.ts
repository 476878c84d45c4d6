import { Universal, type Bot, type Context, type Logger } from 'koishi'
import { unwrap } from '../lib/unwrap'
import type { Port } from './port'

// Koishi re-exports this enumeration through a getter, which takes microseconds for each read.
const online = Universal.Status.ONLINE

/** Whether a bot can send now. */
export function isOnline(bot: Bot): boolean {
  return bot.status === online
}

/** As `Port.onChat`. */
type ChatListener = Parameters<Port['onChat']>[0]

/** The presence of the bots of each app. It outlives a reload of the plugin, because calls under way do. */
const presences = new WeakMap<object, Presence>()

/** A callback for the next time that a bot is online, or is not. */
interface Waiter {
  readonly bot: Bot
  readonly online: boolean
  readonly callback: () => void
}

/**
 * Reports when the bots of an app come online and go offline. Adapters never settle a call whose connection closes, so each call watches
 * its bot as well. All watches share one listener.
 */
export class Presence {
  private readonly waiters = new Set<Waiter>()
  private readonly subscribers = new Set<(sid: string) => void>()
  private readonly listeners = new Set<ChatListener>()
  /** The bots that were last seen online. */
  private readonly online = new WeakSet<Bot>()

  /** The presence of the app's bots. It is kept up to date until this context is disposed. */
  static of(ctx: Context): Presence {
    const app = unwrap(ctx.root)
    const presence = presences.get(app) ?? new Presence()
    presences.set(app, presence)
    presence.listen(ctx)
    return presence
  }

  /**
   * Calls back once when the bot goes offline or is removed; at once when it is not online.
   *
   * @param callback must not throw
   * @returns ends the watch
   */
  onOffline(bot: Bot, callback: () => void): () => void {
    return this.wait({ bot: unwrap(bot), online: false, callback })
  }

  /** Calls back once when the bot is online; at once when it is. Otherwise as `onOffline`. */
  onOnline(bot: Bot, callback: () => void): () => void {
    return this.wait({ bot: unwrap(bot), online: true, callback })
  }

  /**
   * Calls back with the `sid` of each bot that comes online.
   *
   * @param callback must not throw
   * @returns ends the subscription
   */
  subscribe(callback: (sid: string) => void): () => void {
    this.subscribers.add(callback)
    return () => {
      this.subscribers.delete(callback)
    }
  }

  /** Calls back when a platform reports that it has closed a chat, or opened it again. As `subscribe`. */
  onChat(listener: ChatListener): () => void {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  /** A platform has reported it. */
  readonly tellOfChat: ChatListener = (sid, target, closure) => {
    for (const listener of this.listeners) listener(sid, target, closure)
  }

  private listen(ctx: Context): void {
    ctx.on('bot-status-updated', bot => this.update([bot]))
    // Koishi announces a removal before the status of the bot changes, and not at all afterwards.
    ctx.on('bot-removed', removed => this.settle(({ bot, online }) => !online && bot === unwrap(removed)))
    // Changes may have been missed since the last context was disposed.
    this.update(unwrap(ctx.bots))
  }

  private update(bots: readonly Bot[]): void {
    // All waiters are checked: a guild bot of adapter-onebot has the status of another bot, and changes are rare.
    this.settle(({ bot, online }) => isOnline(bot) === online)
    for (const bot of bots.map(unwrap)) {
      if (isOnline(bot) && !this.online.has(bot)) for (const callback of this.subscribers) callback(bot.sid)
      if (isOnline(bot)) this.online.add(bot)
      else this.online.delete(bot)
    }
  }

  private wait(waiter: Waiter): () => void {
    if (isOnline(waiter.bot) === waiter.online) waiter.callback()
    else this.waiters.add(waiter)
    return () => {
      this.waiters.delete(waiter)
    }
  }

  private settle(applies: (waiter: Waiter) => boolean): void {
    // The copy leaves out waiters that a callback adds. A callback may also end the watch of another waiter.
    for (const waiter of [...this.waiters].filter(applies)) {
      if (this.waiters.delete(waiter)) waiter.callback()
    }
  }
}

/** A bot as `GET /statusz` shows it. */
export interface BotState {
  platform: string
  self_id: string
  status: string
}

const statusNames: Readonly<Record<Universal.Status, string>> = {
  [Universal.Status.OFFLINE]: 'offline',
  [Universal.Status.ONLINE]: 'online',
  [Universal.Status.CONNECT]: 'connecting',
  [Universal.Status.DISCONNECT]: 'disconnecting',
  [Universal.Status.RECONNECT]: 'reconnecting',
}

/** The bots and their states, without hidden bots. */
export function describeBots(bots: Iterable<Pick<Bot, 'platform' | 'selfId' | 'status' | 'hidden'>>): BotState[] {
  const visible = [...bots].filter(bot => !bot.hidden)
  return visible.map(({ platform, selfId, status }) => ({ platform: platform ?? 'unknown', self_id: selfId, status: statusNames[status] }))
}

/** How long adapters may take to add a bot before the log has a warning, in milliseconds. */
const adapterTime = 10_000

/** Logs the bots once the app is ready, and each change of their states after that. */
export function reportBots(ctx: Context, logger: Logger): void {
  const describe = ({ platform, self_id: selfId, status }: BotState): string => `${platform}:${selfId} ${status}`
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
