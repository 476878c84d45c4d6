import type { ServerResponse } from 'node:http'
import { RelayError } from '../errors'
import { parseRequest } from '../message/parse'
import { writeTarget } from '../message/target'
import { outcomeOf, type Delivery, type Results } from '../relay/delivery'
import type { Relay } from '../relay/relay'
import { readJson, type BodyLimits } from './body'
import { viewResults } from './deliveries'
import type { Answer, Exchange, Route } from './routes'

/** The longest time that a caller may ask to wait for a result, in seconds. */
const maxWait = 600

/**
 * `POST /webhook`: sends a single message or a batch.
 *
 * @param prefix stands before the paths of the plugin
 * @param stop aborted when the relay is stopping
 */
export function webhookRoute(relay: Relay, prefix: string, limits: BodyLimits, stop: AbortSignal): Route {
  return {
    path: '/webhook',
    method: 'POST',
    async handle(exchange) {
      const { id, request: { headers }, response } = exchange
      const key = parseKey(headers['idempotency-key'])
      const deferred = parsePrefer(headers.prefer)
      const request = parseRequest(await readJson(exchange, limits, stop))
      exchange.target = writeTarget(request.target)
      const { delivery, isReplay } = await relay.submit({
        id, request, signal: () => signalOf(response), ...key !== undefined && { key }, ...deferred && { deferred },
      })
      if (isReplay) response.setHeader('Idempotent-Replayed', 'true')
      return toAnswer(exchange, delivery, prefix, deferred !== undefined)
    },
  }
}

function toAnswer(exchange: Exchange, delivery: Delivery, prefix: string, isAsync: boolean): Answer {
  const { id, state, mode, results } = delivery
  const { response } = exchange
  if (state === 'queued' || state === 'sending') {
    exchange.outcome = state
    if (isAsync) response.setHeader('Preference-Applied', 'respond-async')
    response.setHeader('Location', `${prefix}/deliveries/${id}`)
    return { status: 202, data: { delivery_id: id, state } }
  }
  const outcome = outcomeOf(results[0])
  if (results.every(result => outcomeOf(result) === outcome)) response.setHeader('Relay-Outcome', outcome)
  if (mode === 'batch') return toBatchAnswer(exchange, results)
  const [result] = results
  if (!result) throw new RelayError('internal')
  if (!result.success) throw result.error
  exchange.outcome = 'sent'
  return { data: { message_ids: result.messageIds } }
}

/** Aborted when the client has gone away before its answer. */
function signalOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableEnded) controller.abort()
  })
  return controller.signal
}

function toBatchAnswer(exchange: Exchange, results: Results): Answer {
  const success = results.filter(result => result?.success).length
  const statuses = new Set(results.flatMap(result => !result || result.success ? [] : [result.error.status]))
  exchange.outcome = `${success} of ${results.length} sent${statuses.size > 0 ? `, the others ${[...statuses].join(' ')}` : ''}`
  return {
    data: {
      total: results.length,
      success,
      failed: results.length - success,
      results: viewResults(results),
    },
  }
}

/**
 * Reads the header `Idempotency-Key`: 1 to 255 visible ASCII characters, quoted or not. Quoted, it is a string of RFC 8941, as the
 * draft of the IETF ("The Idempotency-Key HTTP Header Field") has it.
 *
 * @throws RelayError `bad-request`
 */
export function parseKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return
  const text = String(header).trim()
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted?.replace(/\\(["\\])/g, '$1') ?? text
  const isBroken = quoted === undefined && text.startsWith('"')
  if (isBroken || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new RelayError('bad-request', 'Idempotency-Key must be 1 to 255 visible ASCII characters without blanks, quoted or not')
  }
  return key
}

/**
 * Reads the header `Prefer` (RFC 7240). Preferences and parameters that are not known are ignored, as its section 2 asks.
 *
 * @returns how long to wait for the result before answering, in milliseconds; `undefined` when the answer is to be the result
 */
export function parsePrefer(header: string | string[] | undefined): { wait: number } | undefined {
  if (header === undefined) return
  const preferences = String(header).split(',').map(preference => preference.split(';', 1).join('').trim().toLowerCase())
  if (!preferences.includes('respond-async')) return
  const wait = preferences.map(preference => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(preference)?.[1]).find(Boolean)
  return { wait: Math.min(Number(wait ?? 0), maxWait) * 1000 }
}
