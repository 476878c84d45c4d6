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
}

/** Reads the messages of a particular platform. */
export interface IncomingSupport {
  /** The text as the member typed it; `undefined` for a message of another platform. */
  readText(session: object): string | undefined
  /** The same with all else that the member typed, such as the name of the bot that a command is for. */
  readRaw?(session: object): string | undefined
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
  private readonly support: IncomingSupport | undefined

  /** @param supports tried in order */
  constructor(private readonly session: Session, supports: readonly IncomingSupport[]) {
    for (const support of supports) {
      const text = support.readText(session)
      if (text === undefined) continue
      this.text = text
      this.support = support
      return
    }
    this.text = textOf(session)
  }

  /** As the member typed it. */
  get raw(): string {
    return this.support?.readRaw?.(this.session) ?? this.text
  }

  /**
   * The sender and the chat; `undefined` for messages of the bot's own account, and for those without a sender or a channel, which cannot
   * be answered. The ID of a group is that of its channel, which `POST /webhook` takes as `group_id`; on OneBot both are the same.
   */
  get source(): Source | undefined {
    const { platform, selfId, userId, channelId, messageId = '', isDirect } = this.session
    if (!userId || userId === selfId || this.support?.isOwn?.(this.session)) return
    const origin = { bot: { platform, selfId }, userId, messageId, sequence: this.support?.sequenceOf?.(this.session) ?? '' }
    const target = this.support?.targetOf?.(this.session)
    if (target) return { ...origin, target }
    // A temporary private session has a guild ID, so only isDirect tells whether it is private.
    if (isDirect) return { ...origin, target: { kind: 'private', id: userId } }
    if (channelId) return { ...origin, target: { kind: 'group', id: channelId } }
  }
}

/**
 * Removes a mention of the bot at the beginning: on some platforms a bot receives no other messages, and DingTalk leaves only the blank
 * after it. This reads past the tracing proxies of the session, because these cost 3 µs for each property of each message.
 */
function textOf(session: Session): string {
  const { message, selfId } = fieldsOf(Reflect.get(unwrap(session), 'event'))
  const { elements } = fieldsOf(message)
  if (!Array.isArray(elements)) return ''
  const { type, attrs } = fieldsOf(elements[0])
  return elementsText(type === 'at' && fieldsOf(attrs).id === selfId ? elements.slice(1) : elements).trimStart()
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
