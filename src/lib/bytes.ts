import { TextDecoder } from 'node:util'

/** Decodes bytes strictly, without a byte order mark; `undefined` for an unknown charset, and for bytes that are not text in it. */
export function decode(bytes: Uint8Array, charset = 'utf-8'): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Decodes bytes of a sender that cannot name a charset: UTF-8, else GBK, as the console of Chinese Windows writes it, else Latin-1. */
export function decodeUnnamed(bytes: Buffer): string {
  return decode(bytes) ?? decode(bytes, 'gbk') ?? bytes.toString('latin1')
}

/** Decodes the escapes of percent-encoded bytes (RFC 3986, section 2.1). A malformed escape stays as it is written. */
export function unescapeBytes(source: Buffer): Buffer {
  const unescape = (run: string): string => Buffer.from(run.replaceAll('%', ''), 'hex').toString('latin1')
  return Buffer.from(source.toString('latin1').replace(/(?:%[\da-f]{2}){1,1000}/gi, unescape), 'latin1')
}

/**
 * Parses `name=value&…` as the URL Standard does ("application/x-www-form-urlencoded parsing"), but in any charset, and strictly.
 *
 * @returns `undefined` for an unknown charset, and if a name or value is not text in it
 */
export function parsePairs(source: Buffer, charset: string): URLSearchParams | undefined {
  try {
    const decoder = new TextDecoder(charset, { fatal: true })
    const toUtf8 = (part: string): string => encodeURIComponent(decoder.decode(unescapeBytes(Buffer.from(part.replaceAll('+', ' '), 'latin1'))))
    // Each value, and each name.
    return new URLSearchParams(source.toString('latin1').replace(/(?<==)[^&]+|[^&=]+/g, toUtf8))
  } catch {
    return undefined
  }
}

/** Decodes the value of a header, of which Node.js makes one character per byte: encoded words (RFC 2047), or raw bytes. */
export function decodeHeader(value: string): string {
  // Blanks between two encoded words only separate them.
  const joined = value.replace(/(\?=)\s{1,100}(?==\?)/g, '$1')
  const word = /=\?([\w-]{1,40})(?:\*[\w-]{0,40})?\?([bq])\?([^?]*)\?=/gi
  const bytes = joined.replace(word, (whole, charset: string, encoding: string, text: string) => {
    // The encoding "Q" (section 4.2) is percent-encoding with other characters.
    const escaped = text.replaceAll('%', '%25').replaceAll('=', '%').replaceAll('_', ' ')
    const encoded = encoding.toLowerCase() === 'b' ? Buffer.from(text, 'base64') : unescapeBytes(Buffer.from(escaped, 'latin1'))
    const decoded = decode(encoded, charset)
    return decoded === undefined ? whole : Buffer.from(decoded).toString('latin1')
  })
  return decodeUnnamed(Buffer.from(bytes, 'latin1'))
}
