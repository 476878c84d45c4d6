import type { IncomingHttpHeaders } from 'node:http'
import { isHmac } from '../lib/crypto'
import type { Language } from '../texts/language'
import type { JsonObject } from '../lib/shape'
import { header } from './fields'
import type { Severity } from '../message/model'
import { say, type Text } from '../texts/text'
import { severityOfWord } from './marks'
import type { Markup } from './markup'
import type { Shape } from './shapes'

/** The parts of a request that a signature may cover. */
export interface SignedRequest {
  readonly headers: IncomingHttpHeaders
  /** The bytes of the body as received. */
  readonly raw: Buffer
}

/** The parts of a webhook that sources read. */
export interface HookRequest extends SignedRequest {
  /** Without the parameters of the relay itself. */
  readonly query: URLSearchParams
  /** The posted object, or the fields of the form or query. */
  readonly payload: JsonObject
  /** The markup of texts that declare none, from `?format=`. */
  readonly format?: Markup | undefined
}

/** An event that makes a message. */
export interface HookEvent {
  /** The value that `?events=` filters, such as `push`. */
  name: string
  /** The value that `?branch=` filters. An event without one always passes. */
  branch?: string
  /** The value that `?status=` filters: the result of a run, a build or an alert, such as `failure`. */
  status?: string
  /** The thread that groups the event with later ones, such as a pull request. Unique within the source, at most 200 characters. */
  thread?: string
  /** How bad it is; by default as the word in `status` says. */
  severity?: Severity
  /** When what is wrong began, as `Wishes.begunAt`. */
  begunAt?: string
  /** What a digest shows of the event; by default its whole message. */
  line?: string
  /** The data for the template. */
  view: JsonObject
  /** The markup of the text that the template makes, where it makes it of whatever the payload has. */
  format?: Markup | undefined
}

/** An event, or the reason why the payload makes no message. */
export type Reading = HookEvent | { skipped: Text }

/** How bad an event is; `undefined` if it does not say. */
export function severityOf({ severity, status }: HookEvent): Severity | undefined {
  return severity ?? severityOfWord(status)
}

/** The status of a run that has begun. Such events make messages only if the address asks for them by `?status=`. */
export const started = 'started'

/** Skips an event because of its action or state, in the sender's word; empty if the event has none. */
export function skip(what: 'action' | 'state', value: string): { skipped: Text } {
  if (value === '') return { skipped: say(what === 'action' ? 'skip-without-action' : 'skip-without-state') }
  return { skipped: say(what === 'action' ? 'skip-action' : 'skip-state', { value }) }
}

/** The identity of an event, so that a repeated event is sent only once. */
export interface EventKey {
  text: string
  /** How long a repeated key means the same event, in milliseconds. Defaults to the lifetime of an Idempotency-Key. */
  lifetime?: number
}

/** A system whose webhooks the relay understands. */
export interface Source {
  /** The name in the path. */
  readonly name: string
  /** Whether it also accepts `GET`, with the payload in the query. */
  readonly acceptsGet?: boolean
  /**
   * The fields with the message, for a source that also accepts plain text: a body that is neither JSON nor a form with one of these
   * fields becomes the field `text` of the payload.
   */
  readonly textFields?: readonly string[]
  /** Whether clients append a path of their own behind the target, and have the key in the path or the body. */
  readonly takesTail?: boolean
  /** The answers that its callers expect; the envelope unless given. */
  readonly shape?: Shape
  /** The source whose template it uses; its own by default. */
  readonly like?: string
  /** The template in a language; absent if it is a file in `templates/`. A template of the operator replaces either. */
  readonly template?: (language: Language) => string
  /**
   * Reads a payload: decides whether it makes a message, and selects the data for the template. It writes no text.
   *
   * @throws RelayError `bad-request` if the payload cannot be one of this source
   */
  read(request: HookRequest): Reading
  /** The identity of an event; absent, or `undefined`, if repeated events cannot be recognized. */
  keyOf?(request: HookRequest): EventKey | undefined
  /** An additional header for the key, in lower case, besides those of all sources. */
  readonly keyHeader?: string
  /** Whether a request has a signature, which authenticates it if no key does. */
  isSigned?(request: Pick<SignedRequest, 'headers'>): boolean
  /** Whether the signature was made with this secret. Compares in constant time. */
  verify?(request: SignedRequest, secret: string): boolean
}

/** `keyOf` of a source whose events have an ID in one of these headers. */
export function keyIn(...names: readonly string[]): NonNullable<Source['keyOf']> {
  return ({ headers }) => {
    const text = header(headers, ...names).trim()
    return text === '' ? undefined : { text }
  }
}

/** `isSigned` and `verify` of a source that sends the HMAC-SHA256 of the body in a header, after a prefix. */
export function signedIn(name: string, prefix = ''): Required<Pick<Source, 'isSigned' | 'verify'>> {
  return {
    isSigned: ({ headers }) => header(headers, name) !== '',
    verify({ headers, raw }, secret) {
      const given = header(headers, name)
      return given.startsWith(prefix) && isHmac(given.slice(prefix.length), secret, raw)
    },
  }
}
