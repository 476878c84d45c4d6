import { divideText } from '../../lib/words'
import type { LoadedItem, LoadedMedia } from '../port'

/*
 * The contents of messages, by "Content of messages to send"
 * (https://open.feishu.cn/document/server-docs/im-v1/message-content-description/create_json). In the type `text`, tags such as
 * `<at user_id="all"></at>` and `<i>`, and links such as `[text](address)` are live, and nothing escapes them. In the type `post`, only
 * nodes with the tag `md` are Markdown: a node with the tag `text` is its text as it is, and only a node with the tag `at` mentions.
 */

/** The content of a message by its `msg_type`. */
export interface Content {
  type: 'post' | 'image' | 'file' | 'media' | 'audio'
  value: object
}

type Node = { tag: 'text', text: string } | { tag: 'at', user_id: string } | { tag: 'img', image_key: string }

/** The key of an uploaded picture. */
export type KeyOf = (picture: LoadedMedia) => string

/** The longest body of a `post`: 30 KB. The rest is for the fields around the content. */
const maxBytes = 29_000
/** The longest text in one: the rest is for mentions beside it. */
const maxText = 26_000
/** In UTF-16 units, which take three bytes in Chinese. The rest is for a few hundred lines, each of which is a paragraph. */
export const longestText = 5_000

/** A rich text. Each line of text is a paragraph, and so is each picture, which must stand alone. */
export function toPost(items: readonly LoadedItem[], keyOf: KeyOf): Content {
  const content: Node[][] = []
  /** The present paragraph; a picture ends it. */
  let last: Node[] | undefined
  const add = (node: Node): void => {
    if (last) last.push(node)
    else content.push(last = [node])
  }
  for (const item of items) {
    switch (item.type) {
      case 'text':
        for (const [index, text] of item.text.split(/\r\n|\r|\n/).entries()) {
          if (index > 0) last = undefined
          // A picture already has line breaks around it.
          const isNeeded = text !== '' || index > 0 || content.length === 0
          if (isNeeded) add({ tag: 'text', text })
        }
        break
      case 'at':
        add({ tag: 'at', user_id: item.userId ?? 'all' })
        break
      case 'image':
        if (last?.every(node => node.tag === 'text' && node.text === '')) content.pop()
        content.push([{ tag: 'img', image_key: keyOf(item) }])
        last = undefined
    }
  }
  return { type: 'post', value: { zh_cn: { title: '', content } } }
}

/** Divides items into rich texts by length, independent of the keys of pictures, so that a repeated call divides them the same way. */
export function divide(items: readonly LoadedItem[]): LoadedItem[][] {
  const parts: LoadedItem[][] = []
  let last: LoadedItem[] = []
  for (const item of items.flatMap(toPieces)) {
    if (last.length > 0 && bytesOf([...last, item]) > maxBytes) {
      parts.push(last)
      last = []
    }
    last.push(item)
  }
  return [...parts, last]
}

function toPieces(item: LoadedItem): LoadedItem[] {
  if (item.type !== 'text' || bytesOf([item]) <= maxText) return [item]
  return divideText(item.text, Math.ceil(item.text.length / 2)).flatMap(text => toPieces({ type: 'text', text }))
}

const someKey = 'img_v3_'.padEnd(100, '0')

/** The bytes of a rich text in the body of a request, where it is JSON within JSON. */
function bytesOf(items: readonly LoadedItem[]): number {
  return Buffer.byteLength(JSON.stringify(JSON.stringify(toPost(items, () => someKey).value)))
}
