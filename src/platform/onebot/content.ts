import { createHash } from 'node:crypto'
import { readMessage, type Segment } from '../../message/segments'
import type { LoadedItem } from '../port'

/**
 * What a platform message says, without what platforms change on the way: they rename pictures and videos, give them other
 * links and sizes, trim texts and break their lines differently.
 */
export type Content = readonly Part[]

type Part = TextPart | FilePart | OtherPart

interface TextPart {
  kind: 'text'
  /** Normalised; a long one by its digest. */
  text: string
}

interface FilePart {
  kind: 'file'
  /** What may be its name: implementations differ in the field that holds it. */
  names: readonly string[]
  /** In bytes, where it is known. */
  size?: number
}

/** A picture, a video, a mention, a reply or anything else. */
interface OtherPart {
  kind: 'other'
  /** Its type, with what it points at if that is part of what is said. */
  key: string
}

/** What the message that is made of these items says. */
export function contentOfItems(items: readonly LoadedItem[]): Content {
  return join(items.map((item): Part => {
    switch (item.type) {
      case 'text':
        return { kind: 'text', text: item.text }
      case 'file': {
        const size = sizeOf(item.src)
        return { kind: 'file', names: [item.name], ...size !== undefined && { size } }
      }
      case 'image':
      case 'video':
        return { kind: 'other', key: item.type }
      case 'audio':
        return { kind: 'other', key: 'record' }
      case 'at':
        return { kind: 'other', key: `at ${item.userId ?? 'all'}` }
      case 'reply':
        return { kind: 'other', key: `reply ${item.messageId}` }
    }
  }))
}

/**
 * What the `message` of an event or of a history says.
 *
 * @returns `undefined` when it is no message
 */
export function contentOfMessage(message: unknown): Content | undefined {
  const segments = readMessage(message)
  return segments && join(segments.map(toPart))
}

/** Whether two messages say the same. */
export function isSameContent(a: Content, b: Content): boolean {
  return a.length === b.length && a.every((part, index) => isSamePart(part, b[index]))
}

/** A content as a text that does not tell what it says, to be kept in a file. */
export function sealContent(content: Content): string {
  return content.map(sealPart).join(' ')
}

/** Whether a message says the same as one of which `sealContent` made this text. */
export function isSealOf(sealed: string, content: Content): boolean {
  const parts = sealed.split(' ')
  return parts.length === content.length && content.every((part, index) => isSealOfPart(parts[index] ?? '', part))
}

/** Whether it is an uploaded file: the answer to an upload has no message ID. */
export function isUpload(content: Content): boolean {
  return content.some(({ kind }) => kind === 'file')
}

/** The size of a file stays: where it is not known, any will do. */
function sealPart(part: Part): string {
  switch (part.kind) {
    case 'text':
      return `text:${digest(part.text)}`
    case 'file':
      return `file:${part.names.map(digest).join()}:${part.size ?? ''}`
    case 'other':
      return `other:${digest(part.key)}`
  }
}

function isSealOfPart(sealed: string, part: Part): boolean {
  if (part.kind !== 'file') return sealed === sealPart(part)
  const [kind, names = '', size = ''] = sealed.split(':')
  const hasSameSize = size === '' || part.size === undefined || Number(size) === part.size
  return kind === 'file' && hasSameSize && part.names.some(name => names.split(',').includes(digest(name)))
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function isSamePart(a: Part, b: Part | undefined): boolean {
  if (a.kind === 'text') return b?.kind === 'text' && a.text === b.text
  if (a.kind === 'other') return b?.kind === 'other' && a.key === b.key
  if (b?.kind !== 'file') return false
  const hasSameSize = a.size === undefined || b.size === undefined || a.size === b.size
  return hasSameSize && a.names.some(name => b.names.includes(name))
}

/** Merges adjacent texts, which the platform may, and normalises each. */
function join(parts: readonly Part[]): Part[] {
  const joined: Part[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (part.kind === 'text' && last?.kind === 'text') joined.splice(-1, 1, { kind: 'text', text: last.text + part.text })
    else joined.push(part)
  }
  return joined
    .map(part => part.kind === 'text' ? { ...part, text: normalise(part.text) } : part)
    .filter(part => part.kind !== 'text' || part.text !== '')
}

/** From this length on, in characters, a digest stands for the text: what messages say is kept in memory. */
const longText = 128

function normalise(text: string): string {
  // NapCat: some versions of the client break lines with a bare CR.
  const plain = text.replace(/\r\n?/g, '\n').trim()
  return plain.length < longText ? plain : `sha256:${digest(plain)}`
}

function toPart({ type, data }: Segment): Part {
  switch (type) {
    case 'text':
      return { kind: 'text', text: typeof data.text === 'string' ? data.text : '' }
    case 'file': {
      // NapCat, LuckyLilliaBot: `file`; go-cqhttp: `name`; Lagrange: `file_name`.
      const names = [data.name, data.file_name, data.file].filter(name => typeof name === 'string')
      const size = Number(data.file_size ?? data.size ?? NaN)
      // What has no size in the platform's eyes stands there as 0 or as nothing.
      return { kind: 'file', names, ...size > 0 && { size } }
    }
    case 'at':
      return { kind: 'other', key: `at ${String(data.qq)}` }
    case 'reply':
      return { kind: 'other', key: `reply ${String(data.id)}` }
    default:
      return { kind: 'other', key: type }
  }
}

/** The size of what travels along, in bytes. What is on a disk or behind a link is not asked for its size. */
function sizeOf(src: string): number | undefined {
  const head = /^data:[^,]*;base64,/i.exec(src)
  return head ? Buffer.byteLength(src.slice(head[0].length), 'base64') : undefined
}
