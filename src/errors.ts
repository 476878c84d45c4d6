/**
 * Every way in which a request can fail, with its HTTP status and the text that a caller reads when nothing more
 * specific is known. Source: contract, "HTTP".
 */
const table = {
  'invalid-json': [400, 'invalid json'],
  'bad-request': [400, 'bad request'],
  'unauthorized': [401, 'missing or wrong API key: send it as "Authorization: Bearer <key>" or "X-API-Key: <key>"'],
  'not-found': [404, 'no such path'],
  'file-not-found': [404, 'no such file: it was never uploaded here, or has been removed since; upload it again'],
  'method-not-allowed': [405, 'method not allowed'],
  'too-slow': [408, 'the request body arrived too slowly: send it again'],
  'too-large': [413, 'request body too large'],
  'unsupported-type': [415, 'unsupported content type'],
  'internal': [500, 'internal error: see the log of the bot for this request ID'],
  'refused': [502, 'the platform refused the message'],
  'suppressed': [502, 'another plugin of the bot suppressed the message: nothing was sent'],
  'unsent': [503, 'no bot is online: try again later'],
  'stopping': [503, 'the relay is stopping: nothing was sent, try again later'],
  'unanswered': [504, 'the platform did not answer in time: the message may have arrived'],
} as const satisfies Record<string, readonly [status: number, text: string]>

/** Names of the failures that a caller can meet. */
export type ErrorCode = keyof typeof table

/** What a failure may carry besides its code. */
export interface RelayErrorOptions {
  /** The failure behind it: for the log only, a caller never sees it. */
  cause?: unknown
  /** Response headers that belong to this failure. */
  headers?: Readonly<Record<string, string>>
}

/**
 * A failure that is told to the caller. Its message is the `msg` of the envelope, so it must say what to do and must hold no
 * key, no local path and no stack.
 */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  /** HTTP status, and the `code` of the envelope. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(readonly code: ErrorCode, message?: string, options: RelayErrorOptions = {}) {
    super(message ?? table[code][1], { cause: options.cause })
    this.status = table[code][0]
    this.headers = options.headers ?? {}
  }

  /** Wraps whatever was thrown: a RelayError stays what it is, anything else is an internal failure. */
  static from(error: unknown): RelayError {
    return error instanceof RelayError ? error : new RelayError('internal', undefined, { cause: error })
  }
}
