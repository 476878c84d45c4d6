import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { demand, RelayError } from '../errors'
import { onAbort } from '../lib/async'
import { parsePairs } from '../lib/bytes'
import { escapeControls, excessOfJson, faultOfJson, parseJson, type JsonFault } from '../lib/json'
import { isObject, withoutNull, type JsonObject } from '../lib/shape'
import { writeSize } from '../lib/words'
import { clauses, say, type Text } from '../texts/text'
import type { TextId } from '../texts/table'
import { charsetOf } from './media-type'

/** A request whose body can be read. */
export interface Received {
  readonly request: IncomingMessage
  /**
   * The body if it was read already: to check a signature, or by another plugin of the bot. A multipart body that another plugin has read
   * is JSON of its fields.
   */
  body: Buffer | undefined
  /** Aborted when the relay stops. */
  readonly stop: AbortSignal
}

/** Bounds of a body. */
export interface BodyLimits {
  /** In bytes. */
  maxSize: number
  /** What the caller can do about a larger body. */
  advice?: Text
  /** How long the whole body may take to arrive, in milliseconds; a minute by default. */
  timeout?: number
  /** Reads only the end of a body, of about so many bytes. */
  tail?: number
}

/** After parsing a larger body, in bytes, the event loop gets a turn. */
const large = 64 * 1024

const formType = 'application/x-www-form-urlencoded'

/** The most fields of a form. */
const maxFields = 1_000

// Skips a byte order mark.
const utf8 = new TextDecoder()

/** Whether a request has a body (RFC 9112, section 6.3). */
export function hasBody({ request: { headers } }: Pick<Received, 'request'>): boolean {
  return Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined
}

// Also as Windows shells pass it on: cmd keeps single quotes as text, and `>` of PowerShell 5.1 writes UTF-16.
const meantAsObject = /^(?:\s*'?\{|\xff\xfe)/

/** What is wrong with malformed JSON, and what the caller can do. Shells of Windows are cmd and PowerShell 5.1. */
const faults = {
  control: ['json-control', 'encode-text'],
  escape: ['json-escape', 'encode-text'],
  quotes: ['json-quotes', 'save-as-file'],
  end: ['json-end', 'close-brackets'],
  other: ['json-other', 'encode-texts'],
} as const satisfies Readonly<Record<JsonFault['why'], readonly [what: TextId, remedy: TextId]>>

/** How to read JSON. */
export interface JsonRules {
  /** The most values; by default the limit of a request to send. */
  maxValues?: number
  /** Whether strings may hold raw control characters, as those of many scripts do. */
  allowsControls?: boolean
}

/**
 * Reads a body as JSON (RFC 8259), whatever its Content-Type.
 *
 * @throws RelayError `invalid-json`, `bad-request` for too many levels or values, and the errors of {@link readBody}
 */
export async function readJson(received: Received, limits: BodyLimits, rules?: JsonRules): Promise<unknown> {
  const source = await readBody(received, limits)
  try {
    return parseBytes(source, rules)
  } catch (error) {
    const { 'content-type': type = '' } = received.request.headers
    const isForm = /^\s*(?:multipart\/form-data|application\/x-www-form-urlencoded)/i.test(type)
    // curl and the libraries of most languages send files as a form.
    throw isForm && !meantAsObject.test(source.toString('latin1', 0, 64)) ? new RelayError('invalid-json', say('form-for-json')) : error
  } finally {
    // The caller needs about as long again to read the parsed body.
    if (source.length > large) await yieldToOthers()
  }
}

/**
 * Parses bytes as JSON: first strictly, then, if the rules allow it, with the raw control characters of its strings escaped.
 *
 * @throws RelayError `invalid-json`, `bad-request` for too many levels or values, and for bytes that are not UTF-8
 */
export function parseBytes(source: Buffer, { maxValues, allowsControls = false }: JsonRules = {}): unknown {
  const excess = excessOfJson(source, maxValues)
  if (excess !== undefined) throw new RelayError('bad-request', say('body-has', { excess }))
  demand(isUtf8(source), say('json-not-utf8'))
  const text = utf8.decode(source)
  const value = parseJson(text)
  if (value !== undefined) return value
  const mended = allowsControls ? parseJson(escapeControls(text)) : undefined
  if (mended !== undefined) return mended
  const { line, column, why } = faultOfJson(text, allowsControls)
  const [what, remedy] = faults[why]
  throw new RelayError('invalid-json', say('json-fault', { what: say(what), line, column, remedy: say(remedy) }))
}

/** Reads the fields of a body, without those that are null. @throws RelayError `bad-request` */
export function readFields(body: unknown): JsonObject {
  demand(isObject(body), say('body-object'))
  return withoutNull(body)
}

/** Whether bytes look like a JSON object. Many scripts send one with a wrong Content-Type. */
export function looksLikeObject(bytes: Buffer): boolean {
  return /^\s*\{/.test(bytes.toString('utf8', 0, 64))
}

/**
 * Parses a form of the type `application/x-www-form-urlencoded` in the charset of its Content-Type, else that of the query, else UTF-8.
 *
 * @throws RelayError `bad-request` for too many fields, and for bytes that are not text in the charset
 */
export function parseFields(form: Buffer, contentType: string, query: URLSearchParams): JsonObject {
  if (form.toString('latin1').split('&', maxFields + 1).length > maxFields) throw new RelayError('bad-request', say('too-many-fields', { most: maxFields }))
  const charset = charsetOf(contentType, query.get('charset') ?? undefined)
  const pairs = parsePairs(form, charset) ?? parsePairs(form, 'utf-8')
  demand(pairs !== undefined, say('form-charset', { charset, type: formType }))
  return Object.fromEntries(pairs)
}

/**
 * Decodes percent-encoded bytes of an address. Their charset is that of its parameter `charset`; else that of the Content-Type if there is
 * no body, which it would describe; else UTF-8.
 *
 * @param decode returns `undefined` for bytes that are not text in a charset
 * @throws RelayError `bad-request`
 */
export function decodeAddress<T>(request: IncomingMessage, query: string, decode: (charset: string) => T | undefined): T {
  const declared = charsetOf(request.headers['content-type'] ?? '')
  const named = /(?:^|&)charset=([\w.:-]+)/i.exec(query)?.[1]
  for (const charset of [named ?? (hasBody({ request }) ? 'utf-8' : declared), 'utf-8', declared]) {
    const decoded = decode(charset)
    if (decoded !== undefined) return decoded
  }
  throw new RelayError('bad-request', say('address-charset', { charset: named ?? 'UTF-8' }))
}

/**
 * Checks that a body can be read as a stream of plain bytes.
 *
 * @throws RelayError `internal` if another plugin has read the body, `unsupported-type` if it is compressed
 */
export function demandUnread({ request, body }: Received): void {
  if (body) {
    throw new RelayError('internal', say('upload-read-by-plugin'))
  }
  refuseEncoding(request)
}

/** Refuses a compressed body (RFC 9110, section 8.4), because the relay does not decompress. */
function refuseEncoding({ headers }: IncomingMessage): void {
  if (/^(?:identity)?$/i.test(headers['content-encoding'] ?? '')) return
  throw new RelayError('unsupported-type', say('no-compression'))
}

/**
 * Reads a whole body. After a failure, its rest must still be read, see {@link discardBody}.
 *
 * @param received if its `stop` is aborted with a RelayError, the read fails with that error
 * @throws RelayError `unsupported-type` if the body is compressed, `too-large`, `too-slow`, `stopping`, the reason of `stop`, or
 *   `bad-request` if the client disconnects in the middle
 */
export async function readBody({ request, body, stop }: Received, limits: BodyLimits): Promise<Buffer> {
  const { maxSize, advice, timeout = 60_000, tail = Infinity } = limits
  if (body) return body
  refuseEncoding(request)
  if (Number(request.headers['content-length'] ?? 0) > maxSize) throw tooLarge(maxSize, advice)
  const chunks: Buffer[] = []
  let size = 0
  let timer: NodeJS.Timeout | undefined
  let unwatch: (() => void) | undefined
  let collect: (chunk: Buffer) => void = () => undefined
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new RelayError('too-slow')), timeout)
      unwatch = onAbort(stop, () => reject(stop.reason instanceof RelayError ? stop.reason : new RelayError('stopping')))
      collect = chunk => {
        size += chunk.length
        chunks.push(chunk)
        while (chunks[0] && size - chunks[0].length >= tail) size -= chunks.shift()?.length ?? 0
        if (size > maxSize) reject(tooLarge(maxSize, advice))
      }
      // A complete request also emits `close`, after its last byte.
      request.on('data', collect).once('close', resolve)
    })
  } finally {
    clearTimeout(timer)
    unwatch?.()
    request.off('data', collect)
  }
  if (!request.readableEnded) throw new RelayError('bad-request', say('body-cut'))
  return Buffer.concat(chunks)
}

/**
 * Reads and discards the rest of a refused body, so that the client gets its answer and can keep the connection. A rest of more than
 * 64 MiB, or of more than 30 seconds, ends the connection.
 */
export function discardBody(request: IncomingMessage, { maxSize = 64 * 1024 * 1024, timeout = 30_000 }: Partial<BodyLimits> = {}): void {
  if (!request.complete && !request.destroyed) {
    let size = 0
    const timer = setTimeout(() => request.destroy(), timeout).unref()
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxSize) request.destroy()
    })
    request.on('error', () => { /* The connection is closed: there is nothing left to discard. */ })
    request.once('close', () => clearTimeout(timer))
  }
  request.resume()
}

function tooLarge(maxSize: number, advice?: Text): RelayError {
  const text = say('body-too-large', { size: writeSize(maxSize) })
  return new RelayError('too-large', advice ? clauses(text, advice) : text)
}
