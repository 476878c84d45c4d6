import type { IncomingMessage } from 'node:http'
import { RelayError } from '../errors'
import { onAbort } from '../lib/abort'
import { yieldToOthers } from '../lib/async'
import { excessOfJson, excessOfValue } from '../lib/json'

/** A request whose body is still to be read. */
export interface Received {
  readonly request: IncomingMessage
  /** The body, where another plugin of the bot has read it already. */
  readonly parsedBody: unknown
}

/** Bounds of a body. */
export interface BodyLimits {
  /** In bytes. */
  maxSize: number
  /** How long all of it may take to arrive, in milliseconds; a minute unless given. */
  timeout?: number
}

/** From which size on the event loop gets a turn after a body was parsed, in bytes. */
const large = 64 * 1024

// Refuses what is not UTF-8, and skips a byte order mark.
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a body as JSON (RFC 8259), whatever its Content-Type.
 *
 * @param stop aborted when the relay is stopping
 * @throws RelayError `invalid-json`, `bad-request` for more levels or values than are taken, `unsupported-type` for a compressed body,
 *   and those of {@link readBody}
 */
export async function readJson({ request, parsedBody }: Received, limits: BodyLimits, stop: AbortSignal): Promise<unknown> {
  if (typeof parsedBody === 'object' && parsedBody !== null) {
    refuseExcess(excessOfValue(parsedBody))
    return parsedBody
  }
  if (typeof parsedBody === 'string') return parseJson(Buffer.from(parsedBody))
  refuseEncoding(request)
  const source = await readBody(request, limits, stop)
  const body = parseJson(source)
  // What follows takes about as long again.
  if (source.length > large) await yieldToOthers()
  return body
}

/**
 * Reads bytes as JSON.
 *
 * @param maxValues the most values, where another number than for a request to send is taken
 * @throws RelayError `invalid-json`, `bad-request` for more levels or values than are taken
 */
export function parseJson(source: Buffer, maxValues?: number): unknown {
  refuseExcess(excessOfJson(source, maxValues))
  try {
    return JSON.parse(utf8.decode(source))
  } catch {
    throw new RelayError('invalid-json')
  }
}

function refuseExcess(excess: string | undefined): void {
  if (excess !== undefined) throw new RelayError('bad-request', `the body has ${excess}`)
}

/**
 * Demands that a body is still to be read, for what takes its bytes as they come.
 *
 * @throws RelayError `internal`
 */
export function demandUnread({ parsedBody }: Received): void {
  if (parsedBody === undefined) return
  throw new RelayError('internal', 'another plugin of the bot has read the upload: its catch-all route has to come after this one')
}

/**
 * Refuses a compressed body (RFC 9110, section 8.4): nothing here decompresses one.
 *
 * @throws RelayError `unsupported-type`
 */
export function refuseEncoding({ headers }: IncomingMessage): void {
  if (/^(?:identity)?$/i.test(headers['content-encoding'] ?? '')) return
  throw new RelayError('unsupported-type', 'send the body as it is, without a Content-Encoding')
}

/**
 * Reads a body whole.
 *
 * @param stop aborted when the relay is stopping, or with a RelayError that says why else this is not to go on
 * @throws RelayError `too-large`, `too-slow`, `stopping`, the reason of `stop`, or `bad-request` when the client goes away in the middle
 */
export function readBody(request: IncomingMessage, { maxSize, timeout = 60_000 }: BodyLimits, stop: AbortSignal): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > maxSize) return Promise.reject(tooLarge(maxSize))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0

    const end = (error?: RelayError): void => {
      clearTimeout(timer)
      unwatch()
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
      if (error) reject(error)
      else resolve(Buffer.concat(chunks))
    }
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      chunks.push(chunk)
      if (size > maxSize) end(tooLarge(maxSize))
    }
    const onEnd = (): void => end()
    const onClose = (): void => end(new RelayError('bad-request', 'the request body ended early'))
    const onStop = (): void => end(stop.reason instanceof RelayError ? stop.reason : new RelayError('stopping'))
    const timer = setTimeout(() => end(new RelayError('too-slow')), timeout)
    const unwatch = onAbort(stop, onStop)
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  })
}

/**
 * Reads and throws away what is left of a body that was refused, so that the client gets its answer and can go on using the
 * connection. A body of more than 64 MiB, or of more than 30 seconds, is cut off together with the connection.
 */
export function discardBody(request: IncomingMessage, { maxSize = 64 * 1024 * 1024, timeout = 30_000 }: Partial<BodyLimits> = {}): void {
  if (request.complete || request.destroyed) {
    request.resume()
    return
  }
  let size = 0
  const timer = setTimeout(() => request.destroy(), timeout)
  timer.unref()
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > maxSize) request.destroy()
  })
  request.on('error', () => { /* The connection is gone, and with it the rest of the body. */ })
  request.once('close', () => clearTimeout(timer))
  request.resume()
}

function tooLarge(maxSize: number): RelayError {
  return new RelayError('too-large', `the request body is larger than ${maxSize} bytes`)
}
