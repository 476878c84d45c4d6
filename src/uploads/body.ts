import type { IncomingMessage } from 'node:http'
import { RelayError } from '../errors'
import { MultipartReader } from './multipart'
import type { PartFiles } from './parts'
import type { Upload } from './upload'

/** How long a client may take, in milliseconds. */
export interface BodyTimeouts {
  /** Longest time without a byte; 30 seconds unless given. */
  idleTimeout?: number
  /** Longest time for the whole body; 280 seconds unless given, just short of the 300 after which Node ends a request. */
  totalTimeout?: number
}

/** Bytes that may wait for the disk before the client has to. */
const maxBacklog = 64 * 1024
/** Most bytes that belong to no file: fields, headers, what stands around the parts. As many as formidable grants fields. */
const maxOverhead = 20 * 1024 * 1024

/**
 * Reads a request's body into an upload. Settles once nothing is being written any more; the stream is then
 * paused.
 *
 * @param interruption its reason is what this throws when it is aborted
 */
export async function readBody(
  request: IncomingMessage, boundary: string, upload: Upload, files: PartFiles,
  { idleTimeout = 30_000, totalTimeout = 280_000 }: BodyTimeouts, interruption: AbortController,
): Promise<void> {
  const reader = new MultipartReader(boundary, files)
  const { signal } = interruption
  let received = 0
  let flushing: Promise<void> | undefined

  const fail = (error: unknown) => {
    interruption.abort(error)
  }
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
  const slow = () => {
    fail(new RelayError('too-slow'))
  }
  const idle = setTimeout(() => {
    // While the disk is what holds things up, the client cannot send.
    if (request.isPaused()) idle.refresh()
    else slow()
  }, idleTimeout)
  const total = setTimeout(slow, totalTimeout)

  try {
    await new Promise<void>(resolve => {
      signal.addEventListener('abort', () => {
        resolve()
      })
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
