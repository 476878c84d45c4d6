import { h, Universal, type Session } from 'koishi'
import { LRUCache } from 'lru-cache'
import { hash } from '../../lib/crypto'
import { fieldsOf, isObject, toText, type JsonObject } from '../../lib/shape'
import type { Target } from '../../message/model'
import { BotAccount, isUser, type PlatformSupport } from '../account'
import { cleanWording, forgive } from '../failure'
import { Reported, toPage } from '../history'
import { elementsText } from '../incoming'
import { SendError, type Contact, type HistoryPage, type LoadedItem, type Message, type Receipt, type Report } from '../port'
import { classify, withoutCall } from '../qq-answers'
import { BotMessage, opened, type Prepared } from '../send'
import { toElement } from '../session'
import { ask, readList, readPages, retryAfterOf, toFailure, typeOf, type WebAnswer } from '../web'
import { say, type Text } from '../../texts/text'

/**
 * Bots of a Satori server elsewhere, through `@satorijs/adapter-satori` (1.5.1). The server names their platforms.
 *
 * The API: https://satori.chat/zh-CN/protocol/api.html
 */
export const satori: PlatformSupport = {
  owns: bot => bot.adapterName === 'satori',
  account: (bot, presence) => new SatoriAccount(bot, presence),
}

const direct = Universal.Channel.Type.DIRECT
const text = Universal.Channel.Type.TEXT

/** One login of a Satori server. */
class SatoriAccount extends BotAccount {
  /** The server downloads links, and may read paths. */
  readonly readsFiles = false
  /** The protocol does not give the limit of the platform behind the server. */
  readonly longestText = Infinity
  /** Without a usable history, nothing proves that a text did not arrive: Chronocat declares one and answers with an empty list. */
  readonly retriesUnanswered = false
  /** The channels of private chats by users, from the server. */
  private readonly channels = new LRUCache<string, string>({ max: 5_000 })
  /** The own messages that the server has reported, with their likenesses. */
  private readonly reported = new Reported<string>()

  protected readonly mentions = [isUser, say('satori-mention')] as const

  protected override whyClosed({ kind, id }: Target): Text | undefined {
    const isOpen = kind === 'group' || this.offers('user.channel.create') || this.channels.has(id)
    return isOpen ? undefined : say('satori-no-private')
  }

  protected override whyNotSent(): Text | undefined {
    return this.offers('message.create') ? undefined : say('satori-no-sending')
  }

  async recall(target: Target, messageId: string): Promise<void> {
    await this.ask('message.delete', { channel_id: await this.channelOf(target), message_id: messageId })
  }

  /** The text channels, with IDs for targets; none if the server has no such list. */
  async groups(): Promise<Contact[]> {
    const groups: Contact[] = []
    for (const { id: guildId, name: guildName } of await this.list('guild.list')) {
      // A bot may have no access to some of its guilds.
      const channels = await this.list('channel.list', { guild_id: guildId }).catch(forgive<JsonObject[]>('refused', []))
      for (const { id, type, name } of channels) {
        if (type === undefined || type === text) groups.push({ id: toText(id), name: toText(name) || toText(guildName) })
      }
    }
    return groups
  }

  async friends(): Promise<Contact[]> {
    return (await this.list('friend.list')).map(({ user, nick }) => {
      const { id, name } = fieldsOf(user)
      return { id: toText(id), name: toText(nick) || toText(name) }
    })
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new SatoriMessage(this, target, items)
  }

  /** Whether the server may have a call: `features` of the login is experimental, and may be absent. */
  offers(method: string): boolean {
    const { features } = this.bot
    return features.length === 0 || features.includes(method)
  }

  /** Whether the server reports messages of the account itself. */
  get isReported(): boolean {
    return !this.reported.isEmpty
  }

  /** The reports of equal messages in a chat, the oldest first. */
  reportsOf({ kind, id }: Target, likeness: string): Report[] {
    const channelId = kind === 'group' ? id : this.channels.get(id)
    return channelId === undefined ? [] : this.reported.find(channelId, each => each === likeness)
  }

  /** @throws SendError */
  async channelOf({ kind, id }: Target): Promise<string> {
    const known = kind === 'group' ? id : this.channels.get(id)
    if (known !== undefined) return known
    const channelId = toText(fieldsOf(await this.ask('user.channel.create', { user_id: id })).id)
    if (!channelId) throw new SendError('unsent', say('satori-no-channel'))
    this.channels.set(id, channelId)
    return channelId
  }

  /** @throws SendError */
  async ask(method: string, params: JsonObject): Promise<unknown> {
    return readBody(await ask(this.bot, 'POST', `/v1/${method}`, params))
  }

  /** All pages of a list; empty if the server has no such list. */
  private async list(method: string, params: JsonObject = {}): Promise<JsonObject[]> {
    if (!this.offers(method)) return []
    return readPages(async next => {
      const { data, next: following } = fieldsOf(await this.ask(method, { ...params, ...next && { next } }))
      return { list: data, next: toText(following) }
    }).catch(forgive<JsonObject[]>('unknown-action', []))
  }

  /** Notes the channel of a private chat, and reports of own messages. */
  override hear({ event }: Session): void {
    const { channel, user, message } = fieldsOf(event)
    const [{ id: channelId, type }, { id: userId }] = [fieldsOf(channel), fieldsOf(user)]
    const { id, elements } = fieldsOf(message)
    if (typeof channelId !== 'string' || typeof userId !== 'string' || typeof id !== 'string' || !Array.isArray(elements)) return
    if (userId === this.selfId) this.reported.keep(channelId, id, likenessOf(elements))
    else if (type === direct) this.channels.set(userId, channelId)
  }
}

class SatoriMessage extends BotMessage<SatoriAccount> {
  isOpening = false
  readonly likeness: string
  /** Absent if the server does not report own messages. */
  readonly reports?: () => readonly Report[]
  /** The elements of the last call, after other plugins. */
  private sent: readonly h[]
  /** Whether `sent` is known: another plugin may have changed the message before a restart. */
  private isKnown: boolean

  constructor(account: SatoriAccount, target: Target, items: readonly LoadedItem[]) {
    super(account, target, items)
    this.sent = toElements(items)
    this.likeness = likenessOf(this.sent)
    this.isKnown = !account.mayBeChanged
    if (account.isReported) this.reports = () => account.reportsOf(target, likenessOf(this.sent))
  }

  /** Without the session: the adapter announces the message when the server reports it. */
  protected async prepare(): Promise<Prepared> {
    const id = await opened(this, this.account.channelOf(this.target))
    const { elements } = await this.announce({ id }, () => toElements(this.items))
    return { calls: [() => this.post(id, elements)] }
  }

  private async post(channelId: string, elements: readonly h[]): Promise<Receipt> {
    this.sent = elements
    this.isKnown = true
    return readReceipt(await ask(this.account.bot, 'POST', '/v1/message.create', { channel_id: channelId, content: toMarkup(elements) }))
  }

  async history(count: number): Promise<HistoryPage | undefined> {
    const { account, account: { selfId }, target, sent } = this
    if (!account.offers('message.list')) return
    const params = { channel_id: await account.channelOf(target), limit: count }
    // A refused look-up means that there is no history: the call, or the right to it, is missing.
    const { data } = fieldsOf(await account.ask('message.list', params).catch(forgive('refused', undefined)))
    if (!Array.isArray(data)) return
    const likeness = likenessOf(sent)
    const page = toPage(data.filter(isObject), {
      isOwn: ({ user }) => toText(fieldsOf(user).id || selfId) === selfId,
      // Koishi's adapters set one of these fields.
      timeOf: ({ created_at: created, timestamp }) => Number(created ?? timestamp ?? NaN),
      idOf: ({ id }) => toText(id),
      isEqual: ({ user, content }) => fieldsOf(user).id && typeof content === 'string' ? likenessOf(h.parse(content)) === likeness : undefined,
    })
    // Servers drop mentions and files from their histories, so only texts can be absent for certain.
    return { ...page, isReadable: page.isReadable && this.isKnown && sent.every(({ type }) => type === 'text') }
  }
}

/*
 * Answers of Satori servers. A success is 200 with JSON; a failure has a status of HTTP and any text.
 * Sources: https://satori.chat/zh-CN/protocol/api.html (statuses), https://satori.chat/zh-CN/resources/message.html (`message.create`), and
 * the servers themselves:
 * - satorijs/satori `packages/server/src/index.ts`: 403 `invalid token`, `login not found`; 404 `method not found`; 405; 500 for any error
 * - LLOneBot/LuckyLilliaBot `src/satori/server.ts`: the same, and 500 with the words of QQ for whatever fails
 * - RF-Tar-Railt/satori-python `src/satori/server/__init__.py`: 404 `Action '…' is not supported in current platform '…'.`
 * - chrononeko/chronocat `packages/shell/src/satori/server.ts`: 400, `401 unauthorized`, `404 not found`, 405, 500, 501
 */

/**
 * Reads the answer to a send, a list of messages. An empty list is no success: Koishi's server returns it if a plugin suppressed the
 * message or an adapter swallowed an error, LuckyLilliaBot if it sent nothing, Chronocat if QQ reported nothing.
 *
 * @throws SendError
 */
function readReceipt(answer: WebAnswer): Receipt {
  const body = readBody(answer)
  // Sent, although the server says otherwise.
  if (answer.status >= 300) return { messageIds: [] }
  const messages = readList(body)
  if (messages.length === 0) throw new SendError('unanswered', undefined, { causeId: 'unconfirmed' })
  return { messageIds: messages.map(({ id }) => toText(id)).filter(Boolean) }
}

/** Reads the body of an answer. @throws SendError */
function readBody(answer: WebAnswer): unknown {
  const failure = failureOf(answer)
  if (failure) throw failure
  return answer.body
}

/** The texts of a 404 for a missing call, unlike those for a missing channel. */
const noSuchCall = /^(?:(?:404|method|API) not found|Action .* is not supported in current platform .*)?$/i

/** A server that is a QQ client quotes the same words as through OneBot, some of them for a message that was sent. */
function failureOf({ status, headers, text, body }: WebAnswer): SendError | undefined {
  if (status >= 200 && status < 300) return
  const words = withoutCall(wordsOf(text, body))
  if (status === 429) return toFailure(status, { words, scope: 'account', wait: retryAfterOf(headers) })
  if (status === 401 || (status === 403 && /invalid token|login not found/i.test(words))) return toFailure(401, { words, causeId: 'logged-out' })
  // 501: the server's adapter lacks the call, so nothing was done.
  if (status === 405 || status === 501 || (status === 404 && noSuchCall.test(words))) {
    return toFailure(404, { words: words || `HTTP ${status}`, causeId: 'unknown-action' })
  }
  const known = classify(NaN, words)
  if (!known || known.cause === 'unknown-action' || known.cause === 'empty-chat') return toFailure(status, { words })
  if (known.outcome === 'sent') return
  if (known.outcome === 'unanswered') return new SendError('unanswered', cleanWording(words), { causeId: known.cause })
  return toFailure(400, { words, causeId: known.cause })
}

/** Leaves out the pages of proxies, which say nothing about the message. */
function wordsOf(text: string, body: unknown): string {
  if (body === undefined) return /^\s*</.test(text) ? '' : text.trim()
  const { message, error, msg } = fieldsOf(body)
  return [message, error, msg, body].map(toText).find(Boolean) ?? ''
}

/*
 * Content in Satori's markup of elements. Sources: https://satori.chat/zh-CN/protocol/message.html (syntax),
 * https://satori.chat/zh-CN/protocol/elements.html (elements).
 */

/** Inline media without a type, and the beginning of their content. */
const untyped = /^data:application\/octet-stream;base64,(.{0,16})/

/** The elements of a message. Inline media without a type get that of their name, or of their content. */
function toElements(items: readonly LoadedItem[]): h[] {
  return items.map(item => {
    if (!('src' in item)) return toElement(item)
    const toTyped = (_: string, start: string): string => `data:${typeOf(Buffer.from(start, 'base64'), item.name, '')};base64,${start}`
    return toElement({ ...item, src: item.src.replace(untyped, toTyped) })
  })
}

/** Writes elements so that a server reads each text unchanged. */
export function toMarkup(elements: readonly h[]): string {
  return elements.map(element => element.type === 'text' ? escapeText(toText(fieldsOf(element.attrs).content)) : element.toString()).join('')
}

/** Servers ignore blanks with a line break next to an element, escaped or not, so such a break must be an element. */
function escapeText(text: string): string {
  const [end, start] = [text.trimEnd().length, text.length - text.trimStart().length]
  const middle = Math.max(start, end)
  const withBreaks = (blanks: string): string => blanks.replaceAll('\n', '<br/>')
  return withBreaks(text.slice(0, start)) + h.escape(text.slice(start, middle)) + withBreaks(text.slice(middle))
}

/**
 * The parts of a message that a server's history keeps: the letters and digits of its text and mentions, and the kinds of its media.
 * The platform behind the server may change the rest, such as blanks, escapes, and links of media.
 */
function likenessOf(elements: readonly h[]): string {
  const text = elementsText(elements)
  return hash(JSON.stringify([text.replace(/[^\p{L}\p{N}]+/gu, '') || text.trim(), ...mediaIn(elements)]))
}

const media: ReadonlySet<string> = new Set(['img', 'image', 'video', 'audio', 'file'])

/** No server nests deeper on purpose, and a hostile message must not exhaust the stack. */
const maxDepth = 64

/** The kinds and names of media, except those of a quoted message, which may be inside the element or beside it. */
function mediaIn(elements: readonly h[], depth = 0): string[] {
  return elements.flatMap(({ type, attrs, children }) => {
    if (media.has(type)) return `${type === 'image' ? 'img' : type} ${toText(fieldsOf(attrs).title)}`
    return type === 'quote' || depth > maxDepth ? [] : mediaIn(children, depth + 1)
  })
}
