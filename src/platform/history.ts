import { LRUCache } from 'lru-cache'
import type { JsonObject } from '../lib/shape'
import type { HistoryEntry, HistoryPage, Report } from './port'

/** The most reports per chat, and the most chats. */
const maxReports = 200
const maxChats = 1_000

/** The own messages that platforms have reported, by chat, with their likenesses. */
export class Reported<T> {
  private readonly chats = new LRUCache<string, readonly (Report & { content: T })[]>({ max: maxChats })

  get isEmpty(): boolean {
    return this.chats.size === 0
  }

  /** Keeps the first report of a message. */
  keep(chat: string, id: string, content: T): void {
    const reports = this.chats.get(chat) ?? []
    if (reports.some(report => report.id === id)) return
    this.chats.set(chat, [...reports.slice(1 - maxReports), { id, content, heardAt: performance.now() }])
  }

  /** The reports of a chat with matching contents, the oldest first. */
  find(chat: string, fits: (content: T) => boolean): Report[] {
    return (this.chats.get(chat) ?? []).filter(({ content }) => fits(content))
  }
}

/** Reads the messages of a platform's history. */
interface Reading {
  isOwn: (message: JsonObject) => boolean
  /** In milliseconds since the epoch; `NaN` if the message has no time. */
  timeOf: (message: JsonObject) => number
  /** May be empty. */
  idOf: (message: JsonObject) => string
  /** `undefined` for unreadable content. */
  isEqual: (message: JsonObject) => boolean | undefined
  isSeen?: (message: JsonObject) => boolean
}

/** Reads a page of a history. */
export function toPage(messages: readonly JsonObject[], reading: Reading): HistoryPage {
  const { isOwn, timeOf, idOf, isEqual: compare, isSeen = () => true } = reading
  const own = messages.filter(isOwn)
  const entries = own.flatMap((message): HistoryEntry[] => {
    const [id, time, isEqual] = [idOf(message), timeOf(message), compare(message)]
    return id === '' || Number.isNaN(time) || isEqual === undefined ? [] : [{ id, time, isEqual, isSeen: isSeen(message) }]
  })
  const oldest = Math.min(...messages.map(timeOf).filter(time => !Number.isNaN(time)))
  return { own: entries, oldest, isReadable: entries.length === own.length }
}
