// What others post is read with these. Whatever a field holds, what comes out is of the type that is expected, small, and plain text.
import type { IncomingHttpHeaders } from 'node:http'
import { RelayError } from '../../errors'
import { isObject, type JsonObject } from '../../message/parse'

/** The longest text that stands in one line, in UTF-16 units, unless another length is asked for. */
const maxLine = 120
/** The longest link; what is longer is none, because a part of a link leads nowhere. */
const maxLink = 500
/** How much of a longer text is looked at, for an excerpt of it. */
const maxLooked = 4000

// A control character, or a mark that changes the direction of writing and so could make a text look like another.
const control = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu

/** An object, empty where there is none. */
export function object(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** The objects of an array, none where there is no array. */
export function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(each => isObject(each)) : []
}

/**
 * What an event is about.
 *
 * @throws RelayError `bad-request` where it is not there
 */
export function demandObject(fields: JsonObject, name: string, sender: string): JsonObject {
  const value = fields[name]
  if (isObject(value)) return value
  throw new RelayError('bad-request', `this is no event of ${sender}: it has no ${name}`)
}

/** A text, or a number as text, in one line and cut. Empty where it is neither. */
export function line(value: unknown, max = maxLine): string {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return ''
  const looked = value.slice(0, maxLooked).toWellFormed()
  return cut(looked.replace(control, ' ').replace(/ {2,}/g, ' ').trim(), max)
}

/** The first of several values that says something, as {@link line}. */
export function firstOf(...values: readonly unknown[]): string {
  for (const value of values) {
    const text = line(value)
    if (text !== '') return text
  }
  return ''
}

/** The first line of a text that has several, such as the message of a commit. */
export function firstLine(value: unknown, max = maxLine): string {
  return typeof value === 'string' ? line(/[^\r\n]*/.exec(value.slice(0, maxLooked).trimStart())?.[0], max) : ''
}

/** A whole number that is not negative, or zero. */
export function count(value: unknown): number {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** The address of a page, or an empty text. */
export function address(value: unknown): string {
  return typeof value === 'string' && value.length <= maxLink && /^https?:\/\/[^\s\p{C}]+$/u.test(value) ? value : ''
}

/** A date as ISO text, or an empty text. The year 1 stands for none in what Go writes. */
export function date(value: unknown): string {
  if (typeof value !== 'string' || value.length > 40) return ''
  const time = new Date(value)
  return Number.isNaN(time.getTime()) || time.getUTCFullYear() < 1970 ? '' : time.toISOString()
}

/**
 * The beginning of a text in Markdown, without the marks that a chat would show as they are: pictures, comments, code fences and tables
 * are left out, and of a link its text stays.
 *
 * @param maxLines the most lines that are not empty
 * @param max the most UTF-16 units, all lines together
 */
export function excerpt(value: unknown, maxLines = 3, max = 200): string {
  if (typeof value !== 'string') return ''
  const text = value.slice(0, maxLooked)
    .replace(/<!--[^]*?(?:-->|$)/g, '')
    .replace(/!\[[^\]\n]{0,200}\]\([^)\s]{0,1000}\)/g, '')
    .replace(/\[([^\]\n]{1,200})\]\([^)\s]{0,1000}\)/g, '$1')
    .replace(/<\/?[a-z][^<>\n]{0,500}>/gi, '')
  const lines: string[] = []
  for (const each of text.split(/[\r\n]+/)) {
    // A line of a table, a code fence, or a rule.
    if (/^\s*(?:\||```|~~~|(?:[-*_=] ?){3,}$)/.test(each)) continue
    const plain = line(each.replace(/^\s*(?:#{1,6}|>)\s+/, '').replace(/\*\*|~~|`/g, ''), max)
    if (plain !== '') lines.push(plain)
    if (lines.length > maxLines) break
  }
  return cut(lines.slice(0, maxLines).join('\n') + (lines.length > maxLines ? ' …' : ''), max)
}

/** One header, empty where it was not sent; the first where it was sent more than once. */
export function header(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name]
  return (Array.isArray(value) ? value[0] : value) ?? ''
}

function cut(text: string, max: number): string {
  if (text.length <= max) return text
  // Not through the middle of a character.
  const end = /[\ud800-\udbff]$/.test(text.slice(0, max - 1)) ? max - 2 : max - 1
  return `${text.slice(0, end).trimEnd()}…`
}
