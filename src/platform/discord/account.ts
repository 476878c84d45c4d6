import { LRUCache } from 'lru-cache'
import { setTimeout as delay } from 'node:timers/promises'
import { hash } from '../../lib/crypto'
import { unwrap } from '../../lib/koishi'
import { fieldsOf, toText, type JsonObject } from '../../lib/shape'
import type { CauseId } from '../../message/causes'
import type { Item, Target } from '../../message/model'
import { BotAccount, type PlatformSupport } from '../account'
import { toPage } from '../history'
import type { IncomingSupport } from '../incoming'
import {
  SendError, type Contact, type Fitting, type HistoryPage, type LoadedItem, type LoadedMedia, type Message, type Receipt,
} from '../port'
import { hasCaption, onlyPart, WebMessage, type Call, type Channel } from '../send'
import { ask, readList, readMedia, readPages, retryAfterOf, toFailure, toForm, unreadable, type MediaFile, type WebAnswer } from '../web'
import { essenceOf, most, toParts, type Part } from './text'
import { say, type Text } from '../../texts/text'

/** Reads messages from Discord, because the adapter parses members' texts as markup of Koishi. */
const incoming: IncomingSupport = {
  readText(session) {
    const { content } = messageOf(session)
    return typeof content === 'string' ? asTyped(content) : undefined
  },
  // A message that was forwarded is no answer to where it came from.
  quoteOf(session) {
    const { type, message_id: id } = fieldsOf(messageOf(session).message_reference)
    return type === 1 ? '' : toText(id)
  },
  // The adapter treats a message without a member, such as that of a webhook, as a private one.
  targetOf(session) {
    const { guild_id: server, channel_id: channel } = messageOf(session)
    return typeof server === 'string' ? { kind: 'group', id: toText(channel) } : undefined
  },
}

/** Source: https://docs.discord.com/developers/events/gateway-events#message-create */
function messageOf(session: object): JsonObject {
  const { t: type, d: message } = fieldsOf(Reflect.get(unwrap(session), 'discord'))
  return type === 'MESSAGE_CREATE' ? fieldsOf(message) : {}
}

/** Discord's forms of mentions and emoji, as text. Source: https://docs.discord.com/developers/reference#message-formatting */
function asTyped(content: string): string {
  return content.replace(/<@[!&]?(\d+)>/g, '@$1').replace(/<#(\d+)>/g, '#$1').replace(/<a?(:\w+:)\d+>/g, '$1')
}

/** Discord, through the bots of @satorijs/adapter-discord 4.6.0. A group is a channel or a thread. */
export const discord: PlatformSupport = {
  owns: ({ adapterName }) => adapterName === 'discord',
  account: (bot, presence) => new DiscordAccount(bot, presence),
  incoming,
  selfId: ({ config }) => idOfToken(fieldsOf(config).token),
}

/** A token begins with the account's ID in base64, as in the example of https://docs.discord.com/developers/reference#authentication */
function idOfToken(token: unknown): string | undefined {
  const id = typeof token === 'string' ? Buffer.from(token.replace(/\..*$/s, ''), 'base64').toString('latin1') : ''
  return isSnowflake(id) ? id : undefined
}

/** Whether a text can be an ID. Source: https://docs.discord.com/developers/reference#snowflakes */
function isSnowflake(id: string): boolean {
  return /^[1-9][0-9]{0,19}$/.test(id)
}

/**
 * The kinds of channels in the contacts: for texts, for announcements, and threads of both. Source:
 * https://docs.discord.com/developers/resources/channel#channel-object-channel-types
 */
const textKinds: ReadonlySet<unknown> = new Set([0, 5, 10, 11, 12])

/** The most servers in a page of their list. */
const pageOfServers = 200

/** An account of a bot on Discord. */
class DiscordAccount extends BotAccount {
  readonly readsFiles = true
  override readonly canUpdate = true
  /** Escapes count as well, so a text with much possible markup may still be divided. */
  readonly longestText = most.characters

  /** Files are shown below the text. */
  fits(items: readonly Fitting[]): boolean {
    return hasCaption(items, most.files)
  }

  readonly retriesUnanswered = true
  /** The channels of private chats, by users. */
  private readonly directs = new LRUCache<string, string>({ max: 5_000 })
  /** Each resolves when the rate limit of a channel ends. */
  private readonly limits = new LRUCache<string, Promise<unknown>>({ max: 5_000 })

  protected readonly mentions = [isSnowflake, say('discord-mention')] as const

  protected override whyNoChat({ kind, id }: Target): Text | undefined {
    return isSnowflake(id) ? undefined : say(kind === 'group' ? 'discord-channel-id' : 'discord-user-id')
  }

  protected override whyNotSent(item: Item): Text | undefined {
    return item.type === 'reply' && !isSnowflake(item.messageId) ? say('discord-reply-id') : undefined
  }

  message(target: Target, items: readonly LoadedItem[], name: string, changed?: string): Message {
    return new DiscordMessage(this, target, items, name, changed)
  }

  async recall(target: Target, messageId: string): Promise<void> {
    if (!isSnowflake(messageId)) throw new SendError('refused', say('not-a-message-id'))
    await this.call('DELETE', `/channels/${await this.channelOf(target)}/messages/${messageId}`)
  }

  /** Sources: https://docs.discord.com/developers/resources/user#get-current-user-guilds, /resources/guild#get-guild-channels */
  async groups(): Promise<Contact[]> {
    const servers = await readPages(async last => {
      const list = readList(await this.call('GET', `/users/@me/guilds?limit=${pageOfServers}&after=${last || '0'}`))
      return { list, next: list.length === pageOfServers ? toText(list.at(-1)?.id) : '' }
    })
    const contacts: Contact[] = []
    for (const { id: server, name: serverName } of servers) {
      const channels = readList(await this.call('GET', `/guilds/${toText(server)}/channels`))
      const { threads } = fieldsOf(await this.call('GET', `/guilds/${toText(server)}/threads/active`))
      for (const { id, name, type } of [...channels, ...readList(threads)]) {
        if (textKinds.has(type)) contacts.push({ id: toText(id), name: `#${toText(name)} (${toText(serverName)})` })
      }
    }
    return contacts
  }

  /** The channel of a target. Source: https://docs.discord.com/developers/resources/user#create-dm. @throws SendError */
  async channelOf({ kind, id }: Target): Promise<string> {
    const known = kind === 'group' ? id : this.directs.get(id)
    if (known !== undefined) return known
    const { id: channel } = fieldsOf(await this.call('POST', '/users/@me/channels', { recipient_id: id }))
    if (typeof channel !== 'string') throw unreadable()
    this.directs.set(id, channel)
    return channel
  }

  /** Waits for the end of a channel's rate limit, because Discord bans addresses that exceed limits too often. */
  async pastLimit(channelId: string): Promise<void> {
    await this.limits.get(channelId)
  }

  /**
   * Makes one message, or changes one. Sources: https://docs.discord.com/developers/resources/message#create-message and #edit-message
   *
   * @param data a form if there are files
   * @param changed the ID of the message to change
   */
  async post(channelId: string, data: object, changed?: string): Promise<Receipt> {
    const path = `/channels/${channelId}/messages`
    await this.pastLimit(channelId)
    const answer = await (changed === undefined ? ask(this.bot, 'POST', path, data) : ask(this.bot, 'PATCH', `${path}/${changed}`, data))
    const limit = limitAfter(answer.headers)
    if (limit > 0) this.limits.set(channelId, delay(limit, undefined, { ref: false }))
    const { id } = fieldsOf(read(answer, data instanceof FormData || changed !== undefined))
    if (typeof id !== 'string') throw unreadable()
    return { messageIds: [id] }
  }

  async call(method: string, path: string, data?: object): Promise<unknown> {
    return read(await ask(this.bot, method, path, data))
  }
}

/** The largest file on a server without a paid plan, in bytes: https://docs.discord.com/developers/reference#uploading-files */
const mostOfFile = 10 * 2 ** 20
/** The most bytes of all files in a message. A request may have 25 MiB. */
const mostOfFiles = 24 * 2 ** 20
/** The most messages in a page of the history. */
const mostOfPage = 100

/** A message to a channel or a thread. */
class DiscordMessage extends WebMessage<DiscordAccount> {
  readonly likeness: string
  /**
   * Each call has a nonce. Discord answers a repeated nonce of "the past few minutes" with the existing message. This is a cautious reading
   * of those words. Source: `enforce_nonce` of https://docs.discord.com/developers/resources/message#create-message
   */
  protected override readonly repeatableFor = 60_000
  private readonly parts: readonly Part[]

  constructor(account: DiscordAccount, target: Target, items: readonly LoadedItem[], private readonly name: string, changed?: string) {
    super(account, target, items, changed)
    this.parts = toParts(items)
    this.likeness = hash(JSON.stringify(this.parts.map(({ content, files }) => [essenceOf(content), files.map(({ name }) => name)])))
  }

  protected async channel(): Promise<Channel> {
    const id = await this.account.channelOf(this.target)
    await this.account.pastLimit(id)
    return { id }
  }

  protected async toCalls(channelId: string): Promise<readonly Call[]> {
    const { account, parts, changed } = this
    if (parts.length === 0) throw new SendError('refused', undefined, { causeId: 'empty', isFinal: true })
    if (changed !== undefined) {
      const { content, allowed_mentions } = this.fields(onlyPart(parts), 0)
      return [() => account.post(channelId, { content, allowed_mentions }, changed)]
    }
    const calls: Call[] = []
    for (const [index, part] of parts.entries()) {
      const data = toBody(this.fields(part, index), await this.read(part.files))
      calls.push(() => account.post(channelId, data))
    }
    return calls
  }

  async history(count: number): Promise<HistoryPage | undefined> {
    if (this.changed !== undefined) return
    const [part, ...others] = this.parts
    // One part of a divided message says nothing about the others; a further round of calls does. A message changed by another plugin looks
    // different.
    if (!part || others.length > 0 || this.idempotentFor === 0) throw new SendError('unanswered', say('discord-no-look-up'))
    const messages = await this.latest(count)
    const page = toPage(messages, {
      isOwn: ({ author }) => fieldsOf(author).id === this.account.selfId,
      timeOf: ({ id }) => timeOf(toText(id)),
      idOf: ({ id }) => toText(id),
      isEqual: message => typeof message.content === 'string' ? isSame(part, message) : undefined,
    })
    // A page shorter than asked for reaches back to the beginning of the channel.
    return messages.length < count ? { ...page, oldest: 0 } : page
  }

  /**
   * The last messages of the channel, the newest first. Source: https://docs.discord.com/developers/resources/message#get-channel-messages
   *
   * @throws SendError also for an empty list, because a permission may be missing
   */
  private async latest(count: number): Promise<JsonObject[]> {
    const path = `/channels/${await this.account.channelOf(this.target)}/messages`
    const messages: JsonObject[] = []
    while (messages.length < count) {
      const limit = Math.min(count - messages.length, mostOfPage)
      const last = messages.at(-1)
      const page = readList(await this.account.call('GET', `${path}?limit=${limit}${last ? `&before=${toText(last.id)}` : ''}`))
      messages.push(...page)
      if (page.length < limit) break
    }
    if (messages.length === 0) throw new SendError('unanswered', say('discord-no-history'))
    return messages
  }

  /** The fields of a message. Only `allowed_mentions` decides who is notified. */
  private fields({ content, users, mentionsAll }: Part, index: number): JsonObject {
    const answered = index === 0 ? this.answered : undefined
    return {
      content,
      nonce: hash(`${this.name} ${index}`).slice(0, 25),
      enforce_nonce: true,
      allowed_mentions: { parse: mentionsAll ? ['everyone'] : [], users },
      ...answered !== undefined && { message_reference: { message_id: answered, fail_if_not_exists: false } },
    }
  }

  private async read(files: readonly LoadedMedia[]): Promise<MediaFile[]> {
    const read: MediaFile[] = []
    for (const file of files) read.push(await readMedia(this.account.bot, file, mostOfFile))
    if (read.reduce((sum, { data }) => sum + data.length, 0) <= mostOfFiles) return read
    throw new SendError('refused', say('discord-files-too-large'), { isFinal: true })
  }
}

/** Source: https://docs.discord.com/developers/reference#uploading-files */
function toBody(fields: JsonObject, files: readonly MediaFile[]): object {
  if (files.length === 0) return fields
  const payload = { ...fields, attachments: files.map(({ name }, id) => ({ id, filename: name })) }
  return toForm({ payload_json: payload }, files.map((file, index) => [`files[${index}]`, file] as const))
}

/** Whether a message in the history looks like this one. */
function isSame({ content, files }: Part, { content: shown, attachments }: JsonObject): boolean {
  const names = (Array.isArray(attachments) ? attachments : []).map(attachment => toText(fieldsOf(attachment).filename))
  return essenceOf(toText(shown)) === essenceOf(content) && names.length === files.length
    && files.every(({ name }, index) => isSameName(name, names[index] ?? ''))
}

/** A name that Discord keeps: of other than plain names it keeps only the extension. A missing extension is added by type. */
function isSameName(given: string, shown: string): boolean {
  const ending = /\.\w+$/.exec(given)?.[0].toLowerCase()
  return ending === undefined || (/^[a-z0-9][a-z0-9.-]*$/i.test(given) ? shown === given : shown.toLowerCase().endsWith(ending))
}

/** When a message was made, in milliseconds since the epoch: https://docs.discord.com/developers/reference#snowflakes */
function timeOf(id: string): number {
  return /^\d+$/.test(id) ? Number(BigInt(id) >> 22n) + 1_420_070_400_000 : NaN
}

/**
 * The codes with a known cause. Source: https://docs.discord.com/developers/topics/opcodes-and-status-codes#json, and for 20026
 * discord/discord-api-docs issue 2669.
 */
const codes: ReadonlyMap<unknown, CauseId> = new Map([
  [10003, 'no-such-group'], // Unknown channel.
  [10013, 'not-friend'], // Unknown user.
  [20026, 'not-permitted'], // Flagged by the anti-spam system.
  [40001, 'logged-out'], // Unauthorized. Provide a valid token and try again.
  [40002, 'not-permitted'], // You need to verify your account.
  [40333, 'not-permitted'], // Cloudflare blocks the request, at times by mistake: germanoeich/nirn-proxy issue 14.
  [50001, 'no-such-group'], // Missing access: the bot does not see the channel, or is not in its server.
  [50006, 'empty'], // Cannot send an empty message.
  [50007, 'blocked'], // Cannot send messages to this user, who has blocked the bot.
  [50013, 'forbidden'], // You lack permissions to perform that action.
  [50014, 'logged-out'], // Invalid authentication token provided.
  [50033, 'not-friend'], // Invalid recipients.
  [50083, 'forbidden'], // The thread is archived and locked: sending opens one that is only archived.
  [50278, 'not-friend'], // Cannot send messages to this user due to having no mutual guilds.
  [160005, 'forbidden'], // Thread is locked.
])

/**
 * Codes of passing failures that come with the status of a refusal and without a wait: direct messages opened too fast (as in
 * davidhozic/discord-advertisement-framework issue 82), sending or a feature disabled for a while, an overloaded resource.
 */
const passing: ReadonlySet<unknown> = new Set([40003, 40004, 40006, 130000])

/** The wait after these codes, in milliseconds. Earlier calls count as invalid, or as spam. */
const usualWait = 60_000

/**
 * The body of a success.
 *
 * @param isSpecial whether the call has files or changes a message: a missing permission may then be for that only
 * @throws SendError for anything but a success
 */
function read({ status, body, headers }: WebAnswer, isSpecial = false): unknown {
  if (status >= 200 && status < 300) return body
  const { code, message, errors, retry_after: wait, global } = fieldsOf(body)
  const causeId = codes.get(code) ?? (status === 401 ? 'logged-out' : undefined)
  const words = [message, detailOf(errors)].filter(text => typeof text === 'string').join(': ')
  if (passing.has(code) && status >= 400 && status < 429) throw toFailure(status, { words, scope: 'chat', wait: usualWait })
  if (status !== 429) throw toFailure(status, { words, causeId: isSpecial && causeId === 'forbidden' ? undefined : causeId })
  // A limit counts for the channel in the path, unless it is global. An answer of another form comes from Cloudflare, which bans addresses.
  // Source: https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit
  const isWide = body === undefined || global === true || headers.get('x-ratelimit-scope') === 'global'
  throw toFailure(status, { words, scope: isWide ? 'account' : 'chat', wait: Number(wait) * 1000 || retryAfterOf(headers) })
}

/** How long a channel is limited after a success, in milliseconds. Source: the headers described on the same page. */
function limitAfter(headers: Headers): number {
  return headers.get('x-ratelimit-remaining') === '0' ? Number(headers.get('x-ratelimit-reset-after')) * 1000 || 0 : 0
}

/** The first reason in the errors of a form. Source: https://docs.discord.com/developers/reference#error-messages */
function detailOf(errors: unknown): string | undefined {
  const { _errors: list, ...fields } = fieldsOf(errors)
  const { message } = fieldsOf(Array.isArray(list) ? list[0] : undefined)
  if (typeof message === 'string') return message
  for (const field of Object.values(fields)) {
    const found = detailOf(field)
    if (found !== undefined) return found
  }
}
