import { divideText } from '../../lib/words'
import type { LoadedItem, LoadedMedia } from '../port'

/** A link for Discord, without the marks that close a sentence or a bracket. */
const link = String.raw`(?:https?|steam)://[^\s<>]+[^\s<>.,:;"'\])]`
const closing = String.raw`[.,:;"'\])]*`

/** Links, and characters that may begin markup or a mention. */
const live = new RegExp([
  // A backslash after a link would become part of it.
  String.raw`(?<bare>${link}(?=${closing}[<>]))`,
  String.raw`(?<whole>${link}${closing})`,
  // A backslash would turn this into a link.
  String.raw`(?<=(?:https?|steam):)/(?=/)`,
  '[\\\\*_`[<]',
  '~{2,}',
  String.raw`\|{2,}`,
  '@(?=everyone|here)',
  // An emoji by its name.
  String.raw`:(?=\S*:)`,
  // A heading, an item of a list, a quote or small print begins a line.
  String.raw`(?<=^[^\S\n]*)[#>-]`,
  String.raw`(?<=^[^\S\n]*\d+)\.`,
].join('|'), 'gm')

/**
 * Escapes a text so that members see it letter for letter. A backslash takes its meaning from any punctuation mark, but not within a link,
 * where nothing is markup. A link ends at the next blank or `<`, or at the end of a pair of angle brackets, which is not shown. Sources:
 * https://docs.discord.com/developers/reference#message-formatting, and for the details of the clients
 * https://github.com/LyricLy/parse-discord
 */
export function escapeText(text: string): string {
  return text.replace(live, (mark: string, bare: string | undefined, whole: string | undefined) => (
    bare === undefined ? whole ?? mark.replace(/./g, '\\$&') : `<${bare}>`
  ))
}

/** Escapes a text, and divides it into parts of at most this length. */
export function escapeParts(text: string, most: number, size = most): string[] {
  return divideText(text, size).flatMap(part => {
    const escaped = escapeText(part)
    return escaped.length <= most ? [escaped] : escapeParts(part, most, Math.ceil(part.length / 2))
  })
}

/** A form for comparison: Discord trims texts, and strips some invisible characters. */
export function essenceOf(content: string): string {
  return content.replace(/[\p{C}\p{Z}\s]+/gu, '')
}

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
 * The most characters and files of a message. Sources: https://docs.discord.com/developers/resources/message#create-message,
 * and code 30015 of https://docs.discord.com/developers/topics/opcodes-and-status-codes#json
 */
export const most = { characters: 2_000, files: 10 }

/**
 * Divides items into messages, in order. Discord shows files below the text, so a text after a file starts another message, and so does
 * anything beyond the limits.
 *
 * @returns no parts if nothing would be visible
 */
export function toParts(items: readonly LoadedItem[]): Part[] {
  const parts: Part[] = []
  let isAfterMention = false
  const start = (): Part => {
    const part: Part = { content: '', files: [], users: [], mentionsAll: false }
    parts.push(part)
    return part
  }
  /** The last part, if it has no files yet and room for so many characters. */
  const roomFor = (length: number): Part => {
    const last = parts.at(-1)
    return last?.files.length === 0 && last.content.length + length <= most.characters ? last : start()
  }
  for (const item of join(items)) {
    switch (item.type) {
      case 'reply':
        break
      case 'text': {
        // A long text may start in a message with at least half its room left.
        const part = roomFor(most.characters / 2)
        const text = isAfterMention && /^\S/.test(item.text) ? ` ${item.text}` : item.text
        const [first = '', ...others] = escapeParts(text, most.characters - part.content.length)
        part.content += first
        for (const content of others) start().content = content
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
        const part = last && last.files.length < most.files ? last : start()
        part.files.push(item)
      }
    }
    isAfterMention = item.type === 'at'
  }
  return parts.filter(({ content, files }) => content.trim() !== '' || files.length > 0)
}

/** Joins adjacent texts, because a mention could be split between two. */
function join(items: readonly LoadedItem[]): LoadedItem[] {
  const joined: LoadedItem[] = []
  for (const item of items) {
    const last = joined.at(-1)
    if (item.type === 'text' && last?.type === 'text') joined.splice(-1, 1, { type: 'text', text: last.text + item.text })
    else joined.push(item)
  }
  return joined
}
