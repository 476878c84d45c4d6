import type { IncomingMessage } from 'node:http'
import { RelayError } from '../errors'
import { readBody, type BodyTimeouts } from './body'
import { parseParameters } from './parameters'
import { PartFiles, type FileLimits } from './parts'
import type { UploadStore } from './store'

/** What an upload may be. */
export type ReceiveLimits = FileLimits & BodyTimeouts

/**
 * Stores the files of a multipart/form-data body, all of them or none.
 *
 * After a failure nothing of the request is on disk, and the rest of the body is unread: the stream is paused and whole, so the
 * caller can discard it with `request.resume()`.
 *
 * @param signal aborted when the relay is stopping
 * @returns file IDs in the order of the parts, at least one
 * @throws RelayError `bad-request`, `too-large`, `unsupported-type`, `too-slow` or `stopping`; any other error is one of the file system
 */
export async function receive(
  request: IncomingMessage, store: UploadStore, limits: ReceiveLimits, signal?: AbortSignal,
): Promise<string[]> {
  const boundary = parseBoundary(request.headers['content-type'] ?? '')
  const upload = store.begin()
  const files = new PartFiles(upload, limits)
  const interruption = new AbortController()
  const stop = () => {
    interruption.abort(new RelayError('stopping'))
  }
  const leave = (cause?: unknown) => {
    interruption.abort(new RelayError('bad-request', 'the connection ended before the upload was complete', { cause }))
  }
  signal?.addEventListener('abort', stop)
  // After the body's last byte only the socket tells that the client has gone.
  request.on('error', leave)
  request.socket.on('close', leave)
  try {
    // All of them may have come before the listeners.
    if (signal?.aborted) stop()
    if (request.socket.destroyed || request.readableEnded) leave()
    await readBody(request, boundary, upload, files, limits, interruption)
    if (upload.count === 0) throw new RelayError('bad-request', 'no file in the body: a file is a part with a filename')
    return await upload.commit(interruption.signal)
  } catch (error) {
    await upload.discard()
    throw error
  } finally {
    signal?.removeEventListener('abort', stop)
    request.off('error', leave)
    request.socket.off('close', leave)
  }
}

/** @throws RelayError `unsupported-type` unless it is multipart/form-data, `bad-request` without a usable boundary */
function parseBoundary(contentType: string): string {
  if (!/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType)) {
    throw new RelayError('unsupported-type', 'send the files as multipart/form-data')
  }
  const boundary = parseParameters(contentType).get('boundary') ?? ''
  // RFC 2046, section 5.1.1, allows fewer characters, but clients are seen to use others.
  if (!/^[\x20-\x7e]{0,69}[\x21-\x7e]$/.test(boundary)) {
    throw new RelayError('bad-request', 'the Content-Type needs a boundary of 1 to 70 characters')
  }
  return boundary
}
