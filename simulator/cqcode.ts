import type { Segment } from './types'

const code = /\[CQ:([A-Za-z_]+)((?:,[^\]]+)?)\]/g
/** Begins an attribute. Any other comma belongs to the value before it. */
const separator = /(?<!;base64),(?=[A-Za-z_][\w-]{0,31}=)/

function escapeText(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/\[/g, '&#91;').replace(/\]/g, '&#93;')
}

function unescapeText(text: string): string {
  return text.replace(/&#91;/g, '[').replace(/&#93;/g, ']').replace(/&#44;/g, ',').replace(/&amp;/g, '&')
}

/** Segments as a CQ string (OneBot 11, "message format: string"). Only flat values survive, as on the real platforms. */
export function encodeCq(segments: readonly Segment[]): string {
  return segments.map(({ type, data }) => {
    if (type === 'text') return escapeText(typeof data.text === 'string' ? data.text : '')
    const attributes = Object.entries(data).flatMap(([key, value]) => (
      typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
        ? [`,${key}=${escapeText(String(value)).replace(/,/g, '&#44;')}`]
        : []
    ))
    return `[CQ:${type}${attributes.join('')}]`
  }).join('')
}

/** Parses a CQ string. Anything that is not a code is text, so that every string is valid. */
export function decodeCq(text: string): Segment[] {
  const segments: Segment[] = []
  let end = 0
  const pushText = (raw: string): void => {
    if (raw !== '') segments.push({ type: 'text', data: { text: unescapeText(raw) } })
  }
  for (const match of text.matchAll(code)) {
    pushText(text.slice(end, match.index))
    end = match.index + match[0].length
    const data: Record<string, unknown> = {}
    for (const pair of (match[2] ?? '').split(separator).slice(1)) {
      const equals = pair.indexOf('=')
      if (equals > 0) data[pair.slice(0, equals)] = unescapeText(pair.slice(equals + 1))
    }
    segments.push({ type: match[1] ?? '', data })
  }
  pushText(text.slice(end))
  return segments
}
