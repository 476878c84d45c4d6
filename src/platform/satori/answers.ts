import { fieldsOf, isObject } from '../../message/parse'
import { cleanWording } from '../failure'
import { toText } from '../incoming'
import { SendError, type Receipt } from '../port'
import { classify } from '../qq'
import { retryAfterOf, toFailure, unreadable, type WebAnswer } from '../web'

/*
 * Answers of Satori servers. A success is 200 with JSON; a failure has a status of HTTP and any text.
 * Sources: https://satori.chat/zh-CN/protocol/api.html (statuses), https://satori.chat/zh-CN/resources/message.html (`message.create`), and
 * the servers themselves:
 * - satorijs/satori `packages/server/src/index.ts`: 403 `invalid token`, `login not found`; 404 `method not found`; 405; 500 for any error
 * - LLOneBot/LuckyLilliaBot `src/satori/server.ts`: the same, and 500 with the words of QQ for whatever fails
 * - chrononeko/chronocat `packages/shell/src/satori/server.ts`: 400, `401 unauthorized`, `404 not found`, 405, 500, 501
 */

/**
 * Reads the answer to a send, a list of messages. An empty list is no success: the server of Koishi has it where a plugin suppressed the
 * message and where an adapter swallowed an error, LuckyLilliaBot where it sent nothing, Chronocat where QQ reported nothing.
 *
 * @throws SendError
 */
export function readReceipt(answer: WebAnswer): Receipt {
  if (!isSuccess(answer)) {
    const failure = failureOf(answer)
    if (failure === 'sent') return { messageIds: [] }
    throw failure
  }
  if (!Array.isArray(answer.body)) throw unreadable()
  const messages = answer.body.filter(isObject)
  if (messages.length === 0) throw new SendError('unanswered', undefined, { causeId: 'unconfirmed' })
  return { messageIds: messages.map(({ id }) => toText(id)).filter(Boolean) }
}

/** Reads the answer to any other call. @throws SendError */
export function readBody(answer: WebAnswer): unknown {
  if (isSuccess(answer)) return answer.body
  const failure = failureOf(answer)
  throw failure === 'sent' ? unreadable() : failure
}

function isSuccess({ status }: WebAnswer): boolean {
  return status >= 200 && status < 300
}

/** A server that is the client of QQ quotes the same words as through OneBot, some of them for a message that was sent. */
function failureOf({ status, headers, text, body }: WebAnswer): SendError | 'sent' {
  const words = wordsOf(text, body)
  if (status === 429) return toFailure(status, { words, scope: 'account', wait: retryAfterOf(headers) })
  if (status === 401 || (status === 403 && /invalid token|login not found/i.test(words))) return toFailure(401, { words, causeId: 'logged-out' })
  // 501 is a call that the platform has and its adapter lacks: it does nothing.
  if (status === 405 || status === 501 || (status === 404 && /^(?:(?:404|method|API) not found)?$/i.test(words))) {
    return toFailure(404, { words: words || `HTTP ${status}`, causeId: 'unknown-action' })
  }
  const known = classify(NaN, words)
  if (!known || known.cause === 'unknown-action' || known.cause === 'empty-chat') return toFailure(status, { words })
  if (known.outcome === 'unanswered') return new SendError('unanswered', cleanWording(words), { causeId: known.cause })
  return known.outcome === 'sent' ? 'sent' : toFailure(400, { words, causeId: known.cause })
}

/** Pages of proxies say nothing about the message. */
function wordsOf(text: string, body: unknown): string {
  if (body === undefined) return /^\s*</.test(text) ? '' : text.trim()
  const { message, error, msg } = fieldsOf(body)
  return [message, error, msg, body].map(toText).find(Boolean) ?? ''
}
