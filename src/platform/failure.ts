import { SendError } from './port'

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

/** Rethrows whatever an adapter threw as a SendError. */
export function throwClassified(error: unknown): never {
  throw classifyThrown(error)
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
