import type { Target } from '../../src/message/model'
import type { LoadedItem } from '../../src/platform/port'

/** A group and a user that exist in every simulator. */
export const group: Target = { kind: 'group', id: '123456' }
export const friend: Target = { kind: 'private', id: '10001' }

export function text(content: string): LoadedItem {
  return { type: 'text', text: content }
}

/** A picture of one transparent pixel. */
export const picture: LoadedItem = { type: 'image', name: 'a.png', src: 'data:image/png;base64,iVBORw0KGgo=' }

export function file(name: string, bytes: string): LoadedItem {
  return { type: 'file', name, src: `data:text/plain;base64,${Buffer.from(bytes).toString('base64')}` }
}
