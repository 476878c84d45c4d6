import { RelayError } from '../errors'
import type { ServerResponse } from 'node:http'
import type { ItemResult } from '../relay/transmitter'
import { parseRequest } from '../message/parse'
import { writeTarget } from '../message/target'
import { outcomeOf, viewResults, type DeliveryRecord } from '../relay/delivery'
import type { Submissions } from '../relay/submissions'
import { readBody, refuseEncoding, type BodyLimits } from './body'
import { parseKey, parsePrefer } from './preferences'
import type { Answer, Exchange, Route } from './routes'

// Refuses what is no UTF-8, and skips a byte order mark.
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * `POST /webhook`: sends a single message or a batch (document, section 4; contract, "HTTP").
 *
 * @param stop aborted when the relay is stopping
 */
export function webhookRoute(submissions: Submissions, prefix: string, limits: BodyLimits, stop: AbortSignal): Route {
  return {
    path: '/webhook',
    method: 'POST',
    async handle(exchange) {
      const { id, request: { headers }, response } = exchange
      const key = parseKey(headers['idempotency-key'])
      const deferred = parsePrefer(headers.prefer)
      const body = await readJson(exchange, limits, stop)
      const request = parseRequest(body)
      exchange.target = writeTarget(request.target)
      const { record, replayed } = await submissions.submit({
        id, request, body, signal: () => signalOf(response), ...key !== undefined && { key }, ...deferred && { deferred },
      })
      if (replayed) response.setHeader('Idempotent-Replayed', 'true')
      return toAnswer(exchange, record, prefix, deferred !== undefined)
    },
  }
}

function toAnswer(exchange: Exchange, record: DeliveryRecord, prefix: string, isAsync: boolean): Answer {
  const { id, state, mode, results } = record
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

async function readJson({ request, parsedBody }: Exchange, limits: BodyLimits, stop: AbortSignal): Promise<unknown> {
  if (typeof parsedBody === 'object' && parsedBody !== null) return parsedBody
  if (typeof parsedBody === 'string') return parseJson(parsedBody)
  refuseEncoding(request)
  const bytes = await readBody(request, limits, stop)
  return parseJson(bytes)
}

function parseJson(source: string | Buffer): unknown {
  try {
    const body: unknown = JSON.parse(typeof source === 'string' ? source : utf8.decode(source))
    return body
  } catch {
    throw new RelayError('invalid-json')
  }
}

function toBatchAnswer(exchange: Exchange, results: readonly (ItemResult | undefined)[]): Answer {
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
