import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { RelayError } from '../errors'
import { say } from '../texts/text'
import { onAbort } from '../lib/async'
import { writeSize } from '../lib/words'
import { parseForm } from './multipart'
import type { UploadStore } from './store'
import type { FileLimits, Upload } from './upload'

/** The limits of an upload. Times are in milliseconds. */
export interface ReceiveLimits extends FileLimits {
  /** Longest time without a byte, 30 seconds by default. */
  idleTimeout?: number
  /** Longest time for the whole body, by default 280 seconds: just short of the 300 after which Node.js ends a request. */
  totalTimeout?: number
}

/** The parts of a form that are read as text. */
export interface TextLimits {
  isText: (name: string, isFile: boolean) => boolean
  /** The most bytes of all texts together. */
  maxTextSize: number
}

/** A part of a form: a text with the name of its field, or a file by its ID, each with its Content-Type. */
export type ReceivedPart = { name: string, type: string, text: Buffer } | ReceivedFile

interface ReceivedFile {
  type: string
  id: string
  /** Whether it has neither a name nor a byte, as a file input of a form in which nothing was chosen. */
  isBlank: boolean
}

/**
 * Stores the files of a multipart/form-data body (RFC 7578), all of them or none, and reads its texts.
 *
 * After a failure, nothing of the request is on disk. The rest of the body is unread and its stream paused, so that the caller can
 * discard it with `request.resume()`.
 *
 * @param stop aborted when the relay stops
 * @returns the parts in order, and the names of skipped ones
 * @throws RelayError `bad-request`, `too-large`, `unsupported-type`, `too-slow`, `stopping`, `storage-full`; other file system errors
 */
export async function receiveForm(
  request: IncomingMessage, store: UploadStore, limits: ReceiveLimits & TextLimits, stop?: AbortSignal,
): Promise<{ parts: ReceivedPart[], skipped: readonly string[] }> {
  const contentType = request.headers['content-type'] ?? ''
  const taken: { name: string, type: string, isBlank: boolean, chunks?: Buffer[] }[] = []
  const skipped: string[] = []
  let textSize = 0
  const ids = await storeBody(request, store, limits, stop, (body, upload) => (
    parseForm(body, contentType, ({ name, fileName, type, content }) => {
      if (limits.isText(name, fileName !== undefined)) {
        const chunks: Buffer[] = []
        taken.push({ name, type, isBlank: false, chunks })
        content.on('data', (bytes: Buffer) => {
          chunks.push(bytes)
          textSize += bytes.length
          if (textSize > limits.maxTextSize) body.destroy(new RelayError('too-large', say('too-much-text', { size: writeSize(limits.maxTextSize) })))
        })
      } else if (fileName !== undefined) {
        const file = { name, type, isBlank: fileName === '' }
        taken.push(file)
        content.once('data', () => {
          file.isBlank = false
        })
        return upload.open(fileName, content, limits)
      } else {
        skipped.push(name)
      }
    })
  ))
  const files = ids.values()
  const parts = taken.map(({ name, type, isBlank, chunks }) => chunks ? { name, type, text: Buffer.concat(chunks) } : { type, id: files.next().value ?? '', isBlank })
  return { parts, skipped }
}

/** Stores the files of a form, at least one, as {@link receiveForm} does. Returns their IDs in the order of the parts. */
export async function receive(request: IncomingMessage, store: UploadStore, limits: ReceiveLimits, stop?: AbortSignal): Promise<string[]> {
  const { parts } = await receiveForm(request, store, { ...limits, isText: () => false, maxTextSize: 0 }, stop)
  if (parts.length === 0) throw new RelayError('bad-request', say('no-file'))
  return parts.flatMap(part => 'id' in part ? [part.id] : [])
}

/** Stores a body as one file, with the name that the client wrote. Returns its ID. Fails like {@link receiveForm}. */
export async function receiveFile(
  request: IncomingMessage, name: string, store: UploadStore, limits: ReceiveLimits, stop: AbortSignal,
): Promise<string> {
  const [id = ''] = await storeBody(request, store, limits, stop, async (body, upload) => {
    await pipeline(body, upload.open(name, body, limits))
    if (upload.size === 0) throw new RelayError('bad-request', say('empty-body'))
  })
  return id
}

/**
 * Stores the files of a body, and returns their IDs in the order of opening. The body is read through a separate stream, so that reading
 * can stop at any point.
 *
 * @param read opens the files, and resolves once they are written
 */
async function storeBody(
  request: IncomingMessage, store: UploadStore, { idleTimeout = 30_000, totalTimeout = 280_000 }: ReceiveLimits,
  stop: AbortSignal | undefined, read: (body: PassThrough, upload: Upload) => Promise<void>,
): Promise<string[]> {
  const body = new PassThrough({ autoDestroy: false })
  // The files may still have temporary names when the body has ended.
  const interruption = new AbortController()
  const fail = (error: Error): void => {
    interruption.abort(error)
    body.destroy(error)
  }
  const onSlow = (): void => fail(new RelayError('too-slow'))
  const onLeave = (cause?: unknown): void => {
    fail(new RelayError('bad-request', say('upload-cut'), { cause }))
  }
  const idle = setTimeout(() => {
    // The client cannot send while the disk is slow.
    if (request.isPaused() || request.complete) idle.refresh()
    else onSlow()
  }, idleTimeout)
  const onData = (): unknown => idle.refresh()
  const total = setTimeout(onSlow, totalTimeout)
  const unwatch = stop && onAbort(stop, () => fail(new RelayError('stopping')))
  body.on('error', fail)
  // After the end of the body, only the socket shows that the client has disconnected.
  request.on('error', onLeave).socket.on('close', onLeave)
  try {
    // These events may have come before the listeners.
    if (stop?.aborted) throw new RelayError('stopping')
    if (request.socket.destroyed || request.readableEnded) onLeave()
    interruption.signal.throwIfAborted()
    request.on('data', onData).pipe(body)
    let size = 0
    const ids = await store.write(async upload => {
      await read(body, upload)
      // formidable ignores what fails after the last boundary.
      await upload.written()
      // The parser does not wait for the bytes after the last boundary.
      await finished(body, { writable: false })
      size = upload.size
    }, interruption.signal)
    if (ids.length > 0) store.onReceived(ids.length, size)
    return ids
  } finally {
    clearTimeout(idle)
    clearTimeout(total)
    unwatch?.()
    request.off('data', onData).off('error', onLeave).unpipe(body).pause()
    request.socket.off('close', onLeave)
    body.destroy()
  }
}
