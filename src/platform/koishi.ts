import { h, MessageEncoder, Universal, type Bot, type Context, type Logger, type Session } from 'koishi'
import { RelayError } from '../errors'
import { unwrap } from '../lib/koishi'
import { describePlace } from '../lib/log'
import { causes } from '../message/causes'
import type { BotSelector, Item, ParsedItem, Target } from '../message/model'
import { toPlatform } from '../message/target'
import type { Presence } from './bots'
import type { IncomingSupport } from './incoming'
import { SendError, type Account, type Health, type LoadedItem, type Message, type Port } from './port'

/** The particulars of one adapter's bots. */
export interface PlatformSupport {
  /** Whether this is a bot of that adapter: the name of its platform does not tell, as a Satori server may use it as well. */
  owns(bot: Bot): boolean
  /** Makes the account of such a bot. The account must survive a reload of the plugin. */
  account(bot: Bot, presence: Presence): BotAccount
  /** Looks after its bots until the context is disposed. */
  start?(ctx: Context, presence: Presence, logger: Logger): void
  /** Observes the requests of an app's bots. The returned function ends that. */
  listen?(app: Context): () => void
  /** Reads the messages to its bots, if the adapter loses parts of them. */
  incoming?: IncomingSupport
  /** The ID of a bot's account, if it is known before the login. */
  selfId?(bot: Bot): string | undefined
}

/** As `Port.onChat` calls it back. */
export type ChatListener = Parameters<Port['onChat']>[0]

/** The accounts by their bots. They outlive a reload of the plugin, because calls under way do. */
const accountsByBot = new WeakMap<Bot, BotAccount>()

/** A bot as operators see it. */
export interface BotState extends Omit<Health, 'state'> { platform: string, self_id: string, status: Health['state'] | 'restricted' }

/** The bots of a Koishi app. */
export class KoishiPort implements Port {
  private readonly bots: readonly Bot[]
  private readonly ends: readonly (() => void)[]
  private readonly chatListeners = new Set<ChatListener>()

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
    const tell: ChatListener = (...heard) => this.chatListeners.forEach(listener => listener(...heard))
    // On the app's context, because an unloaded relay sends until it has ended, and its own context has no listeners any more. On this
    // early event, because other plugins can suppress the later ones.
    const end = ctx.root.on('internal/session', traced => {
      const session = unwrap(traced)
      this.accountOf(session.bot).hear?.(session, tell)
    }, { prepend: true })
    this.ends = [end, ...supports.flatMap(support => support.listen?.(ctx.root) ?? [])]
  }

  choose(selector: BotSelector): Account {
    const account = this.best(each => isAsked(each, selector))
    return account?.isOnline ? account : this.refuse(selector)
  }

  /** Skips bots without an ID, because a delivery could not name them. */
  chooseLater(selector: BotSelector): Account {
    return this.best(each => isAsked(each, selector) && (each.isOnline || Boolean(each.selfId))) ?? this.refuse(selector)
  }

  find(sid: string): Account | undefined {
    return this.best(account => account.sid === sid)
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
      return since === undefined ? { ...names, status, ...health } : { ...names, status: 'restricted', since, cause: causes['restricted-account'].en }
    })
  }

  /** The best matching account: online before offline, then those of the preferred platform. */
  private best(fits: (account: Account) => boolean): Account | undefined {
    let best: Account | undefined
    let highest = 0
    for (const account of [...this.bots.map(bot => this.accountOf(bot)), ...this.fixed]) {
      if (!fits(account)) continue
      const isPreferred = account instanceof BotAccount && this.supports[0].owns(account.bot)
      const rank = 1 + Number(isPreferred) + 2 * Number(account.isOnline)
      if (rank > highest) [best, highest] = [account, rank]
    }
    return best
  }

  /** @throws RelayError `unsent` */
  private refuse(selector: BotSelector): never {
    const { platform, selfId } = selector
    // A bot has no ID before its login.
    const account = this.best(each => isAsked(each, selector)) ?? this.best(each => !each.selfId && isAsked(each, { platform }))
    const named = account ? 'no bot with this platform and self_id is online' : 'there is no bot with this platform and self_id'
    const what = (platform ?? selfId) === undefined ? 'no bot is online' : named
    const cause = account?.health.cause
    throw new RelayError('unsent', `${cause === undefined ? what : `${what}: ${cause}`}: try again later`)
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

/** The common part of all accounts. */
export abstract class BotAccount implements Account {
  readonly platform: string
  /** The events of the app. Read once, because access through the context is slow. */
  readonly lifecycle: Bot['ctx']['lifecycle']

  constructor(readonly bot: Bot, protected readonly presence: Presence) {
    this.platform = bot.platform ?? ''
    this.lifecycle = unwrap(bot.ctx.root.lifecycle)
  }

  get sid(): string {
    return this.bot.sid
  }

  get health(): Health {
    return this.presence.health(this.bot)
  }

  get isOnline(): boolean {
    return this.presence.isOnline(this.bot)
  }

  get selfId(): string {
    return this.bot.selfId
  }

  get name(): string {
    return this.bot.user?.name ?? ''
  }

  /**
   * Whether any plugin listens to sent messages. Most apps have none, and making the session takes a tenth of the time of a send.
   * The listeners are those of `Lifecycle` in @cordisjs/core 3.18.1; `internal/event` receives all events.
   */
  get isHeard(): boolean {
    const { send, 'before-send': before, 'internal/event': all } = this.lifecycle._hooks
    return Boolean(before?.length) || Boolean(send?.length) || Boolean(all?.length)
  }

  /** Whether any plugin listens to messages before they are sent, so that it can change them. */
  get mayBeChanged(): boolean {
    return Boolean(this.lifecycle._hooks['before-send']?.length)
  }

  abstract readonly readsFiles: boolean
  readonly takesFiles: boolean = true
  abstract readonly longestText: number
  abstract readonly retriesUnanswered: boolean
  /** No limit is known. */
  readonly recallableFor: number = Infinity
  abstract check(target: Target, items: readonly ParsedItem[]): readonly ParsedItem[]
  abstract recall(target: Target, messageId: string): Promise<void>
  abstract message(target: Target, items: readonly LoadedItem[], name: string): Message

  /** Handles the session of a platform's event. During a reload, both relays hand it over. */
  hear?(session: Session, onChat: ChatListener): void
}

/**
 * Replaces items that the platform cannot send by a `bad-request`.
 *
 * @param refusal why the platform cannot send an item, in plain English; `undefined` if it can
 */
export function checkEach(items: readonly ParsedItem[], refusal: (item: Item) => string | undefined): ParsedItem[] {
  return items.map(item => {
    const reason = item instanceof RelayError ? undefined : refusal(item)
    return reason === undefined ? item : new RelayError('bad-request', reason)
  })
}

const direct = Universal.Channel.Type.DIRECT
const text = Universal.Channel.Type.TEXT

/** Characters that no user's ID has on any platform. In markup, they would end the mention. */
const plainId = /^[^\s<>()[\]{}|&"'`\\!#*]+$/
/** IDs that mention many users on some platform. Not every key may use them. */
const crowd = /^@?(?:all|here|everyone|online|channel|0*)$|@(?:everyone|here)/i

/** Whether an ID mentions a single user, also in the markup of any platform. */
export function isUser(id: string): boolean {
  return plainId.test(id) && !crowd.test(id)
}

/** The session of an outgoing message, for other plugins. */
export type SendSession = ReturnType<Bot['session']>

const mediaElements = { image: 'img', video: 'video', audio: 'audio', file: 'file' } as const

/** An item as a Koishi element. Text becomes a text node, never markup. */
export function toElement(item: LoadedItem): h {
  switch (item.type) {
    case 'text':
      return h.text(item.text)
    case 'at':
      return h('at', item.userId === null ? { type: 'all' } : { id: item.userId })
    case 'reply':
      return h('quote', { id: item.messageId })
    default:
      return h(mediaElements[item.type], { src: item.src, ...item.type === 'file' && { title: item.name } })
  }
}

/** The session of a message to a channel, as Koishi's own encoders make it. @param event further fields of its event */
export function createSession(bot: Bot, id: string, isDirect: boolean, event: Partial<Universal.Event> = {}): SendSession {
  return bot.session({ ...event, type: 'send', channel: { id, type: isDirect ? direct : text } })
}

/**
 * Shows a message to other plugins before it is sent. They may change the elements of the session. Failures of plugins are logged.
 *
 * @returns the elements afterwards
 * @throws SendError `suppressed` if a plugin suppresses the message, or fails
 */
export async function announceSend({ bot, lifecycle }: BotAccount, session: SendSession, elements: h[]): Promise<h[]> {
  session.elements = elements
  let isSuppressed: unknown
  try {
    isSuppressed = await lifecycle.serial(session, 'before-send', session, {})
  } catch (error) {
    bot.logger.warn('%s', `a plugin that listens to before-send failed, and the message was not sent: ${describePlace(error)}`)
    throw new SendError('suppressed', undefined, { cause: error })
  }
  if (isSuppressed || !session.elements.length) throw new SendError('suppressed')
  return session.elements
}

/** Shows a sent message to other plugins. Their errors are logged. */
export function announceSent({ bot, lifecycle }: BotAccount, session: SendSession, messageId: string): void {
  session.messageId = messageId
  session.userId = bot.selfId
  try {
    lifecycle.emit(session, 'send', session)
  } catch (error) {
    bot.logger.warn(error)
  }
}

type EncoderClass = new (bot: Bot, channelId: string) => MessageEncoder

/** The class of the adapter's message encoder; `undefined` if the bot has none. */
export function encoderOf(bot: Bot): EncoderClass | undefined {
  const Encoder: unknown = Reflect.get(bot.constructor, 'MessageEncoder')
  return isEncoderClass(Encoder) ? Encoder : undefined
}

function isEncoderClass(value: unknown): value is EncoderClass {
  return typeof value === 'function' && value.prototype instanceof MessageEncoder
}

/**
 * Prepares the adapter's encoder for a session. Its `session`, `results` and `errors` are used as in @satorijs/core 4.6.0,
 * `MessageEncoder.send`.
 *
 * @param adapt sets what the encoder needs besides the session
 * @returns a function that sends the elements of the session without announcing them again. It returns the IDs of the platform messages, an
 *   empty text for a message without an ID; it throws a SendError if only a part has arrived, otherwise the error of the adapter.
 */
export async function encode(
  bot: Bot, channelId: string, session: SendSession, adapt?: (encoder: MessageEncoder) => unknown,
): Promise<() => Promise<string[]>> {
  const Encoder = encoderOf(bot)
  if (!Encoder) throw new SendError('refused', 'the adapter cannot encode what another plugin made of the message')
  const encoder = new Encoder(bot, channelId)
  encoder.session = session
  await adapt?.(encoder)
  await encoder.prepare()
  return async () => {
    try {
      await encoder.render(session.elements ?? [], true)
      if (encoder.errors.length > 0) throw new AggregateError(encoder.errors)
    } catch (error) {
      throw encoder.results.length > 0 ? partlyArrived(error) : error
    }
    return encoder.results.map(message => message.id ?? '')
  }
}

/** The failure of a divided message. It is final if a further call would repeat the part that has arrived. */
export function partlyArrived(cause: unknown, isFinal = true): SendError {
  return new SendError('unanswered', 'only a part of it has arrived', { isFinal, cause, limit: cause instanceof SendError ? cause.limit : undefined })
}
