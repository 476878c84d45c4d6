import type { Bot } from 'koishi'
import { unwrap } from '../../lib/unwrap'
import type { Item, Target } from '../../message/model'
import { fieldsOf, type JsonObject } from '../../message/parse'
import type { Presence } from '../bots'
import { toText, type IncomingSupport } from '../incoming'
import { BotAccount, demand, type PlatformSupport } from '../koishi'
import { SendError, type Contact, type LoadedItem, type Message } from '../port'
import { Api } from './api'
import { DiscordMessage } from './message'
import { most } from './text'

/** How messages from Discord are read. The adapter takes what members write for markup of Koishi. */
const incoming: IncomingSupport = {
  readText(session) {
    const { content } = messageOf(session)
    return typeof content === 'string' ? asTyped(content) : undefined
  },
  // The adapter takes a message without a member, such as one of a webhook, for a private one.
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

/** What Discord makes of mentions and of emoji, as text. Source: https://docs.discord.com/developers/reference#message-formatting */
function asTyped(content: string): string {
  return content.replace(/<@[!&]?(\d+)>/g, '@$1').replace(/<#(\d+)>/g, '#$1').replace(/<a?(:\w+:)\d+>/g, '$1')
}

/** Discord, through the bots of @satorijs/adapter-discord 4.6.0. A group is a channel, or a thread, which is one as well. */
export const discord: PlatformSupport = {
  owns: ({ adapterName }) => adapterName === 'discord',
  account: (bot, presence) => new DiscordAccount(bot, presence),
  incoming,
  selfId: ({ config }) => idOfToken(fieldsOf(config).token),
}

/** A token begins with the account's ID in base64, as the one in https://docs.discord.com/developers/reference#authentication does. */
function idOfToken(token: unknown): string | undefined {
  const id = typeof token === 'string' ? Buffer.from(token.replace(/\..*$/s, ''), 'base64').toString('latin1') : ''
  return isSnowflake(id) ? id : undefined
}

/** Whether a text can be an ID. Source: https://docs.discord.com/developers/reference#snowflakes */
function isSnowflake(id: string): boolean {
  return /^[1-9][0-9]{0,19}$/.test(id)
}

/**
 * The kinds of channels that contacts name: for texts, for announcements, and the threads of both. Source:
 * https://docs.discord.com/developers/resources/channel#channel-object-channel-types
 */
const textKinds: ReadonlySet<unknown> = new Set([0, 5, 10, 11, 12])

const rule = 'must be a number, as Discord has it'

/** An account of a bot on Discord. */
class DiscordAccount extends BotAccount {
  readonly readsFiles = true
  /** Escapes count as well, so a text with much in it that could be markup may still be divided. */
  readonly longestText = most.characters
  readonly retriesUnanswered = true
  private readonly api: Api

  constructor(bot: Bot, presence: Presence) {
    super(bot, presence)
    this.api = new Api(bot)
  }

  protected checkTarget({ kind, id }: Target): void {
    demand(isSnowflake(id), `the ID of a ${kind === 'group' ? 'channel' : 'user'} ${rule}`)
  }

  protected refusal(item: Item): string | undefined {
    if (item.type === 'at') demand(item.userId === null || isSnowflake(item.userId), `the ID of a mention ${rule}`)
    return item.type === 'reply' && !isSnowflake(item.messageId) ? `the ID of the message to reply to ${rule}` : undefined
  }

  message(target: Target, items: readonly LoadedItem[], name: string): Message {
    return new DiscordMessage(this, target, items, name, this.api)
  }

  update(target: Target, messageId: string, items: readonly LoadedItem[], name: string): Message {
    return new DiscordMessage(this, target, items, name, this.api, messageId)
  }

  async recall(target: Target, messageId: string): Promise<void> {
    if (!isSnowflake(messageId)) throw new SendError('refused', 'this is not the ID of a message')
    await this.api.recall(await this.api.channelOf(target), messageId)
  }

  override async groups(): Promise<Contact[]> {
    const contacts: Contact[] = []
    for (const { id: server, name: serverName } of await this.api.servers()) {
      const channels = await this.api.list(`/guilds/${toText(server)}/channels`)
      const threads = await this.api.list(`/guilds/${toText(server)}/threads/active`, 'threads')
      for (const { id, name, type } of [...channels, ...threads]) {
        if (textKinds.has(type)) contacts.push({ id: toText(id), name: `#${toText(name)} (${toText(serverName)})` })
      }
    }
    return contacts
  }
}
