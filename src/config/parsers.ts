/** Reads one raw value, from koishi.yml or from the environment; `undefined` means that it is malformed. */
export type Parser<T> = (value: unknown) => T | undefined

/** Any text; outer white space does not count. */
export const text: Parser<string> = value => typeof value === 'string' ? value.trim() : undefined

/** Text taken exactly as it is written. */
export const verbatim: Parser<string> = value => typeof value === 'string' ? value : undefined

/** A whole number between two bounds, both included. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Parser<number> {
  return value => {
    const number = toNumber(value)
    return number !== undefined && Number.isSafeInteger(number) && number >= min && number <= max ? number : undefined
  }
}

/** Seconds, fractions allowed, up to what a Node.js timer can wait. */
export function seconds(min: 'positive' | 'zero'): Parser<number> {
  const longest = Math.floor((2 ** 31 - 1) / 1000)
  return value => {
    const number = toNumber(value)
    if (number === undefined || number > longest) return
    return number > 0 || (min === 'zero' && number === 0) ? number : undefined
  }
}

/** One of a few words, in any case. */
export function oneOf<T extends string>(...words: readonly T[]): Parser<T> {
  return value => words.find(word => typeof value === 'string' && value.trim().toLowerCase() === word)
}

/** A list, or a text with its elements between commas. */
export const list: Parser<string[]> = value => {
  const elements: unknown[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [undefined]
  const words: string[] = []
  for (const element of elements) {
    if (typeof element !== 'string') return
    if (element.trim()) words.push(element.trim())
  }
  return words
}

/** An http(s) address, without a slash at its end. */
export const httpUrl: Parser<string> = value => {
  if (typeof value !== 'string' || !/^https?:\/\//i.test(value.trim()) || !URL.canParse(value.trim())) return
  return value.trim().replace(/\/+$/, '')
}

/** A route prefix: `relay`, `/relay` and `/relay/` all become `/relay`. */
export const routePrefix: Parser<string> = value => {
  if (typeof value !== 'string') return
  const segments = value.trim().split('/').filter(Boolean)
  // Only what the router takes letter for letter: `:`, `*` and parentheses would be patterns.
  return segments.every(segment => /^[\w.~-]+$/.test(segment)) ? segments.map(segment => `/${segment}`).join('') : undefined
}

function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)) return Number(value)
}
