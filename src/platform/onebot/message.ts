import type { h } from 'koishi'
import { isObject, type JsonObject } from '../../message/parse'

/** A part of a OneBot 11 message. */
export interface Segment {
  type: string
  data: JsonObject
}

/**
 * Reads the `message` of an event or of a history (OneBot 11, "message format"): an array of segments, or a string with CQ
 * codes, in which every value is text.
 *
 * @returns `undefined` when it is neither
 */
export function readMessage(message: unknown): Segment[] | undefined {
  if (typeof message === 'string') return readCode(message)
  if (!Array.isArray(message)) return
  return message.flatMap((segment: unknown) => {
    if (!isObject(segment) || typeof segment.type !== 'string') return []
    return [{ type: segment.type, data: isObject(segment.data) ? segment.data : {} }]
  })
}

/** Reads a CQ string. A `[` that a member typed arrives escaped, so each `[CQ:` begins a code that the next `]` ends. */
function readCode(source: string): Segment[] {
  const segments: Segment[] = []
  let position = 0
  const addText = (end: number): void => {
    if (end > position) segments.push({ type: 'text', data: { text: unescapeCode(source.slice(position, end)) } })
  }
  for (;;) {
    const start = source.indexOf('[CQ:', position)
    const end = start < 0 ? -1 : source.indexOf(']', start)
    if (end < 0) {
      addText(source.length)
      return segments
    }
    addText(start)
    const [type = '', ...fields] = source.slice(start + '[CQ:'.length, end).split(',')
    segments.push({ type, data: Object.fromEntries(fields.map(toEntry)) })
    position = end + 1
  }
}

function toEntry(field: string): [string, string] {
  const equals = field.indexOf('=')
  return equals < 0 ? [field, ''] : [field.slice(0, equals), unescapeCode(field.slice(equals + 1))]
}

const escapes: Readonly<Record<string, string>> = { '&#91;': '[', '&#93;': ']', '&#44;': ',', '&amp;': '&' }

function unescapeCode(source: string): string {
  return source.replace(/&(?:#91|#93|#44|amp);/g, escape => escapes[escape] ?? escape)
}

/**
 * Encodes elements as segments. `undefined` when there is any element that the relay does not make itself, as another plugin
 * may add in `before-send`: the adapter's own encoder knows those.
 */
export function toSegments(elements: readonly h[]): Segment[] | undefined {
  const segments = elements.map(toSegment)
  return segments.every(segment => segment !== undefined) ? segments : undefined
}

function toSegment({ type, attrs, children }: h): Segment | undefined {
  if (children.length > 0) return
  const fields: JsonObject = attrs
  if (type === 'text' && typeof fields.content === 'string') return { type: 'text', data: { text: fields.content } }
  if (type === 'at' && fields.type === 'all') return { type: 'at', data: { qq: 'all' } }
  if (type === 'at' && typeof fields.id === 'string') return { type: 'at', data: { qq: fields.id } }
  if (type === 'quote' && typeof fields.id === 'string') return { type: 'reply', data: { id: fields.id } }
  const mediaType = mediaTypes.get(type)
  if (mediaType !== undefined && typeof fields.src === 'string') return { type: mediaType, data: { file: toFile(fields.src) } }
}

/** What OneBot calls the elements with bytes. */
const mediaTypes: ReadonlyMap<string, string> = new Map([['img', 'image'], ['image', 'image'], ['video', 'video'], ['audio', 'record']])

/** The form in which OneBot takes bytes: what implementations read of `data:` differs, `base64://` they all know. */
export function toFile(src: string): string {
  const data = /^data:[^,]*;base64,/i.exec(src)
  return data ? `base64://${src.slice(data[0].length)}` : src
}

/** An ID as text. Those of messages may be negative. */
export function toId(value: unknown): string | undefined {
  return typeof value === 'number' || (typeof value === 'string' && value !== '') ? String(value) : undefined
}

/** An ID as a number, as far as that is exact: implementations differ in whether they take one as text. */
export function toNumber(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : id
}
