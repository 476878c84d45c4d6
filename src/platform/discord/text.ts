import { divideText } from '../../lib/words'

/** What Discord takes for a link, less the marks that close a sentence or a bracket. */
const link = String.raw`(?:https?|steam)://[^\s<>]+[^\s<>.,:;"'\])]`
const closing = String.raw`[.,:;"'\])]*`

/** Links, and whatever may begin markup or a mention. */
const live = new RegExp([
  // A backslash behind a link would become its end.
  String.raw`(?<open>${link}(?=${closing}[<>]))`,
  String.raw`(?<whole>${link}${closing})`,
  // With a backslash, what is no link would become one.
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
 * where nothing is markup; a link goes on to the next blank or `<`, or to the end of a pair of angle brackets, which is not shown. Sources:
 * https://docs.discord.com/developers/reference#message-formatting, and where that is silent what
 * https://github.com/LyricLy/parse-discord has found out about the clients.
 */
export function escapeText(text: string): string {
  return text.replace(live, (mark: string, open: string | undefined, whole: string | undefined) => (
    open === undefined ? whole ?? mark.replace(/./g, '\\$&') : `<${open}>`
  ))
}

/** Escapes a text, divided so that no part is longer than this. */
export function escapeParts(text: string, most: number, size = most): string[] {
  return divideText(text, size).flatMap(part => {
    const escaped = escapeText(part)
    return escaped.length <= most ? [escaped] : escapeParts(part, most, Math.ceil(part.length / 2))
  })
}

/** Two contents are equal where these are: Discord trims texts, and strips some invisible characters. */
export function essenceOf(content: string): string {
  return content.replace(/[\p{C}\p{Z}\s]+/gu, '')
}
