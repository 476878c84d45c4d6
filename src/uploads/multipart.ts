import { MultipartParser } from 'formidable'
import { RelayError } from '../errors'

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

/** Longest headers of one part, in bytes, as in Node's own HTTP parser. */
const maxHeaderBytes = 16 * 1024
const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Reads a multipart body (RFC 2046, section 5.1.1) chunk by chunk. formidable's parser reads preamble, boundaries and headers.
 * The content of a part goes around it, for three reasons: a native search for the next boundary is several times faster,
 * above all with a short boundary; content full of line ends would become one token a byte; and formidable's form collects
 * headers without a bound.
 */
export class MultipartReader {
  readonly #parser = new MultipartParser()
  readonly #delimiter: Buffer
  #headers = new Map<string, string>()
  #field = ''
  #value = ''
  #headerBytes = 0
  /** What the next byte belongs to: the preamble counts as part of the first boundary. */
  #state: 'boundary' | 'headers' | 'content' | 'end' = 'boundary'
  /** End of the last chunk that may be the beginning of a delimiter. */
  #carry: Buffer | undefined

  constructor(boundary: string, private readonly handlers: PartHandlers) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
    this.#parser.initWithBoundary(boundary)
    // Its failures are read from `errored`, right after the bytes that caused them.
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
    return at
  }

  /** Passes on the content up to `until` and keeps the rest for the next chunk. */
  #keep(data: Buffer, from: number, until: number): number {
    this.#emitContent(data, from, until)
    if (until < data.length) this.#carry = data.subarray(until)
    return data.length
  }

  /** Where a delimiter begins that the end of `data` cuts off; its length when none does. */
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

  /** Line by line, because the parser says only by its tokens where content begins, and that is always after a line. */
  #pushLine(data: Buffer, from: number): number {
    const end = data.indexOf(lineFeed, from) + 1 || data.length
    if (this.#state === 'headers') this.#countHeaders(end - from)
    this.#parser.write(data.subarray(from, end))
    if (this.#parser.errored) throw new RelayError('bad-request', 'the body is not valid multipart/form-data')
    for (let token: unknown = this.#parser.read(); isToken(token); token = this.#parser.read()) this.#handle(token)
    return end
  }

  #handle({ name, buffer, start, end }: Token): void {
    switch (name) {
      case 'partBegin':
        this.#headers = new Map()
        this.#headerBytes = 0
        this.#state = 'headers'
        break
      case 'headerField':
        this.#field += buffer?.toString('latin1', start, end) ?? ''
        break
      case 'headerValue':
        this.#value += buffer?.toString('latin1', start, end) ?? ''
        break
      case 'headerEnd':
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

  #countHeaders(bytes: number): void {
    this.#headerBytes += bytes
    if (this.#headerBytes > maxHeaderBytes) {
      throw new RelayError('bad-request', `the headers of a part are longer than ${maxHeaderBytes} bytes`)
    }
  }
}

function isToken(value: unknown): value is Token {
  return typeof value === 'object' && value !== null && 'name' in value
}
