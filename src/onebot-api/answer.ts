import { jsonAnswer, type PlainAnswer } from '../http/routes'
import type { RelayError } from '../errors'
import type { JsonObject } from '../lib/shape'

/** The result of an action: the `data` of its answer, and whether the action is carried out later. */
export interface Reply extends Pick<PlainAnswer, 'headers' | 'log'> {
  data: unknown
  isAsync?: boolean
}

/**
 * The answer to a call that was carried out, or will be (OneBot 11, "HTTP"). `retcode` comes first, and there are no spaces between the
 * fields, because some scripts search the text for `"retcode":0,"status":"ok"`.
 */
export function success({ data, isAsync, ...told }: Reply, params: JsonObject): PlainAnswer {
  const body = isAsync ? { retcode: 1, status: 'async', data } : { retcode: 0, status: 'ok', data, message: '', wording: '' }
  return { ...write(200, body, params), ...told }
}

/**
 * The answer to a failed call.
 *
 * @param status the HTTP status
 * @param error the failure; its own status, which other doors answer with, becomes a part of `retcode`
 */
export function failure(status: number, { status: code, said, details }: RelayError, params: JsonObject): PlainAnswer {
  return write(status, { retcode: 1000 + code, status: 'failed', data: details ?? null, message: said, wording: said }, params)
}

/** @param params the parameters of the call: the answer repeats their `echo` */
function write(status: number, body: JsonObject, { echo }: JsonObject): PlainAnswer {
  return jsonAnswer(status, { ...body, echo })
}

/** Writes an ID for OneBot: as a number if possible, otherwise as text. */
export function writeId(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) && String(number) === id ? number : id
}
