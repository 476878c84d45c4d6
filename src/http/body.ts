import type { IncomingMessage } from 'node:http'
import { RelayError } from '../errors'

/** Bounds of a body that is read whole. */
export interface BodyLimits {
  /** In bytes. */
  maxSize: number
  /** How long all of it may take to arrive, in milliseconds; a minute unless given. */
  timeout?: number
}

/** How much of a refused body is read and thrown away before the connection is closed (contract, "HTTP"). */
export interface DiscardLimits {
  /** In bytes; 64 MiB unless given. */
  maxSize?: number
  /** In milliseconds; 30 seconds unless given. */
  timeout?: number
}

/**
 * Refuses a compressed body, which would only be met as a broken one.
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
 * @param stop aborted when the relay is stopping
 * @throws RelayError `too-large`, `too-slow`, `stopping`, or `bad-request` when the client goes away in the middle
 */
export function readBody(request: IncomingMessage, { maxSize, timeout = 60_000 }: BodyLimits, stop: AbortSignal): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > maxSize) return Promise.reject(tooLarge(maxSize))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0

    function end(settle: () => void): void {
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
      settle()
    }
    function onData(chunk: Buffer): void {
      size += chunk.length
      chunks.push(chunk)
      if (size > maxSize) end(() => reject(tooLarge(maxSize)))
    }
    function onEnd(): void {
      end(() => resolve(Buffer.concat(chunks)))
    }
    function onClose(): void {
      end(() => reject(new RelayError('bad-request', 'the request body ended early')))
    }

    function onStop(): void {
      end(() => reject(new RelayError('stopping')))
    }

    const timer = setTimeout(() => end(() => reject(new RelayError('too-slow'))), timeout)
    stop.addEventListener('abort', onStop)
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  })
}

/**
 * Reads and throws away what is left of a body that was refused, so that the client gets its answer and the connection
 * goes on. A body that does not end is cut off together with the connection.
 */
export function discardBody(request: IncomingMessage, { maxSize = 64 * 1024 * 1024, timeout = 30_000 }: DiscardLimits = {}): void {
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
  request.on('error', () => { /* the connection is gone, which is what is wanted */ })
  request.once('close', () => clearTimeout(timer))
  request.resume()
}

function tooLarge(maxSize: number): RelayError {
  return new RelayError('too-large', `the request body is larger than ${maxSize} bytes`)
}
