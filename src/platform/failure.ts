import { fieldsOf } from '../message/parse'
import { SendError, type SendFailure } from './port'

const maxWordingLength = 200

/**
 * Makes a platform's text fit for a caller: one line of at most 200 characters, without invisible characters and those that change the
 * direction of writing, and without local paths, data and links: error texts often repeat the arguments of a call.
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

/** Cuts paths out of a line. A path may hold blanks, so it ends with the last quotation mark; without such marks it ends with the line. */
function withoutPaths(line: string): string {
  const start = pathStart.exec(line)?.index
  if (start === undefined) return line
  const closing = closingQuotes[line.charAt(start - 1)]
  const end = closing === undefined ? -1 : line.lastIndexOf(closing)
  return `${line.slice(0, start)}…${end < start ? '' : line.charAt(end) + withoutPaths(line.slice(end + 1))}`
}

/** Codes of errors that prevent a connection, and the system calls that make one. */
const neverConnected = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|connect|getaddrinfo)$/
/** Codes of a certificate that is not trusted: nothing was sent. */
const untrusted = /CERT|^UNABLE_TO_VERIFY/
const disconnected = /^(?:ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED|EHOSTUNREACH|ENETUNREACH|UND_ERR_.*)$/
/** Messages of `fetch` for a port that it does not connect to, and of a connection that closed before it was encrypted. */
const neverOpened = /^bad port$|disconnected before secure TLS connection was established$/
/** Classes of errors for a time-out, and for an answer that is not JSON. */
const withoutAnswer = /timeout|abort|^SyntaxError$/i
/** Messages of `fetch` for a connection that was lost, and for an answer that ended early. */
const fetchFailed = /^(?:fetch failed|terminated)$/

/** How many errors of a chain of causes are read. */
const maxCauses = 5

/** What is known of an error, and of the errors that caused it. */
interface Traits {
  text: string
  /** With the names of system calls. */
  codes: readonly string[]
  names: readonly string[]
  texts: readonly string[]
  /** The HTTP status of the answer. */
  status: unknown
}

/** The first rule that fits an error decides. */
const rules: readonly [SendFailure, (traits: Traits) => boolean][] = [
  ['unsent', ({ codes }) => codes.some(code => neverConnected.test(code) || untrusted.test(code))],
  ['unsent', ({ texts }) => texts.some(text => neverOpened.test(text))],
  ['unsent', ({ text }) => text.includes('_request is not a function')],
  ['unanswered', ({ codes }) => codes.some(code => disconnected.test(code))],
  ['unanswered', ({ names }) => names.some(name => withoutAnswer.test(name))],
  ['unanswered', ({ texts }) => texts.some(text => fetchFailed.test(text))],
  ['unanswered', ({ status }) => Number(status) >= 500],
]

/** Classifies the errors of adapters by what they say of the connection and of the answer. @param otherwise what any other error is */
export function classifyThrown(error: unknown, otherwise: 'refused' | 'unanswered' = 'refused'): SendError {
  if (error instanceof SendError) return error
  // Satori's AggregateError, which is not the global class, holds an error for each platform message.
  const { errors } = fieldsOf(error)
  if (Array.isArray(errors) && errors.length > 0) return classifyThrown(errors[0], otherwise)
  const traits = traitsOf(error)
  const [outcome] = rules.find(([, fits]) => fits(traits)) ?? []
  if (outcome) return new SendError(outcome, undefined, { cause: error })
  return new SendError(otherwise, cleanWording(traits.text), { cause: error })
}

/** Rethrows the error of an adapter as a SendError. */
export function throwClassified(error: unknown): never {
  throw classifyThrown(error)
}

/**
 * Koishi's `http` wraps the error of `fetch`, which wraps the error of the connection. For a host with several addresses, that one holds an
 * error for each of them.
 */
function traitsOf(error: unknown): Traits {
  const chain: unknown[] = []
  for (let next = error; next !== undefined && chain.length < maxCauses;) {
    chain.push(next)
    const { cause, errors } = fieldsOf(next)
    next = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  const causes = chain.filter(cause => cause instanceof Error)
  const texts = causes.map(({ message }) => message)
  return {
    text: error instanceof Error ? error.message : '',
    codes: chain.map(fieldsOf).flatMap(({ code, syscall }) => [code, syscall]).filter(code => typeof code === 'string'),
    names: causes.flatMap(({ name, constructor }) => [name, constructor.name]),
    texts,
    status: fieldsOf(fieldsOf(error).response).status,
  }
}
