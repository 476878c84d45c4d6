import type { Bot } from 'koishi'
import { LRUCache } from 'lru-cache'
import { setTimeout as delay } from 'node:timers/promises'
import type { CauseId } from '../../message/causes'
import type { Target } from '../../message/model'
import { fieldsOf, type JsonObject } from '../../message/parse'
import { toText } from '../incoming'
import type { Receipt, SendError } from '../port'
import { ask, readList, readPages, retryAfterOf, toFailure, unreadable, type WebAnswer } from '../web'

/** The most servers in a page of their list. */
const pageOfServers = 200

/** Discord's HTTP API for one account. Its methods throw SendError. */
export class Api {
  /** The channels of private chats, by users. */
  private readonly directs = new LRUCache<string, string>({ max: 5_000 })
  /** The ends of the times for which channels take nothing more. */
  private readonly rests = new LRUCache<string, Promise<unknown>>({ max: 5_000 })

  constructor(private readonly bot: Bot) {}

  /** The channel of a target. Source: https://docs.discord.com/developers/resources/user#create-dm */
  async channelOf({ kind, id }: Target): Promise<string> {
    const known = kind === 'group' ? id : this.directs.get(id)
    if (known !== undefined) return known
    const { id: channel } = fieldsOf(await this.call('POST', '/users/@me/channels', { recipient_id: id }))
    if (typeof channel !== 'string') throw unreadable()
    this.directs.set(id, channel)
    return channel
  }

  /** Waits until a channel takes a message again: too many calls that are refused for their rate get an address banned. */
  async rest(channelId: string): Promise<void> {
    await this.rests.get(channelId)
  }

  /**
   * Makes one message, or changes one. Sources: https://docs.discord.com/developers/resources/message#create-message and #edit-message
   *
   * @param data a form where there are files
   * @param changed the ID of the message that changes
   */
  async post(channelId: string, data: object, changed?: string): Promise<Receipt> {
    const path = `/channels/${channelId}/messages`
    await this.rest(channelId)
    const answer = await (changed === undefined ? ask(this.bot, 'POST', path, data) : ask(this.bot, 'PATCH', `${path}/${changed}`, data))
    const rest = restAfter(answer.headers)
    if (rest > 0) this.rests.set(channelId, delay(rest, undefined, { ref: false }))
    const { id } = fieldsOf(read(answer, data instanceof FormData))
    if (typeof id !== 'string') throw unreadable()
    return { messageIds: [id] }
  }

  async recall(channelId: string, messageId: string): Promise<void> {
    await this.call('DELETE', `/channels/${channelId}/messages/${messageId}`)
  }

  /** The list at a path, or in this field of what is there. */
  async list(path: string, field?: string): Promise<JsonObject[]> {
    const body = await this.call('GET', path)
    return readList(field === undefined ? body : fieldsOf(body)[field])
  }

  /** The servers that the account is in. Source: https://docs.discord.com/developers/resources/user#get-current-user-guilds */
  servers(): Promise<JsonObject[]> {
    return readPages(async last => {
      const list = await this.list(`/users/@me/guilds?limit=${pageOfServers}&after=${last || '0'}`)
      return { list, next: list.length === pageOfServers ? toText(list.at(-1)?.id) : '' }
    })
  }

  private async call(method: string, path: string, data?: object): Promise<unknown> {
    return read(await ask(this.bot, method, path, data))
  }
}

/** @param hasFiles whether files were in the call: what is not permitted then may be just these */
function read(answer: WebAnswer, hasFiles = false): unknown {
  if (answer.status >= 200 && answer.status < 300) return answer.body
  throw readFailure(answer, hasFiles)
}

/** The codes that tell something. Source: https://docs.discord.com/developers/topics/opcodes-and-status-codes#json */
const codes: ReadonlyMap<unknown, CauseId> = new Map([
  [10003, 'no-such-group'], // Unknown channel.
  [10013, 'not-friend'], // Unknown user.
  [40001, 'logged-out'], // Unauthorized. Provide a valid token and try again.
  [50001, 'no-such-group'], // Missing access: the bot does not see the channel, or is not in its server.
  [50006, 'empty'], // Cannot send an empty message.
  [50007, 'blocked'], // Cannot send messages to this user, who has blocked the bot.
  [50013, 'forbidden'], // You lack permissions to perform that action.
  [50014, 'logged-out'], // Invalid authentication token provided.
  [50033, 'not-friend'], // Invalid recipients.
  [50278, 'not-friend'], // Cannot send messages to this user due to having no mutual guilds.
  [160005, 'forbidden'], // Thread is locked.
])

/** Reads an answer that is no success. */
function readFailure({ status, body, headers }: WebAnswer, hasFiles: boolean): SendError {
  const { code, message, errors, retry_after: wait, global } = fieldsOf(body)
  const causeId = codes.get(code) ?? (status === 401 ? 'logged-out' : undefined)
  const words = [message, detailOf(errors)].filter(text => typeof text === 'string').join(': ')
  if (status !== 429) return toFailure(status, { words, causeId: hasFiles && causeId === 'forbidden' ? undefined : causeId })
  // A limit counts for the channel in the path, unless it is global. An answer of another form comes from Cloudflare, which bans addresses.
  // Source: https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit
  const isWide = body === undefined || global === true || headers.get('x-ratelimit-scope') === 'global'
  return toFailure(status, { words, scope: isWide ? 'account' : 'chat', wait: Number(wait) * 1000 || retryAfterOf(headers) })
}

/** For how long a channel takes nothing more after a success, in milliseconds. Source: the headers that the same page describes. */
function restAfter(headers: Headers): number {
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
