import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { demand, RelayError } from '../errors'
import { onAbort } from '../lib/async'
import { excessOfJson, parseJson } from '../lib/json'
import { isObject, withoutNull, type JsonObject } from '../lib/shape'

/** A request whose body is still to be read. */
export interface Received {
  readonly request: IncomingMessage
  /** The body as text, where another plugin of the bot has read it already: what was multipart is JSON of its fields. */
  readonly parsedBody: string | undefined
  /** Aborted when the relay stops. */
  readonly stop: AbortSignal
}

/** Bounds of a body. */
export interface BodyLimits {
  /** In bytes. */
  maxSize: number
  /** How long all of it may take to arrive, in milliseconds; a minute unless given. */
  timeout?: number
}

/** From this size on, in bytes, the event loop gets a turn after a body was parsed. */
const large = 64 * 1024

/** The most fields of a form. */
const maxFields = 1_000

// Skips a byte order mark.
const utf8 = new TextDecoder()

/** Whether a request has a body (RFC 9112, section 6.3). */
export function hasBody({ request: { headers } }: Received): boolean {
  return Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined
}

/** For a form where JSON is read: curl and the libraries of most languages make one of files. */
const formRule = 'the body must be JSON: send a text, or a form with files, to /send/<target>'

// cmd knows no single quotes, and `>` of PowerShell 5.1 writes UTF-16.
const meantAsObject = /^(?:\s*'?\{|\xff\xfe)/
// cmd and PowerShell 5.1 take the double quotes out of an argument.
const withoutQuotes = /^\s*'?\{\s*(?:\\"|\w+\s*:)/
const quoteRule = 'invalid json: its double quotes are missing, which shells of Windows take away: save it as a file, and send that with -d "@file"'

/**
 * Reads a body as JSON (RFC 8259), whatever its Content-Type.
 *
 * @throws RelayError `invalid-json`, `bad-request` for too many levels or values, and those of {@link readBody}
 */
export async function readJson(received: Received, limits: BodyLimits): Promise<unknown> {
  const source = await readBody(received, limits)
  try {
    return parseBytes(source)
  } catch (error) {
    const { 'content-type': type = '' } = received.request.headers
    const isForm = /^\s*(?:multipart\/form-data|application\/x-www-form-urlencoded)/i.test(type)
    throw isForm && !meantAsObject.test(source.toString('latin1', 0, 64)) ? new RelayError('invalid-json', formRule) : error
  } finally {
    // Reading the parsed body takes about as long again.
    if (source.length > large) await yieldToOthers()
  }
}

/**
 * Parses bytes as JSON.
 *
 * @param maxValues the most values; that of a request to send unless given
 * @throws RelayError `invalid-json`, `bad-request` for too many levels or values, and for what is not UTF-8
 */
export function parseBytes(source: Buffer, maxValues?: number): unknown {
  const excess = excessOfJson(source, maxValues)
  if (excess !== undefined) throw new RelayError('bad-request', `the body has ${excess}`)
  demand(isUtf8(source), 'the JSON is not UTF-8, as the console of Windows writes it: save it as UTF-8, or send the text to /send')
  const value = parseJson(utf8.decode(source))
  if (value === undefined) throw new RelayError('invalid-json', withoutQuotes.test(source.toString('latin1', 0, 256)) ? quoteRule : undefined)
  return value
}

/** The fields of a body; null means absent. @throws RelayError `bad-request` */
export function readFields(body: unknown): JsonObject {
  demand(isObject(body), 'the body must be a JSON object')
  return withoutNull(body)
}

/** Whether bytes are a JSON object, whatever their type says: many a script sends one and calls it something else. */
export function looksLikeObject(bytes: Buffer): boolean {
  return /^\s*\{/.test(bytes.toString('utf8', 0, 64))
}

/**
 * Parses a form of the type `application/x-www-form-urlencoded`.
 *
 * @throws RelayError `bad-request` for too many fields
 */
export function parseFields(form: string): JsonObject {
  if (form.split('&', maxFields + 1).length > maxFields) throw new RelayError('bad-request', `a form may have at most ${maxFields} fields`)
  return Object.fromEntries(new URLSearchParams(form))
}

/**
 * Checks that a body can be read as a stream of plain bytes.
 *
 * @throws RelayError `internal` where another plugin has read it, `unsupported-type` where it is compressed
 */
export function demandUnread({ request, parsedBody }: Received): void {
  if (parsedBody !== undefined) {
    throw new RelayError('internal', 'another plugin of the bot has read the upload: its catch-all route has to come after this one')
  }
  refuseEncoding(request)
}

/** A compressed body (RFC 9110, section 8.4) is refused: nothing here decompresses one. */
function refuseEncoding({ headers }: IncomingMessage): void {
  if (/^(?:identity)?$/i.test(headers['content-encoding'] ?? '')) return
  throw new RelayError('unsupported-type', 'compressed bodies are not accepted: send the body as it is, without a Content-Encoding')
}

/**
 * Reads a body whole. After a failure the rest of it is still to be read, see {@link discardBody}.
 *
 * @param received its `stop` may have a RelayError as another reason to end
 * @throws RelayError `unsupported-type` where it is compressed, `too-large`, `too-slow`, `stopping`, the reason of `stop`, or
 *   `bad-request` when the client goes away in the middle
 */
export async function readBody({ request, parsedBody, stop }: Received, { maxSize, timeout = 60_000 }: BodyLimits): Promise<Buffer> {
  if (parsedBody !== undefined) return Buffer.from(parsedBody)
  refuseEncoding(request)
  if (Number(request.headers['content-length'] ?? 0) > maxSize) throw tooLarge(maxSize)
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
        if (size > maxSize) reject(tooLarge(maxSize))
      }
      // A request closes after its last byte too.
      request.on('data', collect).once('close', resolve)
    })
  } finally {
    clearTimeout(timer)
    unwatch?.()
    request.off('data', collect)
  }
  if (!request.readableEnded) throw new RelayError('bad-request', 'the request body ended early: send it again, whole')
  return Buffer.concat(chunks)
}

/**
 * Reads and throws away the rest of a refused body, so that the client gets its answer and can go on using the connection. A rest of
 * more than 64 MiB, or of more than 30 seconds, is cut off together with the connection.
 */
export function discardBody(request: IncomingMessage, { maxSize = 64 * 1024 * 1024, timeout = 30_000 }: Partial<BodyLimits> = {}): void {
  if (!request.complete && !request.destroyed) {
    let size = 0
    const timer = setTimeout(() => request.destroy(), timeout).unref()
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxSize) request.destroy()
    })
    request.on('error', () => { /* The connection is gone, and with it the rest of the body. */ })
    request.once('close', () => clearTimeout(timer))
  }
  request.resume()
}

function tooLarge(maxSize: number): RelayError {
  return new RelayError('too-large', `the request body is larger than ${maxSize} bytes`)
}
