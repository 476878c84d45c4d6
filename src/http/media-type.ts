import { extname } from 'node:path'
import { TextDecoder } from 'node:util'
import { RelayError } from '../errors'
import { parseParameters } from '../uploads/multipart'

/** What bytes can be sent as. */
export const kinds = ['text', 'image', 'video', 'file'] as const
export type Kind = typeof kinds[number]

/** The extensions of common types; the first of several is the one that a file of this type gets. */
const extensions: ReadonlyMap<string, readonly string[]> = new Map([
  ['image/png', ['png']],
  ['image/jpeg', ['jpg', 'jpeg']],
  ['image/gif', ['gif']],
  ['image/webp', ['webp']],
  ['image/bmp', ['bmp']],
  ['video/mp4', ['mp4', 'm4v']],
  ['video/webm', ['webm']],
  ['video/quicktime', ['mov']],
  ['video/x-matroska', ['mkv']],
  ['video/x-msvideo', ['avi']],
  ['audio/mpeg', ['mp3']],
  ['application/gzip', ['gz']],
  ['application/json', ['json']],
  ['application/pdf', ['pdf']],
  ['application/xml', ['xml']],
  ['application/zip', ['zip']],
  ['text/csv', ['csv']],
  ['text/html', ['html']],
  ['text/markdown', ['md']],
  ['text/plain', ['txt']],
])

/** The media type that a Content-Type names, in lower case and without its parameters; empty when there is none. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1).join('').trim().toLowerCase()
}

/** What a Content-Type says that bytes are; `undefined` where it names none, or only says that they are bytes. */
export function kindOfType(contentType: string): Exclude<Kind, 'text'> | undefined {
  const type = mediaTypeOf(contentType)
  if (type.startsWith('image/')) return 'image'
  if (type.startsWith('video/')) return 'video'
  return type === '' || type === 'application/octet-stream' ? undefined : 'file'
}

/** What the extension of a file name says that it is. */
export function kindOfName(name: string): Exclude<Kind, 'text'> {
  return kindOfType(typeOfName(name)) ?? 'file'
}

/** The media type that the extension of a file name stands for. */
export function typeOfName(name: string): string {
  const extension = extname(name).slice(1).toLowerCase()
  const [type = 'application/octet-stream'] = [...extensions].find(([, known]) => known.includes(extension)) ?? []
  return type
}

/** A name for bytes that came without one, such as `image.png`. */
export function nameFor(kind: Kind, contentType: string): string {
  const [extension] = extensions.get(mediaTypeOf(contentType)) ?? []
  return extension === undefined ? kind : `${kind}.${extension}`
}

/** The charset that a Content-Type names, in lower case; UTF-8 unless it does. */
export function charsetOf(contentType: string): string {
  return parseParameters(contentType).get('charset')?.toLowerCase() || 'utf-8'
}

/**
 * Reads bytes as text, in the charset that their Content-Type names (a Windows shell writes GBK), else in UTF-8. A byte order mark is
 * left out.
 *
 * @param advice what else can be done with bytes that are no text, in words that follow a comma
 * @throws RelayError `bad-request` for a charset that is not known, and for what is not text in it
 */
export function decodeText(bytes: Buffer, contentType: string, advice?: string): string {
  const decoder = createDecoder(charsetOf(contentType), bytes)
  try {
    return decoder.decode(bytes)
  } catch {
    const rest = advice === undefined ? '' : `, ${advice}`
    throw new RelayError('bad-request', `the text is not ${decoder.encoding}: name its charset in the Content-Type${rest}`)
  }
}

function createDecoder(charset: string, bytes: Buffer): TextDecoder {
  // The WHATWG's decoder takes UTF-16 for little-endian, whatever the mark at its beginning says (RFC 2781, section 4.3).
  const isBigEndian = charset === 'utf-16' && bytes[0] === 0xfe && bytes[1] === 0xff
  try {
    return new TextDecoder(isBigEndian ? 'utf-16be' : charset, { fatal: true })
  } catch {
    throw new RelayError('bad-request', 'the charset of the Content-Type is not known: use one such as utf-8, gbk or big5')
  }
}
