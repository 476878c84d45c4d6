import { unwrap } from '../../lib/unwrap'
import type { Target } from '../../message/model'
import { fieldsOf, isObject, type JsonObject } from '../../message/parse'
import { toMention, toText, type IncomingSupport } from '../incoming'
import { parseJson } from '../web'

/**
 * How messages from Feishu and Lark are read: from the event (https://open.feishu.cn/document/server-docs/im-v1/message/events/receive), because
 * the adapter reads markup into texts, loses line breaks around mentions and reads no rich texts, in which members write several lines.
 */
export const incomingLark: IncomingSupport = {
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
