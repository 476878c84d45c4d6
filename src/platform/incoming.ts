import type { Session } from 'koishi'
import { unwrap } from '../lib/koishi'
import { fieldsOf, toText, type JsonObject } from '../lib/shape'
import type { BotSelector, Target } from '../message/model'

/** The sender of a message, and the chat. */
export interface Source {
  /** The bot that received it. */
  bot: BotSelector
  /** Account of the sender. */
  userId: string
  /** The group, or the private chat with the sender. */
  target: Target
  messageId: string
  /** The number of the message on the platform's server, if it has one of its own there. */
  sequence?: string
  /** The name of the sender in that chat, or else everywhere; empty if the platform tells none. */
  name: string
  /** When it was sent, in milliseconds since the epoch. On some platforms, whole seconds. */
  time: number
}

/** A message without the mentions of the bot at its beginning. */
export interface Address { text: string, isMention: boolean }

/** Reads the messages of a particular platform. */
export interface IncomingSupport {
  /** The text as the member typed it; `undefined` for a message of another platform. */
  readText(session: object): string | undefined
  /** The same with all else that the member typed, such as the name of the bot that a command is for. */
  readRaw?(session: object): string | undefined
  /** The ID of the message that this one quotes; empty for none. Adapters ask the platform for that message, and may get no answer. */
  quoteOf?(session: object): string
  /** Whether a mention of the bot is missing at the beginning of the text. */
  lacksMention?(session: object): boolean
  /** Whether the bot's own account sent the message. */
  isOwn?(session: object): boolean
  /** The number of the message on the platform's server, if the ID may differ between reports of one message. */
  sequenceOf?(session: object): string
  /** The chat, such as a topic of a group, if the channel and the sender of the session do not determine it. */
  targetOf?(session: object): Target | undefined
}

/** A message that a bot received. Only the text is read at once, because most messages are not for the relay. */
export class Incoming {
  /** As the member typed it, without the name of the bot that a command is for. */
  readonly text: string
  private readonly support: IncomingSupport

  /** @param supports tried in order */
  constructor(private readonly session: Session, supports: readonly IncomingSupport[]) {
    for (const support of supports) {
      const text = support.readText(session)
      if (text === undefined) continue
      this.text = text
      this.support = support
      return
    }
    this.text = elementsText(hasMention(session) ? elementsOf(session).slice(1) : elementsOf(session)).trimStart()
    this.support = { readText: () => this.text, lacksMention: hasMention }
  }

  /** As the member typed it. */
  get raw(): string {
    return this.support.readRaw?.(this.session) ?? this.text
  }

  /** The ID of the message that this one quotes; empty for none. */
  get quote(): string {
    return this.support.quoteOf?.(this.session) ?? toText(fieldsOf(fieldsOf(eventOf(this.session).message).quote).id)
  }

  /** The text after mentions of the bot at the beginning: an `@` with its ID, or with its name. */
  get address(): Address {
    const { bot, selfId } = unwrap(this.session)
    const whole = this.text.trimStart()
    const text = withoutHeads(whole, [selfId, bot.user?.name].map(toMention).filter(Boolean))
    return { text, isMention: text !== whole || this.support.lacksMention?.(this.session) === true }
  }

  /**
   * The sender and the chat; `undefined` for messages of the bot's own account, and for those without a sender or a channel, which cannot
   * be answered. The ID of a group is that of its channel, which `POST /webhook` takes as `group_id`; on OneBot both are the same.
   */
  get source(): Source | undefined {
    const { platform, selfId, userId, channelId, messageId = '', isDirect } = this.session
    if (!userId || userId === selfId || this.support.isOwn?.(this.session)) return
    const { user, member, timestamp } = eventOf(this.session)
    const [{ nick }, { nick: ownNick, name }] = [fieldsOf(member), fieldsOf(user)]
    const origin = {
      bot: { platform, selfId }, userId, messageId, sequence: this.support.sequenceOf?.(this.session) ?? '',
      name: toText(nick || ownNick || name).replace(unprintable, '').trim(), time: typeof timestamp === 'number' ? timestamp : Date.now(),
    }
    const target = this.support.targetOf?.(this.session)
    if (target) return { ...origin, target }
    // A temporary private session has a guild ID, so only isDirect tells whether it is private.
    if (isDirect) return { ...origin, target: { kind: 'private', id: userId } }
    if (channelId) return { ...origin, target: { kind: 'group', id: channelId } }
  }
}

/**
 * Whether a message begins with a mention of the bot, which is no part of its text: on some platforms a bot receives no other messages, and
 * DingTalk leaves only the blank after it.
 */
function hasMention(session: object): boolean {
  const { type, attrs } = fieldsOf(elementsOf(session)[0])
  return type === 'at' && fieldsOf(attrs).id === eventOf(session).selfId
}

function withoutHeads(text: string, heads: readonly string[]): string {
  const head = heads.find(each => text.startsWith(each))
  return head === undefined ? text : withoutHeads(text.slice(head.length).trimStart(), heads)
}

function elementsOf(session: object): unknown[] {
  const { elements } = fieldsOf(eventOf(session).message)
  return Array.isArray(elements) ? elements : []
}

/** The event of a session, read past its tracing proxies: these cost 3 µs for each property of each message. */
function eventOf(session: object): JsonObject {
  return fieldsOf(Reflect.get(unwrap(session), 'event'))
}

/** Elements that only style or link their text. */
const styles: ReadonlySet<unknown> = new Set([
  'p', 'a', 'b', 'strong', 'i', 'em', 'u', 'ins', 's', 'del', 'spl', 'code', 'code-block', 'pre', 'sup', 'sub', 'span', 'template',
])

/** The text of elements without children. */
const texts = new Map<unknown, (attrs: JsonObject) => string>([
  ['text', ({ content }) => toText(content)],
  ['at', ({ type, id, role, name }) => toMention(type === 'all' || type === 'here' ? type : id ?? role ?? name)],
  ['br', () => '\n'],
])

/** No member nests deeper on purpose, and a hostile message must not exhaust the stack. */
const maxDepth = 64
/** Characters that would break the line that a name is in, or turn the direction of writing. */
const unprintable = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu
/** Marks both ends of a paragraph. */
const border = '\0'

/**
 * The text of a message's elements, with mentions as `@<id>`. `<br/>` and the ends of paragraphs become line breaks. A link without a text
 * becomes its address.
 */
export function elementsText(elements: unknown): string {
  const pieces = textWithin(elements, 0).split(border).filter(Boolean)
  return pieces.reduce((text, piece) => text + (text === '' || text.endsWith('\n') ? '' : '\n') + piece, '')
}

function textWithin(elements: unknown, depth: number): string {
  if (!Array.isArray(elements) || depth > maxDepth) return ''
  return elements.map(element => textOfElement(fieldsOf(element), depth)).join('')
}

function textOfElement({ type, attrs, children }: JsonObject, depth: number): string {
  const fields = fieldsOf(attrs)
  if (!styles.has(type)) return (texts.get(type)?.(fields) ?? '').replaceAll(border, '')
  const text = textWithin(children, depth + 1)
  if (type === 'a' && text === '') return toText(fields.href)
  return type === 'p' ? border + text + border : text
}

/** The text of a mention; empty without an ID. */
export function toMention(id: unknown): string {
  const text = toText(id)
  return text && `@${text}`
}
