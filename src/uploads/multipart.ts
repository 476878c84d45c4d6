import { errors, Formidable } from 'formidable'
import type { EventEmitter } from 'node:events'
import { unescape } from 'node:querystring'
import type { Readable, Writable } from 'node:stream'
import { RelayError } from '../errors'
import { say } from '../texts/text'
import { decode, decodeHeader, decodeUnnamed, unescapeBytes } from '../lib/bytes'

/** A part of a form. */
export interface FormPart {
  name: string
  /** The file name as the client wrote it: it may be empty or hostile. `undefined` if the part is not a file. */
  fileName: string | undefined
  /** Its Content-Type; empty when it has none. */
  type: string
  /** Emits `data` with the bytes of the part, then `end`. */
  content: EventEmitter
}

/** The most bytes of a part's headers, plus a chunk of 64 KiB: formidable collects headers without a limit, some in quadratic time. */
const maxWithoutContent = 80 * 1024
/** The most parts of a form: even an empty part takes time. */
const maxParts = 1000

/**
 * Parses a multipart/form-data body (RFC 7578) with formidable.
 *
 * @param body in chunks of at most 64 KiB
 * @param onPart called for each part in order, before its content. It may listen to the content, or return the stream that stores the
 *   part as a file. It may throw.
 * @throws RelayError `bad-request`, `unsupported-type`, `too-large`; also errors of `onPart` and of the body
 */
export async function parseForm(body: Readable, contentType: string, onPart: (part: FormPart) => Writable | undefined): Promise<void> {
  if (!/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType)) {
    throw new RelayError('unsupported-type', say('send-as-form'))
  }
  if (body.errored) throw body.errored
  let file: Writable | undefined
  let received = 0
  let lastContent = 0
  let parts = 0
  const form = new Formidable({
    // One character per byte: formidable damages a UTF-8 name that is split between two chunks.
    encoding: 'binary',
    allowEmptyFiles: true,
    minFileSize: 0,
    // formidable would apply the limit to all files together.
    maxFileSize: Infinity,
    filename: () => 'unused',
    fileWriteStreamHandler: () => file,
  })
  form.onPart = async part => {
    // The parser continues with its present chunk after the start of a part.
    if (form.error) return
    // Let the parser finish this chunk before the next one.
    body.pause()
    setImmediate(() => body.resume())
    lastContent = received
    part.on('data', () => {
      lastContent = received
    })
    try {
      if (++parts > maxParts) throw new RelayError('too-large', say('too-many-form-parts', { most: maxParts }))
      const { 'content-disposition': disposition = '', 'content-type': type = '' } = part.headers
      // formidable damages base64 that is broken into lines.
      if (part.transferEncoding === 'base64') throw new RelayError('unsupported-type', noEncoding)
      const name = parseParameters(decodeHeader(disposition)).get('name') ?? ''
      file = onPart({ name, fileName: parseFileName(disposition), type, content: part })
      // formidable treats a part without a type as a field.
      part.mimetype ||= 'application/octet-stream'
      if (file) await form._handlePart(part)
    } catch (error) {
      form._error(error)
    }
  }
  form.on('progress', (bytes: number) => {
    received = bytes
    if (received - lastContent > maxWithoutContent) form._error(new RelayError('bad-request', say('long-part-headers')))
  })
  // Without a length, formidable treats the body as empty.
  const headers = { 'content-type': contentType, 'transfer-encoding': 'chunked' }
  await form.parse(Object.assign(body, { headers })).catch((error: unknown) => {
    throw toRelayError(error)
  })
}

/** RFC 7578, section 4.7, deprecates the header. */
const noEncoding = say('no-transfer-encoding')

function toRelayError(error: unknown): unknown {
  if (!(error instanceof errors.default) || !('code' in error)) return error
  if (error.code === errors.unknownTransferEncoding) return new RelayError('unsupported-type', noEncoding)
  if (error.code === errors.missingMultipartBoundary) return new RelayError('bad-request', say('no-boundary'))
  return new RelayError('bad-request', say('malformed-form'))
}

// `; name=value`, the value quoted or not. A quote that is never closed ends with the header.
const parameter = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:\\"|[^"])*)(?:"|$)|([^;]*))/g
/**
 * Reads the parameters of a Content-Type or Content-Disposition. Names are in lower case; the first of several equal ones counts.
 * In quotes only `\"` is an escape, because some clients send Windows paths with plain backslashes.
 */
export function parseParameters(header: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of header.matchAll(parameter)) {
    const key = name.toLowerCase()
    if (!parameters.has(key)) parameters.set(key, quoted === undefined ? plain.trim() : quoted.replaceAll('\\"', '"'))
  }
  return parameters
}

/**
 * Reads the file name in a Content-Disposition: `filename*` (RFC 8187), which older Python clients send instead of the plain one, else
 * `filename` (RFC 7578, section 4.2). It is as the client wrote it: it may be empty or hostile.
 *
 * @param disposition one character per byte
 * @returns `undefined` without a name
 */
export function parseFileName(disposition: string): string | undefined {
  const parameters = parseParameters(decodeHeader(disposition))
  const [plain, extended] = [parameters.get('filename'), parameters.get('filename*')]
  const [, charset = '', text = ''] = /^([\w.:-]+)'[^']*'(.*)$/s.exec(extended ?? '') ?? []
  const bytes = unescapeBytes(Buffer.from(text))
  const named = text === '' ? undefined : decode(bytes, charset)
  // Browsers escape these three in a plain name and nothing else (HTML Standard, "multipart/form-data encoding algorithm").
  return named ?? plain?.replace(/%(?:22|0D|0A)/gi, escaped => unescape(escaped)) ?? (extended && decodeUnnamed(bytes))
}
