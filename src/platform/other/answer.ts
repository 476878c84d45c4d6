import { HTTP, type Context } from 'koishi'
import { AsyncLocalStorage } from 'node:async_hooks'
import { parseJson } from '../../lib/json'
import { fieldsOf, toText, type JsonObject } from '../../lib/shape'
import { SendError } from '../port'
import { retryAfterOf, toFailure, type WebAnswer } from '../web'
import type { Adapter } from './adapters'

/*
 * The answers of platforms to the requests that adapters make through Koishi's HTTP client. Adapters turn an answer into a text or an error
 * of their own, or swallow it, so the relay reads the answer itself.
 */

/** A request of an adapter that changes something. Without an answer, it may have been carried out. */
export interface Exchange { answer?: Said }

/** What a platform answered. */
type Said = Omit<WebAnswer, 'text'>

/** The exchanges of the present call. */
const current = new AsyncLocalStorage<Exchange[]>()

/** Starts to observe the requests of an app. The returned function ends that. */
export function watchExchanges(app: Context): () => void {
  // `config` is what the client goes on to read: @cordisjs/plugin-http 0.6.3, `HTTP[Service.invoke]`.
  return app.on('http/fetch-init', (_url, { method }, config) => {
    const exchanges = current.getStore()
    if (!exchanges || method === 'GET' || seen.has(config)) return
    seen.add(config)
    const exchange: Exchange = {}
    exchanges.push(exchange)
    Object.assign(config, note(exchange, fieldsOf(config)))
  })
}

/** During a reload, both relays may observe the same request. */
const seen = new WeakSet()

/** Runs a call of an adapter, and adds its exchanges to the list as they start. */
export function observe<T>(exchanges: Exchange[], call: () => Promise<T>): Promise<T> {
  return current.run(exchanges, call)
}

/** Changes the options of a request so that its answer is noted. For the adapter, nothing changes. */
function note(exchange: Exchange, { validateStatus, responseType }: JsonObject): object {
  const isValid = (status: number): unknown => typeof validateStatus === 'function' ? Reflect.apply(validateStatus, undefined, [status]) : status < 400
  const begin = ({ status, headers }: Pick<Response, 'status' | 'headers'>): Said => exchange.answer = { status, headers, body: undefined }
  if (responseType !== undefined) {
    return {
      validateStatus(status: number) {
        begin({ status, headers: new Headers() })
        return isValid(status)
      },
    }
  }
  return {
    validateStatus: () => true,
    async responseType(response: Response) {
      const answer = begin(response)
      if (isValid(response.status)) return answer.body = await decode(response)
      const { url, status, statusText, headers } = response
      const error = new HTTP.Error(statusText)
      error.response = { url, status, statusText, headers, data: answer.body = await decode(response).catch(() => null) }
      throw error
    },
  }
}

/** Like `defaultDecoder` of the HTTP client. */
function decode(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  return type.startsWith('application/json') ? response.json() : type.startsWith('text/') ? response.text() : response.arrayBuffer()
}

/**
 * Reads a failure from an answer; `undefined` for a success.
 *
 * @param adapter the known adapter, if it is one: some platforms refuse with a status of success
 */
export function failureOf(answer: Said | undefined, adapter: Adapter | undefined): SendError | undefined {
  if (!answer) return
  const { status, headers, body } = answer
  const { code, words } = complaintOf(fieldsOf(body), adapter)
  const scope = adapter?.limits?.get(code) ?? (status === 429 ? 'account' : undefined)
  if (scope) return toFailure(429, { words, scope, wait: waitOf(headers, fieldsOf(body)) })
  if (adapter?.unclear?.includes(code)) return toFailure(500, { words })
  const causeId = adapter?.causes?.get(code) ?? (status === 401 ? 'logged-out' : undefined)
  if (status >= 400) return toFailure(status, { words, causeId })
  if (!adapter || code === '') return
  // QQ answers 201 and 202 while it has not decided.
  return toFailure(status > 200 ? 500 : 400, { words, causeId })
}

/** The answer in an adapter's error, or at the start of its text: `[502] {"code":…}`, `Telegram API error 502. Bad Gateway`. */
export function answerIn(error: unknown): Said | undefined {
  const { status, headers, data } = fieldsOf(fieldsOf(error).response)
  if (typeof status === 'number') return { status, headers: headers instanceof Headers ? headers : new Headers(), body: data }
  const [, code, text = ''] = /^(?:\[|\w+ API error )([1-5]\d\d)\b[\].]? ?(.*)/s.exec(error instanceof Error ? error.message : '') ?? []
  return code === undefined ? undefined : { status: Number(code), headers: new Headers(), body: parseJson(text) ?? { message: text } }
}

/** The code and the words of a complaint; no code if there is no complaint. */
function complaintOf(body: JsonObject, adapter: Adapter | undefined): { code: string, words: string } {
  const error = fieldsOf(body.error)
  const code = [adapter?.complaint?.(body), error.code, body.errcode, body.code, body.ok === false && body.error]
    .map(toText).find(text => text !== '' && text !== '0') ?? ''
  const words = [error.message, body.errmsg, body.message, body.msg, body.description, body.error].map(toText).find(Boolean) ?? code
  return { code, words }
}

/** `Retry-After`, KOOK's header for the same, or the field `retry_after`, in seconds. */
function waitOf(headers: Headers, body: JsonObject): number | undefined {
  const seconds = [headers.get('x-rate-limit-reset'), body.retry_after].map(Number).find(number => number > 0)
  return retryAfterOf(headers) ?? (seconds && seconds * 1000)
}
