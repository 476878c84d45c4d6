import { h, MessageEncoder, Universal, type Bot, type Context } from 'koishi'
import { RelayError } from '../errors'
import { unwrap } from '../lib/unwrap'
import { causes } from '../message/causes'
import type { BotSelector, ParsedItem, Target } from '../message/model'
import type { Presence } from './bots'
import { throwClassified } from './failure'
import { SendError, type Account, type Closure, type Contact, type Health, type HistoryPage, type LoadedItem, type Message, type Port, type Receipt } from './port'

/** What is particular to one platform. The bots of all others are used through Koishi's own interface. */
export interface PlatformSupport {
  /** As Koishi names it. */
  readonly platform: string
  /** Makes the account of a bot on this platform. It must go on working when the plugin is reloaded. */
  account(bot: Bot, presence: Presence): BotAccount
  /** As `Port.onChat`. */
  onChat: Port['onChat']
}

/** The accounts by their bots. They outlive a reload of the plugin, because calls under way do. */
const accounts = new WeakMap<Bot, BotAccount>()

/** A bot as operators see it. */
export interface BotState extends Omit<Health, 'state'> { platform: string, self_id: string, status: Health['state'] | 'restricted' }

/** The bots of a Koishi app. */
export class KoishiPort implements Port {
  private readonly bots: readonly Bot[]

  /** @param preferred the platform whose bots are chosen before others */
  constructor(ctx: Context, private readonly presence: Presence, private readonly preferred: PlatformSupport) {
    this.bots = unwrap(ctx.bots)
  }

  choose(selector: BotSelector): Account {
    return this.account(this.pick(selector, bot => this.presence.isOnline(bot)) ?? this.refuse(selector))
  }

  chooseLater(selector: BotSelector): Account {
    return this.account(this.pick(selector, bot => this.presence.isOnline(bot)) ?? this.pick(selector, () => true) ?? this.refuse(selector))
  }

  find(sid: string): Account | undefined {
    const bots = this.bots.map(unwrap).filter(bot => bot.sid === sid)
    const bot = bots.find(bot => this.presence.isOnline(bot)) ?? bots[0]
    return bot && this.account(bot)
  }

  onOnline(callback: (sid: string) => void): () => void {
    return this.presence.subscribe(({ sid }, { state }) => {
      if (state === 'online') callback(sid)
    })
  }

  onChat(callback: Parameters<Port['onChat']>[0]): () => void {
    return this.preferred.onChat(callback)
  }

  /** Whether any bot can send now. */
  get isOnline(): boolean {
    return this.bots.some(bot => this.presence.isOnline(unwrap(bot)))
  }

  /**
   * The bots and their health, for operators; without hidden bots.
   *
   * @param restricted since when what an account sends vanishes, in milliseconds since the epoch, by its `sid`
   */
  describe(restricted: ReadonlyMap<string, number>): BotState[] {
    return this.bots.map(unwrap).filter(({ hidden }) => !hidden).map(bot => {
      const { state: status, ...health } = this.presence.health(bot)
      const since = status === 'online' ? restricted.get(bot.sid) : undefined
      const names = { platform: bot.platform ?? 'unknown', self_id: bot.selfId }
      return since === undefined ? { ...names, status, ...health } : { ...names, status: 'restricted', since, cause: causes['restricted-account'].en }
    })
  }

  /** The first bot of the preferred platform that fits, otherwise the first that fits. Hidden bots have to be asked for. */
  private pick(selector: BotSelector, isFit: (bot: Bot) => boolean): Bot | undefined {
    const isAsked = isNamed(selector)
    const bots = this.bots.map(unwrap).filter(bot => isFit(bot) && (isAsked ? matches(bot, selector) : !bot.hidden))
    return bots.find(({ platform }) => platform === this.preferred.platform) ?? bots[0]
  }

  /** @throws RelayError `unsent` */
  private refuse(selector: BotSelector): never {
    const bot = this.pick(selector, () => true)
    const fault = bot && this.presence.faultOf(bot)
    const what = isNamed(selector) ? 'no bot with this platform and self_id is online' : 'no bot is online'
    throw new RelayError('unsent', `${fault === undefined ? what : `${what}: ${fault}`}: try again later`)
  }

  private account(traced: Bot): Account {
    const bot = unwrap(traced)
    const known = accounts.get(bot)
    // Some adapters know the platform of a bot only when it has logged in.
    if (known?.platform === (bot.platform ?? '')) return known
    const isPreferred = bot.platform === this.preferred.platform
    const account = isPreferred ? this.preferred.account(bot, this.presence) : new AdapterAccount(bot, this.presence)
    accounts.set(bot, account)
    return account
  }
}

function isNamed({ platform, selfId }: BotSelector): boolean {
  return (platform ?? selfId) !== undefined
}

function matches(bot: Bot, { platform = bot.platform, selfId = bot.selfId }: BotSelector): boolean {
  return bot.platform === platform && bot.selfId === selfId
}

/** What the accounts of all platforms have in common. */
export abstract class BotAccount implements Account {
  readonly platform: string

  constructor(readonly bot: Bot, private readonly presence: Presence) {
    this.platform = bot.platform ?? ''
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

  abstract checkIds(target: Target, items: readonly ParsedItem[]): void
  abstract recall(target: Target, messageId: string): Promise<void>
  abstract closure(target: Target): Promise<Closure | 'open' | undefined>
  abstract groups(): Promise<Contact[]>
  abstract friends(): Promise<Contact[]>
  abstract message(target: Target, items: readonly LoadedItem[]): Message

  onOffline(callback: () => void): () => void {
    return this.presence.onOffline(this.bot, callback)
  }

  onOnline(callback: () => void): () => void {
    return this.presence.onOnline(this.bot, callback)
  }
}

/** An account on any platform, through its adapter. */
class AdapterAccount extends BotAccount {
  /** The form of IDs is unknown here, but many adapters put one into an address unescaped (RFC 3986, section 5.2.4). */
  checkIds({ kind, id }: Target): void {
    const leadsElsewhere = id.split(/[/\\]/).some(part => /^(?:\.|%2e){1,2}$/i.test(part))
    if (leadsElsewhere) throw new RelayError('bad-request', `this is not the ID of a ${kind === 'group' ? 'group' : 'user'}`)
  }

  async recall(target: Target, messageId: string): Promise<void> {
    await channelOf(this.bot, target).then(channelId => this.bot.deleteMessage(channelId, messageId)).catch(throwClassified)
  }

  /** Koishi has no common way to ask for it. */
  closure(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  groups(): Promise<Contact[]> {
    return listChannels(this.bot).catch(throwClassified)
  }

  friends(): Promise<Contact[]> {
    return listFriends(this.bot).catch(throwClassified)
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new AdapterMessage(this.bot, target, items)
  }
}

async function channelOf(bot: Bot, { kind, id }: Target): Promise<string> {
  return kind === 'private' ? (await bot.createDirectChannel(id)).id : id
}

/** The channels that targets name: those in guilds that take text. */
async function listChannels(bot: Bot): Promise<Contact[]> {
  const channels: Contact[] = []
  for await (const guild of bot.getGuildIter()) {
    for await (const { id, type, name = guild.name ?? '' } of bot.getChannelIter(guild.id)) {
      if (type === text) channels.push({ id, name })
    }
  }
  return channels
}

async function listFriends(bot: Bot): Promise<Contact[]> {
  const friends: Contact[] = []
  for await (const { user, nick } of bot.getFriendIter()) friends.push({ id: user?.id ?? '', name: nick ?? user?.name ?? '' })
  return friends
}

/** A message on any platform. Koishi has no common interface to the history of a chat, so nothing is ever looked up. */
class AdapterMessage implements Message {
  /** All alike: nothing tells apart what is never looked up. */
  readonly likeness = ''

  constructor(private readonly bot: Bot, private readonly target: Target, private readonly items: readonly LoadedItem[]) {}

  async send(begin: () => void): Promise<Receipt> {
    const ids = await this.call(begin).catch(throwClassified)
    // This is how `sendMessage` tells that another plugin suppressed the message.
    if (ids.length === 0) throw new SendError('suppressed')
    return { messageIds: ids.filter(id => id !== '') }
  }

  history(): Promise<HistoryPage | undefined> {
    return Promise.resolve(undefined)
  }

  /** Takes the steps of Koishi's `sendMessage` one by one: other plugins have their say before the message may arrive. */
  private async call(begin: () => void): Promise<string[]> {
    const { bot, target, items } = this
    const channelId = await channelOf(bot, target)
    const encoder = createEncoder(bot, channelId)
    if (!encoder) {
      begin()
      return bot.sendMessage(channelId, items.map(toElement))
    }
    encoder.session = createSession(bot, channelId, target.kind === 'private')
    await encoder.prepare()
    await announceSend(bot, encoder.session, await encoder.session.transform(items.map(toElement)))
    begin()
    return render(encoder)
  }
}

const direct = Universal.Channel.Type.DIRECT
const text = Universal.Channel.Type.TEXT

/** The session of a message that is sent, which other plugins see. */
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

/**
 * The session of a message to a channel, as Koishi's own encoders make it.
 *
 * @param event further fields of its event
 */
export function createSession(bot: Bot, id: string, isDirect: boolean, event: Partial<Universal.Event> = {}): SendSession {
  return bot.session({ ...event, type: 'send', channel: { id, type: isDirect ? direct : text } })
}

/**
 * Whether any plugin listens to messages that are sent. Most apps have no such plugin, and making the session takes a tenth of the time of
 * a send. The listeners are those of `Lifecycle` in @cordisjs/core 3.18.1; `internal/event` receives all events.
 */
export function isHeard(bot: Bot): boolean {
  const { 'before-send': before, send, 'internal/event': all } = lifecycleOf(bot)._hooks
  return [before, send, all].some(list => list?.length)
}

/**
 * Shows a message to other plugins before it is sent. They may change the elements of the session.
 *
 * @returns the elements afterwards
 * @throws SendError `suppressed` when a plugin suppresses the message, or fails
 */
export async function announceSend(bot: Bot, session: SendSession, elements: h[]): Promise<h[]> {
  session.elements = elements
  let isSuppressed: unknown
  try {
    isSuppressed = await lifecycleOf(bot).serial(session, 'before-send', session, {})
  } catch (error) {
    throw new SendError('suppressed', undefined, { cause: error })
  }
  if (isSuppressed || !session.elements.length) throw new SendError('suppressed')
  return session.elements
}

/** Shows other plugins a message that was sent. Their errors are logged. */
export function announceSent(bot: Bot, session: SendSession, messageId: string): void {
  session.messageId = messageId
  session.userId = bot.selfId
  try {
    lifecycleOf(bot).emit(session, 'send', session)
  } catch (error) {
    bot.logger.warn(error)
  }
}

type Lifecycle = Bot['ctx']['lifecycle']

/** Reading it from the context takes as long as the rest of an announcement. */
const lifecycles = new WeakMap<Bot, Lifecycle>()

/** The events of a bot's app. */
function lifecycleOf(bot: Bot): Lifecycle {
  const lifecycle = lifecycles.get(bot) ?? unwrap(bot.ctx.root.lifecycle)
  lifecycles.set(bot, lifecycle)
  return lifecycle
}

type EncoderClass = new (bot: Bot, channelId: string) => MessageEncoder

/**
 * The adapter's message encoder for a channel, `undefined` when the bot has none. Its `session`, `results` and `errors` are used as
 * in @satorijs/core 4.6.0, `MessageEncoder.send`.
 */
export function createEncoder(bot: Bot, channelId: string): MessageEncoder | undefined {
  const Encoder: unknown = Reflect.get(bot.constructor, 'MessageEncoder')
  return isEncoderClass(Encoder) ? new Encoder(bot, channelId) : undefined
}

function isEncoderClass(value: unknown): value is EncoderClass {
  return typeof value === 'function' && value.prototype instanceof MessageEncoder
}

/**
 * Sends the elements of the encoder's session without another announcement.
 *
 * @returns the IDs of the platform messages; an empty text for a message without an ID
 * @throws SendError when only a part has arrived, otherwise the error of the adapter
 */
export async function render(encoder: MessageEncoder): Promise<string[]> {
  try {
    await encoder.render(encoder.session.elements ?? [], true)
    if (encoder.errors.length > 0) throw new AggregateError(encoder.errors)
  } catch (error) {
    throw encoder.results.length > 0 ? partlyArrived(error) : error
  }
  return encoder.results.map(message => message.id ?? '')
}

/** The failure of a message that an adapter has divided. A further call would repeat the part that has arrived. */
export function partlyArrived(cause: unknown): SendError {
  return new SendError('unanswered', 'only a part of it has arrived', { isFinal: true, cause })
}
