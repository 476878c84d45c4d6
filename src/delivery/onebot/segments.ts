import type { h } from 'koishi'

/** A OneBot 11 message segment. */
export interface Segment {
  type: string
  data: Readonly<Record<string, unknown>>
}

/**
 * Encodes elements as segments. `undefined` when there is any element that the relay does not make itself, as another plugin
 * may add in `before-send`: the adapter's own encoder knows those.
 */
export function toSegments(elements: readonly h[]): Segment[] | undefined {
  const segments: Segment[] = []
  for (const { type, attrs, children } of elements) {
    if (children.length > 0) return
    const fields: Readonly<Record<string, unknown>> = attrs
    if (type === 'text' && typeof fields.content === 'string') {
      segments.push({ type: 'text', data: { text: fields.content } })
      continue
    }
    if ((type === 'img' || type === 'image' || type === 'video') && typeof fields.src === 'string') {
      segments.push({ type: type === 'video' ? 'video' : 'image', data: { file: toFile(fields.src) } })
      continue
    }
    return
  }
  return segments
}

/** The form in which OneBot takes bytes: what implementations read of `data:` differs, `base64://` they all know. */
export function toFile(src: string): string {
  const data = /^data:[^,]*;base64,/i.exec(src)
  return data ? `base64://${src.slice(data[0].length)}` : src
}
