import { networkReason } from '../lib/endpoint'
import { fieldsOf } from '../lib/shape'
import type { CauseId } from '../message/causes'
import { LostCall } from './keeper/wire'
import { SendError, type SendFailure } from './port'
import { say } from '../texts/text'

const maxWordingLength = 200

/**
 * Makes a platform's text safe to show to a caller: one line of at most 200 characters, without invisible and bidirectional control
 * characters, and without local paths, data and links, because error texts often repeat the arguments of a call.
 */
export function cleanWording(text: string): string | undefined {
  const clean = text
    .slice(0, 4000)
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/\p{Cs}/gu, '\ufffd')
    .split(/[\r\n\p{Zl}\p{Zp}]+/u)
    .map(line => withoutPaths(line.replace(/\b(?:base64|https?|data):[^\s'"]*/gi, '…')))
    .join(' ')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  if (clean.length <= maxWordingLength) return clean || undefined
  // A character outside the basic plane is kept or cut whole.
  return `${clean.slice(0, maxWordingLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Where a path begins. A slash between two words or numbers begins one only if another one follows in the line. */
const pathStart = new RegExp([
  String.raw`\bfile:`,
  String.raw`(?<![\p{L}\p{N}])[A-Z]:(?=[\\/])`,
  String.raw`(?<![\p{L}\p{N}_.~])[.~]{0,2}[\\/](?=\S)`,
  String.raw`(?<!\d(?=/\d))/(?=[^\\/]+[\\/])`,
  String.raw`\\(?=\S)`,
].join('|'), 'iu')

const closingQuotes: Readonly<Record<string, string>> = { '\'': '\'', '"': '"', '`': '`', '‘': '’', '“': '”', '「': '」', '『': '』', '《': '》', '<': '>' }

/** Cuts paths out of a line. A path may contain blanks, so it ends with the last quotation mark, or else with the line. */
function withoutPaths(line: string): string {
  const start = pathStart.exec(line)?.index
  if (start === undefined) return line
  const closing = closingQuotes[line.charAt(start - 1)]
  const end = closing === undefined ? -1 : line.lastIndexOf(closing)
  return `${line.slice(0, start)}…${end < start ? '' : line.charAt(end) + withoutPaths(line.slice(end + 1))}`
}

/** Words of a time-out, in English, Chinese and Japanese. Nobody has answered then, whatever the code says. */
export const timeOut = /time[ds]?[ _-]?out|deadline|[超逾][时時]|タイムアウト/i

/** Errors of a SOCKS or HTTP proxy that refuses or cannot connect, the last of them of proxy-agent 0.3.3 on Node.js 26. */
const proxyFailed = /^SocksClientError$|^Proxy response \(|^UND_ERR_INVALID_ARG$/

/**
 * The meaning of errors by their codes, classes, texts, and failed system calls. The first rule that matches an error, or one of its
 * causes, decides.
 */
const rules: readonly [SendFailure, RegExp][] = [
  // No connection was made, or the certificate of the other side is not trusted.
  ['unsent', /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|connect|getaddrinfo|\w*CERT\w*|UNABLE_TO_VERIFY\w*)$/],
  ['unsent', proxyFailed],
  // Of `fetch`, of a connection that closed before it was encrypted, and of adapter-onebot.
  ['unsent', /^bad port$|disconnected before secure TLS connection was established$|_request is not a function/],
  ['unanswered', /^(?:ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED|EHOSTUNREACH|ENETUNREACH|UND_ERR_.*)$/],
  ['unanswered', timeOut],
  // A time-out as well, or an answer that is not JSON.
  ['unanswered', /^(?:\w*abort\w*|SyntaxError)$/i],
  // Of `fetch`, for a connection that was lost, and for an answer that ended early.
  ['unanswered', /^(?:fetch failed|terminated)$/],
]

/** The longest chain of causes to read. */
const maxCauses = 5

/** Classifies an adapter's error by what it says of the connection and the answer. @param otherwise the outcome for any other error */
export function classifyThrown(error: unknown, otherwise: 'refused' | 'unanswered' = 'refused'): SendError {
  if (error instanceof SendError) return error
  if (error instanceof LostCall) return new SendError(error.hasLeft ? 'unanswered' : 'unsent', error.reason)
  // Satori's AggregateError, which is not the global class, holds an error for each platform message.
  const { errors } = fieldsOf(error)
  if (Array.isArray(errors) && errors.length > 0) return classifyThrown(errors[0], otherwise)
  const marks = marksOf(error)
  const isServerError = Number(fieldsOf(fieldsOf(error).response).status) >= 500
  const [outcome] = rules.find(([, rule]) => marks.some(mark => rule.test(mark))) ?? [isServerError ? 'unanswered' : undefined]
  if (outcome === 'unsent') {
    const reason = marks.some(mark => proxyFailed.test(mark)) ? say('no-proxy-connection') : networkReason(error)
    return new SendError('unsent', reason, { causeId: 'unreachable' })
  }
  if (outcome) return new SendError(outcome, undefined, { cause: error })
  return new SendError(otherwise, cleanWording(error instanceof Error ? error.message : ''), { cause: error })
}

/** Rethrows the error of an adapter as a SendError. */
export function throwClassified(error: unknown): never {
  throw classifyThrown(error)
}

/** For `catch`: a value in place of a failure with this cause, or of any refusal. */
export function forgive<T>(what: CauseId | 'refused', value: T): (error: unknown) => T {
  return error => {
    if (error instanceof SendError && (error.causeId === what || error.outcome === what)) return value
    throw error
  }
}

/**
 * The properties that rules read from an error and its causes. Koishi's `http` wraps the error of `fetch`, which wraps that of the
 * connection. For a host with several addresses, the last one contains an error per address.
 */
function marksOf(error: unknown): string[] {
  const marks: unknown[] = []
  for (let [next, left] = [error, maxCauses]; next !== undefined && left > 0; left--) {
    const { code, syscall, name, message, cause, errors } = fieldsOf(next)
    marks.push(code, syscall, name, message, next instanceof Error && next.constructor.name)
    next = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return marks.filter(mark => typeof mark === 'string')
}
