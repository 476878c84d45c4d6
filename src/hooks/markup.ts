// Converts the markup of other systems to plain text for chats. A reader is a list of steps. The limits in the patterns, and the characters
// that they exclude, keep matching in linear time.
import { cut, line, textOf } from './fields'
import { decodeEntities, named, withoutTags, type Keep, type ShowLink } from './html'

type Step = (text: string, keep: Keep) => string

/** Converts a field to plain text. */
export type Reader = (value: unknown) => string

/** Creates the reader of a markup. */
function reader(...steps: readonly Step[]): Reader {
  return value => {
    const kept: string[] = []
    const restore = (text: string): string => text.replace(/\u0001(\d{1,6})\u0002/g, (_, index: string) => kept[Number(index)] ?? '')
    // A text without any mark needs no placeholder.
    const keep: Keep = text => /^[A-Za-z\d ]*$/.test(text) ? text : `\u0001${kept.push(text.includes('\u0001') ? restore(text) : text) - 1}\u0002`
    return restore(steps.reduce((text, step) => step(text, keep), textOf(value).replace(/[\u0001-\u0005]/g, ''))).trim()
  }
}

/** The emoji that CI and monitoring systems write by name. */
const emoji: ReadonlyMap<string, string> = new Map([
  ['white_check_mark', '✅'], ['heavy_check_mark', '✔️'], ['x', '❌'], ['warning', '⚠️'], ['rotating_light', '🚨'], ['fire', '🔥'], ['boom', '💥'],
  ['red_circle', '🔴'], ['large_green_circle', '🟢'], ['large_yellow_circle', '🟡'], ['large_orange_circle', '🟠'], ['large_blue_circle', '🔵'],
  ['green_circle', '🟢'], ['yellow_circle', '🟡'], ['orange_circle', '🟠'], ['skull', '💀'], ['computer', '💻'], ['tv', '📺'], ['floppy_disk', '💾'],
  ['loudspeaker', '📢'], ['no_entry', '⛔'], ['no_entry_sign', '🚫'], ['octagonal_sign', '🛑'], ['exclamation', '❗'], ['arrows_counterclockwise', '🔄'],
  ['information_source', 'ℹ️'], ['bell', '🔔'], ['construction', '🚧'], ['hourglass', '⌛'], ['rocket', '🚀'], ['tada', '🎉'], ['package', '📦'],
  ['bug', '🐛'], ['lock', '🔒'], ['eyes', '👀'], ['+1', '👍'], ['thumbsup', '👍'], ['-1', '👎'],
])

/** How much of a text is read for an excerpt, in UTF-16 units. */
const maxScanned = 4000

/** Puts code aside. The first line of a block may name its language. */
function code(read = (content: string) => content, language = /^[\w+#.-]{0,40}[ \t]{0,9}\r?\n/): Step {
  return (text, keep) => text
    .replace(/(\n?)(?<![\\`])(`{3,9})([^]*?)\2`{0,9}([ \t]{0,9}\n?)/g, (_, before: string, _ticks, block: string, after: string) => {
      const kept = keep(read(block.replace(language, '').trimEnd()))
      return block.includes('\n') ? `\n${kept}\n` : before + kept + after
    })
    .replace(/(?<![\\`])(`{1,2})(?!`)([^\n]{0,1000}?[^`\n])\1(?!`)/g, (_, _ticks, span: string) => keep(read(span.trim())))
}

const punctuation = '[!-/:-@[-`{-~]'
/** Paths of Windows and classes of patterns, in which programs that do not escape anything mean each backslash. */
const path = '(?:\\b[A-Za-z]:\\\\|\\\\{1,2}[A-Za-z\\d])[\\w\\\\.$#+-]{0,1000}'

/** Puts aside what a backslash makes literal. */
function escapes(characters: string, exception = '(?!)'): Step {
  const pattern = new RegExp(`${exception}|((?:\\\\${characters}){1,1000})`, 'g')
  return (text, keep) => text.replace(pattern, (all, literals?: string) => literals === undefined ? all : keep(literals.replace(/\\(.)/g, '$1')))
}

const linkText = '(?:[^\\[\\]\\n]|\\[[^\\[\\]\\n]{0,100}\\]){0,500}'
/** An address or a path. In `handlers[0](event)` there is neither. */
const linkUrl = '(?=[a-z][a-z\\d+.-]{1,30}:|\\.{0,2}/|#|www\\.)(?:[^()<>\\s]|\\([^()<>\\s]{0,200}\\)){1,2048}'
const markdownLink = `\\[(${linkText})\\]\\(<?(${linkUrl})>?(?:[ \\t]{1,9}(?:"[^"\\n]{0,500}"|'[^'\\n]{0,500}'))?\\)`

const picture = new RegExp(`!${markdownLink}`, 'gi')
const link = new RegExp(markdownLink, 'gi')

/** Replaces pictures, then links, because a link may have a picture as its name. */
function links(show: ShowLink): Step {
  return (text, keep) => text
    .replace(picture, (_, name: string, url: string) => show(name, url, keep, true))
    .replace(link, (_, name: string, url: string) => show(name, url, keep, false))
    .replace(/<((?:https?|mailto):[^<>\s]{1,2048})>/gi, (_, url: string) => show(url, url, keep, false))
}

/** Replaces known names of emoji by the emoji. */
export function withEmoji(text: string): string {
  // One name or several in a row, but not inside `session:lock:42` or `std::x::y`.
  return text.replace(/(?<![\w:])(?::[a-z_+\d-]{1,40}:){1,20}(?![\w:])/g, names => (
    names.replace(/:([^:]+):/g, (name, word: string) => emoji.get(word) ?? name)
  ))
}

/** Removes the marks of headings, quotes, rules, code and tables. */
function withoutBlocks(text: string): string {
  return text
    .replace(/^[ \t]{0,3}(?:`{3}|~{3})[^\n`]{0,40}$\n?/gm, '')
    .replace(/^[ \t]{0,3}(?:[-*_=:|][ \t]{0,3}){3,200}$\n?/gm, '')
    .replace(/^[ \t]{0,3}#{1,6}[ \t]+/gm, '')
    .replace(/^(?:[ \t]{0,3}>){1,9}[ \t]?/gm, '')
    .replace(/^[ \t]{0,3}\|[ \t]?([^\n]{1,2000}?)[ \t]{0,3}\|[ \t]{0,3}$/gm, '$1')
}

/** A letter or a digit of a script that separates words by blanks. */
const letter = '(?![\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}])[\\p{L}\\p{N}]'
// Not in `*.log`, `**/lib/**` or `2 * 3`.
const [start, end] = ['(?![\\s/.,;)\\]])', '(?<![\\s,;([{/])']
// Characters beside a single mark; \u0001 and \u0002 are the ends of a placeholder. The mark itself is matched first, which is the fastest.
const before = '(?<=(?:^|[\\s\\u0002(\\[>|*_~（【《「“‘，。：；、！？\\ufe0f\\p{Extended_Pictographic}])\\1)'
const after = '(?=$|[\\s\\u0001)\\]<|*_~.,:;!?…）】》」”’，。：；、！？\\p{Extended_Pictographic}])'

/**
 * Removes marks of emphasis at the edges of words. Unlike in CommonMark no mark inside of a word counts, and a double one may stand between
 * characters of a script without blanks.
 *
 * @param double the marks that count where they are doubled
 * @param single those that count alone
 */
function emphasis(double: readonly string[], single: readonly string[]): Step {
  const patterns = [
    ...double.map(mark => {
      const content = `(?:[^${mark}\\n]|(?<![${mark}])[${mark}](?![${mark}])){1,1000}`
      return `([${mark}]{2,3})(?<!(?:${letter}|[${mark}])\\1)(?![${mark}])${start}(${content})${end}\\1(?![${mark}])(?:(?<!${letter}\\1)|(?!${letter}))`
    }),
    ...single.map(mark => `([${mark}])${before}(?![${mark}])${start}([^${mark}\\n]{1,1000})${end}\\1(?![${mark}])${after}`),
  ].map(pattern => new RegExp(pattern, 'gmu'))
  return text => patterns.reduce((rest, pattern) => rest.replace(pattern, '$2'), text)
}

function markdown(escape: Step, marks: Step, show = named): Step[] {
  return [code(), escape, withoutTags(show), links(show), withEmoji, withoutBlocks, marks, decodeEntities]
}

// Programs that do not know that their text is Markdown write `__name__` and mean it, so underscores are no marks.
const plainMarks = emphasis(['*', '~'], ['*'])

/** Converts the Markdown of chat robots; links become `name (url)`. */
export const fromMarkdown = reader(...markdown(escapes(punctuation, path), plainMarks))

/** Converts the Markdown of robots in which a backslash has no meaning. */
export const fromRobotMarkdown = reader(...markdown(text => text, plainMarks))

/** Converts only the Markdown links of a text to `name (url)`. */
export const withLinks = reader(links(named))

/** The readers of texts that declare their markup. */
const readers = {
  text: textOf,
  loose: fromMarkdown,
  html: reader(withoutTags(named), decodeEntities),
  markdown: reader(...markdown(escapes(punctuation), emphasis(['*', '_', '~'], ['*', '_']))),
  // The two of Telegram: https://core.telegram.org/bots/api#formatting-options. In MarkdownV2 whatever is no mark is escaped.
  telegram: reader(code(), escapes('[_*`[]'), links(named), emphasis([], ['*', '_'])),
  markdownv2: reader(escapes(punctuation), code(), links(named), text => text.replace(/^(?:\*\*)?>/gm, '').replace(/[*_~]|\|\|/g, '')),
}

/** A markup that a text may declare. */
export type Markup = keyof typeof readers

/** The reader of a markup; without one, that of the source, which leaves texts as they are by default. */
export function readerOf(markup: Markup | undefined, own: Reader = textOf): Reader {
  return markup === undefined ? own : readers[markup]
}

const readExcerpt = reader(
  text => text.replace(/<!--[^]*?(?:-->|$)/g, '').replace(/^[ \t]{0,3}\|.*$/gm, ''),
  ...markdown(escapes(punctuation, path), plainMarks, (name, _url, _keep, isPicture) => isPicture ? '' : name),
)

/**
 * The beginning of a Markdown text as plain text, without pictures, comments and tables; links become their texts.
 *
 * @param maxLines the most lines that are not empty
 * @param max the most UTF-16 units of all lines together
 */
export function excerpt(value: unknown, maxLines = 3, max = 200): string {
  if (typeof value !== 'string') return ''
  const lines = readExcerpt(value.slice(0, maxScanned)).split(/[\r\n]+/).map(each => line(each, max)).filter(each => each !== '')
  return cut(lines.slice(0, maxLines).join('\n') + (lines.length > maxLines ? ' …' : ''), max)
}

const slackTarget = '[@#][^<>|\\s]{1,100}|(?:!(?:here|channel|everyone|subteam\\^|date\\^)|[a-z][a-z\\d+.-]{1,30}://|mailto:|tel:)[^<>|\\n]{0,2048}'
const slackLink = new RegExp(`<(${slackTarget})(?:\\|([^<>\\n]{0,500}))?>`, 'gi')

/** Converts the markup of Slack messages ("mrkdwn"): links, mentions, emphasis and entities. */
export const fromSlack = reader(
  (text, keep) => text.replace(slackLink, (_, target: string, name: string | undefined) => slackReference(target, name ?? '', keep)),
  code(decodeEntities, /^[ \t]{0,9}\r?\n/),
  withEmoji,
  text => text.replaceAll('```', ''),
  emphasis([], ['*', '_', '~']),
  text => text.replace(/^(?:&gt;|>)[ \t]?/gm, ''),
  // Slack defines only three entities, but senders that escape HTML escape quotes too.
  decodeEntities,
)

function slackReference(target: string, name: string, keep: Keep): string {
  const mark = new Map([['@', '@'], ['#', '#'], ['!', '@']]).get(target.slice(0, 1))
  if (mark === undefined) return named(name, target, keep, false)
  // After the bar come the fallback text of a date and the names of users and channels.
  const [, date, seconds] = /^(!date)\^(\d{1,11})?/.exec(target) ?? []
  if (date !== undefined) return name !== '' || seconds === undefined ? name : timeOf(Number(seconds))
  return name === '' ? mark + target.slice(1).replace(/^subteam\^/, '') : mark + name.replace(/^[@#]/, '')
}

/** Converts Discord's Markdown and its references to users, roles, channels, commands, emoji and times. */
export const fromDiscord = reader(text => text
  .replace(/<(@)[!&]?(\d{1,20})>/g, '$1$2').replace(/<(#\d{1,20})>/g, '$1')
  .replace(/<(\/[^<>:\n]{1,100}):\d{1,20}>/g, '$1')
  .replace(/<a?(:\w{1,32}:)\d{1,20}>/g, '$1')
  .replace(/<t:(\d{1,11})(?::[a-zA-Z])?>/g, (_, seconds: string) => timeOf(Number(seconds)))
  .replace(/\|\|(?<![\p{L}\p{N})\]|]\|\|)(?=[^\s|])([^|\n]{1,1000})(?<!\s)\|\|/gu, '$1')
  .replace(/^-# /gm, ''), ...markdown(escapes(punctuation, path), plainMarks))

/** A time in seconds since 1970, in the time zone of the process: `2026-11-20 17:12`. */
function timeOf(seconds: number): string {
  return new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short' }).format(seconds * 1000)
}
