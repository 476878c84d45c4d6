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
  const segments = elements.map(toSegment)
  return segments.every(segment => segment !== undefined) ? segments : undefined
}

function toSegment({ type, attrs, children }: h): Segment | undefined {
  if (children.length > 0) return
  const fields: Readonly<Record<string, unknown>> = attrs
  if (type === 'text' && typeof fields.content === 'string') return { type: 'text', data: { text: fields.content } }
  if ((type === 'img' || type === 'image' || type === 'video') && typeof fields.src === 'string') {
    return { type: type === 'video' ? 'video' : 'image', data: { file: toFile(fields.src) } }
  }
}

/** The form in which OneBot takes bytes: what implementations read of `data:` differs, `base64://` they all know. */
export function toFile(src: string): string {
  const data = /^data:[^,]*;base64,/i.exec(src)
  return data ? `base64://${src.slice(data[0].length)}` : src
}
