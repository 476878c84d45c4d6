import type { IncomingMessage } from 'node:http'
import { RelayError } from '../errors'
import { onAbort } from '../lib/abort'
import { MultipartReader, parseParameters, PartFiles, type FileLimits } from './multipart'
import type { UploadStore } from './store'
import type { Upload } from './upload'

/** What an upload may be, and how long it may take. */
export interface ReceiveLimits extends FileLimits {
  /** Longest time without a byte, in milliseconds; 30 seconds unless given. */
  idleTimeout?: number
  /**
   * Longest time for the whole body, in milliseconds; 280 seconds unless given, just short of the 300 after which Node.js ends a
   * request.
   */
  totalTimeout?: number
}

/** How many bytes may wait for the disk before no more are read from the client. */
const maxBacklog = 64 * 1024
/** Most bytes that belong to no file: fields, headers and what stands around the parts. formidable allows as many for fields. */
const maxOverhead = 20 * 1024 * 1024

/**
 * Stores the files of a multipart/form-data body (RFC 7578), all of them or none.
 *
 * After a failure nothing of the request is on disk. The rest of the body is unread and the stream is paused, so that the caller can
 * discard it with `request.resume()`.
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
  const stop = () => interruption.abort(new RelayError('stopping'))
  const leave = (cause?: unknown) => {
    interruption.abort(new RelayError('bad-request', 'the connection ended before the upload was complete', { cause }))
  }
  const unwatch = signal && onAbort(signal, stop)
  // Once the body is complete, only the socket tells that the client has gone.
  request.on('error', leave)
  request.socket.on('close', leave)
  try {
    // Each of these events may have come before there was a listener.
    if (signal?.aborted) stop()
    if (request.socket.destroyed || request.readableEnded) leave()
    await readFiles(request, new MultipartReader(boundary, files), upload, files, limits, interruption)
    if (upload.count === 0) throw new RelayError('bad-request', 'no file in the body: a file is a part with a filename')
    return await upload.commit(interruption.signal)
  } catch (error) {
    await upload.discard()
    throw error
  } finally {
    unwatch?.()
    request.off('error', leave)
    request.socket.off('close', leave)
  }
}

/** @throws RelayError `unsupported-type` unless it is multipart/form-data, `bad-request` without a usable boundary */
export function parseBoundary(contentType: string): string {
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

/**
 * Reads a body into an upload. It settles once nothing is being written any more; the stream is then paused.
 *
 * @param interruption aborted to end it early; the reason is then thrown
 */
async function readFiles(
  request: IncomingMessage, reader: MultipartReader, upload: Upload, files: PartFiles,
  { idleTimeout = 30_000, totalTimeout = 280_000 }: ReceiveLimits, interruption: AbortController,
): Promise<void> {
  const { signal } = interruption
  let received = 0
  let flushing: Promise<void> | undefined

  const fail = (error: unknown) => interruption.abort(error)
  const flush = async () => {
    try {
      while (upload.hasWork) {
        await upload.flush(signal)
        if (!signal.aborted) request.resume()
      }
    } catch (error) {
      fail(error)
    } finally {
      flushing = undefined
    }
  }
  const onData = (chunk: Buffer) => {
    idle.refresh()
    received += chunk.length
    try {
      reader.push(chunk)
      if (received - files.received > maxOverhead) {
        throw new RelayError('too-large', `more than ${maxOverhead} bytes that belong to no file`)
      }
    } catch (error) {
      fail(error)
      return
    }
    if (upload.hasWork) flushing ??= flush()
    if (upload.backlog >= maxBacklog) request.pause()
  }
  const slow = () => fail(new RelayError('too-slow'))
  const idle = setTimeout(() => {
    // It is the disk that is slow when the request is paused: the client cannot send then.
    if (request.isPaused()) idle.refresh()
    else slow()
  }, idleTimeout)
  const total = setTimeout(slow, totalTimeout)

  try {
    await new Promise<void>(resolve => {
      signal.addEventListener('abort', () => resolve())
      request.on('data', onData).once('end', resolve)
      if (signal.aborted) resolve()
    })
    signal.throwIfAborted()
    reader.end()
  } finally {
    request.off('data', onData).pause()
    clearTimeout(idle)
    clearTimeout(total)
    await flushing
  }
  signal.throwIfAborted()
}
