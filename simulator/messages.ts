import { Ring } from './ring'
import type { Person, Segment, Target } from './types'

/** A message in a chat, of the bot or of a person. */
export interface StoredMessage {
  /** Position among the messages of all chats, from 1. */
  seq: number
  /** Position in its chat, from 1: OneBot's `message_seq`. */
  chatSeq: number
  id: number
  isFile: boolean
  /** Whether risk control made the message visible only in the bot's own history. */
  isSwallowed: boolean
  /** Milliseconds since the epoch. */
  time: number
  target: Target
  sender: Person & { self: boolean }
  /** As others see them, with links for media. */
  segments: readonly Segment[]
  /** Who reacts to it, by QQ's IDs of emoji. */
  reactions: ReadonlyMap<string, ReadonlySet<string>>
}

/** A chat. Its history contains only messages with a `chatSeq` above `forgotten`. `tail` is the delivery that the next one waits for. */
export interface Chat { target: Target, messages: Ring<StoredMessage>, count: number, forgotten: number, tail: Promise<void> | null }

/** Every chat and its messages. */
export class Messages {
  private readonly chats = new Map<string, Chat>()
  private readonly byId = new Map<number, StoredMessage>()
  private seq = 0
  private idCounter = 0

  constructor(private readonly keep: number) {}

  /** An unused message ID: positive, 31 bits, unordered, like NapCat's hashes. */
  freshId(): number {
    let id: number
    do {
      // An odd factor permutes the 31-bit numbers.
      id = Math.imul(++this.idCounter, 0x5851f42d) & 0x7fffffff
    } while (id === 0 || this.byId.has(id))
    return id
  }

  chat(target: Target): Chat {
    const key = keyOf(target)
    const known = this.chats.get(key)
    if (known !== undefined) return known
    const messages = new Ring<StoredMessage>(this.keep, Infinity, message => {
      // A test may have reused an ID that it chose itself.
      if (this.byId.get(message.id) === message) this.byId.delete(message.id)
    })
    const chat: Chat = { target, messages, count: 0, forgotten: 0, tail: null }
    this.chats.set(key, chat)
    return chat
  }

  all(): Iterable<Chat> {
    return this.chats.values()
  }

  add(message: Omit<StoredMessage, 'seq' | 'chatSeq' | 'reactions'>): StoredMessage {
    const chat = this.chat(message.target)
    const stored = { seq: ++this.seq, chatSeq: ++chat.count, reactions: new Map(), ...message }
    chat.messages.push(stored)
    this.byId.set(stored.id, stored)
    return stored
  }

  find(id: number): StoredMessage | undefined {
    return this.byId.get(id)
  }

  /** Recalls a message. */
  remove(message: StoredMessage): void {
    const { items } = this.chat(message.target).messages
    const index = items.indexOf(message)
    if (index >= 0) items.splice(index, 1)
    this.byId.delete(message.id)
  }

  /** Limits the history of each chat to its newest messages. */
  forget(kept: number): void {
    for (const chat of this.chats.values()) chat.forgotten = Math.max(chat.forgotten, chat.count - kept)
  }

  /** The newest `count` messages, oldest first. The last one is the message whose ID (NapCat) or sequence number (go-cqhttp) is `from`. */
  history(target: Target, from: number | null, count: number): StoredMessage[] {
    const chat = this.chats.get(keyOf(target))
    if (chat === undefined) return []
    const { messages: { items: all }, forgotten } = chat
    const items = forgotten === 0 ? all : all.filter(({ chatSeq }) => chatSeq > forgotten)
    let end = items.length
    if (from !== null && from !== 0) {
      const index = items.findIndex(message => message.id === from || message.chatSeq === from)
      if (index >= 0) end = index + 1
    }
    return items.slice(Math.max(0, end - count), end)
  }
}

function keyOf({ type, id }: Target): string {
  return `${type}:${id}`
}

/** Runs a delivery after the earlier ones to the same chat. */
export function inTurn<T>(chat: Chat, task: () => Promise<T>): Promise<T> {
  const run = (chat.tail ?? Promise.resolve()).then(task)
  const done = (): void => {
    if (chat.tail === tail) chat.tail = null
  }
  const tail: Promise<void> = run.then(done, done)
  chat.tail = tail
  return run
}
