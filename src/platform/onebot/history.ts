import { fieldsOf, isObject, toText, type JsonObject } from '../../lib/shape'
import type { Target } from '../../message/model'
import { forgive } from '../failure'
import { toPage } from '../history'
import type { HistoryPage } from '../port'
import { isSameContent, readContent, type Content } from './message'

/** Reads the report of a message that the bot's own account sent; `undefined` for any other event. */
export function readReport(event: JsonObject, selfId: string): { chat: string, id: string, content: Content } | undefined {
  // All events of a bot come here, so most of them fail this check.
  if (event.post_type !== 'message_sent' && event.post_type !== 'message') return
  const [id, target] = [toText(event.message_id), targetOf(event)]
  if (!id || !target.id || !isOwn(event, selfId)) return
  const content = readContent(event.message)
  return content && { chat: chatOf(target), id, content }
}

/** The name of a chat among those of a bot. */
export function chatOf({ kind, id }: Target): string {
  return `${kind} ${id}`
}

/**
 * Reads the history of a chat.
 *
 * @param asked the data of the answer to a question for it
 * @param content the content of the message that is looked for
 * @returns `undefined` when there is no history: the action is unknown, its data has an unknown form, or the last messages are missing
 * @throws SendError for any other failure, which may be a passing one
 */
export async function readHistory(asked: Promise<unknown>, selfId: string, content: Content): Promise<HistoryPage | undefined> {
  const data = await asked.catch(forgive('empty-chat', { messages: [] })).catch(forgive('unknown-action', undefined))
  const { messages } = fieldsOf(data)
  if (!Array.isArray(messages)) return
  // LuckyLilliaBot has `null` in the place of a message that it leaves out.
  const all = messages.filter(isObject)
  // A private chat of Lagrange, which alone has this field, ends with the last message of the other side: what is absent may have arrived.
  // Source: LagrangeDev/Lagrange.Core, branch v1, `Lagrange.OneBot/Core/Operation/Message/GetFriendMessageHistoryOperation.cs`.
  if (all.some(({ message_type: type, message_style: style }) => type === 'private' && style !== undefined)) return
  // NapCat has the number that the server gave to a message; zero where it gave none. Others have no such field.
  const hasSequences = all.some(({ real_seq: sequence }) => sequence !== undefined)
  return toPage(all, {
    isOwn: message => isOwn(message, selfId),
    timeOf: ({ time }) => Number(toText(time) || NaN) * 1000,
    idOf: ({ message_id: id }) => toText(id),
    isEqual: ({ message }) => {
      const found = readContent(message)
      return found && isSameContent(found, content)
    },
    isSeen: ({ real_seq: sequence }) => !hasSequences || Number(toText(sequence)) > 0,
  })
}

/** Whether the bot's own account sent a message, here or on another device. */
function isOwn({ sender, user_id: userId }: JsonObject, selfId: string): boolean {
  return toText(fieldsOf(sender).user_id ?? userId) === selfId
}

/** The chat of a reported message. A report of a private one has the bot as its `user_id` and the other side as its `target_id`. */
function targetOf({ message_type: type, target_id: userId, group_id: groupId }: JsonObject): Target {
  return type === 'private' ? { kind: 'private', id: toText(userId) } : { kind: 'group', id: toText(groupId) }
}
