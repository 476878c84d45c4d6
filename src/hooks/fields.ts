// Functions that read the fields of foreign payloads. Whatever a field contains, the result has the expected type and a bounded size. A
// missing field becomes an empty text, list or object, or zero.
import type { IncomingHttpHeaders } from 'node:http'
import { RelayError } from '../errors'
import { parseBytes } from '../http/body'
import { decodeHeader } from '../lib/bytes'
import { isObject, type JsonObject } from '../lib/shape'
import { parseLink } from '../message/link'
import { say } from '../texts/text'

/** The default limit of a text of one line, in UTF-16 units. */
const maxLine = 120
/** The limit of a text of several lines, in UTF-16 units. */
const maxText = 100_000
/** The longest link, in UTF-16 units. A longer one is dropped, because a cut link leads nowhere. */
const maxLink = 2048
/** The default limit of the elements read from a list. */
const maxElements = 50
/** How much of a text is read to get one line of it, in UTF-16 units. */
const maxScanned = 4000

// Control characters, and marks of writing direction, which could make one text look like another.
const control = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu

/** The value if it is an object, otherwise an empty object. */
export { fieldsOf as object } from '../lib/shape'

/**
 * The objects among the first elements of an array; none for any other value.
 *
 * @param most how many elements to read; `Infinity` to count them all
 */
export function objects(value: unknown, most = maxElements): JsonObject[] {
  return Array.isArray(value) ? value.slice(0, most).filter(each => isObject(each)) : []
}

/**
 * Returns a required object of an event.
 *
 * @throws RelayError `bad-request` if the field is not an object
 */
export function demandObject(fields: JsonObject, name: string, sender: string): JsonObject {
  const value = fields[name]
  if (isObject(value)) return value
  throw new RelayError('bad-request', say('no-event-of', { sender, field: name }))
}

/** A picture in base64 as a `data:` link; empty if the value is not a picture. */
export function pictureOf(type: string, base64: unknown): string {
  if (typeof base64 !== 'string' || !/^image\/[\w.+-]+$/i.test(type)) return ''
  const link = `data:${type};base64,${base64.replace(/\s+/g, '')}`
  try {
    parseLink(link)
    return link
  } catch {
    return ''
  }
}

/** A text or a number as one line, cut to a length. Empty for any other value. */
export function line(value: unknown, max = maxLine): string {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return ''
  const scanned = value.slice(0, maxScanned).toWellFormed()
  return cut(scanned.replace(control, ' ').replace(/ {2,}/g, ' ').trim(), max)
}

/** A text with its line breaks, or a number as text. Empty for any other value. */
export function textOf(value: unknown): string {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' ? value.slice(0, maxText).trim() : ''
}

/** A fragment of a text. Keeps the blanks at its ends, which separate it from its neighbours. Empty for any other value. */
export function pieceOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, maxText) : ''
}

/** The first value that is not empty as {@link line}. */
export function firstOf(...values: readonly unknown[]): string {
  for (const value of values) {
    const text = line(value)
    if (text !== '') return text
  }
  return ''
}

/** The first line of a text of several lines, such as a commit message. */
export function firstLine(value: unknown, max = maxLine): string {
  return typeof value === 'string' ? line(/[^\r\n]*/.exec(value.slice(0, maxScanned).trimStart())?.[0], max) : ''
}

/** A positive whole number, also from a text of digits. Zero for any other value. */
export function count(value: unknown): number {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** An http(s) address. Empty for any other value. */
export function address(value: unknown, max = maxLink): string {
  const text = typeof value === 'string' && value.length <= max ? value.trim() : ''
  return /^https?:\/\/[^\s\p{C}/?#][^\s\p{C}]*$/iu.test(text) ? text : ''
}

/** A date as ISO text. Empty for any other value, and before 1970: Go writes the year 1 for an absent date. */
export function date(value: unknown): string {
  if (typeof value !== 'string' || value.length > 40) return ''
  const time = new Date(value)
  return Number.isNaN(time.getTime()) || time.getUTCFullYear() < 1970 ? '' : time.toISOString()
}

/** The first of these headers that is not empty; the first value of a repeated one. Empty if there is none. */
export function header(headers: IncomingHttpHeaders, ...names: readonly string[]): string {
  return names.map(name => [headers[name]].flat()[0] ?? '').find(value => value !== '') ?? ''
}

/** A {@link header} as text: in UTF-8, or encoded by RFC 2047. */
export function headerText(headers: IncomingHttpHeaders, ...names: readonly string[]): string {
  return decodeHeader(header(headers, ...names))
}

/** Joins texts with line breaks, and skips empty ones. */
export function joinLines(...texts: readonly string[]): string {
  return texts.filter(text => text !== '').join('\n')
}

/** `name: text`. Either may be empty. */
export function labelled(name: string, text: string): string {
  return [name, text].filter(each => each !== '').join(': ')
}

/** `name (url)`, or only the link if its name is the same or empty. Either may be empty. */
export function linked(name: string, url: string): string {
  if (url === '') return name
  return name === '' || name === url ? url : `${name} (${url})`
}

/** Joins the name of a field and its value if they are on two lines. */
export function inOneLine(text: string): string {
  return text.replace(/^([^\n]{1,40}?)[:：]?\n(?=[^\n]+$)/, '$1: ')
}

/** Parses a text as JSON, within the limits of a body; `undefined` if it is malformed. Returns any other value as it is. */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return parseBytes(Buffer.from(value), { allowsControls: true })
  } catch {
    return undefined
  }
}

/** Cuts a text to a length; a cut text ends with an ellipsis. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  // Does not split a surrogate pair.
  const end = /[\ud800-\udbff]$/.test(text.slice(0, max - 1)) ? max - 2 : max - 1
  return `${text.slice(0, end).trimEnd()}…`
}
