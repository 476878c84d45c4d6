import { readList } from '../lib/list'
import { printable } from '../lib/log'
import { sha256 } from '../lib/secret'
import { TokenBucket } from '../lib/token-bucket'
import type { TargetNames } from '../message/model'
import { isObject } from '../message/parse'
import { parseRanges } from './addresses'
import { Caller } from './caller'
import { parseExpiry } from './expiry'
import { defaultScopes, scopes, type Scope } from './scopes'
import { parsePatterns, type TargetPattern } from './target-pattern'

/** A key by which a caller proves who it is. */
export interface Key {
  /** SHA-256 of the secret. */
  digest: Buffer
  /** Until when it counts, in milliseconds since the epoch; `Infinity` for always. */
  expires: number
  /** Whether it may come from this address. */
  isFrom: (address: string | undefined) => boolean
  caller: Caller
}

/** The least length of a secret, in characters. */
const leastLength = 16
/** The longest name, in bytes of UTF-8. */
const longestName = 64
/** The most messages a minute that can be asked for. */
const highestRate = 1_000_000

const fields: ReadonlySet<string> = new Set(['name', 'key', 'secret', 'targets', 'allow', 'expires', 'rate', 'from'])

/**
 * Reads the keys beside the master key. One that is malformed is refused as a whole: a field that is left out allows more.
 *
 * @param apiKey the master key, which no other may equal
 * @param names those that `targets` of a key may have in the place of a target
 * @returns the keys that count, and a warning about each of the others and about what a key cannot do. No warning holds a secret.
 */
export function parseKeys(raw: readonly unknown[], apiKey: string, names: TargetNames): { keys: Key[], warnings: string[] } {
  const known = new Set([sha256(apiKey).toString('hex')])
  const keys: Key[] = []
  const warnings: string[] = []
  for (const [index, value] of raw.entries()) {
    const label = `keys: entry ${index + 1}${nameOf(value)}`
    try {
      const { key, cannotVerify } = parseEntry(value, known, names)
      if (key) keys.push(key)
      if (cannotVerify) warnings.push(`${label}: with a digest no signature can be checked, so that on /hooks it counts in a header or URL only`)
    } catch (error) {
      if (!(error instanceof EntryError)) throw error
      warnings.push(`${label} is refused: ${error.message}`)
    }
  }
  return { keys, warnings }
}

/** Why an entry is none, without anything that is secret. */
class EntryError extends Error {
  override readonly name = 'EntryError'
}

/**
 * @param known the digests of the secrets so far, in hexadecimal; those of the entry are added when it is right
 * @returns no key where the entry is there to check signatures only
 */
function parseEntry(value: unknown, known: Set<string>, names: TargetNames): { key?: Key, cannotVerify: boolean } {
  if (!isObject(value)) throw new EntryError('it is no object')
  const stranger = Object.keys(value).find(field => !fields.has(field) && isThere(value[field]))
  if (stranger !== undefined) throw new EntryError(`keys have no field ${JSON.stringify(printable(stranger.slice(0, longestName)))}`)

  function read<T>(field: string, parse: (value: unknown) => T | undefined, rule: string): T | undefined {
    const raw = isObject(value) ? value[field] : undefined
    if (!isThere(raw)) return
    const parsed = parse(raw)
    if (parsed === undefined) throw new EntryError(`${field} must be ${rule}`)
    return parsed
  }

  const name = read('name', parseName, `one line of text, of at most ${longestName} bytes`)
  const key = read('key', parseDigest, `text of at least ${leastLength} characters, or sha256: and 64 hexadecimal digits`)
  const secret = read('secret', digestSecret, `text of at least ${leastLength} characters`)
  const targets = read('targets', list => parseTargets(list, names), 'a list of targets such as group:1 or group:*, or of names for targets')
  const allow = read('allow', parseScopes, `a list of some of ${scopes.join(', ')}`) ?? defaultScopes
  const expires = read('expires', parseExpiry, 'a date such as "2026-12-31" or a date-time such as "2026-12-31T18:00+08:00", in YAML in quotes') ?? Infinity
  const rate = read('rate', parseRate, `a whole number of messages a minute, from 1 to ${highestRate}`)
  const isIn = read('from', list => readSome(list, parseRanges), 'a list of addresses, or of ranges such as 10.0.0.0/8')
  if (name === undefined) throw new EntryError('it has no name')
  if (!key && !secret) throw new EntryError('it has no key')
  const digests = [key, secret].flatMap(digest => digest ? [digest.toString('hex')] : [])
  if (new Set([...known, ...digests]).size < known.size + digests.length) throw new EntryError('its key or secret equals another one')
  for (const digest of digests) known.add(digest)
  if (!key) return { cannotVerify: false }
  const bucket = rate === undefined ? {} : { rate: new TokenBucket(rate) }
  const caller = new Caller(name, { allow: new Set(allow), ...targets && { targets }, ...bucket })
  const isFrom = (address: string | undefined): boolean => !isIn || (address !== undefined && isIn(address))
  return { key: { digest: key, expires, isFrom, caller }, cannotVerify: isDigest(value.key) && !secret && allow.includes('hooks') }
}

/** Whether something stands there: a blank text counts as left out, as in all settings. */
function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && !(typeof value === 'string' && value.trim() === '')
}

/** For a warning. */
function nameOf(value: unknown): string {
  const name = isObject(value) ? parseName(value.name) : undefined
  return name === undefined ? '' : ` (${JSON.stringify(name)})`
}

function parseName(value: unknown): string | undefined {
  const name = typeof value === 'string' ? value.trim() : ''
  return name !== '' && Buffer.byteLength(name) <= longestName && name === printable(name) ? name : undefined
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && /^\s*sha256:/i.test(value)
}

/** The digest of a key, which may stand there in the place of the key. */
function parseDigest(value: unknown): Buffer | undefined {
  if (!isDigest(value)) return digestSecret(value)
  const [, digits] = /^sha256:([0-9a-f]{64})$/i.exec(String(value).trim()) ?? []
  return digits === undefined ? undefined : Buffer.from(digits, 'hex')
}

function digestSecret(value: unknown): Buffer | undefined {
  return typeof value === 'string' && value.trim().length >= leastLength ? sha256(value.trim()) : undefined
}

/** Reads a list that must not be empty: one that is would allow nothing. */
function readSome<T>(value: unknown, parse: (words: readonly string[]) => T | undefined): T | undefined {
  const words = readList(value) ?? []
  return words.length > 0 ? parse(words) : undefined
}

function parseTargets(value: unknown, names: TargetNames): TargetPattern[] | undefined {
  return readSome(value, words => {
    const patterns = words.map(word => parsePatterns(word, names))
    return patterns.includes(undefined) ? undefined : patterns.flatMap(each => each ?? [])
  })
}

function parseScopes(value: unknown): Scope[] | undefined {
  return readSome(value, words => {
    const found = scopes.filter(scope => words.includes(scope))
    return words.every(word => found.some(scope => scope === word)) ? found : undefined
  })
}

function parseRate(value: unknown): number | undefined {
  const rate = typeof value === 'string' && /^\s*\d+\s*$/.test(value) ? Number(value) : value
  return typeof rate === 'number' && Number.isInteger(rate) && rate >= 1 && rate <= highestRate ? rate : undefined
}
