import { unwrap } from '../../lib/unwrap'
import type { Item, Target } from '../../message/model'
import { fieldsOf, isObject, type JsonObject } from '../../message/parse'
import { toMention, toText, type IncomingSupport } from '../incoming'
import { BotAccount, demand, type PlatformSupport } from '../koishi'
import { SendError, type Contact, type LoadedItem, type Message } from '../port'
import { ask, parseJson, readPages } from '../web'
import { readData } from './answer'
import { longestText } from './content'
import { isMessageId, LarkMessage, readPlace } from './message'

/**
 * How messages from Feishu and Lark are read: from the event (https://open.feishu.cn/document/server-docs/im-v1/message/events/receive), because
 * the adapter reads markup into texts, loses line breaks around mentions and reads no rich texts, in which members write several lines.
 */
const incoming: IncomingSupport = {
  readText(session) {
    const { event, bot } = messageOf(session)
    if (!event) return
    const { message_type: type, content, mentions } = event
    const mentioned = Array.isArray(mentions) ? mentions.filter(isObject) : []
    const names = new Map(mentioned.map(({ key, id }) => [toText(key), toText(fieldsOf(id).open_id)]))
    const body = fieldsOf(parseJson(toText(content)))
    const text = type === 'text' ? withMentions(toText(body.text), names) : type === 'post' ? textOfPost(body, names) : ''
    // In most groups a bot is sent only what mentions it.
    const own = `@${bot} `
    return text.startsWith(own) ? text.slice(own.length).trimStart() : text
  },
  targetOf(session): Target | undefined {
    const { event, sender } = messageOf(session)
    const { thread_id: thread, root_id: root, message_id: id, chat_id: chat, chat_type: type } = event ?? {}
    if (!thread) return
    const first = toText(root) || toText(id)
    return type === 'p2p' ? { kind: 'private', id: `${sender}:${first}` } : { kind: 'group', id: `${toText(chat)}:${first}` }
  },
}

/** The message of an event, the ID of its sender, and that of the bot. A Satori server may hand on such events as well. */
function messageOf(session: object): { event?: JsonObject, sender: string, bot: string } {
  const { adapterName, selfId } = fieldsOf(Reflect.get(unwrap(session), 'bot'))
  const { _data: data } = adapterName === 'lark' ? fieldsOf(Reflect.get(unwrap(session), 'event')) : {}
  const { message, sender } = fieldsOf(fieldsOf(data).event)
  return { ...isObject(message) && { event: message }, sender: toText(fieldsOf(fieldsOf(sender).sender_id).open_id), bot: toText(selfId) }
}

/** Replaces the keys that stand for mentions in a text, such as `@_user_1`. */
function withMentions(text: string, names: ReadonlyMap<string, string>): string {
  return text.replace(/@_(?:user_\d+|all)/g, key => key === '@_all' ? '@all' : toMention(names.get(key)) || key)
}

function textOfPost({ title, content }: JsonObject, names: ReadonlyMap<string, string>): string {
  const lines = Array.isArray(content) ? content.filter(Array.isArray).map(nodes => nodes.map(node => textOfNode(fieldsOf(node), names)).join('')) : []
  return [...title ? [toText(title)] : [], ...lines].join('\n')
}

function textOfNode({ tag, text, user_id: user }: JsonObject, names: ReadonlyMap<string, string>): string {
  if (tag !== 'at') return toText(text)
  return user === '@_all' || user === 'all' ? '@all' : toMention(names.get(toText(user)) ?? user)
}

/** Feishu and Lark, through `@satorijs/adapter-lark` (3.12.4). Koishi calls the platform `lark` in both cases. */
export const lark: PlatformSupport = {
  owns: bot => bot.adapterName === 'lark',
  account: (bot, presence) => new LarkAccount(bot, presence),
  incoming,
}

/** An app with the ability of a bot. */
class LarkAccount extends BotAccount {
  readonly readsFiles = true
  readonly longestText = longestText
  /** A further call does no harm for an hour, see `repeatableFor` of its messages; after that nobody can tell. */
  readonly retriesUnanswered = false

  protected checkTarget(target: Target): void {
    const forms = target.kind === 'group' ? 'oc_… of a group' : 'ou_…, on_…, user ID or e-mail address of a user'
    demand(readPlace(target) !== undefined, `this is not the ${forms}, with :om_… of the first message for a topic`)
  }

  protected refusal(item: Item): string | undefined {
    if (item.type === 'at') {
      const isUser = item.userId === null || /^(?!all$)[\w.-]{1,100}$/i.test(item.userId)
      demand(isUser, 'the ID of a mention must be the ou_…, on_… or user ID of a user')
    }
    return item.type === 'reply' && !isMessageId(item.messageId) ? 'this is not the om_… of a message' : undefined
  }

  update(target: Target, messageId: string, items: readonly LoadedItem[], name: string): Message {
    return new LarkMessage(this, target, items, name, messageId)
  }

  async recall(_target: Target, messageId: string): Promise<void> {
    if (!isMessageId(messageId)) throw new SendError('refused', undefined, { isFinal: true })
    readData(await ask(this.bot, 'DELETE', `/im/v1/messages/${messageId}`))
  }

  override async groups(): Promise<Contact[]> {
    const groups = await readPages(async token => {
      const page = token && `&page_token=${encodeURIComponent(token)}`
      const { items, has_more: hasMore, page_token: next } = readData(await ask(this.bot, 'GET', `/im/v1/chats?page_size=100${page}`))
      return { list: items, next: hasMore === true ? toText(next) : '' }
    })
    return groups.map(({ chat_id: id, name }) => ({ id: toText(id), name: toText(name) }))
  }

  message(target: Target, items: readonly LoadedItem[], name: string): Message {
    return new LarkMessage(this, target, items, name)
  }
}
