import type { IncomingHttpHeaders } from 'node:http'
import { RelayError } from '../errors'
import type { Content } from '../message/model'
import { parseExpiry } from '../message/parse'

/** The longest time that a caller may ask to wait for a result, in seconds. */
const maxWait = 600

/** What the headers of a request say of how it is to be handled. */
export interface Handling extends Preferences {
  /** Its Idempotency-Key. */
  key?: string
}

/**
 * Reads the headers `Idempotency-Key` and `Prefer`.
 *
 * @throws RelayError `bad-request`
 */
export function parseHandling(headers: IncomingHttpHeaders): Handling {
  const key = parseKey(headers['idempotency-key'])
  return { ...parsePrefer(headers.prefer), ...key !== undefined && { key } }
}

/**
 * Reads the header `Idempotency-Key`: 1 to 255 visible ASCII characters, quoted or not. Quoted, it is a string of RFC 8941, as the
 * draft of the IETF ("The Idempotency-Key HTTP Header Field") has it.
 *
 * @throws RelayError `bad-request`
 */
function parseKey(header: string | string[] | undefined): string | undefined {
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

/** What the header `Prefer` asks for. */
interface Preferences {
  /** To answer before the result is there, and how long to wait for it first, in milliseconds. */
  deferred?: { wait: number }
  /** To fail where something in the request would be ignored. */
  isStrict: boolean
}

/** No two runs of blanks stand side by side in it: they could be told apart in as many ways as there are blanks. */
const preferencePattern = /^\s*([\w-]+)\s*(?:=\s*(?:"([^"]*)"\s*|([^\s";]+)\s*)?)?(?:;|$)/

/**
 * Reads the header `Prefer` (RFC 7240). Preferences and parameters that are not known are ignored, and so is one that is there twice, as
 * its section 2 asks.
 */
function parsePrefer(header: string | string[] | undefined): Preferences {
  const values = new Map<string, string>()
  for (const preference of String(header ?? '').match(/(?:[^,"]|"[^"]*"?)+/g) ?? []) {
    const [, name = '', quoted, token] = preferencePattern.exec(preference) ?? []
    if (!values.has(name.toLowerCase())) values.set(name.toLowerCase(), (quoted ?? token ?? '').toLowerCase())
  }
  const isStrict = values.get('handling') === 'strict'
  if (!values.has('respond-async')) return { isStrict }
  const wait = /^\d{1,9}$/.exec(values.get('wait') ?? '')?.[0]
  return { isStrict, deferred: { wait: Math.min(Number(wait ?? 0), maxWait) * 1000 } }
}

/** What the query of a request says of how it is to be carried out. */
export interface Conduct {
  /** To show what would be sent, and to send nothing. */
  isDry: boolean
  /** To answer with a failure as a whole where only a part failed. */
  failsWithAny: boolean
}

/**
 * Reads `dry_run` and `fail` of a query.
 *
 * @throws RelayError `bad-request`
 */
export function parseConduct(query: URLSearchParams): Conduct {
  return { isDry: readFlag(query, 'dry_run'), failsWithAny: readChoice(query, 'fail', ['any']) !== undefined }
}

/** How long a message may wait. */
export type Expiry = Pick<Content, 'expiresIn'>

/**
 * Reads `expires_in` of a query, which means what the field of `/webhook` does; empty, it counts as absent.
 *
 * @throws RelayError `bad-request`
 */
export function readExpiry(query: URLSearchParams): Expiry {
  const text = query.get('expires_in')
  if (!text) return {}
  return parseExpiry({ expires_in: /^\d+(\.\d+)?$/.test(text) ? Number(text) : text })
}

/**
 * Reads a parameter of a query that has one of a few values; without any, or empty, it counts as absent.
 *
 * @throws RelayError `bad-request`
 */
export function readChoice<Choice extends string>(query: URLSearchParams, name: string, choices: readonly Choice[]): Choice | undefined {
  const text = query.get(name) ?? ''
  const found = choices.find(choice => choice === text)
  if (found === undefined && text !== '') throw new RelayError('bad-request', `${name} must be ${choices.join(', ').replace(/, (\w+)$/, ' or $1')}`)
  return found
}

function readFlag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? ''
  if (/^(1|true|yes|on)$/i.test(text)) return true
  if (/^(0|false|no|off)?$/i.test(text)) return false
  throw new RelayError('bad-request', `${name} must be 1 or 0`)
}
