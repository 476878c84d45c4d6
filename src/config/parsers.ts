import { readList } from '../lib/words'
import { isSigningSecret } from '../lib/webhook-signature'
import { isObject, type JsonObject } from '../message/parse'

/** Reads one raw value, from koishi.yml or from the environment; `undefined` means that it is malformed. */
export type Parser<T> = (value: unknown) => T | undefined

/** Any text; outer white space does not count. */
export const text: Parser<string> = value => typeof value === 'string' ? value.trim() : undefined

/** Text taken exactly as it is written. */
export const verbatim: Parser<string> = value => typeof value === 'string' ? value : undefined

/** A secret that signs: `whsec_` and then base64, or any other text; outer white space does not count. */
export const signingSecret: Parser<string> = value => {
  const secret = text(value)
  return secret !== undefined && isSigningSecret(secret) ? secret : undefined
}

/** A whole number between two bounds, both included. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Parser<number> {
  return value => {
    const number = toNumber(value)
    return number !== undefined && Number.isSafeInteger(number) && number >= min && number <= max ? number : undefined
  }
}

/** A number between two bounds, both included; fractions are allowed. */
export function decimal(min: number, max: number): Parser<number> {
  return value => {
    const number = toNumber(value)
    return number !== undefined && number >= min && number <= max ? number : undefined
  }
}

/** A size as text: a number of bytes, or a number and one of the units of {@link size}. */
export const sizePattern = /^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(?:B|([KMG])(?:i?B)?)?\s*$/i

const sizeUnits = ['', 'K', 'M', 'G']

/**
 * A size in bytes between two bounds, both included: a whole number, or a text such as `20MB`, `1.5 GiB` or `512k`. Whether
 * written KB or KiB, a unit is a power of 1024. With a unit, a fraction of a byte is rounded down; without one it is malformed.
 */
export function size(min: number, max = Number.MAX_SAFE_INTEGER): Parser<number> {
  const inBounds = integer(min, max)
  return value => {
    if (typeof value !== 'string') return inBounds(value)
    const [, number, unit = ''] = sizePattern.exec(value) ?? []
    const bytes = Number(number) * 1024 ** sizeUnits.indexOf(unit.toUpperCase())
    return inBounds(unit ? Math.floor(bytes) : bytes)
  }
}

/** A number of bytes in the largest unit that leaves no fraction, as {@link size} reads it: `20 MB`, `1234 B`. */
export function formatSize(bytes: number): string {
  let power = 0
  while (bytes > 0 && power < sizeUnits.length - 1 && bytes % 1024 ** (power + 1) === 0) power++
  return `${bytes / 1024 ** power} ${sizeUnits[power] ?? ''}B`
}

/** A yes or no in one of the usual words. */
export const flag: Parser<boolean> = value => {
  const word = String(value).trim().toLowerCase()
  if (['true', '1', 'yes', 'on'].includes(word)) return true
  if (['false', '0', 'no', 'off'].includes(word)) return false
}

/** One of a few words, in any case. */
export function oneOf<T extends string>(...words: readonly T[]): Parser<T> {
  return value => words.find(word => typeof value === 'string' && value.trim().toLowerCase() === word)
}

/** A list of words, or a text with its words between commas. */
export const list: Parser<string[]> = readList

/** A list of anything, or the JSON of one. */
export const entries: Parser<readonly unknown[]> = value => {
  const parsed = fromJson(value)
  return Array.isArray(parsed) ? parsed : undefined
}

/** A dictionary of anything, or the JSON of one. */
export const dictionary: Parser<JsonObject> = value => {
  const parsed = fromJson(value)
  return isObject(parsed) ? parsed : undefined
}

/** An http(s) address. */
export const httpUrl: Parser<string> = value => {
  if (typeof value === 'string' && /^https?:\/\//i.test(value.trim()) && URL.canParse(value.trim())) return value.trim()
}

/** An http(s) address that paths are appended to: no slash at its end, and neither query nor fragment. */
export const baseUrl: Parser<string> = value => {
  const url = httpUrl(value)
  return url === undefined || /[?#]/.test(url) ? undefined : url.replace(/\/+$/, '')
}

/** A route prefix: `relay`, `/relay` and `/relay/` all become `/relay`. */
export const routePrefix: Parser<string> = value => {
  if (typeof value !== 'string') return
  const segments = value.trim().split('/').filter(Boolean)
  // Only what clients send and the router takes letter for letter: `..` would be resolved, `:`, `*` and parentheses are patterns.
  return segments.every(segment => /^(?!\.\.?$)[\w.~-]+$/.test(segment)) ? segments.map(segment => `/${segment}`).join('') : undefined
}

function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)) return Number(value)
}

/** What a text says as JSON, `undefined` when it is none; whatever is no text stays what it is. */
function fromJson(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}
