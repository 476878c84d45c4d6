import { Universal, type Bot, type Context, type Logger } from 'koishi'
import { removeFrom } from '../lib/transient'
import { unwrap } from '../lib/unwrap'

// What Koishi passes on from its core is looked up anew by each read, which takes microseconds.
const online = Universal.Status.ONLINE

/** Whether a bot can send now. */
export function isOnline(bot: Bot): boolean {
  return bot.status === online
}

/** The presence of the bots of each app. It outlives a reload of the plugin, because sends that are under way do. */
const presences = new WeakMap<object, Presence>()

/** Someone who waits for a bot to be online, or not to be. */
interface Waiter {
  readonly bot: Bot
  readonly online: boolean
  readonly callback: () => void
}

/**
 * Tells when the bots of an app come and go. Adapters leave a call that is under way when the connection closes without an answer and
 * without an error, so whoever waits for an answer has to watch the bot as well.
 *
 * All who wait share one listener: there is a wait for every message that is sent.
 */
export class Presence {
  /** In no order. */
  private readonly waiters: Waiter[] = []
  private readonly subscribers = new Set<(sid: string) => void>()
  /** The bots that were last seen online. */
  private readonly online = new WeakSet<Bot>()

  /** The presence of the app's bots, which is kept up to date until this context is disposed. */
  static of(ctx: Context): Presence {
    const app = unwrap(ctx.root)
    const presence = presences.get(app) ?? new Presence()
    presences.set(app, presence)
    presence.listen(ctx)
    return presence
  }

  /** How many wait at present. */
  get waiting(): number {
    return this.waiters.length
  }

  /**
   * Calls back once when the bot is not online any more, or has been removed; at once when it is not online.
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

  /**
   * Calls back with the `sid` of each bot that comes online.
   *
   * @param callback must not throw
   * @returns what ends that
   */
  subscribe(callback: (sid: string) => void): () => void {
    // A function of its own, so that a callback that is given twice is called, and ended, as two.
    const subscriber = (sid: string): void => callback(sid)
    this.subscribers.add(subscriber)
    return () => {
      this.subscribers.delete(subscriber)
    }
  }

  private listen(ctx: Context): void {
    ctx.on('bot-status-updated', bot => this.update(unwrap(bot)))
    // A bot changes its status only after it was removed, and no event tells of that.
    ctx.on('bot-removed', removed => this.settle(({ bot, online }) => !online && bot === unwrap(removed)))
    // Nobody listened before: what happened since the last context was disposed is caught up with.
    this.settleAll()
    for (const bot of unwrap(ctx.bots)) this.note(unwrap(bot))
  }

  private update(bot: Bot): void {
    // Whichever bot it was, all are looked at: this is rare, and one bot's state can be another's (guild bots of adapter-onebot).
    this.settleAll()
    this.note(bot)
  }

  /** Tells the subscribers if the bot was not online when it was last seen. */
  private note(bot: Bot): void {
    if (!isOnline(bot)) {
      this.online.delete(bot)
    } else if (!this.online.has(bot)) {
      this.online.add(bot)
      for (const subscriber of this.subscribers) subscriber(bot.sid)
    }
  }

  private wait(bot: Bot, online: boolean, callback: () => void): () => void {
    if (isOnline(bot) === online) {
      callback()
      return () => undefined
    }
    const waiter: Waiter = { bot, online, callback }
    this.waiters.push(waiter)
    return () => {
      removeFrom(this.waiters, waiter)
    }
  }

  private settleAll(): void {
    this.settle(({ bot, online }) => isOnline(bot) === online)
  }

  private settle(applies: (waiter: Waiter) => boolean): void {
    for (const waiter of [...this.waiters]) {
      // One that is called back may end the watch of another.
      if (applies(waiter) && removeFrom(this.waiters, waiter)) waiter.callback()
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

/** The bots and their state, without those that Koishi hides. */
export function describeBots(bots: Iterable<Pick<Bot, 'platform' | 'selfId' | 'status' | 'hidden'>>): BotState[] {
  const visible = [...bots].filter(bot => !bot.hidden)
  return visible.map(({ platform, selfId, status }) => ({ platform: platform ?? 'unknown', self_id: selfId, status: statusNames[status] }))
}

/** How long adapters may take to bring their bots before it is worth a warning, in milliseconds. */
const adapterTime = 10_000

/** Logs which bots there are once the app is ready, and from then on when the state of one changes. */
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
