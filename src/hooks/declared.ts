// The markup that a program declares for its text.
import type { JsonObject } from '../lib/shape'
import { header, object, textOf } from './fields'
import type { Markup } from './markup'
import type { HookRequest } from './source'

/** What `?format=` says for texts that declare nothing. */
export const formats = ['markdown', 'html', 'text'] as const

/** Words for markups: of PushPlus (`template`), Apprise's API and Matrix (`format`), PushMe and PushDeer (`type`), and media types. */
const words: ReadonlyMap<string, Markup> = new Map([
  ['html', 'html'], ['text/html', 'html'], ['org.matrix.custom.html', 'html'],
  ['markdown', 'markdown'], ['text/markdown', 'markdown'], ['markdownv2', 'markdownv2'],
  ['text', 'text'], ['txt', 'text'], ['plain', 'text'], ['text/plain', 'text'],
])
const declaring = ['format', 'template', 'type', 'contenttype', 'content_type', 'textformat']
/** The numbers of WxPusher (`contentType`). */
const numbers: readonly (Markup | undefined)[] = [undefined, 'text', 'html', 'markdown']
/** Fields whose name tells the markup: of Matrix, of mails, and of Bark and Webex. `desp` is that of Server酱 and PushDeer. */
const named: ReadonlyMap<string, Markup> = new Map([['formatted_body', 'html'], ['html', 'html'], ['markdown', 'markdown']])

/** A value that turns something on, as in ntfy's `Markdown: yes` and Pushover's `html=1`. */
const on = /^(?:1|true|yes)$/i

/** Whether a value turns something on or off, and is no text. */
export function isSwitch(text: string): boolean {
  return /^(?:0|false|no)$/i.test(text) || on.test(text)
}

/**
 * The markup of the text in a field: the declared one, else that of `?format=`.
 *
 * @param fields those of the body and the query, with names in small letters
 */
export function markupOf({ headers, format }: HookRequest, fields: JsonObject, field: string): Markup {
  const own = named.get(field)
  if (own) return own
  const wordOf = (name: string): string => fields[name] === true ? 'true' : textOf(fields[name]).toLowerCase()
  const mode = wordOf('parse_mode')
  if (mode !== '') return mode === 'markdown' ? 'telegram' : words.get(mode) ?? 'text'
  // The "message extras" of Gotify.
  const display = textOf(object(object(fields.extras)['client::display']).contentType)
  if ([wordOf('markdown'), wordOf('md'), header(headers, 'x-markdown', 'markdown', 'md')].some(each => on.test(each))) return 'markdown'
  if (on.test(wordOf('html'))) return 'html'
  const [type = ''] = header(headers, 'content-type').toLowerCase().split(';')
  const [declared] = [display, ...declaring.map(wordOf), type === 'text/plain' ? '' : type].flatMap(word => words.get(word) ?? [])
  return declared ?? numbers[Number(wordOf('contenttype'))] ?? format ?? (field === 'desp' ? 'loose' : 'text')
}
