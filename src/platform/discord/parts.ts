import type { LoadedItem, LoadedMedia } from '../port'
import { escapeParts } from './text'

/** One message of Discord. */
export interface Part {
  /** Escaped. */
  content: string
  files: LoadedMedia[]
  /** The users whom it mentions. */
  users: string[]
  mentionsAll: boolean
}

/**
 * How many characters a message takes, and how many files. Sources: https://docs.discord.com/developers/resources/message#create-message,
 * and code 30015 of https://docs.discord.com/developers/topics/opcodes-and-status-codes#json
 */
export const most = { characters: 2_000, files: 10 }

/**
 * What these items become, in their order. A message shows its files below its text, so that a text after a file begins another one, as
 * does what is too much for one.
 *
 * @returns no parts where there is nothing to be seen
 */
export function toParts(items: readonly LoadedItem[]): Part[] {
  const parts: Part[] = []
  let isAfterMention = false
  const open = (): Part => {
    const part: Part = { content: '', files: [], users: [], mentionsAll: false }
    parts.push(part)
    return part
  }
  /** The last part, if that has no files yet and room for so many characters. */
  const roomFor = (length: number): Part => {
    const last = parts.at(-1)
    return last?.files.length === 0 && last.content.length + length <= most.characters ? last : open()
  }
  for (const item of join(items)) {
    switch (item.type) {
      case 'reply':
        break
      case 'text': {
        // Half a message is room enough for a long text to begin in.
        const part = roomFor(most.characters / 2)
        const text = isAfterMention && /^\S/.test(item.text) ? ` ${item.text}` : item.text
        const [first = '', ...others] = escapeParts(text, most.characters - part.content.length)
        part.content += first
        for (const content of others) open().content = content
        break
      }
      case 'at': {
        const mention = item.userId === null ? '@everyone' : `<@${item.userId}>`
        const part = roomFor(mention.length)
        part.content += mention
        if (item.userId === null) part.mentionsAll = true
        else part.users.push(item.userId)
        break
      }
      default: {
        const last = parts.at(-1)
        const part = last && last.files.length < most.files ? last : open()
        part.files.push(item)
      }
    }
    isAfterMention = item.type === 'at'
  }
  return parts.filter(({ content, files }) => content.trim() !== '' || files.length > 0)
}

/** Makes one text of each row of texts: a mention could lie across two. */
function join(items: readonly LoadedItem[]): LoadedItem[] {
  const joined: LoadedItem[] = []
  for (const item of items) {
    const last = joined.at(-1)
    if (item.type === 'text' && last?.type === 'text') joined.splice(-1, 1, { type: 'text', text: last.text + item.text })
    else joined.push(item)
  }
  return joined
}
