import { randomBytes } from 'node:crypto'
import { demand, RelayError } from '../errors'
import { sha256 } from '../lib/crypto'
import { printable } from '../lib/log'
import { isObject } from '../lib/shape'
import { all, isSet, readList, readValue, refuseFields } from '../lib/words'
import { reachOf, toName } from '../message/target'
import type { TargetNames } from '../message/model'
import { clauses, say, type Text } from '../texts/text'
import { parseRanges } from './origin'
import { Caller, Rate, type Rights } from './caller'
import { parseExpiry } from './expiry'
import { defaultScopes, defaultSourceScopes, scopes, sourceScopes, type Scope } from './scopes'
import { parsePatterns, toPattern } from './target-pattern'
import type { Usages } from './usage'

/** A key that authenticates a caller. */
export interface Key {
  /** SHA-256 of the key; random if signatures alone authenticate the caller. */
  digest: Buffer
  /** Secrets for signatures; empty if only the digest of the key is known. */
  secrets: readonly string[]
  /** In milliseconds since the epoch; `Infinity` for never. */
  expires: number
  /** Whether an address may use the key. Absent: every address may. */
  isFrom?: ((address: string) => boolean) | undefined
  caller: Caller
  /** Absent for a key without an entry, and for a replaced key. */
  view?: KeyView
}

/** The entry of a key, without the key itself. */
export interface KeyView {
  name: string
  /** As written in the entry; absent for every target. */
  targets?: readonly string[]
  /** The only sources that it can send through; absent for no limit. */
  sources?: readonly string[]
  allow: readonly Scope[]
  /** In milliseconds since the epoch; absent for never. */
  expires?: number
  /** In messages a minute; absent for no limit. */
  rate?: number
  /** Addresses and ranges as written in the entry; absent for every address. */
  from?: readonly string[]
}

/** The name of the console's page in log and deliveries. A key of this name could see and repeat the page's messages. */
export const consoleName = 'console'

/** The prefix of plugins' names in log and deliveries. */
const pluginPrefix = 'plugin:'

/** The shortest secret, in characters. */
const leastLength = 16
/** The longest name, in bytes of UTF-8. */
const longestName = 64
/** The highest rate, in messages a minute. */
const highestRate = 1_000_000

const fieldNames = ['name', 'key', 'secret', 'targets', 'sources', 'allow', 'expires', 'rate', 'from'] as const

/**
 * Reads the keys besides the master key. A malformed entry is refused as a whole, because without one of its fields it might allow more.
 *
 * @param apiKey the master key, which must differ from all others
 * @param names the names of targets, for `targets`
 * @param usages counts the use of the keys
 * @returns the valid keys, and warnings about invalid ones and about rights without effect. No warning contains a secret.
 */
export function parseKeys(
  raw: readonly unknown[], apiKey: string, names: TargetNames, usages: Usages,
): { keys: Key[], warnings: Text[] } {
  const known = new Set([sha256(apiKey).toString('hex')])
  const keys: Key[] = []
  const warnings: Text[] = []
  for (const [index, value] of raw.entries()) {
    const name = isObject(value) ? parseName(value.name) : undefined
    const number = index + 1
    const label = name === undefined ? say('key-entry', { number }) : say('key-entry-of', { number, name: JSON.stringify(name) })
    try {
      const { key, flaw } = parseEntry(value, known, { names, usages })
      keys.push(key)
      if (flaw !== undefined) warnings.push(clauses(label, flaw))
    } catch (error) {
      warnings.push(say('entry-refused', { label, reason: RelayError.from(error).said }))
    }
  }
  return { keys, warnings }
}

/** What an entry refers to. */
interface EntryOptions {
  names: TargetNames
  /** Absent for an entry that is only checked. */
  usages?: Usages
  /** Whether `targets` may contain an unknown name, because it was removed after the entry was made. */
  acceptsAnyName?: boolean
}

/**
 * Reads an entry.
 *
 * @param known the digests of all secrets up to this entry, in hexadecimal; those of a valid entry are added
 * @throws RelayError `bad-request`, without the secrets of the entry
 */
export function parseEntry(
  value: unknown, known: Set<string>, { names, usages, acceptsAnyName = false }: EntryOptions,
): { key: Key, flaw: Text | undefined } {
  demand(isObject(value), say('no-object'))
  refuseFields('keys', Object.keys(value).filter(field => !fieldNames.some(each => each === field) && isSet(value[field])))
  const name = readValue('name', value.name, parseName, say('rule-key-name', { most: longestName }))
  demand(name !== undefined, say('name-required'))
  demand(name !== consoleName, say('name-of-console', { name: JSON.stringify(consoleName) }))
  demand(!name.startsWith(pluginPrefix), say('names-of-plugins', { prefix: JSON.stringify(pluginPrefix) }))
  const expires = readValue('expires', value.expires, parseExpiry, say('rule-expires'))
  const isFrom = readValue('from', value.from, list => readNonEmpty(list, parseRanges), say('rule-from'))
  const targets = readValue('targets', value.targets, list => parseTargets(list, names, acceptsAnyName), say('rule-targets'))
  const chosen = readValue('allow', value.allow, parseScopes, say('rule-allow', { scopes }))
  const sources = readValue('sources', value.sources, parseSources, say('rule-sources'))
  demand(!sources || !chosen || (chosen.includes('hooks') && chosen.every(scope => sourceScopes.includes(scope))),
    say('allow-with-sources', { others: all(...sourceScopes.slice(1)) }))
  const rate = readValue('rate', value.rate, parseRate, say('rule-rate', { most: highestRate }))
  const key = readValue('key', value.key, parseKey, say('rule-key', { least: leastLength }))
  const secret = readValue('secret', value.secret, parseSecret, say('rule-secret', { least: leastLength }))
  demand(key !== undefined || secret !== undefined, say('entry-without-key'))
  const given = [key, secret].flatMap(each => each ?? [])
  const digests = given.map(({ digest }) => digest.toString('hex'))
  demand(!digests.some(digest => known.has(digest)) && digests[0] !== digests[1], say('equals-another'))
  for (const digest of digests) known.add(digest)
  const allow = new Set(chosen ?? (sources ? defaultSourceScopes : defaultScopes))
  // Only hooks have signatures: without that scope, a secret would have no use.
  if (!key || (secret && !chosen)) allow.add('hooks')
  const secrets = given.flatMap(({ text }) => text ?? [])
  const [words, ranges] = [readList(value.targets), readList(value.from)]
  return {
    key: {
      digest: key?.digest ?? randomBytes(32),
      secrets,
      expires: expires ?? Infinity,
      isFrom,
      caller: new Caller(
        name, { allow, ...targets, ...sources && { sources }, ...rate !== undefined && { rate: new Rate(rate) } }, usages?.of(name),
      ),
      view: {
        name, ...targets && words && { targets: words }, ...sources && { sources }, allow: [...allow],
        ...expires !== undefined && { expires }, ...rate !== undefined && { rate }, ...isFrom && ranges && { from: ranges },
      },
    },
    flaw: allow.has('hooks')
      ? secrets.length > 0 ? undefined : say('digest-without-signature')
      : secret && say('secret-checks-nothing'),
  }
}

function parseName(value: unknown): string | undefined {
  const name = typeof value === 'string' ? value.trim() : ''
  return name !== '' && Buffer.byteLength(name) <= longestName && name === printable(name) ? name : undefined
}

/** A secret; its text is unknown if only its digest was given. */
interface Secret { digest: Buffer, text?: string }

function parseKey(value: unknown): Secret | undefined {
  if (typeof value !== 'string' || !/^\s*sha256:/i.test(value)) return parseSecret(value)
  const [, digits] = /^sha256:([0-9a-f]{64})$/i.exec(value.trim()) ?? []
  return digits === undefined ? undefined : { digest: Buffer.from(digits, 'hex') }
}

function parseSecret(value: unknown): Secret | undefined {
  const secret = typeof value === 'string' ? value.trim() : ''
  return secret.length >= leastLength ? { digest: sha256(secret), text: secret } : undefined
}

/** Reads a list with at least one word: an empty one would allow nothing. */
function readNonEmpty<T>(value: unknown, parse: (words: readonly string[]) => T | undefined): T | undefined {
  const words = readList(value) ?? []
  return words.length > 0 ? parse(words) : undefined
}

function parseTargets(value: unknown, names: TargetNames, acceptsAnyName: boolean): Pick<Rights, 'targets' | 'byName'> | undefined {
  return readNonEmpty(value, words => {
    const parts = words.map(word => ({ word, patterns: parsePatterns(word, new Map()) }))
    if (!parts.every(({ word, patterns }) => patterns ?? (acceptsAnyName || names.get(toName(word)) !== undefined))) return
    // A name is resolved at the time of each request.
    return {
      targets: () => parts.flatMap(({ word, patterns }) => patterns ?? parsePatterns(word, names) ?? []),
      byName: name => {
        const named = words.map(toName).includes(name) ? names.get(name) : undefined
        return named ? reachOf(name, named, names).map(toPattern) : []
      },
    }
  })
}

function parseScopes(value: unknown): Scope[] | undefined {
  return readNonEmpty(value, words => {
    const found = scopes.filter(scope => words.includes(scope))
    return words.every(word => found.some(scope => scope === word)) ? found : undefined
  })
}

/** Any name may be a source: also that of an own template, or of a system that nobody has described. */
function parseSources(value: unknown): string[] | undefined {
  return readNonEmpty(value, words => words.every(word => /^[\w.-]{1,64}$/.test(word)) ? [...words] : undefined)
}

function parseRate(value: unknown): number | undefined {
  const rate = typeof value === 'string' && /^\s*\d+\s*$/.test(value) ? Number(value) : value
  return typeof rate === 'number' && Number.isInteger(rate) && rate >= 1 && rate <= highestRate ? rate : undefined
}
