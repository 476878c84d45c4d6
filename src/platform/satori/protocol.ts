import { h } from 'koishi'
import { hash } from '../../lib/crypto'
import { fieldsOf, toText } from '../../lib/shape'
import { cleanWording } from '../failure'
import { elementsText } from '../incoming'
import { toElement } from '../session'
import { SendError, type LoadedItem, type Receipt } from '../port'
import { classify, withoutCall } from '../qq-answers'
import { readList, retryAfterOf, toFailure, typeOf, type WebAnswer } from '../web'

/*
 * Answers of Satori servers. A success is 200 with JSON; a failure has a status of HTTP and any text.
 * Sources: https://satori.chat/zh-CN/protocol/api.html (statuses), https://satori.chat/zh-CN/resources/message.html (`message.create`), and
 * the servers themselves:
 * - satorijs/satori `packages/server/src/index.ts`: 403 `invalid token`, `login not found`; 404 `method not found`; 405; 500 for any error
 * - LLOneBot/LuckyLilliaBot `src/satori/server.ts`: the same, and 500 with the words of QQ for whatever fails
 * - RF-Tar-Railt/satori-python `src/satori/server/__init__.py`: 404 `Action '…' is not supported in current platform '…'.`
 * - chrononeko/chronocat `packages/shell/src/satori/server.ts`: 400, `401 unauthorized`, `404 not found`, 405, 500, 501
 */

/**
 * Reads the answer to a send, a list of messages. An empty list is no success: Koishi's server returns it if a plugin suppressed the
 * message or an adapter swallowed an error, LuckyLilliaBot if it sent nothing, Chronocat if QQ reported nothing.
 *
 * @throws SendError
 */
export function readReceipt(answer: WebAnswer): Receipt {
  const body = readBody(answer)
  // Sent, although the server says otherwise.
  if (answer.status >= 300) return { messageIds: [] }
  const messages = readList(body)
  if (messages.length === 0) throw new SendError('unanswered', undefined, { causeId: 'unconfirmed' })
  return { messageIds: messages.map(({ id }) => toText(id)).filter(Boolean) }
}

/** Reads the body of an answer. @throws SendError */
export function readBody(answer: WebAnswer): unknown {
  const failure = failureOf(answer)
  if (failure) throw failure
  return answer.body
}

/** The texts of a 404 for a missing call, unlike those for a missing channel. */
const noSuchCall = /^(?:(?:404|method|API) not found|Action .* is not supported in current platform .*)?$/i

/** A server that is a QQ client quotes the same words as through OneBot, some of them for a message that was sent. */
function failureOf({ status, headers, text, body }: WebAnswer): SendError | undefined {
  if (status >= 200 && status < 300) return
  const words = withoutCall(wordsOf(text, body))
  if (status === 429) return toFailure(status, { words, scope: 'account', wait: retryAfterOf(headers) })
  if (status === 401 || (status === 403 && /invalid token|login not found/i.test(words))) return toFailure(401, { words, causeId: 'logged-out' })
  // 501: the server's adapter lacks the call, so nothing was done.
  if (status === 405 || status === 501 || (status === 404 && noSuchCall.test(words))) {
    return toFailure(404, { words: words || `HTTP ${status}`, causeId: 'unknown-action' })
  }
  const known = classify(NaN, words)
  if (!known || known.cause === 'unknown-action' || known.cause === 'empty-chat') return toFailure(status, { words })
  if (known.outcome === 'sent') return
  if (known.outcome === 'unanswered') return new SendError('unanswered', cleanWording(words), { causeId: known.cause })
  return toFailure(400, { words, causeId: known.cause })
}

/** Leaves out the pages of proxies, which say nothing about the message. */
function wordsOf(text: string, body: unknown): string {
  if (body === undefined) return /^\s*</.test(text) ? '' : text.trim()
  const { message, error, msg } = fieldsOf(body)
  return [message, error, msg, body].map(toText).find(Boolean) ?? ''
}

/*
 * Content in Satori's markup of elements. Sources: https://satori.chat/zh-CN/protocol/message.html (syntax),
 * https://satori.chat/zh-CN/protocol/elements.html (elements).
 */

/** Inline media without a type, and the beginning of their content. */
const untyped = /^data:application\/octet-stream;base64,(.{0,16})/

/** The elements of a message. Inline media without a type get that of their name, or of their content. */
export function toElements(items: readonly LoadedItem[]): h[] {
  return items.map(item => {
    if (!('src' in item)) return toElement(item)
    const toTyped = (_: string, start: string): string => `data:${typeOf(Buffer.from(start, 'base64'), item.name, '')};base64,${start}`
    return toElement({ ...item, src: item.src.replace(untyped, toTyped) })
  })
}

/** Writes elements so that a server reads each text unchanged. */
export function toMarkup(elements: readonly h[]): string {
  return elements.map(element => element.type === 'text' ? escapeText(toText(fieldsOf(element.attrs).content)) : element.toString()).join('')
}

/** Servers ignore blanks with a line break next to an element, escaped or not, so such a break must be an element. */
function escapeText(text: string): string {
  const [end, start] = [text.trimEnd().length, text.length - text.trimStart().length]
  const middle = Math.max(start, end)
  const withBreaks = (blanks: string): string => blanks.replaceAll('\n', '<br/>')
  return withBreaks(text.slice(0, start)) + h.escape(text.slice(start, middle)) + withBreaks(text.slice(middle))
}

/**
 * The parts of a message that a server's history keeps: the letters and digits of its text and mentions, and the kinds of its media.
 * The platform behind the server may change the rest, such as blanks, escapes, and links of media.
 */
export function likenessOf(elements: readonly h[]): string {
  const text = elementsText(elements)
  return hash(JSON.stringify([text.replace(/[^\p{L}\p{N}]+/gu, '') || text.trim(), ...mediaIn(elements)]))
}

const media: ReadonlySet<string> = new Set(['img', 'image', 'video', 'audio', 'file'])

/** No server nests deeper on purpose, and a hostile message must not exhaust the stack. */
const maxDepth = 64

/** The kinds and names of media, except those of a quoted message, which may be inside the element or beside it. */
function mediaIn(elements: readonly h[], depth = 0): string[] {
  return elements.flatMap(({ type, attrs, children }) => {
    if (media.has(type)) return `${type === 'image' ? 'img' : type} ${toText(fieldsOf(attrs).title)}`
    return type === 'quote' || depth > maxDepth ? [] : mediaIn(children, depth + 1)
  })
}
