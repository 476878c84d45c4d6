import type { IncomingHttpHeaders } from 'node:http'
import { RelayError } from '../errors'
import { either, readValue } from '../lib/words'
import { say } from '../texts/text'
import type { Content, Wishes } from '../message/model'
import { parseExpiry, parseWishes, wishFields } from '../message/parse'

/** The longest time that a caller may ask to wait for a result, in seconds. */
const maxWait = 600

/** How to carry out a request, from its headers and query. */
export interface Handling {
  /** The Idempotency-Key. */
  key?: string
  /** Whether to answer without the result, after waiting so many milliseconds for it. */
  deferred?: { wait: number }
  /** Whether to fail if a field of the request would be ignored. */
  isStrict: boolean
  /** Whether to show what would be sent, without sending it. */
  isDry: boolean
  /** Whether a partial failure fails the whole request. */
  failsWithAny: boolean
}

/**
 * Reads the headers `Idempotency-Key` and `Prefer`, and `dry_run` and `fail` of the query.
 *
 * @throws RelayError `bad-request`
 */
export function parseHandling({ 'idempotency-key': key, prefer }: IncomingHttpHeaders, query: URLSearchParams): Handling {
  return {
    isDry: readFlag(query, 'dry_run'),
    failsWithAny: readChoice(query, 'fail', ['any']) !== undefined,
    isStrict: false,
    ...prefer !== undefined && parsePrefer(String(prefer)),
    ...key !== undefined && { key: parseKey(String(key).trim()) },
  }
}

/**
 * Reads an Idempotency-Key: 1 to 255 visible ASCII characters, quoted or not. Quoted, it is a string of RFC 8941, as in the draft of the
 * IETF ("The Idempotency-Key HTTP Header Field").
 *
 * @throws RelayError `bad-request`
 */
function parseKey(text: string): string {
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? text
  const isBroken = quoted === undefined && text.startsWith('"')
  if (isBroken || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new RelayError('bad-request', say('idempotency-key-rule'))
  }
  return key
}

/** Two runs of blanks are never adjacent in this pattern: the ways to divide blanks between them would make matching slow. */
const preferencePattern = /^\s*([\w-]+)\s*(?:=\s*(?:"([^"]*)"\s*|([^\s";]+)\s*)?)?(?:;|$)/

/** Reads the header `Prefer` (RFC 7240). Unknown preferences, parameters and repetitions are ignored (its section 2). */
function parsePrefer(header: string): Pick<Handling, 'deferred' | 'isStrict'> {
  const values = new Map<string, string>()
  for (const preference of header.match(/(?:[^,"]|"[^"]*"?)+/g) ?? []) {
    const [, name = '', quoted, token] = preferencePattern.exec(preference) ?? []
    if (!values.has(name.toLowerCase())) values.set(name.toLowerCase(), (quoted ?? token ?? '').toLowerCase())
  }
  const wait = /^\d{1,9}$/.exec(values.get('wait') ?? '')?.[0]
  return {
    isStrict: values.get('handling') === 'strict',
    ...values.has('respond-async') && { deferred: { wait: Math.min(Number(wait ?? 0), maxWait) * 1000 } },
  }
}

/** When and how a message leaves, and how long it may wait. */
export type Timing = Wishes & Pick<Content, 'expiresIn'>

/** The names of these fields. */
export const timingFields: readonly string[] = ['expires_in', ...wishFields]

/**
 * Reads `expires_in` and the `wishFields` of a query, which mean the same as the fields of `/webhook`; an empty one counts as absent.
 *
 * @throws RelayError `bad-request`
 */
export function readTiming(query: URLSearchParams): Timing {
  // A fast path: most requests have no query.
  if (query.size === 0) return {}
  const text = query.get('expires_in')
  return {
    ...text && parseExpiry({ expires_in: /^\d+(\.\d+)?$/.test(text) ? Number(text) : text }),
    ...parseWishes(Object.fromEntries(wishFields.map(name => [name, query.get(name)])), true),
  }
}

/**
 * Reads a query parameter with a few possible values; an empty one counts as absent.
 *
 * @throws RelayError `bad-request`
 */
export function readChoice<Choice extends string>(query: URLSearchParams, name: string, choices: readonly Choice[]): Choice | undefined {
  return readValue(name, query.get(name), text => choices.find(choice => choice === text), either(...choices))
}

function readFlag(query: URLSearchParams, name: string): boolean {
  const parse = (text: string): boolean | undefined => (
    /^(1|true|yes|on)$/i.test(text) || (/^(0|false|no|off)$/i.test(text) ? false : undefined)
  )
  return readValue(name, query.get(name), parse, either('1', '0')) ?? false
}
