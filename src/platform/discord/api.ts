import type { Bot } from 'koishi'
import { LRUCache } from 'lru-cache'
import { setTimeout as delay } from 'node:timers/promises'
import type { Target } from '../../message/model'
import { fieldsOf, isObject, type JsonObject } from '../../message/parse'
import { toText } from '../incoming'
import { longestLimit, SendError, type Receipt } from '../port'
import { ask, unreadable, type WebAnswer } from '../web'
import { readFailure, restAfter } from './answer'

/** The most servers in a page of their list. */
const pageOfServers = 200

/** Discord's HTTP API for one account. Its methods throw SendError. */
export class Api {
  /** The channels of private chats, by users. */
  private readonly directs = new LRUCache<string, string>({ max: 5_000 })
  /** Until when channels take nothing more, on the monotonic clock. */
  private readonly rests = new Map<string, number>()

  constructor(private readonly bot: Bot) {}

  /** The channel of a target. Source: https://docs.discord.com/developers/resources/user#create-dm */
  async channelOf({ kind, id }: Target): Promise<string> {
    const known = kind === 'group' ? id : this.directs.get(id)
    if (known !== undefined) return known
    const { id: channel } = fieldsOf(read(await ask(this.bot, 'POST', '/users/@me/channels', { recipient_id: id })))
    if (typeof channel !== 'string') throw unreadable()
    this.directs.set(id, channel)
    return channel
  }

  /**
   * Waits until a channel takes a message again: too many calls that are refused for their rate get an address banned.
   *
   * @throws SendError `unsent` where that takes long
   */
  async rest(channelId: string): Promise<void> {
    const after = (this.rests.get(channelId) ?? 0) - performance.now()
    if (after > longestLimit) throw new SendError('unsent', undefined, { causeId: 'rate-limited', limit: { scope: 'chat', after } })
    if (after > 0) await delay(after)
  }

  /**
   * Makes one message, or changes one. Sources: https://docs.discord.com/developers/resources/message#create-message and #edit-message
   *
   * @param data a form where there are files
   * @param changed the ID of the message that changes
   */
  async post(channelId: string, data: object, changed?: string): Promise<Receipt> {
    const path = `/channels/${channelId}/messages`
    const answer = await (changed === undefined ? ask(this.bot, 'POST', path, data) : ask(this.bot, 'PATCH', `${path}/${changed}`, data))
    this.note(channelId, answer.headers)
    const { id } = fieldsOf(read(answer, data instanceof FormData))
    if (typeof id !== 'string') throw unreadable()
    return { messageIds: [id] }
  }

  async recall(channelId: string, messageId: string): Promise<void> {
    read(await ask(this.bot, 'DELETE', `/channels/${channelId}/messages/${messageId}`))
  }

  /** The list at a path, or in this field of what is there. */
  async list(path: string, field?: string): Promise<JsonObject[]> {
    const body = read(await ask(this.bot, 'GET', path))
    const list = field === undefined ? body : fieldsOf(body)[field]
    if (!Array.isArray(list)) throw unreadable()
    return list.filter(isObject)
  }

  /** The servers that the account is in. Source: https://docs.discord.com/developers/resources/user#get-current-user-guilds */
  async servers(): Promise<JsonObject[]> {
    const servers: JsonObject[] = []
    let page: JsonObject[]
    do {
      const last = toText(servers.at(-1)?.id) || '0'
      page = await this.list(`/users/@me/guilds?limit=${pageOfServers}&after=${last}`)
      servers.push(...page)
    } while (page.length === pageOfServers)
    return servers
  }

  private note(channelId: string, headers: Headers): void {
    const now = performance.now()
    for (const [channel, end] of this.rests) if (end <= now) this.rests.delete(channel)
    const rest = restAfter(headers)
    if (rest > 0) this.rests.set(channelId, now + rest)
  }
}

function read(answer: WebAnswer, hasFiles = false): unknown {
  if (answer.status >= 200 && answer.status < 300) return answer.body
  throw readFailure(answer, hasFiles)
}
