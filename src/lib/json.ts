import { say, type Text } from '../texts/text'

/** Parses JSON; `undefined` for malformed text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The most levels of nested arrays and objects. */
const maxLevels = 64
/** The most values, including arrays and objects, but not the names of fields. */
const maxValues = 20_000

const [space = 0, quote = 0, backslash, comma, openArray, closeArray, openObject, closeObject] = Buffer.from(' "\\,[]{}')

/**
 * Checks the bounds of a JSON text (RFC 8259) before it is parsed: a few megabytes can hold millions of values, and each of them takes a
 * hundred bytes of memory or more.
 *
 * @param bytes JSON in UTF-8; malformed JSON is checked at least up to the place where a parser would fail
 * @param most the most values
 * @returns the excess in words, such as `more than 64 levels`; `undefined` within the bounds
 */
export function excessOfJson(bytes: Buffer, most = maxValues): Text | undefined {
  let levels = 0
  // Counts the outermost value, the first value of each non-empty container, and the value after each comma.
  let values = 1
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) {
      for (at++; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++
    } else if (byte === openArray || byte === openObject) {
      if (++levels > maxLevels) return say('more-levels', { most: maxLevels })
      while ((bytes[at + 1] ?? quote) <= space) at++
      if (bytes[at + 1] !== closeArray && bytes[at + 1] !== closeObject) values++
    } else if (byte === closeArray || byte === closeObject) {
      levels--
    } else if (byte === comma) {
      values++
    }
    if (values > most) return say('more-values', { most })
  }
}

/**
 * Escapes raw control characters within the strings of JSON, which scripts leave there that put a text between quotes.
 *
 * @returns the same text if there are none
 */
export function escapeControls(source: string): string {
  let isString = false
  return source.replace(/\\[^\0-\x1f]|["\\\0-\x1f]/g, token => {
    if (token === '"') isString = !isString
    if (!isString || token.length > 1 || token === '"') return token
    // A backslash before a raw line break is one of the text: it cannot begin an escape.
    return token === '\\' ? '\\\\' : `\\u${token.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** Where a text stops being JSON, counted from 1, and why. */
export interface JsonFault {
  line: number
  column: number
  why: 'end' | 'control' | 'quotes' | 'escape' | 'other'
}

/** What may follow each token of JSON: `w` is a number or a word. */
const followers = new Map([
  ['', '[{"w'], ['[', '[{"w]'], ['{', '"}'], [',', '[{"w'], [':', '[{"w'], ['"', ':,]}'], ['w', ',]}'], [']', ',]}'], ['}', ',]}'],
])

/**
 * Finds the place where malformed JSON goes wrong. Brackets that do not match are told at the end of the text.
 *
 * @param allowsControls whether strings may hold raw control characters
 */
export function faultOfJson(text: string, allowsControls: boolean): JsonFault {
  let at = 0
  const findWhy = (): JsonFault['why'] => {
    for (let previous = ''; at < text.length; at++) {
      const char = text[at] ?? ''
      if (' \t\r\n'.includes(char)) continue
      const start = at
      while (/[\w.+-]{2}/.test(text.slice(at, at + 2))) at++
      const token = /[\w.+-]/.test(char) && parseJson(text.slice(start, at + 1)) !== undefined ? 'w' : char
      if (!followers.get(previous)?.includes(token)) {
        at = start
        if (previous === '"') return 'escape'
        return char === '\'' || (/[[{,:]/.test(previous) && /[\w\\]/.test(char)) ? 'quotes' : 'other'
      }
      if (token === '"') {
        for (at++; text[at] !== '"'; at++) {
          const inner = text[at]
          if (inner === undefined) return 'end'
          if (inner < ' ' && !allowsControls) return 'control'
          if (inner === '\\' && !/["\\/bfnrtu]/.test(text[++at] ?? '"')) return 'escape'
        }
      }
      previous = token
    }
    return 'end'
  }
  const why = findWhy()
  const before = text.slice(0, at)
  return { line: before.replace(/[^\n]+/g, '').length + 1, column: at - before.lastIndexOf('\n'), why }
}
