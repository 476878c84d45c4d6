import type { IncomingMessage } from 'node:http'
import { RelayError } from '../errors'
import { onAbort } from '../lib/abort'
import { FileWriter, type FileLimits } from './file-writer'
import { FormParts, MultipartReader, parseParameters, type TextLimits } from './multipart'
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

/** Something of a form: a text as it came, or a file by its ID, each with its Content-Type. */
export type ReceivedPart = { type: string, text: Buffer } | { type: string, id: string }

/** What a form consists of. */
export interface ReceivedForm {
  /** In their order. */
  parts: ReceivedPart[]
  /** The names of the parts that were skipped. */
  skipped: readonly string[]
}

/** What takes the bytes of a body, and writes those of files into an upload. */
interface BodyReader {
  /** @throws RelayError */
  push: (chunk: Buffer) => void
  /** @throws RelayError when the body ends too early */
  end: () => void
}

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
  const { ids } = await storeBody(request, store, limits, signal, files => {
    const { push, end } = readForm(boundary, new FormParts(files))
    return {
      push,
      end() {
        end()
        if (files.count === 0) throw new RelayError('bad-request', 'no file in the body: a file is a part with a filename')
      },
    }
  })
  return ids
}

/**
 * Reads a multipart/form-data body with texts in it, and stores its files as {@link receive} does. It may be one without any file.
 *
 * @param signal aborted when the relay is stopping
 */
export async function receiveForm(
  request: IncomingMessage, store: UploadStore, limits: ReceiveLimits & TextLimits, signal: AbortSignal,
): Promise<ReceivedForm> {
  const boundary = parseBoundary(request.headers['content-type'] ?? '')
  const { ids, reader } = await storeBody(request, store, limits, signal, files => readForm(boundary, new FormParts(files, limits)))
  const { parts, skipped } = reader.form
  const files = ids.values()
  return { parts: parts.map(part => 'text' in part ? part : { type: part.type, id: files.next().value ?? '' }), skipped }
}

/**
 * Stores a body as it is, as one file; after a failure nothing of it is on disk, as with {@link receive}.
 *
 * @param name as the client wrote it
 * @param signal aborted when the relay is stopping
 * @returns the ID of the file
 */
export async function receiveFile(
  request: IncomingMessage, name: string, store: UploadStore, limits: ReceiveLimits, signal: AbortSignal,
): Promise<string> {
  const { ids: [id = ''] } = await storeBody(request, store, limits, signal, files => {
    files.begin(name)
    return {
      push: chunk => files.write(chunk),
      end() {
        if (files.size === 0) throw new RelayError('bad-request', 'the body is empty')
        files.end()
      },
    }
  })
  return id
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

/** Stores what a reader makes of a body. Its rules are those of {@link receive}. */
async function storeBody<Reader extends BodyReader>(
  request: IncomingMessage, store: UploadStore, limits: ReceiveLimits, signal: AbortSignal | undefined, open: (files: FileWriter) => Reader,
): Promise<{ ids: string[], reader: Reader }> {
  const upload = store.begin()
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
    const reader = open(new FileWriter(upload, limits))
    await readBody(request, reader, upload, limits, interruption)
    const ids = await upload.commit(interruption.signal)
    if (ids.length > 0) store.onReceived(ids.length, upload.size)
    return { ids, reader }
  } catch (error) {
    await upload.discard()
    throw error
  } finally {
    unwatch?.()
    request.off('error', leave)
    request.socket.off('close', leave)
  }
}

/** Reads a form, and bounds what of it is not taken. */
function readForm(boundary: string, form: FormParts): BodyReader & { form: FormParts } {
  const reader = new MultipartReader(boundary, form)
  let received = 0
  return {
    form,
    push(chunk) {
      received += chunk.length
      reader.push(chunk)
      if (received - form.received > maxOverhead) throw new RelayError('too-large', `more than ${maxOverhead} bytes that belong to no file`)
    },
    end: () => reader.end(),
  }
}

/**
 * Reads a body into an upload. It settles once nothing is being written any more; the stream is then paused.
 *
 * @param interruption aborted to end it early; the reason is then thrown
 */
async function readBody(
  request: IncomingMessage, reader: BodyReader, upload: Upload,
  { idleTimeout = 30_000, totalTimeout = 280_000 }: ReceiveLimits, interruption: AbortController,
): Promise<void> {
  const { signal } = interruption
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
    try {
      reader.push(chunk)
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
    // What the end has brought.
    if (upload.hasWork) flushing ??= flush()
  } finally {
    request.off('data', onData).pause()
    clearTimeout(idle)
    clearTimeout(total)
    await flushing
  }
  signal.throwIfAborted()
}
