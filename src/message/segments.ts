import { isObject, type JsonObject } from '../lib/shape'

/** A part of a OneBot 11 message. */
export interface Segment {
  type: string
  data: JsonObject
}

/**
 * Reads the `message` of an event or of a history (OneBot 11, "message format"): an array of segments, or a string with CQ codes. The
 * values of CQ codes are all text.
 *
 * @returns `undefined` for anything else
 */
export function readMessage(message: unknown): Segment[] | undefined {
  if (typeof message === 'string') return [...readCodes(message)]
  if (!Array.isArray(message)) return
  return message.flatMap((segment: unknown) => readSegment(segment) ?? [])
}

/** Reads one segment, with or without `data`; `undefined` for anything else. */
export function readSegment(segment: unknown): Segment | undefined {
  if (!isObject(segment) || typeof segment.type !== 'string') return
  return { type: segment.type, data: isObject(segment.data) ? segment.data : {} }
}

/** Where a field of a CQ code ends. Many programs do not escape commas, so a comma that no `name=` follows belongs to the value. */
const fieldEnd = /(?<!;base64),(?=[A-Za-z_][\w-]{0,31}=)/

/**
 * Reads a string with CQ codes, one segment after the other. Text escapes its brackets, so each `[CQ:` begins a code, up to the next `]`;
 * without a `]`, the rest is text.
 */
export function* readCodes(source: string): Generator<Segment> {
  let position = 0
  for (;;) {
    const start = source.indexOf('[CQ:', position)
    const end = start < 0 ? -1 : source.indexOf(']', start)
    const textEnd = end < 0 ? source.length : start
    if (textEnd > position) yield { type: 'text', data: { text: unescapeCode(source.slice(position, textEnd)) } }
    if (end < 0) return
    const [, type = '', fields = ''] = /^([^,]*),?([^]*)/.exec(source.slice(start + '[CQ:'.length, end)) ?? []
    yield { type, data: Object.fromEntries(fields === '' ? [] : fields.split(fieldEnd).map(toEntry)) }
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
