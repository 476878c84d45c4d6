import type { h } from 'koishi'
import type { JsonObject } from '../../message/parse'
import type { Segment } from '../../message/segments'

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
