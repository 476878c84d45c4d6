import type { Context } from 'koishi'
import { LRUCache } from 'lru-cache'
import { unwrap } from '../../lib/unwrap'
import type { Target } from '../../message/model'
import { fieldsOf, isObject, type JsonObject } from '../../message/parse'
import { SendError, type HistoryEntry, type HistoryPage, type Report } from '../port'
import { readAnswer, toId } from './answer'
import { eventOf } from './incoming'
import { isSameContent, readContent, type Content } from './message'

/** How long a report is kept, in milliseconds: longer than a send takes. */
const maxAge = 60 * 60_000
/** How many reports are kept of each chat, and of how many chats. */
const maxReports = 200
const maxChats = 1_000

interface KeptReport extends Report {
  content: Content
}

/** The reports of each app. They outlive a reload of the plugin, because calls under way do. */
const reportsOfApps = new WeakMap<object, Reports>()

/** The messages of the bots' own accounts that the platforms have reported by themselves, by chats. */
export class Reports {
  private readonly chats = new LRUCache<string, KeptReport[]>({ max: maxChats, ttl: maxAge })

  /** The reports of an app. They are collected until this context is disposed. */
  static of(ctx: Context): Reports {
    const app = unwrap(ctx.root)
    const reports = reportsOfApps.get(app) ?? new Reports()
    reportsOfApps.set(app, reports)
    // Before the events that Koishi makes of the session, so that no plugin can keep it from being heard.
    ctx.on('internal/session', session => reports.hear(eventOf(session)), { prepend: true })
    return reports
  }

  /** The reports of messages with this content in a chat, the oldest first. */
  equalTo(content: Content, chat: string): Report[] {
    return this.fresh(chat).filter(report => isSameContent(report.content, content)).map(({ id, heardAt }) => ({ id, heardAt }))
  }

  /** Keeps the report of a message, if the event is one. All events of all bots come here, so most of them fail the first check. */
  hear(event: JsonObject): void {
    if (event.post_type !== 'message_sent' && event.post_type !== 'message') return
    const [selfId, target] = [toId(event.self_id), targetOf(event)]
    if (selfId === undefined || !target || !isOwn(event, selfId)) return
    const [id, content] = [toId(event.message_id), readContent(event.message)]
    const chat = chatOf(selfId, target)
    const reports = this.fresh(chat)
    if (id === undefined || !content || reports.some(report => report.id === id)) return
    this.chats.set(chat, [...reports.slice(1 - maxReports), { id, content, heardAt: performance.now() }])
  }

  private fresh(chat: string): KeptReport[] {
    const oldest = performance.now() - maxAge
    return (this.chats.get(chat) ?? []).filter(({ heardAt }) => heardAt >= oldest)
  }
}

/** The name of a chat among those of all bots. */
export function chatOf(selfId: string, { kind, id }: Target): string {
  return `${selfId} ${kind} ${id}`
}

/**
 * Reads the whole answer to a question for the history of a chat.
 *
 * @param content the content of the message that is looked for
 * @returns `undefined` when there is no history: the action is unknown, or its data has an unknown form
 * @throws SendError `unanswered` for any other failure, which may be a passing one, and for an answer that cannot be read
 */
export function readHistory(answer: unknown, selfId: string, content: Content): HistoryPage | undefined {
  const read = readAnswer(answer)
  if (!read.isOk) {
    if (read.failure.causeId === 'unknown-action') return
    if (read.failure.causeId === 'empty-chat') return { own: [], oldest: Infinity, isReadable: true }
    throw new SendError('unanswered')
  }
  const { messages } = fieldsOf(read.data)
  if (!Array.isArray(messages)) return
  // LuckyLilliaBot has `null` in the place of a message that it leaves out.
  const all = messages.filter(isObject)
  // NapCat has the number that the server gave to a message; zero where it gave none. Others have no such field.
  const hasSequences = all.some(({ real_seq: sequence }) => sequence !== undefined)
  const own = all.filter(message => isOwn(message, selfId)).map(message => {
    return readEntry(message, content, !hasSequences || Number(toId(message.real_seq) ?? 0) > 0)
  })
  const readable = own.filter(entry => entry !== undefined)
  const oldest = Math.min(...all.map(timeOf).filter(time => !Number.isNaN(time)))
  return { own: readable, oldest, isReadable: readable.length === own.length }
}

/** An entry of a history; `undefined` when the message lacks an ID, a time or a content. */
function readEntry(message: JsonObject, wanted: Content, isSeen: boolean): HistoryEntry | undefined {
  const [id, time, content] = [toId(message.message_id), timeOf(message), readContent(message.message)]
  if (id !== undefined && content && !Number.isNaN(time)) return { id, time, isEqual: isSameContent(content, wanted), isSeen }
}

/** Whether the bot's own account sent a message, here or on another device. */
function isOwn({ sender, user_id: userId }: JsonObject, selfId: string): boolean {
  return toId(fieldsOf(sender).user_id ?? userId) === selfId
}

/** When a message was sent, in milliseconds since the epoch; `NaN` when it does not say. */
function timeOf({ time }: JsonObject): number {
  return Number(toId(time) ?? NaN) * 1000
}

/** The chat of a reported message. A report of a private one has the bot as its `user_id` and the other side as its `target_id`. */
function targetOf({ message_type: type, target_id: userId, group_id: groupId }: JsonObject): Target | undefined {
  const [kind, given] = type === 'private' ? ['private' as const, userId] : ['group' as const, groupId]
  const id = toId(given)
  return id === undefined ? undefined : { kind, id }
}
