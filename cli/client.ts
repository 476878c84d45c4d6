import { request as requestPlain, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as requestSecure } from 'node:https'
import { performance } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { text as readText } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { parseJson } from '../src/lib/json'
import { readRetryAfter } from '../src/lib/retry-after'
import { fieldsOf, isObject, objectsIn as listOf, type JsonObject as Fields } from '../src/lib/shape'
import { say, spoken } from './texts'

/** The exit codes by outcome. Those of wrong usage and missing permission are from sysexits.h. */
export const exits = { sent: 0, accepted: 0, refused: 1, unsent: 2, unanswered: 3, usage: 64, denied: 77 } as const
/** The outcome of a message; the last two are outcomes of requests that became no message. */
export type Outcome = keyof typeof exits

/** The outcomes from the most to the least urgent. Several messages together have the first outcome that occurs. */
const severity = ['denied', 'usage', 'unanswered', 'refused', 'unsent', 'accepted', 'sent'] as const satisfies readonly Outcome[]

/** The input cannot be used, or not with this key. The message is the reason. */
export class UsageError extends Error {
  constructor(message: string, readonly outcome: 'usage' | 'denied' = 'usage') {
    super(message)
  }
}

/** The relay did not answer: the connection failed or broke, or a proxy answered with an error. */
class ConnectionError extends Error {
  /** @param mayHaveArrived whether the whole request may have reached the relay */
  constructor(cause: Error, readonly mayHaveArrived: boolean) {
    // If none of several addresses of a host answers, the message of Node.js is empty.
    const reason = cause.message || ('code' in cause ? String(cause.code) : cause.name)
    super(say(mayHaveArrived ? 'cli-connection-broke' : 'cli-unreachable', { cause: reason }))
  }
}

/** The address and the key of a relay. */
export interface Server {
  /** Without a slash at its end. */
  url: string
  key: string
}

/** @throws UsageError */
export function parseServer(given = '', key = ''): Server {
  const url = given.trim()
  if (!/^https?:/i.test(url) || !URL.canParse(url)) throw new UsageError(say('cli-address-wrong'))
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError(say('cli-key-wrong'))
  return { url: url.replace(/[?#].*$/, '').replace(/\/+$/, ''), key }
}

/** A body that can be read again for each attempt. */
export interface Body {
  type: string
  /** In bytes. */
  length: number
  chunks: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>
}

export interface Call {
  method: 'GET' | 'POST'
  /** The path after the address of the relay, with the query. */
  path: string
  headers?: Readonly<Record<string, string>>
  body?: Body
  /** Receives a file, if that is the answer. */
  save?: ((file: IncomingMessage) => Promise<void>) | undefined
}

/** An answer in the relay's envelope. */
export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  msg: string
  /** The result, or what the relay tells about the failure. */
  data: Fields
}

/** How long a connection may be idle, in milliseconds. The relay answers within 31 seconds by default. */
const idleTimeout = 120_000

/**
 * Makes one request.
 *
 * @param wait how many seconds the relay was asked to wait with its answer
 * @throws ConnectionError; UsageError if a file cannot be read, or the answer is not from a relay
 */
export async function call({ url, key }: Server, { method, path, headers, body, save }: Call, wait = 0): Promise<Answer> {
  const isSecure = /^https:/i.test(url)
  const reached = { connected: false, written: false }
  async function* chunks(): AsyncGenerator<Uint8Array> {
    if (body) yield* body.chunks()
    reached.written = true
  }
  const length = body && { 'content-type': body.type, 'content-length': body.length }
  const request = (isSecure ? requestSecure : requestPlain)(url + path, {
    method, agent: false,
    headers: { 'accept': 'application/json', 'accept-language': spoken(), 'authorization': `Bearer ${key}`, ...headers, ...length },
  })
  const limit = idleTimeout + wait * 1000
  request.setTimeout(limit, () => request.destroy(new Error(say('cli-no-answer', { seconds: limit / 1000 }))))
  request.once('socket', socket => socket.once(isSecure ? 'secureConnect' : 'connect', () => {
    reached.connected = true
  }))
  try {
    return await new Promise<Answer>((resolve, reject) => {
      // The relay may answer and stop reading before it has the whole body.
      request.once('response', response => void readAnswer(response, save).then(resolve, reject))
      request.once('error', reject)
      // A failure here also ends the request with an error.
      pipeline(Readable.from(chunks(), { highWaterMark: 1 }), request).catch(reject)
    })
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error
    throw new ConnectionError(error, reached.connected && reached.written)
  } finally {
    // Without a listener, an error after the answer would end the process.
    request.on('error', () => undefined)
    request.destroy()
  }
}

const noRelay = (status: number): UsageError => new UsageError(say('cli-no-relay', { status }))

async function readAnswer(response: IncomingMessage, save: Call['save']): Promise<Answer> {
  const status = response.statusCode ?? 0
  if (save && status === 200) {
    if (response.headers['content-type'] !== 'application/vnd.sqlite3') throw noRelay(status)
    await save(response)
    return { status, headers: response.headers, msg: '', data: {} }
  }
  const text = await readText(response)
  const parsed = parseJson(text)
  // Other programs use the same envelope, and some answer failures with status 200.
  if (isObject(parsed) && typeof parsed.msg === 'string' && 'data' in parsed && (status >= 400 || parsed.code === 0)) {
    // The text of the relay is about headers, which the users of this program do not set.
    const msg = status === 401 ? say('cli-denied') : parsed.msg
    return { status, headers: response.headers, msg, data: fieldsOf(parsed.data ?? parsed.error) }
  }
  if (status < 400) throw noRelay(status)
  // A proxy may ask for a password, refuse a large body, or not reach a relay that is starting.
  const msg = say('cli-from-proxy', { status, words: response.statusMessage ?? '' })
  if (status >= 500) throw new Error(msg)
  return { status, headers: {}, msg, data: {} }
}

/** The result of a request or of a part of it. */
export interface Result {
  outcome: Outcome
  /** The reason of a failure. */
  msg: string
  data: Fields
}

/** The outcome for an HTTP status, if the answer does not name one. */
function outcomeOf(status: number): Outcome {
  if (status < 300) return status === 202 ? 'accepted' : 'sent'
  if (status === 401 || status === 403) return 'denied'
  // The request is in progress.
  if (status === 409) return 'unanswered'
  // The body came too slowly, the rate of the key was exceeded, or the disk is full: nothing was sent.
  if (status === 408 || status === 429 || status === 507) return 'unsent'
  return status < 500 ? 'usage' : 'unanswered'
}

/** Derives the result of a message from the answer. */
export function judge({ status, headers, msg, data }: Answer): Result {
  const parts = [...listOf(data.deliveries), ...listOf(data.results)]
  if (status < 300 && parts.length > 0) return judgeParts(parts, data)
  return { outcome: readOutcome(headers['relay-outcome']) ?? outcomeOf(status), msg, data }
}

/** Derives the result of several targets, of items, or of both. */
export function judgeParts(parts: readonly Fields[], data: Fields): Result {
  const outcomes = parts.map(judgePart)
  const outcome = severity.find(each => outcomes.includes(each)) ?? 'unanswered'
  const failed = parts.flatMap(leavesOf).filter(part => part.success === false)
  return { outcome, msg: failed.map(({ target, msg }) => [target, msg].filter(Boolean).join(say('cli-colon'))).join(say('cli-semicolon')), data }
}

function leavesOf(part: Fields): readonly Fields[] {
  const results = listOf(part.results)
  return results.length > 0 ? results.map(result => ({ target: part.target, ...result })) : [part]
}

export function judgePart(part: Fields): Outcome {
  const results = listOf(part.results)
  if (results.length > 0) return judgeParts(results, part).outcome
  if (part.success === true) return 'state' in part ? 'accepted' : 'sent'
  // A wrong item has no outcome, and may be next to items that were sent.
  return readOutcome(part.outcome) ?? outcomeOf(Number(part.code ?? 500))
}

function readOutcome(value: unknown): Outcome | undefined {
  return severity.find(each => each === value)
}

/** A message for one target or several. */
export interface Message {
  to: string
  body: Body
  /** The Idempotency-Key. */
  key: string
  thread?: string | undefined
  urgent?: boolean | undefined
  /** When to send. */
  at?: string | undefined
  /** Lets the relay send later, and waits so many seconds for the result. */
  wait?: number | undefined
}

/** The longest pause between two tries, in seconds. */
const longestPause = 3600
/** The statuses of temporary failures. */
const temporary: ReadonlySet<unknown> = new Set([408, 409, 429, 503])

/**
 * Sends a message. Retries use the same Idempotency-Key, so that the message is sent only once.
 *
 * @param patience how many seconds to retry
 * @param note called with the reason of each retry
 */
export async function send(server: Server, message: Message, patience: number, note: (line: string) => void): Promise<Result> {
  const { to, body, key, thread, urgent, at, wait } = message
  const query = new URLSearchParams({ ...thread && { thread }, ...urgent && { urgent: '1' }, ...at && { send_at: at } })
  const path = `/send/${to.split(',').map(word => encodeURIComponent(word.trim())).join()}${query.size > 0 ? `?${query.toString()}` : ''}`
  const headers = { 'idempotency-key': key, ...wait !== undefined && { prefer: `respond-async, wait=${wait}` } }
  const end = performance.now() + Math.max(patience, wait ?? 0) * 1000
  let mayHaveArrived = false
  for (let tries = 0; ; tries++) {
    const { result, isConclusive, isTemporary, after } = await attempt(server, { method: 'POST', path, headers, body }, wait)
    // A failure of this attempt does not tell whether an earlier one arrived.
    mayHaveArrived = !isConclusive && (mayHaveArrived || result.outcome === 'unanswered')
    const pause = after ?? Math.min(0.5 * 2 ** tries, 10) * (1 + Math.random() / 4)
    if (!isTemporary || performance.now() + pause * 1000 > end) {
      if (!mayHaveArrived || result.outcome === 'unanswered') return result
      return { ...result, outcome: 'unanswered', msg: say('cli-earlier-try', { reason: result.msg }) }
    }
    note(say('cli-trying-again', { reason: result.msg, seconds: Math.ceil(pause) }))
    await delay(pause * 1000)
  }
}

interface Attempt {
  result: Result
  /** Whether the result holds for all attempts of the message. */
  isConclusive?: boolean
  isTemporary?: boolean
  /** The seconds after which the relay allows the next attempt. */
  after?: number
}

async function attempt(server: Server, request: Call, wait?: number): Promise<Attempt> {
  try {
    const answer = await call(server, request, wait)
    const { status, headers, data } = answer
    const result = judge(answer)
    const after = headers['retry-after']
    return {
      result,
      isConclusive: status < 300 || result.outcome === 'refused',
      isTemporary: temporary.has(status) || listOf(data.deliveries).some(({ code }) => temporary.has(code)),
      // A proxy may have written it.
      ...after !== undefined && { after: Math.min(Math.max((readRetryAfter(after) ?? 0) / 1000, 1), longestPause) },
    }
  } catch (error) {
    if (error instanceof UsageError) return { result: { outcome: error.outcome, msg: error.message, data: {} } }
    if (!(error instanceof ConnectionError)) throw error
    return { result: { outcome: error.mayHaveArrived ? 'unanswered' : 'unsent', msg: error.message, data: {} }, isTemporary: true }
  }
}

/** The IDs of the deliveries and of the platform messages in an answer. */
export function idsOf(data: Fields): { deliveries: string[], messages: string[] } {
  const parts = [data, ...listOf(data.deliveries)]
  const leaves = [...parts, ...parts.flatMap(part => listOf(part.results))]
  const messages = leaves.flatMap(({ message_ids: ids }) => Array.isArray(ids) ? ids.map(String) : [])
  // Items combined in one message have the same ID.
  return { deliveries: parts.flatMap(({ delivery_id: id }) => typeof id === 'string' ? [id] : []), messages: [...new Set(messages)] }
}

/** One line without control characters, so that foreign text cannot control the terminal. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ')
}
