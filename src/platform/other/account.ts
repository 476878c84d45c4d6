import { h, HTTP, Universal, type Bot, type Context, type Session } from 'koishi'
import { LRUCache } from 'lru-cache'
import { AsyncLocalStorage } from 'node:async_hooks'
import { parseJson } from '../../lib/json'
import { fieldsOf, toText, type JsonObject } from '../../lib/shape'
import type { Item, Target } from '../../message/model'
import { BotAccount, isUser, type PlatformSupport } from '../account'
import { classifyThrown, throwClassified } from '../failure'
import { SendError, type Contact, type Fitting, type LoadedItem, type LoadedMedia, type Message, type Receipt } from '../port'
import { BotMessage, opened, type Prepared } from '../send'
import { announceSend, createSession, encode, encoderOf, partlyArrived, toElement, type SendSession } from '../session'
import { readMedia, retryAfterOf, toFailure, type MediaFile, type WebAnswer } from '../web'
import type { TextId } from '../../texts/table'
import { adapterOf, type Adapter, type Feature } from './adapters'
import { clauses, say, type Text } from '../../texts/text'

/** Any other platform, through Koishi's own interface. */
export const anyPlatform: PlatformSupport = {
  owns: () => true,
  account: (bot, presence) => new AdapterAccount(bot, presence),
  listen: watchExchanges,
}

/** The names of items. */
const features = {
  'text': 'item-text', 'image': 'item-image', 'video': 'item-video', 'audio': 'item-audio', 'file': 'item-file', 'at': 'item-at',
  'at-all': 'item-at-all', 'reply': 'item-reply',
} as const satisfies Readonly<Record<Feature, TextId>>

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
    (id: string): boolean => this.adapter?.userId?.test(id) !== false && isUser(id), say('mention-not-user'),
  ] as const

  /** The format of IDs is unknown, but many adapters put them into URLs unescaped (RFC 3986, section 5.2.4). */
  protected override whyNoChat({ kind, id }: Target): Text | undefined {
    const leadsElsewhere = id.split(/[/\\]/).some(part => /^(?:\.|%2e){1,2}$/i.test(part))
    return leadsElsewhere ? say(kind === 'group' ? 'not-a-group-id' : 'not-a-user-id') : undefined
  }

  protected override whyNotSent(item: Item): Text | undefined {
    const { adapter } = this
    const feature = item.type === 'at' && item.userId === null ? 'at-all' : item.type
    if (!adapter?.lacks.includes(feature)) return
    const reason = say('adapter-cannot-send', { item: say(features[feature]), platform: adapter.name })
    return 'link' in item ? clauses(reason, say('send-link-instead')) : reason
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

  /** The text channels of all guilds. */
  groups(): Promise<Contact[]> {
    const { bot } = this
    return listed(bot, ['getGuildList', 'getChannelList'], async contacts => {
      for await (const guild of bot.getGuildIter()) {
        for await (const { id, type, name = guild.name ?? '' } of bot.getChannelIter(guild.id)) {
          if (type === Universal.Channel.Type.TEXT) contacts.push({ id, name })
        }
      }
    })
  }

  friends(): Promise<Contact[]> {
    const { bot } = this
    return listed(bot, ['getFriendList'], async contacts => {
      for await (const { user, nick } of bot.getFriendIter()) contacts.push({ id: user?.id ?? '', name: nick ?? user?.name ?? '' })
    })
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

  protected override whyClosed(target: Target): Text | undefined {
    const { direct = 'ask', isPrivateOnly, name = '' } = this.adapter ?? {}
    if (target.kind === 'group') return isPrivateOnly ? say('private-chats-only', { platform: name }) : undefined
    if (direct === 'ask' && !can(this.bot, 'createDirectChannel')) return say('no-private-by-id')
    const isUnknown = direct === 'answer' && !answered(this.bot, target)
    return isUnknown ? say('private-after-message') : undefined
  }
}

/** Whether an adapter implements a method of Koishi's bots. */
function can(bot: Bot, method: keyof Universal.Methods): boolean {
  return typeof Reflect.get(bot, method) === 'function'
}

/** A list of contacts; empty if the adapter lacks a method for it. @throws SendError */
async function listed(
  bot: Bot, methods: readonly (keyof Universal.Methods)[], read: (contacts: Contact[]) => Promise<void>,
): Promise<Contact[]> {
  const contacts: Contact[] = []
  if (methods.every(method => can(bot, method))) await read(contacts).catch(throwClassified)
  return contacts
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
  isOpening = false
  /** The loaded elements. A further round waits for the downloads of the one before. */
  private readonly files = new Map<LoadedMedia, Promise<MediaFile>>()
  private readonly bot = this.account.bot
  private readonly adapter = this.account.adapter

  /** Without the session: the adapter shows the message to other plugins. */
  protected async prepare(): Promise<Prepared> {
    const exchanges: Exchange[] = []
    const render = await observe(exchanges, () => this.encode()).catch((error: unknown) => {
      throw failureOf(exchanges.at(-1)?.answer, this.adapter) ?? error
    })
    return { calls: [() => this.call(render)] }
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
  private async encode(): Promise<() => Promise<string[]>> {
    const { account, bot, adapter, target, items } = this
    const channelId = await opened(this, account.channelOf(target))
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
      throw new SendError('refused', say('type-not-taken', { platform: adapter.name, type }), { isFinal: true })
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
    throw new SendError('unanswered', say('adapter-does-not-say'))
  }

  /** The failure of a call that threw. The platform's answer says more than the adapter's error. */
  private explain(error: unknown, exchanges: readonly Exchange[]): SendError {
    const { adapter } = this
    if (error instanceof SendError) return error
    const last = exchanges.at(-1)
    const failure = failureOf(last?.answer ?? answerIn(error), adapter)
    if (failure) return failure
    if (last?.answer) return new SendError('unanswered', say('adapter-failed-at-answer'), { cause: error })
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

/*
 * The answers of platforms to the requests that adapters make through Koishi's HTTP client. Adapters turn an answer into a text or an error
 * of their own, or swallow it, so the relay reads the answer itself.
 */

/** A request of an adapter that changes something. Without an answer, it may have been carried out. */
interface Exchange { answer?: Said }

/** What a platform answered. */
type Said = Omit<WebAnswer, 'text'>

/** The exchanges of the present call. */
const current = new AsyncLocalStorage<Exchange[]>()

/** Starts to observe the requests of an app. The returned function ends that. */
function watchExchanges(app: Context): () => void {
  // `config` is what the client goes on to read: @cordisjs/plugin-http 0.6.3, `HTTP[Service.invoke]`.
  return app.on('http/fetch-init', (_url, { method }, config) => {
    const exchanges = current.getStore()
    if (!exchanges || method === 'GET' || seen.has(config)) return
    seen.add(config)
    const exchange: Exchange = {}
    exchanges.push(exchange)
    Object.assign(config, note(exchange, fieldsOf(config)))
  })
}

/** During a reload, both relays may observe the same request. */
const seen = new WeakSet()

/** Runs a call of an adapter, and adds its exchanges to the list as they start. */
function observe<T>(exchanges: Exchange[], call: () => Promise<T>): Promise<T> {
  return current.run(exchanges, call)
}

/** Changes the options of a request so that its answer is noted. For the adapter, nothing changes. */
function note(exchange: Exchange, { validateStatus, responseType }: JsonObject): object {
  const isValid = (status: number): unknown => typeof validateStatus === 'function' ? Reflect.apply(validateStatus, undefined, [status]) : status < 400
  const begin = ({ status, headers }: Pick<Response, 'status' | 'headers'>): Said => exchange.answer = { status, headers, body: undefined }
  if (responseType !== undefined) {
    return {
      validateStatus(status: number) {
        begin({ status, headers: new Headers() })
        return isValid(status)
      },
    }
  }
  return {
    validateStatus: () => true,
    async responseType(response: Response) {
      const answer = begin(response)
      if (isValid(response.status)) return answer.body = await decode(response)
      const { url, status, statusText, headers } = response
      const error = new HTTP.Error(statusText)
      error.response = { url, status, statusText, headers, data: answer.body = await decode(response).catch(() => null) }
      throw error
    },
  }
}

/** Like `defaultDecoder` of the HTTP client. */
function decode(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  return type.startsWith('application/json') ? response.json() : type.startsWith('text/') ? response.text() : response.arrayBuffer()
}

/**
 * Reads a failure from an answer; `undefined` for a success.
 *
 * @param adapter the known adapter, if it is one: some platforms refuse with a status of success
 */
function failureOf(answer: Said | undefined, adapter: Adapter | undefined): SendError | undefined {
  if (!answer) return
  const { status, headers, body } = answer
  const { code, words } = complaintOf(fieldsOf(body), adapter)
  const scope = adapter?.limits?.get(code) ?? (status === 429 ? 'account' : undefined)
  if (scope) return toFailure(429, { words, scope, wait: waitOf(headers, fieldsOf(body)) })
  if (adapter?.unclear?.includes(code)) return toFailure(500, { words })
  const causeId = adapter?.causes?.get(code) ?? (status === 401 ? 'logged-out' : undefined)
  if (status >= 400) return toFailure(status, { words, causeId })
  if (!adapter || code === '') return
  // QQ answers 201 and 202 while it has not decided.
  return toFailure(status > 200 ? 500 : 400, { words, causeId })
}

/** The answer in an adapter's error, or at the start of its text: `[502] {"code":…}`, `Telegram API error 502. Bad Gateway`. */
function answerIn(error: unknown): Said | undefined {
  const { status, headers, data } = fieldsOf(fieldsOf(error).response)
  if (typeof status === 'number') return { status, headers: headers instanceof Headers ? headers : new Headers(), body: data }
  const [, code, text = ''] = /^(?:\[|\w+ API error )([1-5]\d\d)\b[\].]? ?(.*)/s.exec(error instanceof Error ? error.message : '') ?? []
  return code === undefined ? undefined : { status: Number(code), headers: new Headers(), body: parseJson(text) ?? { message: text } }
}

/** The code and the words of a complaint; no code if there is no complaint. */
function complaintOf(body: JsonObject, adapter: Adapter | undefined): { code: string, words: string } {
  const error = fieldsOf(body.error)
  const code = [adapter?.complaint?.(body), error.code, body.errcode, body.code, body.ok === false && body.error]
    .map(toText).find(text => text !== '' && text !== '0') ?? ''
  const words = [error.message, body.errmsg, body.message, body.msg, body.description, body.error].map(toText).find(Boolean) ?? code
  return { code, words }
}

/** `Retry-After`, KOOK's header for the same, or the field `retry_after`, in seconds. */
function waitOf(headers: Headers, body: JsonObject): number | undefined {
  const seconds = [headers.get('x-rate-limit-reset'), body.retry_after].map(Number).find(number => number > 0)
  return retryAfterOf(headers) ?? (seconds && seconds * 1000)
}
