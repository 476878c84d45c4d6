import { jsonAnswer, type PlainAnswer } from '../http/routes'
import type { RelayError } from '../errors'
import type { JsonObject } from '../lib/shape'

/** What an action gives: the `data` of its answer, and whether it is carried out later. */
export interface Reply {
  data: unknown
  isAsync?: boolean
}

/**
 * The answer to a call that was carried out, or will be (OneBot 11, "HTTP"). `retcode` comes first and nothing stands between the fields:
 * there are scripts that look for `"retcode":0,"status":"ok"` in the text.
 */
export function success({ data, isAsync }: Reply, params: JsonObject): PlainAnswer {
  if (isAsync) return write(200, { retcode: 1, status: 'async', data }, params)
  return write(200, { retcode: 0, status: 'ok', data, message: '', wording: '' }, params)
}

/**
 * The answer to a call that failed.
 *
 * @param status of HTTP
 * @param error whose status is that which the same failure has elsewhere in the relay
 */
export function failure(status: number, { status: code, message, data }: Pick<RelayError, 'status' | 'message' | 'data'>, params: JsonObject): PlainAnswer {
  return write(status, { retcode: 1000 + code, status: 'failed', data, message, wording: message }, params)
}

/** @param params of the call: its `echo` is given back */
function write(status: number, body: JsonObject, { echo }: JsonObject): PlainAnswer {
  return jsonAnswer(status, { ...body, echo })
}

/** An ID as OneBot has it: a number, where it is one. */
export function writeId(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) && String(number) === id ? number : id
}
