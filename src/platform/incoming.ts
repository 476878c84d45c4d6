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
}

/** How messages of a particular platform are read. */
export interface IncomingSupport {
  /** The text as the member typed it; `undefined` when the message is not of this platform. */
  readText(session: object): string | undefined
  /** The same with what else the member typed, such as the name of the bot that a command is for. */
  readRaw?(session: object): string | undefined
  /** Whether the platform reports it as a message of the bot's own account. */
  isOwn?(session: object): boolean
  /** The chat, such as a topic of a group, where the channel and the sender of the session do not tell it. */
  targetOf?(session: object): Target | undefined
}

/** A message that a bot received. Only the text is read at once, because most messages are not for the relay. */
export class Incoming {
  /** As the member typed it, without the name of the bot that a command is for. */
  readonly text: string
  private readonly support: IncomingSupport | undefined

  /** @param supports the first one that can read the message counts */
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
   * The sender and the chat; `undefined` for a message of the bot's own account, and for a message without a sender or a channel, which
   * cannot be answered. The ID of a group is that of its channel, which `POST /webhook` takes as `group_id`; on OneBot both are the same.
   */
  get source(): Source | undefined {
    const { platform, selfId, userId, channelId, messageId = '', isDirect } = this.session
    if (!userId || userId === selfId || this.support?.isOwn?.(this.session)) return
    const origin = { bot: { platform, selfId }, userId, messageId }
    const target = this.support?.targetOf?.(this.session)
    if (target) return { ...origin, target }
    // A temporary private session has a guild ID, so only isDirect tells whether it is private.
    if (isDirect) return { ...origin, target: { kind: 'private', id: userId } }
    if (channelId) return { ...origin, target: { kind: 'group', id: channelId } }
  }
}

/**
 * Without a mention of the bot at its beginning: on some platforms a bot hears nothing else, and DingTalk leaves only the blank behind it.
 * Reads past the tracing proxies of the session: through them each property costs 3 µs, for each message.
 */
function textOf(session: Session): string {
  const { message, selfId } = fieldsOf(Reflect.get(unwrap(session), 'event'))
  const { elements } = fieldsOf(message)
  if (!Array.isArray(elements)) return ''
  const { type, attrs } = fieldsOf(elements[0])
  return elementsText(type === 'at' && fieldsOf(attrs).id === selfId ? elements.slice(1) : elements).trimStart()
}

/** Elements that only style or link the text in them. */
const styles: ReadonlySet<unknown> = new Set([
  'p', 'a', 'b', 'strong', 'i', 'em', 'u', 'ins', 's', 'del', 'spl', 'code', 'code-block', 'pre', 'sup', 'sub', 'span', 'template',
])

/** The text of elements without children. */
const texts = new Map<unknown, (attrs: JsonObject) => string>([
  ['text', ({ content }) => toText(content)],
  ['at', ({ type, id, role, name }) => toMention(type === 'all' || type === 'here' ? type : id ?? role ?? name)],
  ['br', () => '\n'],
])

/** No member nests deeper on purpose. A hostile message must not exhaust the stack. */
const maxDepth = 64
/** Stands at both ends of a paragraph. */
const border = '\0'

/**
 * The text of the elements that an adapter made of a message, with mentions as `@<id>`. Line breaks are text: `<br/>` as well as the
 * borders of paragraphs. A link without a text is its address.
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
