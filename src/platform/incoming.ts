import type { Session } from 'koishi'
import { unwrap } from '../lib/unwrap'
import type { BotSelector, Target } from '../message/model'
import { isObject, type JsonObject } from '../message/parse'

/** Where a message came from. */
export interface Source {
  /** The bot that received it. */
  bot: BotSelector
  /** Account of the sender. */
  userId: string
  /** The group, or the private chat with the sender. */
  target: Target
  messageId: string
}

/** How the messages of one platform are read, where it is not as those of all others. */
export interface IncomingSupport {
  /** The text as its member typed it; `undefined` when the message is not of this platform. */
  readText(session: object): string | undefined
  /** Whether the platform reports it as one of the bot's own account. */
  isOwn(session: object): boolean
}

/** A message that a bot received. Only its text is read at once: most messages are of no interest to anybody. */
export class Incoming {
  /** The text as it was typed. */
  readonly text: string

  constructor(private readonly session: Session, private readonly support: IncomingSupport) {
    this.text = support.readText(session) ?? textOf(session)
  }

  /**
   * Where it came from; `undefined` when the bot itself sent it, here or by another device of its account, and when it names no
   * sender or no channel, so that nobody could be answered. A group is known by the ID of its channel, which is what
   * `POST /webhook` takes as `group_id`; on OneBot both are the same.
   */
  get source(): Source | undefined {
    const { platform, selfId, userId, channelId, messageId = '', isDirect } = this.session
    if (!userId || userId === selfId || this.support.isOwn(this.session)) return
    const origin = { bot: { platform, selfId }, userId, messageId }
    // A temporary private session carries a guild ID: whether it is private is known by isDirect alone.
    if (isDirect) return { ...origin, target: { kind: 'private', id: userId } }
    if (channelId) return { ...origin, target: { kind: 'group', id: channelId } }
  }
}

/** Past the tracing proxies of the session: through them each property costs 3 µs, and this is done for each message. */
function textOf(session: Session): string {
  const event: unknown = Reflect.get(unwrap(session), 'event')
  return isObject(event) && isObject(event.message) ? elementsText(event.message.elements) : ''
}

/** Elements that only say how the text in them looks. */
const styles = new Set([
  'b', 'strong', 'i', 'em', 'u', 'ins', 's', 'del', 'spl', 'code', 'code-block', 'pre', 'sup', 'sub', 'span', 'template',
])

/** Deeper than anybody nests on purpose; it keeps a hostile message from exhausting the stack. */
const maxDepth = 64

/**
 * The text of the elements that an adapter made of a message, with mentions as `@<id>`. Line breaks are text, whether they stand
 * as `<br/>` or between paragraphs; a link without text of its own stands for its address.
 */
export function elementsText(elements: unknown): string {
  const output: Output = { text: '', lineEnded: false }
  writeElements(elements, output, 0)
  return output.text
}

interface Output {
  text: string
  /** A line break is due before anything else is written. */
  lineEnded: boolean
}

function writeElements(elements: unknown, output: Output, depth: number): void {
  if (!Array.isArray(elements) || depth > maxDepth) return
  elements.forEach((element: unknown) => {
    if (isObject(element)) writeElement(element, output, depth)
  })
}

function writeElement({ type, attrs, children }: JsonObject, output: Output, depth: number): void {
  const { content, type: scope, id, role, name, href } = isObject(attrs) ? attrs : {}
  switch (type) {
    case 'text':
      append(output, toText(content))
      break
    case 'at':
      append(output, toMention(scope === 'all' || scope === 'here' ? scope : id ?? role ?? name))
      break
    case 'br':
      append(output, '\n')
      break
    case 'p':
      endLine(output)
      writeElements(children, output, depth + 1)
      endLine(output)
      break
    case 'a':
      if (Array.isArray(children) && children.length > 0) writeElements(children, output, depth + 1)
      else append(output, toText(href))
      break
    default:
      if (typeof type === 'string' && styles.has(type)) writeElements(children, output, depth + 1)
  }
}

/** Puts what comes next on a line of its own, if anything comes and it is not on one already. */
function endLine(output: Output): void {
  output.lineEnded = output.text !== '' && !output.text.endsWith('\n')
}

function append(output: Output, text: string): void {
  if (!text) return
  output.text += output.lineEnded ? `\n${text}` : text
  output.lineEnded = false
}

/** A mention as its text; nothing without an ID. */
export function toMention(id: unknown): string {
  const text = toText(id)
  return text && `@${text}`
}

/** Text as it is; a number as text, for those who send IDs as numbers; nothing for the rest. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : ''
}
