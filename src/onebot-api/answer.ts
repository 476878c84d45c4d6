import type { PlainAnswer } from '../http/routes'
import type { JsonObject } from '../message/parse'

/** What an action gives: the `data` of its answer, or `async` when it is carried out later. */
export type Reply = { data: unknown } | 'async'

/**
 * The answer to a call that was carried out, or will be (OneBot 11, "HTTP"). `retcode` comes first and nothing stands between the fields:
 * there are scripts that look for `"retcode":0,"status":"ok"` in the text.
 */
export function success(reply: Reply, params: JsonObject): PlainAnswer {
  if (reply === 'async') return write(200, { retcode: 1, status: 'async', data: null }, params)
  return write(200, { retcode: 0, status: 'ok', data: reply.data, message: '', wording: '' }, params)
}

/**
 * The answer to a call that failed.
 *
 * @param status of HTTP
 * @param code the status that the same failure has elsewhere in the relay
 */
export function failure(status: number, code: number, message: string, params: JsonObject): PlainAnswer {
  return write(status, { retcode: 1000 + code, status: 'failed', data: null, message, wording: message }, params)
}

/** @param params of the call: its `echo` is given back */
function write(status: number, body: JsonObject, { echo }: JsonObject): PlainAnswer {
  return { status, type: 'application/json; charset=utf-8', body: JSON.stringify({ ...body, echo }) }
}

/** An ID as OneBot has it: a number, where it is one. */
export function writeId(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) && String(number) === id ? number : id
}
