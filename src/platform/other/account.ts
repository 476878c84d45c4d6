import { h, Universal, type Bot, type Session } from 'koishi'
import { LRUCache } from 'lru-cache'
import { fieldsOf } from '../../lib/shape'
import type { Item, Target } from '../../message/model'
import { BotAccount, isUser, type PlatformSupport } from '../account'
import { classifyThrown, throwClassified } from '../failure'
import { BotMessage, type Channel, type Prepared } from '../send'
import { announceSend, createSession, encode, encoderOf, partlyArrived, toElement, type SendSession } from '../session'
import { SendError, type Contact, type Fitting, type LoadedItem, type LoadedMedia, type Message, type Receipt } from '../port'
import { readMedia, type MediaFile } from '../web'
import { adapterOf, type Adapter, type Feature } from './adapters'
import { answerIn, failureOf, observe, watchExchanges, type Exchange } from './answer'

/** Any other platform, through Koishi's own interface. */
export const anyPlatform: PlatformSupport = {
  owns: () => true,
  account: (bot, presence) => new AdapterAccount(bot, presence),
  listen: watchExchanges,
}

/** The names of items. */
const features: Readonly<Record<Feature, string>> = {
  'text': 'a text', 'image': 'a picture', 'video': 'a video', 'audio': 'a voice message', 'file': 'a file', 'at': 'a mention',
  'at-all': 'a mention of everybody', 'reply': 'a reply',
}

/** An account on any other platform, through its adapter. */
class AdapterAccount extends BotAccount {
  readonly readsFiles = true
  readonly adapter = adapterOf(this.bot)
  override readonly takesFiles = !this.adapter?.lacks.includes('file')
  /** A Chinese character takes three bytes. */
  readonly longestText = Math.floor((this.adapter?.longest ?? Infinity) / (this.adapter?.countsBytes ? 3 : 1))
  readonly retriesUnanswered = false
  override readonly recallableFor = can(this.bot, 'deleteMessage') ? Infinity : 0
  /** When a new token was last asked for, on the monotonic clock. */
  private renewedAt = -Infinity

  fits(items: readonly Fitting[]): boolean {
    const { separates } = this.adapter ?? {}
    const others = items.slice(separates === 'but-one' ? 1 : 0)
    return separates === undefined || items.length === 1 || others.every(({ type }) => type !== 'image')
  }

  /** The bots of Koishi's sandbox never come online. */
  override get isOnline(): boolean {
    return this.bot.adapterName === 'sandbox' || super.isOnline
  }

  /** Remembers the last message of each chat, on platforms where a message must be the answer to another one. */
  override hear(session: Session): void {
    const { type, isDirect, userId = '', channelId = '' } = session
    if (!this.adapter?.answers || type !== 'message-created') return
    incoming.set(`${this.sid} ${isDirect ? `private:${userId}` : `group:${channelId}`}`, session)
  }

  protected readonly mentions = [
    (id: string): boolean => this.adapter?.userId?.test(id) !== false && isUser(id), 'the ID of a mention is not that of a user',
  ] as const

  /** The format of IDs is unknown, but many adapters put them into URLs unescaped (RFC 3986, section 5.2.4). */
  protected override whyNoChat({ kind, id }: Target): string | undefined {
    const leadsElsewhere = id.split(/[/\\]/).some(part => /^(?:\.|%2e){1,2}$/i.test(part))
    return leadsElsewhere ? `this is not the ID of a ${kind === 'group' ? 'group' : 'user'}` : undefined
  }

  protected override whyNotSent(item: Item): string | undefined {
    const { adapter } = this
    const feature = item.type === 'at' && item.userId === null ? 'at-all' : item.type
    if (!adapter?.lacks.includes(feature)) return
    return `${features[feature]} cannot be sent by the adapter for ${adapter.name}${'link' in item ? ': send a link to it as text' : ''}`
  }

  async recall(target: Target, messageId: string): Promise<void> {
    const exchanges: Exchange[] = []
    const error = await observe(exchanges, async () => this.bot.deleteMessage(await this.channelOf(target), messageId))
      .then(() => undefined, (error: unknown) => classifyThrown(error))
    const failure = failureOf(exchanges.at(-1)?.answer, this.adapter) ?? error
    if (failure) throw failure
  }

  /**
   * Asks for a new token after the platform has refused the present one: the timers of adapters give up at the first failure.
   *
   * @returns the failure of the call; a retryable one if a token was asked for
   */
  renewToken(failure: SendError): SendError {
    const { refreshToken: renew, refreshTokenTimer: timer } = fieldsOf(this.bot)
    const now = performance.now()
    if (failure.causeId !== 'logged-out' || typeof renew !== 'function' || now - this.renewedAt < renewalPause) return failure
    this.renewedAt = now
    Reflect.apply(clearTimeout, undefined, [timer])
    // Not awaited, because a long call counts as unanswered. If this fails, the next failure of a call says why.
    void Promise.resolve(Reflect.apply(renew, this.bot, [])).catch(() => undefined)
    // Without the failure as its cause, which would hold the queue for a minute.
    return new SendError('unsent', failure.wording)
  }

  groups(): Promise<Contact[]> {
    return listChannels(this.bot).catch(throwClassified)
  }

  friends(): Promise<Contact[]> {
    return listFriends(this.bot).catch(throwClassified)
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new AdapterMessage(this, target, items)
  }

  /** @throws SendError */
  async channelOf(target: Target): Promise<string> {
    const closed = this.whyClosed(target)
    if (closed !== undefined) throw new SendError('refused', closed, { isFinal: true })
    const { kind, id } = target
    const direct = this.adapter?.direct
    if (kind === 'group' || direct === 'user') return id
    if (direct === 'prefix') return `private:${id}`
    return direct === 'answer' ? answered(this.bot, target)?.channelId ?? id : (await this.bot.createDirectChannel(id)).id
  }

  protected override whyClosed(target: Target): string | undefined {
    const { direct = 'ask', isPrivateOnly, name } = this.adapter ?? {}
    if (target.kind === 'group') return isPrivateOnly && `${name} has private chats only: write private:<ID of the user>`
    if (direct === 'ask' && !can(this.bot, 'createDirectChannel')) return 'the adapter of this bot knows no private chats by the ID of a user'
    const isUnknown = direct === 'answer' && !answered(this.bot, target)
    return isUnknown ? 'the platform has a private chat with a user only for some minutes after the user wrote to the bot' : undefined
  }
}

/** Whether an adapter implements a method of Koishi's bots. */
function can(bot: Bot, method: keyof Universal.Methods): boolean {
  return typeof Reflect.get(bot, method) === 'function'
}

const text = Universal.Channel.Type.TEXT

/** The text channels of all guilds, as contacts. */
async function listChannels(bot: Bot): Promise<Contact[]> {
  const channels: Contact[] = []
  if (!can(bot, 'getGuildList') || !can(bot, 'getChannelList')) return channels
  for await (const guild of bot.getGuildIter()) {
    for await (const { id, type, name = guild.name ?? '' } of bot.getChannelIter(guild.id)) {
      if (type === text) channels.push({ id, name })
    }
  }
  return channels
}

async function listFriends(bot: Bot): Promise<Contact[]> {
  const friends: Contact[] = []
  if (!can(bot, 'getFriendList')) return friends
  for await (const { user, nick } of bot.getFriendIter()) friends.push({ id: user?.id ?? '', name: nick ?? user?.name ?? '' })
  return friends
}

/** The last message of each chat, as long as QQ accepts an answer to it. Survives a reload of the plugin. */
const incoming = new LRUCache<string, Session>({ max: 5_000, ttl: 5 * 60_000 })

/** The message that a message to this target can answer. */
function answered({ sid }: Bot, { kind, id }: Target): Session | undefined {
  return incoming.get(`${sid} ${kind}:${id}`)
}

/** The least time between two requests for a token, in milliseconds: a refusal with a new token has another reason. */
const renewalPause = 60_000

/** The largest file to read for an adapter, in bytes, because adapters keep several copies in memory. */
const maxMedia = 100 * 2 ** 20

/** A message on any other platform. Koishi has no common interface to the history of a chat, so there are no look-ups. */
class AdapterMessage extends BotMessage<AdapterAccount> {
  /** The same for all messages, because there are no look-ups. */
  readonly likeness = ''
  /** The loaded elements. A further round waits for the downloads of the one before. */
  private readonly files = new Map<LoadedMedia, Promise<MediaFile>>()
  private readonly bot = this.account.bot
  private readonly adapter = this.account.adapter

  protected channel(): Promise<Channel> {
    return this.watch(async () => ({ id: await this.account.channelOf(this.target) }))
  }

  /** Without the session: the adapter shows the message to other plugins. */
  protected async prepare({ id }: Channel): Promise<Prepared> {
    const render = await this.watch(() => this.encode(id))
    return { calls: [() => this.call(render)] }
  }

  /** Makes a call of the adapter. If it fails, the platform's answer says more than the adapter's error. */
  private async watch<T>(call: () => Promise<T>): Promise<T> {
    const exchanges: Exchange[] = []
    return observe(exchanges, call).catch((error: unknown) => {
      throw failureOf(exchanges.at(-1)?.answer, this.adapter) ?? error
    })
  }

  private async call(render: () => Promise<string[]>): Promise<Receipt> {
    const exchanges: Exchange[] = []
    try {
      const ids = await observe(exchanges, render)
      return { messageIds: this.check(ids, exchanges) }
    } catch (error) {
      const id = this.confirmed(exchanges)
      if (id === undefined) throw this.account.renewToken(this.explain(error, exchanges))
      return { messageIds: [id] }
    }
  }

  /**
   * Performs the steps of Koishi's `sendMessage` one by one, so that other plugins come before the call.
   *
   * @returns a function that sends the message
   */
  private async encode(channelId: string): Promise<() => Promise<string[]>> {
    const { account, bot, adapter, target, items } = this
    const words = items.map(item => item.type === 'text' ? item.text : '').join('')
    const size = adapter?.countsBytes ? Buffer.byteLength(words) : words.length
    if (size > (adapter?.longest ?? Infinity)) throw new SendError('refused', undefined, { causeId: 'too-long', isFinal: true })
    const elements = (await Promise.all(items.map(item => this.toElement(item)))).flat()
    if (!encoderOf(bot)) return () => bot.sendMessage(channelId, elements)
    const isDirect = target.kind === 'private'
    const session = createSession(bot, channelId, isDirect)
    const referrer = adapter && (answered(bot, target) ?? (isDirect ? createReferrer(bot, target) : undefined))
    const render = await encode(bot, channelId, session, encoder => {
      if (referrer) encoder.options = { ...encoder.options, session: referrer }
    })
    await announceSend(account, session, await session.transform(elements))
    return render
  }

  /** Hands media to the adapter as data: from links, adapters take a wrong name and type, and their download counts as the send. */
  private async toElement(item: LoadedItem): Promise<h | h[]> {
    const { bot, adapter } = this
    if (item.type === 'text' && adapter) return toTexts(item.text, adapter)
    if (!('src' in item)) return toElement(item)
    const file = this.files.get(item) ?? readMedia(bot, item, maxMedia)
    this.files.set(item, file)
    const { data, name, type } = await file.catch((error: unknown) => {
      this.files.delete(item)
      throw error
    })
    if (adapter?.mediaTypes?.test(type) === false) {
      throw new SendError('refused', `${adapter.name} takes no files of the type ${type}`, { isFinal: true })
    }
    const { type: tag } = toElement(item)
    const src = `data:${type};base64,${data.toString('base64')}`
    // Adapters differ in the attribute for the name.
    return h(tag === 'img' ? adapter?.picture ?? tag : tag, { src, title: name, file: name })
  }

  /**
   * Checks the result of an adapter.
   *
   * @returns the IDs of the messages
   * @throws SendError if the platform refused a part, or nothing confirms the send
   */
  private check(results: readonly string[], exchanges: readonly Exchange[]): string[] {
    const { adapter } = this
    const ids = results.filter(id => id !== '')
    // Adapters swallow errors. With an unknown adapter, a further request may have been part of the message.
    const [failure, ...more] = adapter || results.length === 0
      ? exchanges.flatMap(({ answer }) => (answer ? failureOf(answer, adapter) : new SendError('unanswered')) ?? [])
      : []
    if (failure) throw ids.length > 0 && more.length + 1 < exchanges.length ? partlyArrived(failure) : failure
    // Adapters accept any answer as a success. That of a platform has an ID; the page of a proxy has none.
    if (results.length > 0 && (!adapter || ids.length === results.length)) return ids
    if (ids.length > 0) throw partlyArrived(undefined)
    if (adapter && exchanges.length === 0) throw new SendError('refused', undefined, { causeId: 'empty', isFinal: true })
    throw new SendError('unanswered', 'the adapter does not say whether the message was sent')
  }

  /** The failure of a call that threw. The platform's answer says more than the adapter's error. */
  private explain(error: unknown, exchanges: readonly Exchange[]): SendError {
    const { adapter } = this
    if (error instanceof SendError) return error
    const last = exchanges.at(-1)
    const failure = failureOf(last?.answer ?? answerIn(error), adapter)
    if (failure) return failure
    if (last?.answer) return new SendError('unanswered', 'the adapter failed at the answer of the platform', { cause: error })
    return classifyThrown(error, adapter && !adapter.isUnseen && !last ? 'refused' : 'unanswered')
  }

  /** The ID of a message that the platform accepted before the adapter failed. */
  private confirmed(exchanges: readonly Exchange[]): string | undefined {
    const body = exchanges.at(-1)?.answer?.body
    const id = typeof body === 'object' && body !== null ? this.adapter?.confirmed?.({ ...body }) : undefined
    return typeof id === 'string' ? id : undefined
  }
}

/** A text as elements. A link becomes an element if the adapter would change it. */
function toTexts(text: string, { spoilsLinks, escape = String }: Adapter): h[] {
  const parts = spoilsLinks ? text.split(/(https?:\/\/[^\s<>|"]+[^\s<>|".,:;!?'*)\]}])/) : [text]
  return parts.map((part, index) => {
    const shown = h.text(escape(part))
    return index % 2 === 1 && spoilsLinks?.test(part) ? h('a', { href: escape(part) }, shown) : shown
  })
}

/** A stand-in for the answered message: adapters read the user from it. */
function createReferrer(bot: Bot, { id }: Target): SendSession {
  const session = createSession(bot, id, true, { user: { id } })
  session.setInternal(bot.platform ?? '', {})
  return session
}
