/** The outcome of a message: it arrived, the platform said no, it never left, or it may have arrived. */
export type Outcome = 'sent' | 'refused' | 'unsent' | 'unanswered'

type Row = readonly [status: number, text: string, outcome?: Outcome]

/**
 * Every failure of a request, with its HTTP status and its default text. A failure with an outcome is about a message; one without comes
 * before anything was tried.
 */
const table = {
  'invalid-json': [400, 'invalid json'],
  'bad-request': [400, 'bad request'],
  'unauthorized': [401, 'missing or wrong API key: send it as "Authorization: Bearer <key>" or "X-API-Key: <key>"'],
  'forbidden': [403, 'this key may not do this'],
  'not-found': [404, 'no such delivery'],
  'no-such-target': [404, 'no such target'],
  'file-not-found': [404, 'no such file: it was never uploaded here, or has been removed since; upload it again'],
  'method-not-allowed': [405, 'method not allowed'],
  'in-progress': [409, 'the first request with this Idempotency-Key is still under way: ask again later'],
  'conflict': [409, 'the state of this delivery does not allow it'],
  'too-slow': [408, 'the request body arrived too slowly: send it again'],
  'too-large': [413, 'request body too large'],
  'unsupported-type': [415, 'unsupported content type'],
  'key-reused': [422, 'this Idempotency-Key was used for a different request: use a new key for a new message'],
  'rate-limited': [429, 'this key has reached its message rate: try again later'],
  'queue-full': [429, 'too many messages are waiting for this target: nothing was sent, try again later', 'unsent'],
  'internal': [500, 'internal error: see the log of the bot for this request ID'],
  'refused': [502, 'the platform refused the message', 'refused'],
  'failed': [502, 'a part of the request failed'],
  'suppressed': [502, 'another plugin of the bot suppressed the message: nothing was sent', 'refused'],
  'unsent': [503, 'no bot is online: try again later', 'unsent'],
  'paused': [503, 'this target is paused after repeated failures: nothing was sent, try again later', 'unsent'],
  'expired': [503, 'the message expired before it could be delivered: nothing was sent', 'unsent'],
  'store-down': [503, 'the relay cannot use its data file: try again later', 'unsent'],
  'standby': [503, 'this relay stands by, because another process uses its data folder: nothing was sent, try again later', 'unsent'],
  'stopping': [503, 'the relay is stopping: nothing was sent, try again later', 'unsent'],
  'unanswered': [504, 'the platform did not answer in time: the message may have arrived', 'unanswered'],
  'storage-full': [507, 'the disk of the relay is full: nothing was stored or sent; free some space, then try again'],
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
  /** The text for the log, if the message contains text of a platform or an adapter. */
  logText?: string
  /** HTTP status, if the callers of a door expect another one than that of the code. */
  status?: number
  /** The outcome of the message, if it is not that of the code; `null` if nothing is known of it. */
  outcome?: Outcome | null | undefined
  /** What programs may want to know about this failure, with the names that callers see: members of `error` in the envelope. */
  details?: object
}

/**
 * A failure for the caller. Its message is the `msg` of the envelope: it says what to do, and contains no key, local path or stack.
 */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  /** HTTP status, and the `code` of the envelope. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The text for the log. */
  readonly logText: string
  readonly details: object | undefined
  /** The outcome of the message; `undefined` for a failure that is not about a message. */
  readonly outcome: Outcome | undefined

  constructor(readonly code: ErrorCode, message?: string, options: RelayErrorOptions = {}) {
    super(message ?? table[code][1], { cause: options.cause })
    this.status = options.status ?? table[code][0]
    this.headers = options.headers ?? {}
    this.logText = options.logText ?? this.message
    this.details = options.details
    const [, , outcome]: Row = table[code]
    this.outcome = options.outcome === undefined ? outcome : options.outcome ?? undefined
  }

  /** The outcome, the details and the seconds of `Retry-After`, as callers see them. */
  get facts(): object {
    const { 'retry-after': seconds } = this.headers
    return { ...this.outcome && { outcome: this.outcome }, ...this.details, ...seconds !== undefined && { retry_after: Number(seconds) } }
  }

  /** The envelope of this failure. */
  get envelope(): object {
    return { code: this.status, msg: this.message, data: null, error: { id: this.code, ...this.facts } }
  }

  /** A copy with changes; details are added to the present ones. */
  with({ message, details, ...change }: RelayErrorOptions & { message?: string }): RelayError {
    const { cause, headers, logText, status, outcome } = this
    return new RelayError(this.code, message ?? this.message, {
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
export function demand(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new RelayError('bad-request', rule)
}
