import type { IncomingHttpHeaders } from 'node:http'
import { isHmac } from '../lib/crypto'
import type { Language } from '../lib/language'
import type { JsonObject } from '../lib/shape'
import { header } from './fields'
import type { Shape } from './shapes'

/** What a signature may be made of. */
export interface SignedRequest {
  readonly headers: IncomingHttpHeaders
  /** The bytes of the body, as they came. */
  readonly raw: Buffer
}

/** What somebody else's system has posted, as far as a source looks at it. */
export interface HookRequest extends SignedRequest {
  /** Without the relay's own parameters. */
  readonly query: URLSearchParams
  /** The object that was posted, or the fields of the form or query. */
  readonly payload: JsonObject
}

/** An event that somebody may want to read. */
export interface HookEvent {
  /** What `?events=` goes by, such as `push`. */
  name: string
  /** What `?branch=` goes by; absent where it has none, and then it passes. */
  branch?: string
  /** What `?status=` goes by: how a run, a build or an alert ended, such as `failure`. */
  status?: string
  /** What its later events belong together with, such as a pull request; unique within the source, of at most 200 characters. */
  thread?: string
  /** What the template of the source is given. */
  view: JsonObject
}

/** An event, or why nobody wants to read it. */
export type Reading = HookEvent | { skipped: string }

const lacks = { action: 'events without an action produce no message', state: 'events without a state produce no message' }

/** The status of a run that has begun: it is told only where the address asks for it by `?status=`. */
export const started = 'started'

/** Skips an event because of its action or state, as its sender calls it; empty where it says none. */
export function skip(what: 'action' | 'state', value: string): { skipped: string } {
  return { skipped: value === '' ? lacks[what] : `its ${what} "${value}" produces no message` }
}

/** What tells an event from all others, so that the same one is sent once. */
export interface EventKey {
  text: string
  /** For how long the same is the same event, in milliseconds; as long as an Idempotency-Key unless given. */
  lifetime?: number
}

/** One system whose posts are understood. */
export interface Source {
  /** As it stands in the path. */
  readonly name: string
  /** Whether it also comes as `GET`, with its payload in the query. */
  readonly takesGet?: boolean
  /**
   * The fields that say something, where a body may be its text as well: one that is neither JSON nor a form with any of these is the
   * field `text` of its payload.
   */
  readonly textFields?: readonly string[]
  /** How its callers expect to be answered; in the envelope unless given. */
  readonly shape?: Shape
  /**
   * The text of its template in a language; absent where that is a file in `templates/`. A template of the operator replaces either.
   */
  readonly template?: (language: Language) => string
  /**
   * Reads a payload. It decides what of it is worth a message and what the template is given; it writes no text.
   *
   * @throws RelayError `bad-request` where it cannot be one of this source
   */
  read(request: HookRequest): Reading
  /** Absent, or `undefined`: events of this source cannot be told from one another. */
  keyOf?(request: HookRequest): EventKey | undefined
  /** The header, in small letters, that its callers put a key into besides those that all may use. */
  readonly keyHeader?: string
  /** Whether a request carries a signature, which is then what proves who makes it. */
  isSigned?(request: Pick<SignedRequest, 'headers'>): boolean
  /** Whether the signature was made with this secret; compared in constant time. */
  verify?(request: SignedRequest, secret: string): boolean
}

/** For a source whose events have an ID in one of these headers. */
export function keyIn(...names: readonly string[]): NonNullable<Source['keyOf']> {
  return ({ headers }) => {
    const text = header(headers, ...names).trim()
    return text === '' ? undefined : { text }
  }
}

/** For a source that sends the HMAC-SHA256 of its body in a header, behind a prefix. */
export function signedIn(name: string, prefix = ''): Required<Pick<Source, 'isSigned' | 'verify'>> {
  return {
    isSigned: ({ headers }) => header(headers, name) !== '',
    verify({ headers, raw }, secret) {
      const given = header(headers, name)
      return given.startsWith(prefix) && isHmac(given.slice(prefix.length), secret, raw)
    },
  }
}
