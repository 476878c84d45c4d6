import { parseJson } from '../http/body'
import { parseLink } from '../message/link'
import { isObject, type JsonObject } from '../message/parse'

/** The longest text of a field that is looked at, in characters. */
const maxText = 100_000
/** The longest link that is shown, in characters. */
const maxLink = 2048
/** The most elements of a list that are looked at. */
const maxElements = 50

/** A text that says something, or a number as text; `undefined` for anything else. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  if (typeof value !== 'string') return
  return value.slice(0, maxText).trim() || undefined
}

/** The first of these that {@link textOf} takes. */
export function firstText(...values: readonly unknown[]): string | undefined {
  return values.map(textOf).find(text => text !== undefined)
}

/** An object, without fields where it is none. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** The objects of a list; none where it is no list. */
export function objectsOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.slice(0, maxElements).filter(isObject) : []
}

/** An http(s) link that names a host. */
export function linkOf(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value.trim() : ''
  return text.length <= maxLink && /^https?:\/\/[^\s/?#]/i.test(text) && !/\s/.test(text) ? text : undefined
}

/** A picture that came along in base64, as a `data:` link; `undefined` where it is none. */
export function pictureOf(type: string, base64: unknown): string | undefined {
  if (typeof base64 !== 'string' || !/^image\/[\w.+-]+$/i.test(type)) return
  const link = `data:${type};base64,${base64.replace(/\s+/g, '')}`
  try {
    parseLink(link)
    return link
  } catch {
    return undefined
  }
}

/** Texts one below the other, without those that are not there. */
export function lines(...texts: readonly (string | undefined)[]): string | undefined {
  return texts.filter(text => text !== undefined && text !== '').join('\n') || undefined
}

/** A field that has its name in a line of its own, in one line. */
export function inOneLine(text: string | undefined): string | undefined {
  return text?.replace(/^([^\n]{1,40}?)[:：]?\n(?=[^\n]+$)/, '$1: ')
}

/** JSON that came as text, within the bounds of a payload, or what stands there already. */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return parseJson(Buffer.from(value))
  } catch {
    return undefined
  }
}
