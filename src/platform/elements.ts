import { h } from 'koishi'
import type { LoadedItem } from '../relay/media'

/** An item as a Koishi element. Text goes in as a text node, never as markup. */
export function toElement(item: LoadedItem): h {
  switch (item.type) {
    case 'text':
      return h.text(item.text)
    case 'image':
      return h('img', { src: item.src })
    case 'video':
      return h('video', { src: item.src })
    case 'file':
      return h('file', { src: item.src, title: item.name })
  }
}
