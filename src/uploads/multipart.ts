import { MultipartParser } from 'formidable'
import { RelayError } from '../errors'
import type { FileWriter } from './file-writer'

/** What a body consists of, called in its order and while it is being pushed. */
export interface PartHandlers {
  /** A part begins. Header names are in lower case, values have one character per byte. */
  onPart: (headers: ReadonlyMap<string, string>) => void
  onContent: (bytes: Buffer) => void
  onPartEnd: () => void
}

interface Token {
  name: string
  buffer?: Buffer
  start?: number
  end?: number
}

/** Longest headers of one part, in bytes, as in Node's own HTTP parser; what stands before the first boundary may be as long. */
const maxHeaderBytes = 16 * 1024
/** The most headers of one part; no client sends more than a few. */
const maxHeaders = 32
const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Reads a multipart body (RFC 2046, section 5.1.1) chunk by chunk. The parser of formidable reads preamble, boundaries and headers,
 * and is not given the content of parts: a native search for the next boundary is several times faster, above all with a short
 * boundary, and content full of line ends would become one token a byte. Headers are counted here, because formidable collects
 * them without a bound.
 */
export class MultipartReader {
  readonly #parser = new MultipartParser()
  readonly #delimiter: Buffer
  #headers = new Map<string, string>()
  #field = ''
  #value = ''
  /** How long the lines are together that are not content: those before the first boundary, or the headers of a part. */
  #lineBytes = 0
  #headerCount = 0
  /** What the next byte belongs to. The preamble counts as part of the first boundary. */
  #state: 'boundary' | 'headers' | 'content' | 'end' = 'boundary'
  /** The end of the last chunk, where it may be the beginning of a delimiter. */
  #carry: Buffer | undefined

  constructor(boundary: string, private readonly handlers: PartHandlers) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
    this.#parser.initWithBoundary(boundary)
    // Each failure is read from `errored`, right after the bytes that caused it.
    this.#parser.on('error', () => undefined)
  }

  /** @throws RelayError `bad-request` when the body is malformed, and whatever a handler throws */
  push(chunk: Buffer): void {
    const data = this.#carry ? Buffer.concat([this.#carry, chunk]) : chunk
    this.#carry = undefined
    let at = 0
    // What follows the last boundary means nothing.
    while (at < data.length && this.#state !== 'end') {
      at = this.#state === 'content' ? this.#pushContent(data, at) : this.#pushLine(data, at)
    }
  }

  /** @throws RelayError `bad-request` when the last boundary has not come */
  end(): void {
    if (this.#state !== 'end') throw new RelayError('bad-request', 'the multipart body ends before its last boundary')
  }

  #pushContent(data: Buffer, from: number): number {
    let at = from
    for (;;) {
      at = data.indexOf(this.#delimiter, at)
      if (at < 0) return this.#keep(data, from, this.#partialDelimiter(data, from))
      const next = at + this.#delimiter.length
      if (next + 2 > data.length) return this.#keep(data, from, at)
      const follows = data.toString('latin1', next, next + 2)
      if (follows === '\r\n' || follows === '--') break
      at++
    }
    this.#emitContent(data, from, at)
    this.#state = 'boundary'
    this.#lineBytes = 0
    return at
  }

  /** Passes on the content up to `until` and keeps the rest for the next chunk. */
  #keep(data: Buffer, from: number, until: number): number {
    this.#emitContent(data, from, until)
    if (until < data.length) this.#carry = data.subarray(until)
    return data.length
  }

  /** Where a delimiter begins that the end of `data` cuts off; the length of `data` when there is none. */
  #partialDelimiter(data: Buffer, from: number): number {
    let at = data.indexOf(carriageReturn, Math.max(from, data.length - this.#delimiter.length))
    while (at >= 0 && this.#delimiter.compare(data, at, data.length, 0, data.length - at) !== 0) {
      at = data.indexOf(carriageReturn, at + 1)
    }
    return at < 0 ? data.length : at
  }

  #emitContent(data: Buffer, from: number, until: number): void {
    if (until > from) this.handlers.onContent(data.subarray(from, until))
  }

  /** Feeds the parser line by line: its tokens tell when content begins, and that is always right behind the end of a line. */
  #pushLine(data: Buffer, from: number): number {
    const end = data.indexOf(lineFeed, from) + 1 || data.length
    this.#countLine(end - from)
    this.#parser.write(data.subarray(from, end))
    if (this.#parser.errored) throw new RelayError('bad-request', 'the body is not valid multipart/form-data')
    for (let token: unknown = this.#parser.read(); isToken(token); token = this.#parser.read()) this.#handle(token)
    return end
  }

  #handle({ name, buffer, start, end }: Token): void {
    switch (name) {
      case 'partBegin':
        this.#headers = new Map()
        this.#lineBytes = 0
        this.#headerCount = 0
        this.#state = 'headers'
        break
      case 'headerField':
        this.#field += buffer?.toString('latin1', start, end) ?? ''
        break
      case 'headerValue':
        this.#value += buffer?.toString('latin1', start, end) ?? ''
        break
      case 'headerEnd':
        if (++this.#headerCount > maxHeaders) throw new RelayError('bad-request', `a part has more than ${maxHeaders} headers`)
        this.#headers.set(this.#field.toLowerCase(), this.#value)
        this.#field = ''
        this.#value = ''
        break
      case 'headersEnd':
        this.#state = 'content'
        this.handlers.onPart(this.#headers)
        break
      case 'partEnd':
        this.handlers.onPartEnd()
        break
      case 'end':
        this.#state = 'end'
        break
    }
  }

  #countLine(bytes: number): void {
    this.#lineBytes += bytes
    if (this.#lineBytes <= maxHeaderBytes) return
    const what = this.#state === 'headers' ? 'the headers of a part are' : 'what stands before a boundary is'
    throw new RelayError('bad-request', `${what} longer than ${maxHeaderBytes} bytes`)
  }
}

function isToken(value: unknown): value is Token {
  return typeof value === 'object' && value !== null && 'name' in value
}

/** Which parts are taken as text, and how much of them. */
export interface TextLimits {
  /** Told the name of a part, and whether it is a file. */
  isText: (name: string, isFile: boolean) => boolean
  /** In bytes, for all of them together. */
  maxTextSize: number
}

/** What of a form is taken: a text, or the next file of the upload, each with its Content-Type. */
export type Part = { type: string, text: Buffer } | { type: string, isFile: true }

/** Most parts that are taken in one request, and most of the others. */
const maxParts = 1000
/** Encodings that leave the bytes as they are (RFC 2045, section 6.2). */
const identities = ['', '7bit', '8bit', 'binary']

/** Makes files of an upload of the parts that have a file name, and texts of those that are wanted as such. Others are skipped. */
export class FormParts implements PartHandlers {
  /** In their order. */
  readonly parts: Part[] = []
  /** The names of those that were skipped. */
  readonly skipped: string[] = []
  /** Bytes of all that was taken so far, as they came. */
  received = 0
  #textSize = 0
  #chunks: Buffer[] = []
  /** What the content belongs to. */
  #taking: 'nothing' | 'file' | 'text' = 'nothing'
  #type = ''
  #decoder: Base64Decoder | undefined

  constructor(private readonly files: FileWriter, private readonly texts?: TextLimits) {}

  /** @throws RelayError `too-large` for too many parts, `unsupported-type` for a file that is not accepted */
  onPart = (headers: ReadonlyMap<string, string>): void => {
    const disposition = headers.get('content-disposition') ?? ''
    const fileName = parseFileName(disposition)
    const name = Buffer.from(parseParameters(disposition).get('name') ?? '', 'latin1').toString()
    const isText = this.texts?.isText(name, fileName !== undefined) ?? false
    if (!isText && fileName === undefined) {
      if (this.skipped.push(name) > maxParts) throw new RelayError('too-large', `more than ${maxParts} parts without a file`)
      return
    }
    if (this.parts.length === maxParts) {
      throw new RelayError('too-large', `more than ${maxParts} ${this.texts ? 'texts and files' : 'files'} in one request`)
    }
    this.#type = headers.get('content-type') ?? ''
    this.#decoder = createDecoder(headers.get('content-transfer-encoding') ?? '')
    this.#taking = isText ? 'text' : 'file'
    if (fileName !== undefined && !isText) this.files.begin(fileName)
  }

  /** @throws RelayError `too-large` when the file is longer than allowed, or there is too much text */
  onContent = (bytes: Buffer): void => {
    if (this.#taking === 'nothing') return
    this.received += bytes.length
    this.#write(this.#decoder?.decode(bytes) ?? bytes)
  }

  onPartEnd = (): void => {
    if (this.#taking === 'nothing') return
    if (this.#decoder) this.#write(this.#decoder.end())
    if (this.#taking === 'file') {
      this.files.end()
      this.parts.push({ type: this.#type, isFile: true })
    } else {
      this.parts.push({ type: this.#type, text: Buffer.concat(this.#chunks) })
      this.#chunks = []
    }
    this.#taking = 'nothing'
  }

  #write(bytes: Buffer): void {
    if (this.#taking === 'file') {
      this.files.write(bytes)
      return
    }
    const maxSize = this.texts?.maxTextSize ?? 0
    this.#textSize += bytes.length
    if (this.#textSize > maxSize) throw new RelayError('too-large', `more than ${maxSize} bytes of text`)
    this.#chunks.push(bytes)
  }
}

/** Content-Transfer-Encoding is deprecated (RFC 7578, section 4.7), but old clients send base64, which formidable decodes as well. */
function createDecoder(encoding: string): Base64Decoder | undefined {
  const known = encoding.trim().toLowerCase()
  if (identities.includes(known)) return undefined
  if (known === 'base64') return new Base64Decoder()
  throw new RelayError('unsupported-type', 'send the bytes of a file as they are, without a content-transfer-encoding')
}

/** Decodes base64 that comes in pieces and may be broken into lines. Characters that are not base64 are ignored. */
export class Base64Decoder {
  #rest = ''

  decode(bytes: Buffer): Buffer {
    const text = this.#rest + bytes.toString('latin1').replace(/[^A-Za-z0-9+/=]/g, '')
    const whole = text.length - text.length % 4
    this.#rest = text.slice(whole)
    return Buffer.from(text.slice(0, whole), 'base64')
  }

  end(): Buffer {
    return Buffer.from(this.#rest, 'base64')
  }
}

// `; name=value`, the value quoted or not. A quote that is never closed ends with the header.
const parameter = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:\\"|[^"])*)(?:"|$)|([^;]*))/g
// RFC 5987: charset'language'value, of which only these two charsets ever came into use.
const extended = /^(utf-8|iso-8859-1)'[^']*'(.*)$/i

/**
 * Reads the parameters of a Content-Type or Content-Disposition. Names are in lower case and the first of several holds.
 * In quotes only `\"` is an escape: some clients send a Windows path, and its backslashes are meant.
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
 * Finds the name that a part gives its file: `filename*` (RFC 5987), which older Python clients send instead of the plain one,
 * else `filename` (RFC 7578, section 4.2). It is what the client wrote, so it may be empty or hostile.
 *
 * @param disposition Content-Disposition of the part, one character per byte
 * @returns `undefined` when the part is no file
 */
export function parseFileName(disposition: string): string | undefined {
  const parameters = parseParameters(disposition)
  const plain = parameters.get('filename')
  const encoded = parameters.get('filename*')
  if (encoded !== undefined) return parseExtended(encoded) ?? plain ?? ''
  // Browsers escape these three and nothing else (HTML Standard, "multipart/form-data encoding algorithm").
  return plain && Buffer.from(unescapeBytes(plain, /%(22|0D|0A)/gi), 'latin1').toString()
}

function parseExtended(value: string): string | undefined {
  const [, charset = '', text = ''] = extended.exec(value) ?? []
  if (charset === '') return undefined
  const bytes = unescapeBytes(text, /%([0-9a-f]{2})/gi)
  return charset.toLowerCase() === 'utf-8' ? Buffer.from(bytes, 'latin1').toString() : bytes
}

function unescapeBytes(text: string, escape: RegExp): string {
  return text.replace(escape, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}
