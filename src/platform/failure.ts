import { SendError } from './port'

const maxWordingLength = 200

/**
 * Makes a platform's text fit for a caller: one line, at most 200 characters, without what cannot be seen or changes the direction of
 * writing, and without local paths, data or links, which error texts like to repeat from the arguments.
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
  // Not between the halves of a character.
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

/**
 * Cuts paths out of a line. They may hold blanks, so one ends where its quotation does, and without quotation marks nowhere before the
 * end of the line.
 */
function withoutPaths(line: string): string {
  const start = pathStart.exec(line)?.index
  if (start === undefined) return line
  const closing = closingQuotes[line.charAt(start - 1)]
  const end = closing === undefined ? -1 : lastClosing(line, closing, start)
  return `${line.slice(0, start)}…${end < 0 ? '' : line.charAt(end) + withoutPaths(line.slice(end + 1))}`
}

/** The place of the last mark that may end a quotation: one within a word does not. -1 when there is none. */
function lastClosing(line: string, mark: string, from: number): number {
  for (let place = line.lastIndexOf(mark); place >= from; place = line.lastIndexOf(mark, place - 1)) {
    if (!/^[\p{L}\p{N}_]/u.test(line.slice(place + 1))) return place
  }
  return -1
}

const neverSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])
const cutOff = /^(?:ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED|UND_ERR_.*)$/

/** How many errors are looked at of which each is the cause of the one before. */
const maxCauses = 5

/**
 * The general rule for what an adapter throws: an answer that names a reason is a refusal; a connection that could not be
 * made means that nothing was sent; time-outs, lost connections, answers that cannot be read and those of 500 and above leave it open.
 */
export function classifyThrown(error: unknown): SendError {
  if (error instanceof SendError) return error
  const options = { cause: error }
  // Satori's AggregateError (not the global one) holds what became of several platform messages.
  const errors = field(error, 'errors')
  if (Array.isArray(errors) && errors.length > 0) return classifyThrown(errors[0])
  const causes = causesOf(error)
  const codes = causes.map(cause => field(cause, 'code')).filter(code => typeof code === 'string')
  const text = error instanceof Error ? error.message : ''
  if (codes.some(code => neverSent.has(code))) return new SendError('unsent', undefined, options)
  if (text.includes('_request is not a function')) return new SendError('unsent', undefined, options)
  if (codes.some(code => cutOff.test(code)) || causes.some(isWithoutAnswer)) return new SendError('unanswered', undefined, options)
  const status = field(field(error, 'response'), 'status')
  if (typeof status === 'number' && status >= 500) return new SendError('unanswered', undefined, options)
  return new SendError('refused', cleanWording(text), options)
}

/** An error, and what has caused it: Koishi's `http` wraps that of `fetch`, which wraps that of the connection. */
function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = []
  for (let next = error; next !== undefined && causes.length < maxCauses; next = field(next, 'cause')) causes.push(next)
  return causes
}

/** Whether an error tells of a time-out, of an answer that is no JSON, or of one that ended early or not as HTTP has it. */
function isWithoutAnswer(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error instanceof SyntaxError || /timeout|abort/i.test(`${error.name} ${error.constructor.name}`)
    || (error instanceof TypeError && /^(?:fetch failed|terminated)$/.test(error.message))
}

/** Rethrows whatever an adapter threw as a SendError. */
export function throwClassified(error: unknown): never {
  throw classifyThrown(error)
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
