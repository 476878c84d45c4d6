import { extension, lookup } from 'mime-types'
import { extname } from 'node:path'
import { TextDecoder } from 'node:util'
import { RelayError } from '../errors'
import { say, type Text } from '../texts/text'
import { parseParameters } from '../uploads/multipart'

/** The ways to send bytes. */
export const kinds = ['text', 'image', 'video', 'audio', 'file'] as const
export type Kind = typeof kinds[number]

/** The type of unknown bytes. */
export const octets = 'application/octet-stream'

/** The types that chats show, for file names. Chats show no SVG, and a `.ts` is TypeScript more often than video. */
const shown = /^(?:image\/(?:png|jpeg|gif|webp|bmp)|video\/(?:mp4|x-m4v|webm|quicktime|x-matroska|x-msvideo))$/

/** Pictures that chats do not show: drawings, and the formats of phones and scanners. */
const unshown = /^image\/(?:svg\+xml|hei[cf]|tiff)$/

/** The usual extensions, for types whose first extension in the table is a rare one. */
const usual: Partial<Record<string, string>> = { qt: 'mov', mpga: 'mp3' }

/** The media type of a Content-Type, in lower case and without parameters; empty if there is none. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1).join('').trim().toLowerCase()
}

/** How bytes of a Content-Type are sent; `undefined` if the type is missing or `application/octet-stream`. */
export function kindOfType(contentType: string): Exclude<Kind, 'text'> | undefined {
  const type = mediaTypeOf(contentType)
  if (type.startsWith('image/')) return unshown.test(type) ? 'file' : 'image'
  if (type.startsWith('video/')) return 'video'
  return type === '' || type === octets ? undefined : 'file'
}

/** How a file is sent, by the extension of its name. */
export function kindOfName(name: string): Exclude<Kind, 'text'> {
  const type = typeOfName(name)
  return shown.test(type) ? kindOfType(type) ?? 'file' : 'file'
}

/** The media type of a file name, by its extension. */
export function typeOfName(name: string): string {
  return lookup(extname(name)) || octets
}

/** A name for bytes without one, such as `image.png`. */
export function nameFor(kind: Kind, contentType: string): string {
  const type = mediaTypeOf(contentType)
  const found = type !== octets && extension(type)
  return found ? `${kind}.${usual[found] ?? found}` : kind
}

/** The charset of a Content-Type, in lower case. */
export function charsetOf(contentType: string, otherwise = 'utf-8'): string {
  return parseParameters(contentType).get('charset')?.toLowerCase() || otherwise
}

/**
 * Decodes bytes in the charset of their Content-Type (a Windows shell writes GBK), by default in UTF-8, without a byte order mark.
 *
 * @param advice what the caller can do instead about bytes that are not text
 * @throws RelayError `bad-request` for an unknown charset, and for bytes that are not text in it
 */
export function decodeText(bytes: Buffer, contentType: string, advice?: Text): string {
  const decoder = createDecoder(charsetOf(contentType), bytes)
  // A log that was cut by bytes may start and end within a character.
  const mayBeCut = decoder.encoding === 'utf-8'
  const start = mayBeCut ? bytes.subarray(0, 3).findIndex(byte => (byte & 0xc0) !== 0x80) : 0
  try {
    return decoder.decode(bytes.subarray(Math.max(start, 0)), { stream: mayBeCut })
  } catch {
    const failure = say('text-charset', { charset: decoder.encoding })
    throw new RelayError('bad-request', advice ? say('failure-or', { failure, advice }) : failure)
  }
}

function createDecoder(charset: string, bytes: Buffer): TextDecoder {
  // RFC 2781, section 4.3: the mark at the beginning tells the order of UTF-16. The decoder ignores the mark.
  const isBigEndian = charset === 'utf-16' && bytes[0] === 0xfe && bytes[1] === 0xff
  try {
    return new TextDecoder(isBigEndian ? 'utf-16be' : charset, { fatal: true })
  } catch {
    throw new RelayError('bad-request', say('unknown-charset'))
  }
}
