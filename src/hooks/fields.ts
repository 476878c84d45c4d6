// What others post is read with these. Whatever a field holds, what comes out is of the type that is expected, and bounded; what is not
// there is an empty text, list or object, or zero.
import type { IncomingHttpHeaders } from 'node:http'
import { RelayError } from '../errors'
import { parseBytes } from '../http/body'
import { isObject, type JsonObject } from '../lib/shape'
import { parseLink } from '../message/link'

/** The longest text that stands in one line, in UTF-16 units, unless another length is asked for. */
const maxLine = 120
/** The longest text of several lines, likewise. */
const maxText = 100_000
/** The longest link; what is longer is none, because a part of a link leads nowhere. */
const maxLink = 2048
/** The most elements of a list that are looked at, unless another number is asked for. */
const maxElements = 50
/** How much of a longer text is looked at, for a line of it. */
const maxLooked = 4000

// A control character, or a mark that changes the direction of writing and so could make a text look like another.
const control = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu

/** An object, empty where there is none. */
export { fieldsOf as object } from '../lib/shape'

/**
 * The objects among the first elements of an array, none where there is no array.
 *
 * @param most how many elements are looked at; `Infinity` where they are counted
 */
export function objects(value: unknown, most = maxElements): JsonObject[] {
  return Array.isArray(value) ? value.slice(0, most).filter(each => isObject(each)) : []
}

/**
 * What an event is about.
 *
 * @throws RelayError `bad-request` where it is not there
 */
export function demandObject(fields: JsonObject, name: string, sender: string): JsonObject {
  const value = fields[name]
  if (isObject(value)) return value
  throw new RelayError('bad-request', `this is not an event of ${sender}: it has no ${name}`)
}

/** A picture that came along in base64, as a `data:` link; empty where it is none. */
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

/** A text, or a number as text, in one line and cut. Empty where it is neither. */
export function line(value: unknown, max = maxLine): string {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return ''
  const looked = value.slice(0, maxLooked).toWellFormed()
  return cut(looked.replace(control, ' ').replace(/ {2,}/g, ' ').trim(), max)
}

/** A text with its lines as they are, or a number as text. Empty where it is neither. */
export function textOf(value: unknown): string {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' ? value.slice(0, maxText).trim() : ''
}

/** A piece of a text, with the blanks at its ends, which part it from its neighbours. Empty where it is none. */
export function pieceOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, maxText) : ''
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
export function address(value: unknown, max = maxLink): string {
  const text = typeof value === 'string' && value.length <= max ? value.trim() : ''
  return /^https?:\/\/[^\s\p{C}/?#][^\s\p{C}]*$/iu.test(text) ? text : ''
}

/** A date as ISO text, or an empty text. The year 1 stands for none in what Go writes. */
export function date(value: unknown): string {
  if (typeof value !== 'string' || value.length > 40) return ''
  const time = new Date(value)
  return Number.isNaN(time.getTime()) || time.getUTCFullYear() < 1970 ? '' : time.toISOString()
}

/** The first of several headers that is not empty; of one that was sent more than once, the first value. Empty where there is none. */
export function header(headers: IncomingHttpHeaders, ...names: readonly string[]): string {
  return names.map(name => [headers[name]].flat()[0] ?? '').find(value => value !== '') ?? ''
}

/** Texts one below the other, without those that are empty. */
export function joinLines(...texts: readonly string[]): string {
  return texts.filter(text => text !== '').join('\n')
}

/** A field with its name before it. Either may be empty. */
export function labelled(name: string, text: string): string {
  return [name, text].filter(each => each !== '').join(': ')
}

/** A link with what it is called, where that says more. Either may be empty. */
export function linked(name: string, url: string): string {
  if (url === '') return name
  return name === '' || name === url ? url : `${name} (${url})`
}

/** A field that has its name in a line of its own, in one line. */
export function inOneLine(text: string): string {
  return text.replace(/^([^\n]{1,40}?)[:：]?\n(?=[^\n]+$)/, '$1: ')
}

/** JSON that came as text, within the bounds of a payload, or what stands there already. */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return parseBytes(Buffer.from(value))
  } catch {
    return undefined
  }
}

/** A text, or as much of it as has its place, with a mark where there was more. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  // Not through the middle of a character.
  const end = /[\ud800-\udbff]$/.test(text.slice(0, max - 1)) ? max - 2 : max - 1
  return `${text.slice(0, end).trimEnd()}…`
}
