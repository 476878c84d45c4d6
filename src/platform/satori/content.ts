import { h } from 'koishi'
import { lookup } from 'mime-types'
import { digest } from '../../lib/crypto'
import { fieldsOf } from '../../message/parse'
import { toText } from '../incoming'
import { toElement } from '../koishi'
import type { LoadedItem } from '../port'

/*
 * Content in Satori's markup of elements. Sources: https://satori.chat/zh-CN/protocol/message.html (syntax),
 * https://satori.chat/zh-CN/protocol/elements.html (elements).
 */

/** The elements of a message. Inline media have the type that their name tells where they came without one. */
export function toElements(items: readonly LoadedItem[]): h[] {
  return items.map(item => {
    if (!('src' in item)) return toElement(item)
    const type = lookup(item.name) || 'application/octet-stream'
    return toElement({ ...item, src: item.src.replace(/^data:application\/octet-stream(?=[;,])/, `data:${type}`) })
  })
}

/** Writes elements in such a way that a server reads each text as it is. */
export function toMarkup(elements: readonly h[]): string {
  return elements.map(element => element.type === 'text' ? escapeText(toText(fieldsOf(element.attrs).content)) : element.toString()).join('')
}

/** Blanks with a line break next to an element count for nothing, escaped or not, so that such a break has to be an element. */
function escapeText(text: string): string {
  return h.escape(text).replace(/^\s*\n\s*|\s*\n\s*$/g, blanks => blanks.replaceAll('\n', '<br/>'))
}

/**
 * What stays the same of a message in the history of a server: mentions, kinds of media, and the letters and digits of its text. The
 * platform behind the server may change the rest, such as blanks, escapes, and links of media.
 */
export function likenessOf(elements: readonly h[]): string {
  return digest(normalize(describe(elements)))
}

/** The likeness of a message with this `content`. */
export function likenessOfContent(content: string): string {
  return likenessOf(h.parse(content))
}

/** Stands between the texts of a message and its other elements. */
const border = '\0'

const media: ReadonlySet<string> = new Set(['img', 'image', 'video', 'audio', 'file'])

/** No server nests deeper on purpose. A hostile message must not exhaust the stack. */
const maxDepth = 64

function describe(elements: readonly h[], depth = 0): string {
  if (depth > maxDepth) return ''
  return elements.map(({ type, attrs, children }) => {
    const { content, id, name, title, type: special, href }: Record<string, unknown> = attrs
    if (type === 'text') return toText(content).replaceAll(border, '')
    if (type === 'at') return `${border}@${toText(special) || toText(id) || toText(name)}${border}`
    if (media.has(type)) return `${border}${type === 'image' ? 'img' : type} ${toText(title)}${border}`
    // The answered message may stand in it, or only beside the content.
    if (type === 'quote' || type === 'author') return ''
    const inner = describe(children, depth + 1)
    if (type === 'a') return inner || toText(href)
    return inner || type === 'br' || type === 'p' ? inner : `${border}${type}${border}`
  }).join('')
}

function normalize(description: string): string {
  return description.split(border).map(part => part.replace(/[^\p{L}\p{N}]+/gu, '') || part.trim()).join(border)
}
