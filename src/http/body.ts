import type { IncomingMessage } from 'node:http'
import { RelayError } from '../errors'

/** How much of a refused body is read and thrown away before the connection is closed (contract, "HTTP"). */
const discardBytes = 64 * 1024 * 1024
const discardTime = 30_000

/** How long a body of JSON may take to arrive, in milliseconds. */
export const bodyTimeout = 60_000

/**
 * Reads a body whole.
 *
 * @param limit in bytes
 * @param timeout in milliseconds, for the whole body
 * @throws RelayError `too-large`, `too-slow`, or `bad-request` when the client goes away in the middle
 */
export function readBody(request: IncomingMessage, limit: number, timeout: number): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limit) return Promise.reject(tooLarge(limit))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0

    function end(settle: () => void): void {
      clearTimeout(timer)
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
      settle()
    }
    function onData(chunk: Buffer): void {
      size += chunk.length
      chunks.push(chunk)
      if (size > limit) end(() => reject(tooLarge(limit)))
    }
    function onEnd(): void {
      end(() => resolve(Buffer.concat(chunks)))
    }
    function onClose(): void {
      end(() => reject(new RelayError('bad-request', 'the request body ended early')))
    }

    const timer = setTimeout(() => end(() => reject(new RelayError('too-slow'))), timeout)
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  })
}

/**
 * Reads and throws away what is left of a body that was refused, so that the client gets its answer and the connection
 * goes on. A body that does not end is cut off together with the connection.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.complete || request.destroyed) {
    request.resume()
    return
  }
  let size = 0
  const timer = setTimeout(() => request.destroy(), discardTime)
  timer.unref()
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > discardBytes) request.destroy()
  })
  request.on('error', () => { /* the connection is gone, which is what is wanted */ })
  request.once('close', () => clearTimeout(timer))
  request.resume()
}

function tooLarge(limit: number): RelayError {
  return new RelayError('too-large', `the request body is larger than ${limit} bytes`)
}
