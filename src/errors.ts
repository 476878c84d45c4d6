import type { errors } from './texts/table/errors'
import { Text } from './texts/text'

/** The outcome of a message: it arrived, the platform said no, it never left, or it may have arrived. */
export type Outcome = 'sent' | 'refused' | 'unsent' | 'unanswered'

type Row = readonly [status: number, outcome?: Outcome]

/**
 * Every failure of a request, with its HTTP status. A failure with an outcome is about a message; one without comes before anything was
 * tried.
 */
const table = {
  'invalid-json': [400],
  'bad-request': [400],
  'unauthorized': [401],
  'forbidden': [403],
  'not-found': [404],
  'no-such-target': [404],
  'file-not-found': [404],
  'method-not-allowed': [405],
  'in-progress': [409],
  'conflict': [409],
  'too-slow': [408],
  'too-large': [413],
  'unsupported-type': [415],
  'key-reused': [422],
  'rate-limited': [429],
  'queue-full': [429, 'unsent'],
  'internal': [500],
  'refused': [502, 'refused'],
  'failed': [502],
  'suppressed': [502, 'refused'],
  'unsent': [503, 'unsent'],
  'paused': [503, 'unsent'],
  'expired': [503, 'unsent'],
  'store-down': [503, 'unsent'],
  'standby': [503, 'unsent'],
  'stopping': [503, 'unsent'],
  'unanswered': [504, 'unanswered'],
  'storage-full': [507],
} as const satisfies Record<string, Row>

/** The codes of the failures that callers meet. */
export type ErrorCode = keyof typeof table

/** Checks that a value is such a code. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(table, value)
}

/** The parts of a failure besides its code. */
export interface RelayErrorOptions {
  /** The exception that caused it, for the log only. */
  cause?: unknown
  /** Response headers that belong to this failure. */
  headers?: Readonly<Record<string, string>>
  /** The text for the log, if the other contains words of a platform or an adapter. */
  logText?: Text
  /** HTTP status, if the callers of a door expect another one than that of the code. */
  status?: number
  /** The outcome of the message, if it is not that of the code; `null` if nothing is known of it. */
  outcome?: Outcome | null | undefined
  /** What programs may want to know about this failure, with the names that callers see: members of `error` in the envelope. */
  details?: object
}

/** A failure for the caller. What it says is the `msg` of the envelope: the cause and what to do, without a key, local path or stack. */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  /** HTTP status, and the `code` of the envelope. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** What it says. The message of the exception is the same in English. */
  readonly said: Text
  /** The text for the log. */
  readonly logText: Text
  readonly details: object | undefined
  /** The outcome of the message; `undefined` for a failure that is not about a message. */
  readonly outcome: Outcome | undefined

  /** @param said what it says; by default the usual text of the code */
  constructor(code: keyof typeof errors, said?: Text, options?: RelayErrorOptions)
  constructor(code: ErrorCode, said: Text, options?: RelayErrorOptions)
  constructor(readonly code: ErrorCode, said = new Text(code), options: RelayErrorOptions = {}) {
    super(said.toString(), { cause: options.cause })
    this.said = said
    this.status = options.status ?? table[code][0]
    this.headers = options.headers ?? {}
    this.logText = options.logText ?? said
    this.details = options.details
    const [, outcome]: Row = table[code]
    this.outcome = options.outcome === undefined ? outcome : options.outcome ?? undefined
  }

  /** The outcome, the details and the seconds of `Retry-After`, as callers see them. */
  get facts(): object {
    const { 'retry-after': seconds } = this.headers
    return { ...this.outcome && { outcome: this.outcome }, ...this.details, ...seconds !== undefined && { retry_after: Number(seconds) } }
  }

  /** The envelope of this failure. */
  get envelope(): object {
    return { code: this.status, msg: this.said, data: null, error: { id: this.code, ...this.facts } }
  }

  /** A copy with changes; details are added to the present ones. */
  with({ said, details, ...change }: RelayErrorOptions & { said?: Text }): RelayError {
    const { cause, headers, logText, status, outcome } = this
    return new RelayError(this.code, said ?? this.said, {
      cause, headers, logText, status, outcome: outcome ?? null, ...change,
      ...(details ?? this.details) && { details: { ...this.details, ...details } },
    })
  }

  /** Returns a RelayError as it is, and wraps any other exception as an internal failure. */
  static from(error: unknown): RelayError {
    return error instanceof RelayError ? error : new RelayError('internal', undefined, { cause: error })
  }
}

/** The code of a system error, such as `ENOENT`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}

/**
 * Checks a request against a rule.
 *
 * @throws RelayError `bad-request` with the rule as its text
 */
export function demand(condition: boolean, rule: Text): asserts condition {
  if (!condition) throw new RelayError('bad-request', rule)
}
