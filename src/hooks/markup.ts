// Converts the markup of other systems to plain text for chats. The limits in the patterns keep matching in linear time.
import { cut, line, linked, textOf } from './fields'

const linkText = '[^\\[\\]\\n]{0,500}'
const linkUrl = '[^()\\s]{1,2048}'

/** A link, or a picture, which begins with an exclamation mark. */
const markdownLink = new RegExp(`(!?)\\[(${linkText})\\]\\((${linkUrl})\\)`, 'g')
const slackLink = /<([^<>|\n]{1,2048})(?:\|([^<>\n]{0,500}))?>/g

/** The emoji that CI and monitoring systems write by name. */
const emoji: ReadonlyMap<string, string> = new Map([
  ['white_check_mark', '✅'], ['heavy_check_mark', '✔️'], ['x', '❌'], ['warning', '⚠️'], ['rotating_light', '🚨'], ['fire', '🔥'], ['boom', '💥'],
  ['red_circle', '🔴'], ['large_green_circle', '🟢'], ['large_yellow_circle', '🟡'], ['large_orange_circle', '🟠'], ['large_blue_circle', '🔵'],
  ['no_entry', '⛔'], ['no_entry_sign', '🚫'], ['octagonal_sign', '🛑'], ['exclamation', '❗'], ['arrows_counterclockwise', '🔄'],
  ['information_source', 'ℹ️'], ['bell', '🔔'], ['construction', '🚧'], ['hourglass', '⌛'], ['rocket', '🚀'], ['tada', '🎉'], ['package', '📦'],
  ['bug', '🐛'], ['lock', '🔒'], ['eyes', '👀'], ['+1', '👍'], ['thumbsup', '👍'], ['-1', '👎'],
])

/** How much of a text is read for an excerpt, in UTF-16 units. */
const maxScanned = 4000

/** Converts the Markdown of chat robots; links become `name (url)`. */
export function fromMarkdown(value: unknown): string {
  const text = withLinks(textOf(value)
    .replace(/<br\s{0,5}\/?>/gi, '\n')
    .replace(/<\/?(?:font|b|i|u|s|a|at|strong|em|del|code|text_tag)(?:\s[^<>\n]{0,500})?>/gi, ''))
    .replace(/^[ \t]{0,3}\|[ \t]?([^\n]{1,2000}?)[ \t]{0,3}\|[ \t]{0,3}$/gm, '$1')
  return withoutMarks(text).trim()
}

/** Converts only the Markdown links of a text to `name (url)`. */
export function withLinks(text: string): string {
  return text.replace(markdownLink, (_, _mark: string, name: string, url: string) => linked(name.trim(), url))
}

/**
 * The beginning of a Markdown text as plain text, without pictures, comments and tables; links become their texts.
 *
 * @param maxLines the most lines that are not empty
 * @param max the most UTF-16 units of all lines together
 */
export function excerpt(value: unknown, maxLines = 3, max = 200): string {
  if (typeof value !== 'string') return ''
  const text = value.slice(0, maxScanned)
    .replace(/<!--[^]*?(?:-->|$)/g, '')
    .replace(markdownLink, (_, mark: string, name: string) => mark === '' ? name : '')
    .replace(/<\/?[a-z][^<>\n]{0,500}>/gi, '')
    .replace(/^[ \t]{0,3}\|.*$/gm, '')
  const lines = withoutMarks(text).split(/[\r\n]+/).map(each => line(each, max)).filter(each => each !== '')
  return cut(lines.slice(0, maxLines).join('\n') + (lines.length > maxLines ? ' …' : ''), max)
}

/** Replaces known names of emoji by the emoji. */
export function withEmoji(text: string): string {
  // One name or several in a row, but not inside `session:lock:42` or `std::x::y`.
  return text.replace(/(?<![\w:])(?::[a-z_+\d-]{1,40}:){1,20}(?![\w:])/g, names => (
    names.replace(/:([^:]+):/g, (name, word: string) => emoji.get(word) ?? name)
  ))
}

/** Removes the marks of headings, quotes, rules, code, tables and emphasis. */
function withoutMarks(text: string): string {
  return withEmoji(text)
    .replace(/^[ \t]{0,3}(?:`{3}|~{3})[^\n`]{0,40}$\n?/gm, '')
    .replace(/^[ \t]{0,3}(?:[-*_=:|][ \t]{0,3}){3,200}$\n?/gm, '')
    .replace(/^[ \t]{0,3}#{1,6}[ \t]+/gm, '')
    .replace(/^(?:[ \t]{0,3}>){1,9}[ \t]?/gm, '')
    .replace(/\*\*([^*\n]{1,1000})\*\*/g, '$1')
    .replace(/__([^_\n]{1,1000})__/g, '$1')
    .replace(/~~([^~\n]{1,1000})~~/g, '$1')
    .replace(/(?<=^|[\s(（])([*_])((?!\1)\S(?:(?!\1).){0,1000})\1(?=$|[\s).,:;!?，。、：；！？）])/gm, '$2')
    // One pattern for both, because a backslash inside code is not an escape.
    .replace(/`([^`\n]{1,1000})`|\\([!#()*+._`~>|[\]-])/g, '$1$2')
}

/** Converts the markup of Slack messages ("mrkdwn"): links, mentions, emphasis and entities. */
export function fromSlack(value: unknown): string {
  return withEmoji(textOf(value))
    .replace(slackLink, (_, target: string, name: string | undefined) => slackReference(target, name ?? ''))
    .replace(/```/g, '')
    .replace(/(?<=^|[\s(（])([*_~`])((?!\1)\S(?:(?!\1).){0,1000})\1(?=$|[\s).,:;!?，。、：；！？）])/gm, '$2')
    .replace(/^&gt;[ \t]?/gm, '')
    // Slack defines only three entities, but senders that escape HTML escape quotes too.
    .replace(/&quot;/g, '"').replace(/&#(?:39|x27);/g, '\'')
    // The ampersand last, so that `&amp;lt;` becomes `&lt;` and not `<`.
    .replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&')
    .trim()
}

function slackReference(target: string, name: string): string {
  const mark = new Map([['@', '@'], ['#', '#'], ['!', '@']]).get(target.slice(0, 1))
  if (mark === undefined) return linked(name.trim(), target.replace(/^mailto:/, ''))
  // After the bar come the fallback text of a date and the names of users and channels.
  const [, date, seconds] = /^(!date)\^(\d{1,11})?/.exec(target) ?? []
  if (date !== undefined) return name !== '' || seconds === undefined ? name : timeOf(Number(seconds))
  return name === '' ? mark + target.slice(1).replace(/^subteam\^/, '') : mark + name.replace(/^[@#]/, '')
}

/** Converts Discord's Markdown and its references to users, roles, channels, commands, emoji and times. */
export function fromDiscord(value: unknown): string {
  return fromMarkdown(textOf(value)
    .replace(/<(@)[!&]?(\d{1,20})>/g, '$1$2').replace(/<(#\d{1,20})>/g, '$1')
    .replace(/<(\/[^<>:\n]{1,100}):\d{1,20}>/g, '$1')
    .replace(/<a?(:\w{1,32}:)\d{1,20}>/g, '$1')
    .replace(/<t:(\d{1,11})(?::[a-zA-Z])?>/g, (_, seconds: string) => timeOf(Number(seconds)))
    .replace(/<(https?:\/\/[^<>\s]{1,2048})>/g, '$1')
    .replace(/\|\|([^|\n]{1,1000})\|\|/g, '$1')
    .replace(/^-# /gm, ''))
}

/** A time in seconds since 1970, in the time zone of the process: `2026-11-20 17:12`. */
function timeOf(seconds: number): string {
  return new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short' }).format(seconds * 1000)
}
