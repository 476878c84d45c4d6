import { RelayError } from '../errors'

/** How a send that did not succeed ended: refused by the platform, never sent, or without an answer. */
export type FailedOutcome = 'refused' | 'unsent' | 'unanswered' | 'suppressed'

/** What the platform said of a message that it took. */
export interface Receipt {
  /** The IDs that the platform gave, in sending order; none for a file. */
  messageIds: string[]
}

/** What more is known of a failure. */
export interface SendErrorOptions extends ErrorOptions {
  aboutTarget?: boolean
  /** Whether to try again would do harm. */
  isFinal?: boolean
}

/** A send that failed, with what is known about whether anything arrived. */
export class SendError extends Error {
  override readonly name = 'SendError'

  /** Whether it says something about the target (muted, not a member, no such group), so that trying on is no use. */
  readonly aboutTarget: boolean
  /** Whether the same call may fare better the next time. */
  readonly isRetryable: boolean

  /** @param wording the platform's own words, fit to be shown to the caller */
  constructor(readonly outcome: FailedOutcome, readonly wording?: string, options: SendErrorOptions = {}) {
    super(wording ?? outcome, options)
    this.aboutTarget = options.aboutTarget ?? false
    this.isRetryable = !this.aboutTarget && !options.isFinal && outcome !== 'suppressed'
  }

  /** The failure as the caller is told; its cause is this one. */
  toRelayError(): RelayError {
    return new RelayError(this.outcome, this.wording && `${texts[this.outcome]}: ${this.wording}`, { cause: this })
  }
}

const texts: Readonly<Record<FailedOutcome, string>> = {
  refused: 'the platform refused the message',
  suppressed: 'another plugin of the bot suppressed the message',
  unsent: 'nothing was sent, try again later',
  unanswered: 'the message may have arrived',
}

const maxWordingLength = 200

/**
 * Makes a platform's text fit for a caller: one line, at most 200 characters, without local paths, data or links, which
 * error texts like to repeat from the arguments.
 */
export function cleanWording(text: string): string | undefined {
  const clean = text
    .slice(0, 4000)
    .replace(/(['"])[^'"]*[\\/][^'"]*\1/g, '$1…$1')
    .replace(/\b(?:file|base64|https?|data):[^\s'"]*/gi, '…')
    .replace(/(?:\b[A-Za-z]:)?(?:[\\/][^\s\\/'":,;()]+){2,}[\\/]?/g, '…')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return clean.length > maxWordingLength ? `${clean.slice(0, maxWordingLength - 1)}…` : clean || undefined
}

const neverSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])
const cutOff = /^(?:ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED|UND_ERR_.*)$/

/**
 * The general rule for what an adapter throws: an answer that names a reason is a refusal; a connection that could not be
 * made means that nothing was sent; time-outs, lost connections and answers of 500 and above leave it open.
 */
export function classifyThrown(error: unknown): SendError {
  if (error instanceof SendError) return error
  const options = { cause: error }
  // Satori's AggregateError (not the global one) holds what became of several platform messages.
  const errors = field(error, 'errors')
  if (Array.isArray(errors) && errors.length > 0) return classifyThrown(errors[0])
  const code = field(error, 'code') ?? field(field(error, 'cause'), 'code')
  const text = error instanceof Error ? error.message : ''
  if (typeof code === 'string' && neverSent.has(code)) return new SendError('unsent', undefined, options)
  if (text.includes('_request is not a function')) return new SendError('unsent', undefined, options)
  if (typeof code === 'string' && cutOff.test(code)) return new SendError('unanswered', undefined, options)
  if (error instanceof Error && /timeout|abort/i.test(`${error.name} ${error.constructor.name}`)) {
    return new SendError('unanswered', undefined, options)
  }
  const status = field(field(error, 'response'), 'status')
  if (typeof status === 'number' && status >= 500) return new SendError('unanswered', undefined, options)
  return new SendError('refused', cleanWording(text), options)
}

/**
 * What may be logged of a failure. Adapters write all arguments of a call into the texts of what they throw, so of those only the
 * class is told.
 */
export function loggableText({ message, cause }: RelayError): string {
  const isForeign = cause instanceof SendError && cause.wording !== undefined && cause.cause !== undefined
  return isForeign ? `the adapter threw ${cause.cause instanceof Error ? cause.cause.name : typeof cause.cause}` : message
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
