import type { Context } from 'koishi'
import { Recent } from '../../lib/recent'
import { unwrap } from '../../lib/unwrap'
import type { Target } from '../../message/model'
import { isObject, type JsonObject } from '../../message/parse'
import { contentOfMessage, isSameContent, type Content } from './content'
import { toId } from './message'

/** A message that the bot's own account sent, as the platform has it. */
export interface OwnMessage {
  id: string
  /** In milliseconds since the epoch. In a history it is whole seconds, by the platform's clock. */
  time: number
  content: Content
}

/** A send that succeeded without an ID: an upload, or a message whose answer had none. */
export interface UnnamedSend {
  content: Content
  /** When the call was made and when it was answered, in milliseconds since the epoch, by the local clock. */
  since: number
  until: number
}

/**
 * How far the platform's clock may be from ours, in milliseconds. The time of a message is its server's, and cut to whole
 * seconds, which alone makes it up to 1 s early; the rest is for a machine whose own clock is not kept in time. A clock that is
 * further off is so for every message: each search would say "absent", and each message without an answer would be sent twice. The
 * price is that an equal message which somebody else sent from this account within these seconds before ours is taken for it.
 */
export const clockTolerance = 10_000

/** How many IDs of known messages are kept of a chat. */
const keptIds = 128
/** How many entries are kept of each other kind: what is seen, found or answered without an ID soon has its use if any. */
const keptEntries = 64
const keptChats = 1_000
/** How long a chat in which nothing is sent is remembered, in milliseconds: longer than any send takes. */
const maxAge = 60 * 60_000

interface Chat {
  /** The messages that are known to be somebody's: their IDs, and when that became known. */
  readonly known: Recent<number>
  /** Messages that the platform reported and that nobody knows, by arrival. */
  readonly seen: OwnMessage[]
  readonly unnamed: UnnamedSend[]
  /** What searches found, and when. */
  readonly found: { content: Content, time: number }[]
}

/** The messages of the bots of each app. They outlive a reload of the plugin, which does not make the messages before it unsent. */
const memories = new WeakMap<object, OwnMessages>()

/**
 * Which of the bots' own messages are known to be somebody's: each message of the platform answers for one send only. What a
 * platform reports of messages that nobody knows yet is kept, so that a search finds it. The memory is bounded: the chats used last,
 * and the newest of each. A chat goes by what `chatOf` calls it; times are in milliseconds since the epoch.
 */
export class OwnMessages {
  private readonly chats = new Recent<Chat>(keptChats, maxAge)

  /** The messages of the bots of an app, which are listened to until this context is disposed. */
  static of(ctx: Context): OwnMessages {
    const app = unwrap(ctx.root)
    const messages = memories.get(app) ?? new OwnMessages()
    memories.set(app, messages)
    // Before the events that the session is turned into, so that no plugin can keep it from being seen.
    ctx.on('internal/session', session => messages.listen(session), { prepend: true })
    return messages
  }

  /** Takes down that these messages are known to be somebody's, so that no search takes one of them for another. */
  note(chatName: string, ids: readonly string[], now = Date.now()): void {
    const chat = this.open(chatName, now)
    for (const id of ids) makeKnown(chat, id, now)
  }

  /** The same for a send that got no ID: the message that must be its own is left to it. */
  noteUnnamed(chatName: string, send: UnnamedSend): void {
    const { unnamed, found } = this.open(chatName, send.until)
    // The answer comes late: a search has found the message meanwhile.
    const index = found.findIndex(({ content, time }) => time >= send.since && time <= send.until && isSameContent(content, send.content))
    if (index >= 0) found.splice(index, 1)
    else keep(unnamed, send)
  }

  /** Takes back that these messages are somebody's, or without any the last send of this content that got no ID. */
  release(chatName: string, ids: readonly string[], content: Content, now = Date.now()): void {
    const { known, unnamed } = this.open(chatName, now)
    for (const id of ids) {
      known.delete(id)
      this.see(chatName, { id, time: now, content })
    }
    const index = ids.length === 0 ? unnamed.findLastIndex(send => isSameContent(send.content, content)) : -1
    if (index >= 0) unnamed.splice(index, 1)
  }

  /**
   * The IDs of the messages that a search after a restart, when nothing of this is remembered, could take for one that leaves now:
   * those that became known within twice the tolerance, because the clocks may differ as much at both ends.
   */
  recent(chatName: string, now = Date.now()): string[] {
    const ids = this.chats.get(chatName, now)?.known.entries() ?? []
    return ids.flatMap(([id, time]) => time >= now - 2 * clockTolerance ? [id] : [])
  }

  /** Whether a message was known to be somebody's already then. */
  isKnownBefore(chatName: string, id: string, time: number): boolean {
    const known = this.chats.get(chatName, Date.now())?.known.get(id)
    return known !== undefined && known < time
  }

  /** Keeps a message that the platform reported. Its time is that of its arrival. */
  see(chatName: string, message: OwnMessage): void {
    const { known, seen } = this.open(chatName, message.time)
    if (!known.has(message.id) && !seen.some(({ id }) => id === message.id)) keep(seen, message)
  }

  /** Finds a message that was reported since then and that nobody knows. It is known from then on. */
  takeSeen(chatName: string, content: Content, since: number, now = Date.now()): string | undefined {
    const chat = this.chats.get(chatName, now)
    return chat && take(chat, chat.seen, content, since, now)
  }

  /** The same among the messages of a history. */
  takeFrom(chatName: string, history: readonly OwnMessage[], content: Content, since: number, now = Date.now()): string | undefined {
    return take(this.open(chatName, now), history, content, since - clockTolerance, now)
  }

  /** It runs for whatever the bots hear, so it stops at the first no. */
  private listen(session: object): void {
    // Past the tracing proxies: through them each property costs 3 µs.
    const event: unknown = Reflect.get(unwrap(session), 'onebot')
    if (!isObject(event) || (event.post_type !== 'message_sent' && event.post_type !== 'message')) return
    const selfId = toId(event.self_id)
    if (selfId === undefined || !isOwn(event, selfId)) return
    const target = targetOf(event)
    const message = readOwn(event)
    if (target && message) this.see(chatOf(selfId, target), { ...message, time: Date.now() })
  }

  private open(chatName: string, now: number): Chat {
    const kept = this.chats.get(chatName, now)
    if (kept) return kept
    const chat: Chat = { known: new Recent(keptIds), seen: [], unnamed: [], found: [] }
    this.chats.set(chatName, chat, now)
    return chat
  }
}

/** The name of a chat among those of all bots. */
export function chatOf(selfId: string, { kind, id }: Target): string {
  return `${selfId} ${kind} ${id}`
}

/** Whether the bot's own account sent a message, be it here or by another device. */
export function isOwn(message: JsonObject, selfId: string): boolean {
  const { sender, user_id: userId } = message
  return toId((isObject(sender) ? sender.user_id : undefined) ?? userId) === selfId
}

/** Reads a message of an event or a history; `undefined` when it lacks an ID, a time or a content. */
export function readOwn(message: JsonObject): OwnMessage | undefined {
  const id = toId(message.message_id)
  const time = readTime(message)
  const content = contentOfMessage(message.message)
  return id !== undefined && !Number.isNaN(time) && content ? { id, time, content } : undefined
}

/** When a message was sent, in milliseconds since the epoch, NaN when it does not say. */
export function readTime({ time }: JsonObject): number {
  return typeof time === 'number' || typeof time === 'string' ? Number(time) * 1000 : NaN
}

/**
 * Where a message of the bot's own went; `undefined` when it does not say. A report of a private one has the bot as its `user_id`
 * and the other side as its `target_id`.
 */
function targetOf(event: JsonObject): Target | undefined {
  const isPrivate = event.message_type === 'private'
  const id = toId(isPrivate ? event.target_id : event.group_id)
  return id === undefined ? undefined : { kind: isPrivate ? 'private' : 'group', id }
}

function take(chat: Chat, messages: readonly OwnMessage[], content: Content, earliest: number, now: number): string | undefined {
  const equal = messages.filter(message => isSameContent(message.content, content))
  nameSends(chat, equal, content, now)
  const candidates = equal.filter(({ id, time }) => time >= earliest && !chat.known.has(id))
  const oldest = candidates.reduce<OwnMessage | undefined>((best, message) => best && best.time <= message.time ? best : message, undefined)
  if (!oldest) return
  makeKnown(chat, oldest.id, now)
  keep(chat.found, { content, time: now })
  return oldest.id
}

/** Gives each earlier send of the same content that was answered without an ID the message that must be its own. */
function nameSends(chat: Chat, equal: readonly OwnMessage[], content: Content, now: number): void {
  for (const send of chat.unnamed.filter(send => isSameContent(send.content, content))) {
    const distance = ({ time }: OwnMessage): number => Math.abs(time - send.until)
    const [nearest] = equal
      .filter(({ id, time }) => time >= send.since - clockTolerance && time <= send.until + clockTolerance && !chat.known.has(id))
      .sort((a, b) => distance(a) - distance(b))
    if (!nearest) continue
    makeKnown(chat, nearest.id, now)
    chat.unnamed.splice(chat.unnamed.indexOf(send), 1)
  }
}

function makeKnown({ known, seen }: Chat, id: string, now: number): void {
  known.set(id, now)
  const index = seen.findIndex(message => message.id === id)
  if (index >= 0) seen.splice(index, 1)
}

function keep<T>(list: T[], entry: T): void {
  list.push(entry)
  if (list.length > keptEntries) list.shift()
}
