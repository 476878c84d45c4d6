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
  if (typeof message === 'string') return parseCode(message)
  if (!Array.isArray(message)) return
  return message.flatMap((segment: unknown) => {
    if (!isObject(segment) || typeof segment.type !== 'string') return []
    return [{ type: segment.type, data: isObject(segment.data) ? segment.data : {} }]
  })
}

/** Reads a CQ string. A `[` that a member typed arrives escaped, so each `[CQ:` begins a code that the next `]` ends. */
function parseCode(source: string): Segment[] {
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
