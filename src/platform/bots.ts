import type { Bot, Context } from 'koishi'
import { RelayError } from '../errors'
import { unwrap } from '../lib/koishi'
import { explain } from '../message/causes'
import type { BotSelector } from '../message/model'
import { toPlatform } from '../message/target'
import { BotAccount, type ChatListener, type PlatformSupport } from './account'
import type { Account, Health, Port } from './port'
import type { Presence } from './presence'
import { clauses, say } from '../texts/text'

/** The accounts by their bots. They outlive a reload of the plugin, because calls under way do. */
const accountsByBot = new WeakMap<Bot, BotAccount>()

/** A bot as operators see it. */
export interface BotState extends Omit<Health, 'state'> { platform: string, self_id: string, status: Health['state'] | 'restricted' }

/** The bots of a Koishi app. */
export class Bots implements Port {
  private readonly bots: readonly Bot[]
  private readonly ends: readonly (() => void)[]
  private readonly chatListeners = new Set<ChatListener>()
  /** The accounts that were found since a bot has changed, by `sid`. */
  private readonly found = new Map<string, Account>()

  /**
   * @param supports the particulars of platforms. Bots of the first one are preferred; the last one accepts every bot.
   * @param fixed accounts other than the bots of the app: always online, and chosen only by their platform
   */
  constructor(
    ctx: Context, private readonly presence: Presence, private readonly supports: readonly [PlatformSupport, ...PlatformSupport[]],
    private readonly fixed: readonly Account[] = [],
  ) {
    this.bots = unwrap(ctx.bots)
    for (const bot of this.bots) this.identify(bot)
    ctx.on('bot-added', bot => this.identify(bot))
    const forget = (): void => this.found.clear()
    const tell: ChatListener = (...heard) => this.chatListeners.forEach(listener => listener(...heard))
    this.ends = [
      // On the app's context, because an unloaded relay sends until it has ended, and its own context has no listeners any more. On this
      // early event, because other plugins can suppress the later ones.
      ctx.root.on('internal/session', traced => {
        const session = unwrap(traced)
        this.accountOf(session.bot).hear?.(session, tell)
      }, { prepend: true }),
      ctx.root.on('bot-added', forget),
      ctx.root.on('bot-removed', forget),
      presence.subscribe(forget),
      ...supports.flatMap(support => support.listen?.(ctx.root) ?? []),
    ]
  }

  /** An offline bot without an ID does not count, because a delivery could not name it. */
  candidate(selector: BotSelector): Account | undefined {
    const account = this.best(each => isAsked(each, selector))
    return account?.isOnline || account?.selfId ? account : undefined
  }

  choose(selector: BotSelector, mayWait = false): Account {
    const account = this.candidate(selector)
    return account && (mayWait || account.isOnline) ? account : this.refuse(selector)
  }

  find(sid: string): Account | undefined {
    const known = this.found.get(sid)
    // An adapter may tell the platform and the ID of a bot later, and without a change of its status.
    if (known?.sid === sid) return known
    const account = this.best(each => each.sid === sid)
    if (account) this.found.set(sid, account)
    return account
  }

  onHealth(callback: (sid: string, isOnline: boolean) => void): () => void {
    return this.presence.subscribe(({ sid }, { state }) => callback(sid, state === 'online'))
  }

  onChat(callback: ChatListener): () => void {
    this.chatListeners.add(callback)
    return () => void this.chatListeners.delete(callback)
  }

  /** Stops listening, after the last send. */
  close(): void {
    for (const end of this.ends) end()
  }

  /** Whether any bot can send now. */
  get isOnline(): boolean {
    return this.bots.some(bot => this.presence.isOnline(unwrap(bot)))
  }

  /**
   * The bots and their health, for operators; without hidden bots.
   *
   * @param restricted since when accounts are restricted, in milliseconds since the epoch, by their `sid`
   */
  describe(restricted: ReadonlyMap<string, number>): BotState[] {
    return this.bots.map(unwrap).filter(({ hidden }) => !hidden).map(bot => {
      const { state: status, ...health } = this.presence.health(bot)
      const since = status === 'online' ? restricted.get(bot.sid) : undefined
      const names = { platform: bot.platform ?? 'unknown', self_id: bot.selfId }
      return since === undefined ? { ...names, status, ...health } : { ...names, status: 'restricted', since, cause: 'restricted-account' }
    })
  }

  /**
   * The best matching account: those of the preferred platform first, of these an online one, or else one with an ID. IDs are those of one
   * platform: a message must not reach somebody else with the same number while its platform is away.
   */
  private best(fits: (account: Account) => boolean): Account | undefined {
    let best: Account | undefined
    let highest = 0
    const consider = (account: Account): void => {
      if (!fits(account)) return
      const isPreferred = account instanceof BotAccount && this.supports[0].owns(account.bot)
      const rank = 1 + 4 * Number(isPreferred) + 2 * Number(account.isOnline) + Number(Boolean(account.selfId))
      if (rank > highest) [best, highest] = [account, rank]
    }
    for (const bot of this.bots) consider(this.accountOf(bot))
    this.fixed.forEach(consider)
    return best
  }

  /** @throws RelayError `unsent` */
  private refuse(selector: BotSelector): never {
    const { platform, selfId } = selector
    // A bot has no ID before its login.
    const account = this.best(each => isAsked(each, selector)) ?? this.best(each => !each.selfId && isAsked(each, { platform }))
    const named = say(account ? 'no-bot-with-these-online' : 'no-such-bot')
    const any = say(this.isOnline ? 'no-onebot-online' : 'no-bot-online')
    const what = (platform ?? selfId) === undefined ? any : named
    const { cause, words } = account?.health ?? {}
    const reason = explain(cause, words)
    throw new RelayError('unsent', clauses(what, ...reason ? [reason] : [], say('try-again-later')))
  }

  /** Gives a bot its ID at the start, so that deliveries accepted before its login belong to it. */
  private identify(traced: Bot): void {
    const bot = unwrap(traced)
    const id = bot.selfId ? undefined : this.supportOf(bot).selfId?.(bot)
    if (id !== undefined) bot.selfId = id
  }

  private supportOf(bot: Bot): PlatformSupport {
    return this.supports.find(support => support.owns(bot)) ?? this.supports[0]
  }

  private accountOf(traced: Bot): BotAccount {
    const bot = unwrap(traced)
    const known = accountsByBot.get(bot)
    // Some adapters know the platform of a bot only after its login.
    if (known?.platform === (bot.platform ?? '')) return known
    const account = this.supportOf(bot).account(bot, this.presence)
    accountsByBot.set(bot, account)
    return account
  }
}

/** Whether a selector chooses this account. Hidden bots, and accounts that are no bots, must be named. */
function isAsked(account: Account, { platform, selfId }: BotSelector): boolean {
  const isOpen = account instanceof BotAccount && (selfId !== undefined || !account.bot.hidden)
  const isThere = platform === undefined ? isOpen : platform === account.platform || platform === toPlatform(account.platform)
  return isThere && (selfId === undefined || selfId === account.selfId)
}
