import { RelayError } from '../../errors'
import type { Item, Target } from '../../message/model'
import { BotAccount, type PlatformSupport } from '../koishi'
import type { Contact, LoadedItem, Message } from '../port'
import { ask } from '../web'
import { readResult } from './answer'
import { isUser, readChat, readMessageId } from './chat'
import { incomingTelegram } from './incoming'
import { longestText, TelegramMessage } from './message'

/** Telegram, through the bots of @satorijs/adapter-telegram; checked against version 4.5.11. The API: https://core.telegram.org/bots/api */
export const telegram: PlatformSupport = {
  owns: ({ adapterName }) => adapterName === 'telegram',
  account: (bot, presence) => new TelegramAccount(bot, presence),
  incoming: incomingTelegram,
}

const chatRules = {
  group: 'the ID of a group on Telegram is a negative number or @name; of a topic, <group>:<topic>',
  private: 'the ID of a user on Telegram is a number',
}

/** An account of a bot on Telegram. */
class TelegramAccount extends BotAccount {
  readonly readsFiles = true
  readonly takesFiles = true
  readonly longestText = longestText
  /** Telegram has no history for bots, and carries out each call anew. */
  readonly retriesUnanswered = false
  /** https://core.telegram.org/bots/api#deletemessage */
  override readonly recallableFor = 48 * 60 * 60 * 1000

  protected checkTarget(target: Target): void {
    if (!readChat(target)) throw new RelayError('bad-request', chatRules[target.kind])
  }

  /** An answer would show what it answers, to which its caller may have no access in another chat. */
  protected checkItem(item: Item, target: Target): void {
    if (item.type === 'at' && item.userId !== null && !isMentionable(item.userId)) {
      throw new RelayError('bad-request', 'a mention on Telegram needs the number of a user, or @name')
    }
    const { chat } = item.type === 'reply' ? readMessageId(item.messageId) ?? {} : {}
    if (chat !== undefined && chat !== readChat(target)?.id) throw new RelayError('bad-request', 'the message that is answered is in another chat')
  }

  protected refusal(item: Item): string | undefined {
    if (item.type === 'at' && item.userId === null) return 'Telegram cannot mention everybody'
    if (item.type === 'reply' && !readMessageId(item.messageId)) return 'the ID of a message on Telegram is <chat>:<number>, or the number alone'
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

  /** Telegram has no list of the chats of a bot. */
  groups(): Promise<Contact[]> {
    return Promise.resolve([])
  }
}

/** https://core.telegram.org/bots/api#user: a number, or a name. */
function isMentionable(id: string): boolean {
  return isUser(id) || /^@?[a-z][a-z0-9_]{3,31}$/i.test(id)
}
