import type { Item } from '../message/model'
import type { RequestFiles } from '../uploads/request-files'

/** How long a text may be to be sent as it is, in characters: QQ takes about 5,000. */
const maxLength = 4000
/** How much of a longer one is in the message, in characters. */
const maxExcerpt = 1000

/**
 * Makes items of a text that is not blank: the text itself, or, where it is too long for a chat message, its first lines and the whole in
 * a file after them.
 *
 * @param files those of the request, to which the file is added
 */
export async function itemsOfText(text: string, files: RequestFiles): Promise<Item[]> {
  if (!isLong(text)) return [{ type: 'text', text }]
  const id = await files.write('message.txt', text)
  return [{ type: 'text', text: excerptOf(text) }, { type: 'file', link: { kind: 'upload', id } }]
}

/** Whether a text has more characters than a chat message takes; one beyond the Basic Multilingual Plane is one character. */
export function isLong(text: string): boolean {
  return text.length > 2 * maxLength || (text.length > maxLength && Array.from(text).length > maxLength)
}

/** The first lines of a long text, of at most 1,000 characters, or as much of the very first. Blanks before them are left out. */
export function excerptOf(text: string): string {
  const start = text.trimStart()
  const head = Array.from(start.slice(0, 2 * maxExcerpt)).slice(0, maxExcerpt).join('')
  const isWhole = /^\r?(?:\n|$)/.test(start.slice(head.length, head.length + 2))
  const end = isWhole ? head.length : head.lastIndexOf('\n')
  return head.slice(0, end > 0 ? end : head.length).trimEnd()
}
