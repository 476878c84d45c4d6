import { h, Universal, type Session } from 'koishi'
import { LRUCache } from 'lru-cache'
import { fieldsOf, isObject, toText, type JsonObject } from '../../lib/shape'
import type { Target } from '../../message/model'
import { BotAccount, isUser, type PlatformSupport } from '../account'
import { forgive } from '../failure'
import { Reported, toPage } from '../history'
import { BotMessage, type Channel, type Prepared } from '../send'
import { SendError, type Contact, type HistoryPage, type LoadedItem, type Message, type Receipt, type Report } from '../port'
import { ask, readPages } from '../web'
import { likenessOf, readBody, readReceipt, toElements, toMarkup } from './protocol'

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

  protected readonly mentions = [isUser, 'the ID of a mention must be that of a user'] as const

  protected override whyClosed({ kind, id }: Target): string | undefined {
    const isOpen = kind === 'group' || this.offers('user.channel.create') || this.channels.has(id)
    return isOpen ? undefined : 'the Satori server of this bot offers no private chats (user.channel.create)'
  }

  protected override whyNotSent(): string | undefined {
    return this.offers('message.create') ? undefined : 'the Satori server of this bot offers no sending (message.create)'
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
    if (!channelId) throw new SendError('unsent', 'the server named no channel for the private chat')
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

  protected async channel(): Promise<Channel> {
    return { id: await this.account.channelOf(this.target) }
  }

  /** Without the session: the adapter announces the message when the server reports it. */
  protected async prepare(channel: Channel): Promise<Prepared> {
    const { elements } = await this.announce(channel, () => toElements(this.items))
    return { calls: [() => this.post(channel.id, elements)] }
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
