import { Universal, type Bot, type Context, type h } from 'koishi'
import { LRUCache } from 'lru-cache'
import { RelayError } from '../../errors'
import { unwrap } from '../../lib/unwrap'
import type { Item, Target } from '../../message/model'
import { fieldsOf, isObject, type JsonObject } from '../../message/parse'
import { classifyThrown } from '../failure'
import { toText } from '../incoming'
import { announceSend, BotAccount, createSession, isCrowd, isHeard, mayBeChanged, type PlatformSupport } from '../koishi'
import { SendError, type Contact, type HistoryEntry, type HistoryPage, type LoadedItem, type Message, type Receipt, type Report } from '../port'
import { ask, unreadable } from '../web'
import { readBody, readReceipt } from './answers'
import { likenessOf, likenessOfContent, toElements, toMarkup } from './content'

/**
 * Bots of a Satori server elsewhere, through `@satorijs/adapter-satori` (1.5.1). Their platform is whatever the server says.
 *
 * The API: https://satori.chat/zh-CN/protocol/api.html
 */
export const satori: PlatformSupport = {
  owns: bot => bot.adapterName === 'satori',
  account(bot, presence) {
    const account = new SatoriAccount(bot, presence)
    accounts.set(bot, account)
    return account
  },
  // Before the events that Koishi makes of the session, so that no plugin can keep it from being heard.
  listen: (app: Context) => app.on('internal/session', session => {
    accounts.get(unwrap(unwrap(session).bot))?.hear(fieldsOf(unwrap(session).event))
  }, { prepend: true }),
}

/** By their bots. */
const accounts = new WeakMap<Bot, SatoriAccount>()

const direct = Universal.Channel.Type.DIRECT
const text = Universal.Channel.Type.TEXT

/** Mentions of roles on some platform behind a server. */
const noUser = /[&!#*<>()[\]{}`"'\s]/

/** The most pages of a list that are read. */
const maxPages = 100
/** How many private chats, and how many reports, are kept of an account. */
const most = { chats: 5_000, reports: 1_000 }
/** How long a report is kept, in milliseconds: longer than a send takes. */
const maxAge = 60 * 60_000

interface KeptReport extends Report {
  channelId: string
  likeness: string
}

/** One login of a Satori server. */
class SatoriAccount extends BotAccount {
  /** The server fetches links, and may read paths. */
  readonly readsFiles = false
  readonly takesFiles = true
  /** The protocol does not tell what the platform behind the server takes. */
  readonly longestText = Infinity
  /** A history proves that a text did not arrive, or nothing does: Chronocat declares one and answers with an empty list. */
  readonly retriesUnanswered = false
  /** The channels of private chats by users, as the server told them. */
  private readonly channels = new LRUCache<string, string>({ max: most.chats })
  private readonly kept = new LRUCache<string, KeptReport>({ max: most.reports, ttl: maxAge })

  protected checkTarget({ kind, id }: Target): void {
    if (kind === 'private' && !this.offers('user.channel.create') && !this.channels.has(id)) {
      throw new RelayError('bad-request', 'the Satori server of this bot offers no private chats (user.channel.create)')
    }
  }

  protected checkItem(item: Item): void {
    const isWrong = item.type === 'at' && item.userId !== null && (isCrowd(item.userId) || noUser.test(item.userId))
    if (isWrong) throw new RelayError('bad-request', 'the ID of a mention must be that of a user')
  }

  protected refusal(): string | undefined {
    return this.offers('message.create') ? undefined : 'the Satori server of this bot offers no sending (message.create)'
  }

  async recall(target: Target, messageId: string): Promise<void> {
    await this.ask('message.delete', { channel_id: await this.channelOf(target), message_id: messageId })
  }

  /** Text channels, as targets name them; none where the server does not list them. */
  async groups(): Promise<Contact[]> {
    const groups: Contact[] = []
    for (const { id: guildId, name: guildName } of await this.list('guild.list')) {
      // A bot need not see into each of its guilds.
      const channels = await this.list('channel.list', { guild_id: guildId }).catch(forgiveRefusal)
      for (const { id, type, name } of channels) {
        if (type === undefined || type === text) groups.push({ id: toText(id), name: toText(name) || toText(guildName) })
      }
    }
    return groups
  }

  override async friends(): Promise<Contact[]> {
    return (await this.list('friend.list')).map(({ user, nick }) => {
      const { id, name } = fieldsOf(user)
      return { id: toText(id), name: toText(nick) || toText(name) }
    })
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new SatoriMessage(this, target, items)
  }

  /** Whether the server has a call, as far as it tells: `features` of the login is experimental, and may be absent. */
  offers(method: string): boolean {
    const { features } = this.bot
    return features.length === 0 || features.includes(method)
  }

  /** Whether the server reports messages of the account itself. */
  get isReported(): boolean {
    return this.kept.size > 0
  }

  /** The reports of equal messages in a chat, the oldest first. */
  reportsOf(target: Target, likeness: string): Report[] {
    const channelId = target.kind === 'group' ? target.id : this.channels.get(target.id)
    const equal = [...this.kept.values()].filter(report => report.channelId === channelId && report.likeness === likeness)
    return equal.map(({ id, heardAt }) => ({ id, heardAt })).sort((a, b) => a.heardAt - b.heardAt)
  }

  /** @throws SendError `unsent` or `refused`: asking for a channel sends nothing */
  async channelOf({ kind, id }: Target): Promise<string> {
    const known = kind === 'group' ? id : this.channels.get(id)
    if (known !== undefined) return known
    const channel = await this.ask('user.channel.create', { user_id: id }).catch((error: unknown) => {
      const failure = classifyThrown(error)
      throw failure.outcome === 'unanswered' ? new SendError('unsent', failure.wording, { cause: error }) : failure
    })
    const channelId = toText(fieldsOf(channel).id)
    if (!channelId) throw new SendError('unsent', 'the server named no channel for the private chat')
    this.channels.set(id, channelId)
    return channelId
  }

  /** @throws SendError */
  async ask(method: string, params: JsonObject): Promise<unknown> {
    return readBody(await ask(this.bot, 'POST', `/v1/${method}`, params))
  }

  /** All pages of a list; an empty one where the server has no such list. */
  private async list(method: string, params: JsonObject = {}): Promise<JsonObject[]> {
    const all: JsonObject[] = []
    let next = ''
    for (let page = 0; this.offers(method) && page < maxPages; page++) {
      const read = await this.ask(method, { ...params, ...next && { next } }).catch((error: unknown) => {
        if (error instanceof SendError && error.causeId === 'unknown-action') return { data: [] }
        throw error
      })
      const { data, next: following } = fieldsOf(read)
      if (!Array.isArray(data)) throw unreadable()
      all.push(...data.filter(isObject))
      next = toText(following)
      if (!next) break
    }
    return all
  }

  /** Notes the channel of a private chat, and what the server reports of the account itself. */
  hear({ channel, user, message }: JsonObject): void {
    const [{ id: channelId, type }, { id: userId }] = [fieldsOf(channel), fieldsOf(user)]
    const { id, elements } = fieldsOf(message)
    if (typeof channelId !== 'string' || typeof userId !== 'string' || typeof id !== 'string' || !Array.isArray(elements)) return
    if (userId === this.selfId) this.kept.set(`${channelId} ${id}`, { id, channelId, likeness: likenessOf(elements), heardAt: performance.now() })
    else if (type === direct) this.channels.set(userId, channelId)
  }
}

function forgiveRefusal(error: unknown): [] {
  if (error instanceof SendError && error.outcome === 'refused') return []
  throw error
}

class SatoriMessage implements Message {
  readonly likeness: string
  /** Absent where the server reports no messages of the account itself. */
  readonly reports?: () => readonly Report[]
  /** What the last call sent, as other plugins have made it. */
  private sent: readonly h[]
  /** Whether `sent` is known: another plugin may have changed the message before a restart. */
  private isKnown: boolean

  constructor(private readonly account: SatoriAccount, private readonly target: Target, private readonly items: readonly LoadedItem[]) {
    this.sent = toElements(items)
    this.likeness = likenessOf(this.sent)
    this.isKnown = !mayBeChanged(account.bot)
    if (account.isReported) this.reports = () => account.reportsOf(target, likenessOf(this.sent))
  }

  /** Other plugins hear `send` when the server reports the message: the adapter has it so. */
  async send(begin: () => void): Promise<Receipt> {
    try {
      const { account, account: { bot }, target, items } = this
      const channelId = await account.channelOf(target)
      const elements = toElements(items)
      const announced = isHeard(bot) ? await announceSend(bot, createSession(bot, channelId, target.kind === 'private'), elements) : elements
      if (!account.isOnline) throw new SendError('unsent', account.health.cause)
      begin()
      this.sent = announced
      this.isKnown = true
      return readReceipt(await ask(bot, 'POST', '/v1/message.create', { channel_id: channelId, content: toMarkup(announced) }))
    } catch (error) {
      throw classifyThrown(error)
    }
  }

  async history(count: number): Promise<HistoryPage | undefined> {
    const { account, account: { selfId }, target, sent } = this
    if (!account.offers('message.list')) return
    const params = { channel_id: await account.channelOf(target), limit: count }
    const page = await account.ask('message.list', params).catch(failLookUp)
    const { data } = fieldsOf(page)
    if (!Array.isArray(data)) return
    const all = data.filter(isObject)
    const likeness = likenessOf(sent)
    const own = all.filter(({ user }) => toText(fieldsOf(user).id || selfId) === selfId).map(message => readEntry(message, likeness))
    const readable = own.filter(entry => entry !== undefined)
    // Servers lose mentions and files from what they show, so that only texts can be known to be absent.
    const isText = sent.every(({ type }) => type === 'text')
    return { own: readable, oldest: Math.min(...all.map(timeOf)), isReadable: isText && this.isKnown && readable.length === own.length }
  }
}

/** A look-up cannot be refused: without the call, or the right to it, there is no history. */
function failLookUp(error: unknown): undefined {
  const failure = classifyThrown(error)
  if (failure.outcome !== 'refused') throw failure
}

/** An entry of a history; `undefined` for a message that lacks its sender, an ID, a time or a content. */
function readEntry(message: JsonObject, likeness: string): HistoryEntry | undefined {
  const { id, user, content } = message
  const time = timeOf(message)
  if (!fieldsOf(user).id || !toText(id) || typeof content !== 'string' || Number.isNaN(time)) return
  return { id: toText(id), time, isEqual: likenessOfContent(content) === likeness, isSeen: true }
}

/** In milliseconds since the epoch. Koishi's adapters have either field. */
function timeOf({ created_at: created, timestamp }: JsonObject): number {
  return Number(created ?? timestamp ?? NaN)
}
