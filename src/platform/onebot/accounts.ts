import { isSameContent, type Content } from './content'
import { Recent } from '../../lib/recent'

/** A message of the bot's own, as the platform has it. */
export interface OwnMessage {
  id: string
  /** In milliseconds since the epoch. In a history it is whole seconds, by the platform's clock. */
  time: number
  content: Content
}

/** A send that succeeded without an ID: an upload, or a message whose answer had none. */
export interface NamelessSend {
  content: Content
  /** When the call was made and when it was answered, in milliseconds since the epoch, by the local clock. */
  since: number
  until: number
}

/**
 * How far the platform's clock may be from ours, in milliseconds. The time of a message is its server's, and cut to whole
 * seconds, which alone makes it up to 1 s early; the rest is for a machine whose own clock is not kept in time. A wrong clock is
 * wrong for every message and would have each look-up say "absent" and each unanswered message sent twice. The price is that an
 * equal message which somebody else sent from this account within these seconds before ours is taken for it.
 */
export const clockTolerance = 10_000

/** A look-up sees the last 50 messages of a chat (`history.ts`): older IDs of our own are never asked for. */
const keptIds = 64
/** How much of the rest is kept of a chat: what is seen, found or answered without an ID, which soon has its use if any. */
const maxWaiting = 64
const keptChats = 500
/** How long a chat in which nothing is sent is remembered, in milliseconds: longer than any send takes. */
const maxAge = 60 * 60_000

interface Chat {
  /** Accounted for, and when. */
  readonly ids: Recent<number>
  /** Seen and not accounted for, by arrival. */
  readonly seen: OwnMessage[]
  readonly nameless: NamelessSend[]
  /** What look-ups found, and when. */
  readonly claims: { content: Content, time: number }[]
}

/**
 * Which messages are accounted for, in each chat: each message of the platform answers for one send. Pure memory of bounded
 * size: the chats used last, and the newest of each.
 */
export class Accounts {
  private readonly chats = new Recent<Chat>(keptChats, maxAge)

  /** @param now milliseconds since the epoch */
  account(key: string, ids: readonly string[], now: number): void {
    const chat = this.open(key, now)
    for (const id of ids) settle(chat, id, now)
  }

  /** The messages of a chat that were accounted for since then. */
  accounted(key: string, since: number, now: number): string[] {
    const ids = this.chats.get(key, now)?.ids.entries() ?? []
    return ids.flatMap(([id, time]) => time >= since ? [id] : [])
  }

  accountNameless(key: string, send: NamelessSend): void {
    const { nameless, claims } = this.open(key, send.until)
    // The answer comes late: a look-up has found the message meanwhile.
    const found = claims.findIndex(({ content, time }) => time >= send.since && time <= send.until && isSameContent(content, send.content))
    if (found >= 0) claims.splice(found, 1)
    else keep(nameless, send)
  }

  /** Takes back that these messages are accounted for, or without any the last send of this content that got no ID. */
  disown(key: string, ids: readonly string[], content: Content, now: number): void {
    const chat = this.open(key, now)
    for (const id of ids) {
      chat.ids.delete(id)
      this.see(key, { id, time: now, content })
    }
    const nameless = ids.length === 0 ? chat.nameless.findLastIndex(send => isSameContent(send.content, content)) : -1
    if (nameless >= 0) chat.nameless.splice(nameless, 1)
  }

  /** Takes down a message that was reported by an event. Its time is that of its arrival. */
  see(key: string, message: OwnMessage): void {
    const { ids, seen } = this.open(key, message.time)
    if (!ids.has(message.id) && !seen.some(({ id }) => id === message.id)) keep(seen, message)
  }

  /** Finds an unaccounted message among those seen since then, and accounts for it. Gives its ID. */
  claimSeen(key: string, content: Content, since: number, now: number): string | undefined {
    const chat = this.chats.get(key, now)
    return chat && claim(chat, chat.seen, content, since, now)
  }

  /** The same among the messages of a history. */
  claimIn(key: string, history: readonly OwnMessage[], content: Content, since: number, now: number): string | undefined {
    return claim(this.open(key, now), history, content, since - clockTolerance, now)
  }

  private open(key: string, now: number): Chat {
    const known = this.chats.get(key, now)
    if (known) return known
    const chat: Chat = { ids: new Recent(keptIds), seen: [], nameless: [], claims: [] }
    this.chats.set(key, chat, now)
    return chat
  }
}

function claim(chat: Chat, messages: readonly OwnMessage[], content: Content, earliest: number, now: number): string | undefined {
  const equal = messages.filter(message => isSameContent(message.content, content))
  settleNameless(chat, equal, content, now)
  const candidates = equal.filter(({ id, time }) => time >= earliest && !chat.ids.has(id))
  const oldest = candidates.reduce<OwnMessage | undefined>((best, message) => best && best.time <= message.time ? best : message, undefined)
  if (!oldest) return
  settle(chat, oldest.id, now)
  keep(chat.claims, { content, time: now })
  return oldest.id
}

/** Gives each earlier send of the same content that was answered without an ID the message that must be it. */
function settleNameless(chat: Chat, equal: readonly OwnMessage[], content: Content, now: number): void {
  for (const send of chat.nameless.filter(send => isSameContent(send.content, content))) {
    const distance = ({ time }: OwnMessage): number => Math.abs(time - send.until)
    const [nearest] = equal
      .filter(({ id, time }) => time >= send.since - clockTolerance && time <= send.until + clockTolerance && !chat.ids.has(id))
      .sort((a, b) => distance(a) - distance(b))
    if (!nearest) continue
    settle(chat, nearest.id, now)
    chat.nameless.splice(chat.nameless.indexOf(send), 1)
  }
}

function settle({ ids, seen }: Chat, id: string, now: number): void {
  ids.set(id, now)
  const index = seen.findIndex(message => message.id === id)
  if (index >= 0) seen.splice(index, 1)
}

function keep<T>(list: T[], entry: T): void {
  list.push(entry)
  if (list.length > maxWaiting) list.shift()
}
