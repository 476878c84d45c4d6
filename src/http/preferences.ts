import { RelayError } from '../errors'

/** The longest time that a caller may ask to wait for a result, in seconds. */
const maxWait = 600

/**
 * Reads the header `Idempotency-Key`: 1 to 255 visible characters, quoted (a string of RFC 8941, as the IETF draft has it) or
 * not.
 *
 * @throws RelayError `bad-request`
 */
export function parseKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return
  const text = String(header).trim()
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? text
  const isBroken = quoted === undefined && text.startsWith('"')
  if (isBroken || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new RelayError('bad-request', 'Idempotency-Key must be 1 to 255 visible ASCII characters without blanks, quoted or not')
  }
  return key
}

/**
 * Reads the header `Prefer` (RFC 7240). Preferences and parameters that are not known are ignored, as the RFC asks.
 *
 * @returns how long to wait for the result first, in milliseconds; `undefined` when the answer is to be the result
 */
export function parsePrefer(header: string | string[] | undefined): { wait: number } | undefined {
  if (header === undefined) return
  const preferences = String(header).split(',').map(preference => preference.split(';', 1).join('').trim().toLowerCase())
  if (!preferences.includes('respond-async')) return
  const wait = preferences.map(preference => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(preference)?.[1]).find(Boolean)
  return { wait: Math.min(Number(wait ?? 0), maxWait) * 1000 }
}
