import type { Context } from 'koishi'
import { Recent } from '../../lib/recent'
import { unwrap } from '../../lib/unwrap'
import type { Target } from '../../message/model'
import { isObject, type JsonObject } from '../../message/parse'
import type { KnownSends, Receipt, UnnamedSend } from '../port'
import { contentOfMessage, isSameContent, isSealOf, type Content } from './content'
import { toId } from './message'

/** A message that the bot's own account sent, as the platform has it. */
export interface OwnMessage {
  id: string
  /** In milliseconds since the epoch. In a history it is whole seconds, by the platform's clock. */
  time: number
  content: Content
}

/**
 * How far the platform's clock may be from ours without anything to show for it, in milliseconds. The time of a message is its server's,
 * and cut to whole seconds, which alone makes it up to 1 s early; the rest is for a machine whose own clock is not kept in time. The
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
/** The times of a history are cut to whole seconds, in milliseconds. */
const second = 1_000
/** No clock is further behind that anybody uses, in milliseconds. */
const day = 24 * 60 * 60_000
/** By how much the two clocks of this process may differ without the machine's having been set, in milliseconds. */
const leastStep = 2_000

interface Chat {
  /** Since when nothing is missing of what this process has sent here, by the first clock. */
  since: number
  /** The messages that are known to be somebody's, by their IDs; the one known last at the end. */
  readonly known: Map<string, Known>
  /** Messages that the platform reported and that nobody knows, by arrival. */
  readonly seen: OwnMessage[]
  readonly unnamed: Recent<Unnamed>
  /** The newest at the end. */
  readonly found: Found[]
}

/** Since when a message is known to be somebody's, and when its call was made where it was made here, by the first clock. */
interface Known {
  at: number
  begun?: number
  /** How far the machine's clock had been set then. */
  step: number
}

/** What a search found, for which content, and when. */
interface Found {
  message: OwnMessage
  /** Whether the platform had reported it. */
  wasSeen: boolean
  content: Content
  time: number
  /** The same on the monotonic clock. */
  at: number
}

/** A send without an ID, and the message that a search took for its own. */
interface Unnamed {
  send: UnnamedSend
  /** When it was answered, on the monotonic clock; absent where an earlier process sent it. */
  ended?: number
  messageId?: string
}

/** What is looked for, and when its first call was made, in milliseconds since the epoch, by the local clock. */
export interface Wanted {
  content: Content
  since: number
}

/** The messages of the bots of each app. They outlive a reload of the plugin, which does not make the messages before it unsent. */
const memories = new WeakMap<object, OwnMessages>()

/**
 * Which of the bots' own messages are known to be somebody's: each message of the platform answers for one send only. What a
 * platform reports of messages that nobody knows yet is kept, so that a search finds it. The memory is bounded: the chats used last,
 * and the newest of each. A chat goes by what `chatOf` calls it; times are in milliseconds since the epoch, by the machine's clock as it is
 * at the time, or by the first clock: the same as if it had not been set since this was made.
 */
export class OwnMessages {
  /** Since when nothing is missing in a chat of which nothing is remembered, by the first clock. */
  private since: number
  private readonly chats = new Recent<Chat>(keptChats, maxAge, (_, used) => {
    this.since = Math.max(this.since, used + 2 * clockTolerance)
  })

  /** What the machine's clock showed when the monotonic one began. */
  private readonly origin = Date.now() - performance.now()

  constructor(now = Date.now()) {
    this.since = now
  }

  /** The messages of the bots of an app, which are listened to until this context is disposed. */
  static of(ctx: Context): OwnMessages {
    const app = unwrap(ctx.root)
    const messages = memories.get(app) ?? new OwnMessages()
    memories.set(app, messages)
    // Before the events that the session is turned into, so that no plugin can keep it from being seen.
    ctx.on('internal/session', session => messages.listen(session), { prepend: true })
    return messages
  }

  /**
   * Takes down that these messages are known to be somebody's, so that no search takes one of them for another.
   *
   * @param took how long the call took that was answered with them, in milliseconds
   * @returns whether they were free: an answer may come late, when a search has taken its message already, be it for an equal one
   */
  note(chatName: string, ids: readonly string[], now = Date.now(), took?: number): boolean {
    const chat = this.open(chatName, now)
    for (const id of ids) this.makeKnown(chat, id, now, took)
    return !chat.found.some(({ message }) => ids.includes(message.id))
  }

  /**
   * The same for a send that got no ID: the message that must be its own is left to it.
   *
   * @returns whether it was free
   */
  noteUnnamed(chatName: string, send: UnnamedSend): boolean {
    const { unnamed, found } = this.open(chatName, send.until)
    const ended = performance.now()
    const { since, until, took } = send
    const wasMeanwhile = ({ time, at }: Found): boolean => took === undefined ? time >= since && time <= until : at >= ended - took
    const index = found.findIndex(entry => wasMeanwhile(entry) && isSealOf(send.content, entry.content))
    if (index >= 0) found.splice(index, 1)
    else unnamed.set(nameOf(send), { send, ended }, until - this.step)
    return index < 0
  }

  /** Takes back that what was sent, or found, is somebody's. */
  release(chatName: string, { messageIds, trace }: Receipt, content: Content, now = Date.now()): void {
    const { known, unnamed, found, seen } = this.open(chatName, now)
    for (const id of typeof trace === 'string' ? [...messageIds, trace] : messageIds) {
      known.delete(id)
      const place = found.findIndex(({ message }) => message.id === id)
      const [search] = place >= 0 ? found.splice(place, 1) : []
      // What was found in the history will be there again; of what was answered there need be no other sign.
      if (!search) this.see(chatName, { id, time: now, content })
      else if (search.wasSeen) keep(seen, search.message)
    }
    if (typeof trace === 'object') unnamed.delete(nameOf(trace))
  }

  /**
   * The IDs of the messages that a search after a restart, when nothing of this is remembered, could take for one that leaves now:
   * those that became known within twice the tolerance, because the clocks may differ as much at both ends.
   */
  recent(chatName: string, now = Date.now()): string[] {
    const { step } = this
    const known = this.chats.get(chatName, now - step)?.known ?? []
    return [...known].flatMap(([id, { at }]) => at + step >= now - 2 * clockTolerance ? [id] : [])
  }

  /** Whether a message was known to be somebody's already then. */
  isKnownBefore(chatName: string, id: string, time: number): boolean {
    const { step } = this
    const known = this.chats.get(chatName, Date.now() - step)?.known.get(id)
    return known !== undefined && known.at + step < time
  }

  /**
   * How far the machine's clock is ahead of the platform's, at least and at most, in milliseconds: no message is from the future, and one
   * that was sent from here was sent after its call was made and before that was answered.
   *
   * @param history messages with the platform's times
   * @param newest the time of the newest message in the chat, whoever sent it
   */
  ahead(chatName: string, history: readonly OwnMessage[], newest: number, now = Date.now()): { least: number, most: number } {
    const { step } = this
    const { known } = this.open(chatName, now)
    // A time of next week is none.
    let [least, most] = [-Infinity, newest - now < day ? now - newest : Infinity]
    for (const { id, time } of history) {
      const entry = known.get(id)
      // Since the clock was set, or the machine slept, both may have become right.
      if (entry?.begun === undefined || Math.abs(entry.step - step) >= leastStep) continue
      least = Math.max(least, entry.begun + step - time - second)
      most = Math.min(most, entry.at + step - time)
    }
    // Many messages leave no room, and servers do not agree by the millisecond. Where they contradict one another, a clock was set.
    if (least <= most + 2 * second) return { least: Math.min(least, most), most: Math.max(least, most) }
    return { least: -Infinity, most: Infinity }
  }

  /** Keeps a message that the platform reported. Its time is that of its arrival. */
  see(chatName: string, message: OwnMessage): void {
    const { known, seen } = this.open(chatName, message.time)
    if (!known.has(message.id) && !seen.some(({ id }) => id === message.id)) keep(seen, message)
  }

  /** Whether any message, of a history or reported, may be the one that is wanted as far as is remembered here. */
  hasCandidate(chatName: string, wanted: Wanted, history: readonly OwnMessage[], now = Date.now()): boolean {
    return candidates(this.open(chatName, now), wanted, history).length > 0
  }

  /**
   * The messages of a history that are too old by their times to be the one that is wanted, and would not be by other clocks.
   *
   * @param most how far the machine's clock may be ahead of those times, in milliseconds
   */
  tooOld(chatName: string, { content, since }: Wanted, history: readonly OwnMessage[], most: number, now = Date.now()): OwnMessage[] {
    const { known } = this.open(chatName, now)
    const older = history.filter(({ id, time }) => time < since - clockTolerance && time + second + most >= since && !known.has(id))
    return older.filter(message => isSameContent(message.content, content))
  }

  /** Of messages with this content those that nobody is known to have sent. */
  unexplained(chatName: string, content: Content, messages: readonly OwnMessage[], sends: KnownSends, now = Date.now()): OwnMessage[] {
    return nobodys(this.open(chatName, now), content, messages, messages, sends)
  }

  /**
   * Takes the oldest message, of a history or reported, that is the one that is wanted. It is known from then on.
   *
   * @param sends what is known besides of what was sent into the chat
   * @returns `unclear` when there is one that may as well be another's: it is older than what is known
   */
  take(chatName: string, wanted: Wanted, history: readonly OwnMessage[], sends: KnownSends, now = Date.now()): OwnMessage | 'unclear' | undefined {
    const chat = this.open(chatName, now)
    const free = nobodys(chat, wanted.content, candidates(chat, wanted, history), history, sends)
    // What this process has sent it knows itself, whatever is known besides.
    const complete = Math.min(chat.since + this.step, sends.since)
    const sure = wanted.since >= complete ? free : free.filter(({ time }) => time >= complete + clockTolerance)
    const oldest = sure.reduce<OwnMessage | undefined>((best, message) => best && best.time <= message.time ? best : message, undefined)
    if (oldest) {
      keep(chat.found, { message: oldest, wasSeen: chat.seen.includes(oldest), content: wanted.content, time: now, at: performance.now() })
      this.makeKnown(chat, oldest.id, now)
    }
    return oldest ?? (free.length > 0 ? 'unclear' : undefined)
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

  /** @param took as for `note` */
  private makeKnown(chat: Chat, id: string, now: number, took?: number): void {
    const { known, seen } = chat
    const { step } = this
    const at = now - step
    known.delete(id)
    known.set(id, { at, step, ...took !== undefined && { begun: at - took } })
    const [[oldest, entry] = ['', { at }]] = known
    if (known.size > keptIds) {
      known.delete(oldest)
      forget(chat, entry.at)
    }
    const index = seen.findIndex(message => message.id === id)
    if (index >= 0) seen.splice(index, 1)
  }

  /** How far the machine's clock was set since this was made, in milliseconds: chats do not grow old by that. */
  get step(): number {
    const step = Math.round(Date.now() - performance.now() - this.origin)
    return Math.abs(step) < leastStep ? 0 : step
  }

  private open(chatName: string, now: number): Chat {
    const kept = this.chats.get(chatName, now - this.step)
    if (kept) return kept
    const chat: Chat = {
      since: this.since, known: new Map(), seen: [], found: [],
      unnamed: new Recent(keptEntries, Infinity, (_, until) => forget(chat, until)),
    }
    this.chats.set(chatName, chat, now - this.step)
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

/** The messages that say what is wanted, are not too old, and are not known to be somebody's. */
function candidates({ known, seen }: Chat, { content, since }: Wanted, history: readonly OwnMessage[]): OwnMessage[] {
  // What was reported has the time of its arrival, by the local clock.
  const recent = [...seen.filter(({ time }) => time >= since), ...history.filter(({ time }) => time >= since - clockTolerance)]
  return recent.filter(message => !known.has(message.id) && isSameContent(message.content, content))
}

/** Those of these messages that nobody is known to have sent; the history is what sends without an ID may be in. */
function nobodys(
  chat: Chat, content: Content, messages: readonly OwnMessage[], history: readonly OwnMessage[], sends: KnownSends,
): OwnMessage[] {
  const named = nameSends(chat, content, history, sends)
  return messages.filter(({ id }) => !sends.messageIds.has(id) && !named.has(id))
}

/**
 * Gives each send of this content that got no ID the message that must be its own.
 *
 * @returns the IDs of these messages
 */
function nameSends({ known, seen, unnamed }: Chat, content: Content, history: readonly OwnMessage[], sends: KnownSends): Set<string> {
  const here = unnamed.entries().map(([, entry]) => entry)
  const earlier = sends.unnamed.filter(send => !unnamed.has(nameOf(send))).map((send): Unnamed => ({ send }))
  const entries = [...earlier, ...here].filter(({ send }) => isSealOf(send.content, content))
  const named = new Set(entries.flatMap(({ messageId }) => messageId ?? []))
  const isOpen = ({ id }: OwnMessage): boolean => !known.has(id) && !sends.messageIds.has(id)
  const equal = [...seen, ...history].filter(message => isOpen(message) && isSameContent(message.content, content))
  for (const entry of entries) {
    if (entry.messageId !== undefined) continue
    const spans = spansOf(entry)
    const [nearest] = equal
      .filter(message => distance(message, spans) < Infinity && !named.has(message.id))
      .sort((a, b) => distance(a, spans) - distance(b, spans))
    if (!nearest) continue
    entry.messageId = nearest.id
    named.add(nearest.id)
  }
  return named
}

type Span = Pick<UnnamedSend, 'since' | 'until'>

/** How far a message is from the end of the next of these spans; infinitely far where it is in none. */
function distance({ time }: OwnMessage, spans: readonly Span[]): number {
  const within = spans.filter(({ since, until }) => time >= since - clockTolerance && time <= until + clockTolerance)
  return Math.min(...within.map(({ until }) => Math.abs(time - until)))
}

/**
 * When a send was under way: by the machine's clock as it was at the beginning, as it was at the end and, for a send of this process, as
 * it is now. They differ where it was set meanwhile, and the platform's may have been right all the time.
 */
function spansOf({ send: { since, until, took }, ended }: Unnamed): Span[] {
  if (took === undefined) return [{ since, until }]
  const ends = [since + took, until, ...ended === undefined ? [] : [Date.now() - (performance.now() - ended)]]
  return ends.map(end => ({ since: end - took, until: end }))
}

function nameOf({ content, since, until }: UnnamedSend): string {
  return `${content} ${since} ${until}`
}

/** A message that was sent then, by the first clock, is remembered no more. */
function forget(chat: Chat, time: number): void {
  chat.since = Math.max(chat.since, time + 2 * clockTolerance)
}

function keep<T>(list: T[], entry: T): void {
  list.push(entry)
  if (list.length > keptEntries) list.shift()
}
