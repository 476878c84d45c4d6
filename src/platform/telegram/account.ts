import { unwrap } from '../../lib/unwrap'
import type { Item, Target } from '../../message/model'
import { fieldsOf, type JsonObject } from '../../message/parse'
import { elementsText, toText, type IncomingSupport } from '../incoming'
import { BotAccount, demand, type PlatformSupport } from '../koishi'
import type { LoadedItem, Message } from '../port'
import { ask } from '../web'
import { isUser, longestText, readChat, readMessageId, readResult, TelegramMessage } from './message'

/** How messages from Telegram are read. Of a command, `/name@bot`, the adapter keeps neither the slash nor the name of the bot. */
const incoming: IncomingSupport = {
  readText(session) {
    const { _type: platform, type, message, _data: update } = eventOf(session)
    if (platform !== 'telegram') return
    const text = elementsText(fieldsOf(message).elements)
    return type === command ? firstWord(update).slice(0, 1) + text : text
  },
  readRaw(session) {
    const { type, message, _data: update } = eventOf(session)
    if (type === command) return firstWord(update) + elementsText(fieldsOf(message).elements).replace(/^\S+/, '')
  },
  // The adapter takes a topic for a channel, and its group for the guild.
  targetOf(session) {
    const { guild, channel } = eventOf(session)
    const [group, topic] = [fieldsOf(guild).id, fieldsOf(channel).id].map(toText)
    if (group && topic && group !== topic) return { kind: 'group', id: `${group}:${topic}` }
  },
}

const command = 'interaction/command'

function eventOf(session: object): JsonObject {
  return fieldsOf(Reflect.get(unwrap(session), 'event'))
}

/** The first word of a message as it was typed. Source: https://core.telegram.org/bots/api#message */
function firstWord(update: unknown): string {
  return /^\S*/.exec(toText(fieldsOf(fieldsOf(update).message).text))?.[0] ?? ''
}

/** Telegram, through the bots of @satorijs/adapter-telegram; checked against version 4.5.11. The API: https://core.telegram.org/bots/api */
export const telegram: PlatformSupport = {
  owns: ({ adapterName }) => adapterName === 'telegram',
  account: (bot, presence) => new TelegramAccount(bot, presence),
  incoming,
}

const chatRules = {
  group: 'the ID of a group on Telegram is a negative number or @name; of a topic, <group>:<topic>',
  private: 'the ID of a user on Telegram is a number',
}

/** An account of a bot on Telegram, which has no list of the chats of a bot. */
class TelegramAccount extends BotAccount {
  readonly readsFiles = true
  readonly longestText = longestText
  /** Telegram has no history for bots, and carries out each call anew. */
  readonly retriesUnanswered = false
  /** https://core.telegram.org/bots/api#deletemessage */
  override readonly recallableFor = 48 * 60 * 60 * 1000

  protected checkTarget(target: Target): void {
    demand(readChat(target) !== undefined, chatRules[target.kind])
  }

  protected refusal(item: Item, target: Target): string | undefined {
    if (item.type === 'at') {
      if (item.userId === null) return 'Telegram cannot mention everybody'
      // https://core.telegram.org/bots/api#user: a number, or a name.
      const isMentionable = isUser(item.userId) || /^@?[a-z][a-z0-9_]{3,31}$/i.test(item.userId)
      demand(isMentionable, 'a mention on Telegram needs the number of a user, or @name')
    }
    if (item.type !== 'reply') return
    const answered = readMessageId(item.messageId)
    if (!answered) return 'the ID of a message on Telegram is <chat>:<number>, or the number alone'
    // An answer would show what it answers, to which its caller may have no access in another chat.
    demand(answered.chat === undefined || answered.chat === readChat(target)?.id, 'the message that is answered is in another chat')
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new TelegramMessage(this, target, items)
  }

  update(target: Target, messageId: string, items: readonly LoadedItem[]): Message {
    return new TelegramMessage(this, target, items, messageId)
  }

  async recall(target: Target, messageId: string): Promise<void> {
    const data = { chat_id: readChat(target)?.id, message_id: readMessageId(messageId)?.number }
    readResult(await ask(this.bot, 'POST', '/deleteMessage', data), target)
  }
}
