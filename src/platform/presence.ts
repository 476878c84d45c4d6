import { Universal, type Bot, type Context } from 'koishi'
import { unwrap } from '../lib/koishi'
import type { Log } from '../lib/log'
import { explain, type Reason } from '../message/causes'
import { cleanWording } from './failure'
import { nameOf } from './keeper/restarts'
import type { Health } from './port'
import type { TextId } from '../texts/table'
import { clauses, say, type Text } from '../texts/text'

// Koishi re-exports this enumeration through a getter, which takes microseconds for each read.
const online = Universal.Status.ONLINE

/** Adapters for an older Koishi, which the plugin market still has, give the status of a bot in words. They do not work with this one. */
const states: ReadonlyMap<unknown, Health['state']> = new Map([
  [Universal.Status.OFFLINE, 'offline'],
  [Universal.Status.ONLINE, 'online'],
  [Universal.Status.CONNECT, 'connecting'],
  [Universal.Status.DISCONNECT, 'offline'],
  [Universal.Status.RECONNECT, 'connecting'],
])

/** The presence of each app's bots. It survives a reload of the plugin, because calls do. */
const presences = new WeakMap<object, Presence>()

/** Called for each change of a bot's health. Must not throw. */
type Listener = (bot: Bot, health: Health, before: Health | undefined) => void

/**
 * The health of an app's bots: whether each is connected, by its adapter, and whether its account can send, by its platform. Adapters never
 * settle a call whose connection closes, so each call watches its bot as well.
 */
export class Presence {
  private readonly listeners = new Set<Listener>()
  private readonly known = new WeakMap<Bot, Health>()
  /** The last health that the listeners received. */
  private readonly told = new WeakMap<Bot, Health>()
  /** Why connected bots cannot send. */
  private readonly faults = new WeakMap<Bot, Reason>()
  /** Why platforms refuse connections, until they accept one. */
  private readonly refusals = new WeakMap<Bot, Reason>()

  /** The presence of the app's bots. It is kept up to date until this context is disposed. */
  static of(ctx: Context): Presence {
    const app = unwrap(ctx.root)
    const presence = presences.get(app) ?? new Presence()
    presences.set(app, presence)
    presence.listen(ctx)
    return presence
  }

  /** Whether a bot can send now. */
  isOnline(bot: Bot): boolean {
    return bot.status === online && !this.faults.has(bot)
  }

  /** The health of a bot; the same object for as long as it does not change. */
  health(bot: Bot): Health {
    const fault = bot.status === online ? this.faults.get(bot) : undefined
    const state = fault ? 'offline' : states.get(bot.status) ?? 'offline'
    const reason = fault ?? (state === 'online' ? undefined : this.refusals.get(bot) ?? reasonOf(bot))
    const last = this.known.get(bot)
    if (last?.state === state && last.cause === reason?.cause && last.words === reason?.words) return last
    // An adapter that tries to connect again and again is offline all the while.
    const since = last && isOnline(last) === isOnline({ state }) ? last.since : Date.now()
    const health = { state, since, ...reason }
    this.known.set(bot, health)
    return health
  }

  /**
   * Notes why a connected bot cannot send. The fault remains when the bot connects again.
   *
   * @param fault `undefined` once it can send
   */
  report(bot: Bot, fault: Reason | undefined): void {
    if (fault) this.faults.set(bot, fault)
    else this.faults.delete(bot)
    this.update([bot])
  }

  /** Notes why the platform refuses the connection of a bot, until the bot is online. */
  refuse(bot: Bot, reason: Reason): void {
    this.refusals.set(bot, reason)
    this.update([bot])
  }

  /** Subscribes to changes of a bot's health. Returns a function that ends the subscription. */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  private listen(ctx: Context): void {
    ctx.on('bot-status-updated', bot => this.update([bot]))
    // Koishi announces a removal before the status of the bot changes, and not at all afterwards.
    ctx.on('bot-removed', bot => this.report(unwrap(bot), { cause: 'bot-removed' }))
    // Changes may have been missed since the last context was disposed.
    this.update(unwrap(ctx.bots))
  }

  private update(bots: readonly Bot[]): void {
    for (const bot of bots.map(unwrap)) {
      if (bot.status === online) this.refusals.delete(bot)
      const health = this.health(bot)
      const before = this.told.get(bot)
      this.told.set(bot, health)
      if (health !== before) for (const listener of this.listeners) listener(bot, health, before)
    }
  }
}

function isOnline({ state }: Pick<Health, 'state'>): boolean {
  return state === 'online'
}

/** Why a bot is not connected, as far as its adapter tells. */
function reasonOf({ status, error }: Bot): Reason {
  const state = states.get(status)
  if (!state) return { cause: 'old-adapter' }
  const words = error instanceof Error ? cleanWording(error.message) : undefined
  return { cause: state === 'connecting' ? state : 'disconnected', ...words !== undefined && { words } }
}

const stateTexts = {
  online: 'state-online', connecting: 'state-connecting', offline: 'state-offline',
} as const satisfies Readonly<Record<Health['state'], TextId>>

/** How long adapters may take to add a bot before the log has a warning, in milliseconds. */
const adapterTime = 10_000

/** Logs the bots once the app is ready, and each change of their health after that; while a bot is away, each state only once. */
export function reportBots(ctx: Context, presence: Presence, logger: Log): void {
  const visible = (): Bot[] => unwrap(ctx.bots).map(unwrap).filter(bot => !bot.hidden)
  /** The lines about each bot since it went or came. An adapter dials every few seconds for as long as a bot is away. */
  const told = new WeakMap<Bot, Set<string>>()
  const describe = (bot: Bot, { state, cause, words }: Health): Text => {
    const [plain, reason] = [say('bot-in-state', { bot: nameOf(bot), state: say(stateTexts[state]) }), explain(cause, words)]
    return reason ? clauses(plain, reason) : plain
  }
  ctx.on('ready', () => {
    const bots = visible().map(bot => describe(bot, presence.health(bot)))
    logger.info(say('bots-present', { bots: bots.length > 0 ? bots : say('none-yet') }))
    ctx.setTimeout(() => {
      if (visible().length === 0) logger.warn(say('no-bot-yet'))
    }, adapterTime)
  })
  ctx.on('dispose', presence.subscribe((bot, health, before) => {
    if (bot.hidden) return
    const isTurn = before && isOnline(before) !== isOnline(health)
    // Koishi changes the status of a bot before it sets the error (upstream/13).
    queueMicrotask(() => {
      const now = presence.health(bot)
      const text = describe(bot, now.state === health.state ? now : health)
      const lines = (isTurn ? undefined : told.get(bot)) ?? new Set()
      if (!lines.has(String(text))) {
        logger.info(!isTurn
          ? say('bot-changed', { bot: text })
          : say('bot-turned', { bot: text, seconds: Math.round((health.since - before.since) / 1000), state: say(stateTexts[before.state]) }))
      }
      told.set(bot, lines.add(String(text)))
    })
  }))
}
