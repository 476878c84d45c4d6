import { randomBytes } from 'node:crypto'
import { readList } from '../lib/words'
import { printable } from '../lib/log'
import { sha256 } from '../lib/crypto'
import { TokenBucket } from '../lib/token-bucket'
import type { TargetNames } from '../message/model'
import { isObject, type JsonObject } from '../message/parse'
import { parseRanges } from './addresses'
import { Caller, type Rights } from './caller'
import { parseExpiry } from './expiry'
import { defaultScopes, scopes, type Scope } from './scopes'
import { parsePatterns, type TargetPattern } from './target-pattern'

/** A key by which a caller proves who it is. */
export interface Key {
  /** SHA-256 of the key; of nothing that anybody has where there is none, and signatures alone prove who it is. */
  digest: Buffer
  /** What signatures are checked with, as far as it is known. */
  secrets: readonly string[]
  /** Until when it counts, in milliseconds since the epoch; `Infinity` for always. */
  expires: number
  /** Whether it may come from an address, which is only asked for where that matters. */
  isFrom: (addressOf: () => string | undefined) => boolean
  caller: Caller
  /** Absent for one that no settings hold. */
  view?: KeyView
}

/** What the settings say of a key, without the key. */
export interface KeyView {
  name: string
  /** As they were written; absent for every target. */
  targets?: readonly string[]
  allow: readonly Scope[]
  /** Until when it counts, in milliseconds since the epoch; absent for always. */
  expires?: number
}

/** By which log and records call the page in the console: whoever shared it could see, and repeat, what is sent from there. */
export const consoleName = 'console'

/** The least length of a secret, in characters. */
const leastLength = 16
/** The longest name, in bytes of UTF-8. */
const longestName = 64
/** The most messages a minute that can be asked for. */
const highestRate = 1_000_000

const fieldNames: ReadonlySet<string> = new Set(['name', 'key', 'secret', 'targets', 'allow', 'expires', 'rate', 'from'])

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
      const { key, cannotVerify, isIdle } = parseEntry(value, known, names)
      keys.push(key)
      if (isIdle) warnings.push(`${label}: its secret checks nothing, for the key is not allowed hooks`)
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

/** The fields of an entry. */
class Fields {
  private readonly raw: JsonObject

  /** @throws EntryError */
  constructor(value: unknown) {
    if (!isObject(value)) throw new EntryError('it is no object')
    const stranger = Object.keys(value).find(field => !fieldNames.has(field) && isThere(value[field]))
    if (stranger !== undefined) throw new EntryError(`keys have no field ${JSON.stringify(printable(stranger.slice(0, longestName)))}`)
    this.raw = value
  }

  /**
   * Reads a field, `undefined` when it is left out.
   *
   * @param rule what it must be
   * @throws EntryError when it is something else
   */
  read<T>(field: string, parse: (value: unknown) => T | undefined, rule: string): T | undefined {
    const { [field]: value } = this.raw
    if (!isThere(value)) return
    const parsed = parse(value)
    if (parsed === undefined) throw new EntryError(`${field} must be ${rule}`)
    return parsed
  }
}

/** An entry, and what it cannot do although it looks as if it could. */
interface Entry {
  key: Key
  /** Whether it may use /hooks, but not by a signature. */
  cannotVerify: boolean
  /** Whether it has a secret for nothing. */
  isIdle: boolean
}

/**
 * @param known the digests of the secrets so far, in hexadecimal; those of the entry are added when it is right
 * @throws EntryError
 */
function parseEntry(value: unknown, known: Set<string>, names: TargetNames): Entry {
  const fields = new Fields(value)
  const name = fields.read('name', parseName, `one line of text, of at most ${longestName} bytes`)
  if (name === undefined) throw new EntryError('it has no name')
  if (name === consoleName) throw new EntryError(`${JSON.stringify(consoleName)} is the name of the page in the console`)
  const expires = fields.read('expires', parseExpiry, 'a date such as "2026-12-31" or a date-time such as "2026-12-31T18:00+08:00", in YAML in quotes')
  const isIn = fields.read('from', list => readSome(list, parseRanges), 'a list of addresses, or of ranges such as 10.0.0.0/8')
  const given = readRights(fields, names)
  const { key, secret } = readSecrets(fields, known)
  // Signatures count there only: without a key there is nothing else that the entry could be for.
  const rights = key ? given : { ...given, allow: new Set([...given.allow, 'hooks' as const]) }
  const secrets = [key?.text, secret?.text].flatMap(text => text ?? [])
  const targets = fields.read('targets', readList, 'a list')
  return {
    key: {
      digest: key?.digest ?? randomBytes(32),
      secrets,
      expires: expires ?? Infinity,
      isFrom: addressOf => {
        const address = isIn && addressOf()
        return !isIn || (address !== undefined && isIn(address))
      },
      caller: new Caller(name, rights),
      view: { name, ...targets && { targets }, allow: [...rights.allow], ...expires !== undefined && { expires } },
    },
    cannotVerify: key !== undefined && key.text === undefined && !secret && rights.allow.has('hooks'),
    isIdle: secret !== undefined && !rights.allow.has('hooks'),
  }
}

function readRights(fields: Fields, names: TargetNames): Rights {
  const targets = fields.read('targets', list => parseTargets(list, names), 'a list of targets such as group:1 or group:*, or of names for targets')
  const allow = fields.read('allow', parseScopes, `a list of some of ${scopes.join(', ')}`) ?? defaultScopes
  const rate = fields.read('rate', parseRate, `a whole number of messages a minute, from 1 to ${highestRate}`)
  return { allow: new Set(allow), ...targets && { targets }, ...rate !== undefined && { rate: new TokenBucket(rate) } }
}

/** A secret, of which only the digest may be known. */
interface Secret {
  digest: Buffer
  text?: string
}

function readSecrets(fields: Fields, known: Set<string>): { key?: Secret, secret?: Secret } {
  const key = fields.read('key', parseKey, `text of at least ${leastLength} characters, or sha256: and 64 hexadecimal digits`)
  const secret = fields.read('secret', parseSecret, `text of at least ${leastLength} characters`)
  if (!key && !secret) throw new EntryError('it has no key')
  const digests = [key, secret].flatMap(each => each ? [each.digest.toString('hex')] : [])
  if (new Set([...known, ...digests]).size < known.size + digests.length) throw new EntryError('its key or secret equals another one')
  for (const digest of digests) known.add(digest)
  return { ...key && { key }, ...secret && { secret } }
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

/** Reads a key, in the place of which its digest may stand. */
function parseKey(value: unknown): Secret | undefined {
  if (typeof value !== 'string' || !/^\s*sha256:/i.test(value)) return parseSecret(value)
  const [, digits] = /^sha256:([0-9a-f]{64})$/i.exec(value.trim()) ?? []
  return digits === undefined ? undefined : { digest: Buffer.from(digits, 'hex') }
}

function parseSecret(value: unknown): Secret | undefined {
  const secret = typeof value === 'string' ? value.trim() : ''
  return secret.length >= leastLength ? { digest: sha256(secret), text: secret } : undefined
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
