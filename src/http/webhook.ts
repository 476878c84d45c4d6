import type { ServerResponse } from 'node:http'
import { RelayError } from '../errors'
import type { TargetNames } from '../message/model'
import { isObject, parseRequest, unknownFields } from '../message/parse'
import { writeTarget } from '../message/target'
import { outcomeOf, type Delivery, type Results } from '../relay/delivery'
import type { Relay } from '../relay/relay'
import { readJson, type BodyLimits } from './body'
import { viewResults } from './deliveries'
import type { Exchange, GuardedRoute, Success } from './routes'

/** The longest time that a caller may ask to wait for a result, in seconds. */
const maxWait = 600

/**
 * `POST /webhook`: sends a single message or a batch.
 *
 * @param prefix stands before the paths of the plugin
 * @param names those that a request may have in the place of a target
 * @param stop aborted when the relay is stopping
 */
export function webhookRoute(relay: Relay, prefix: string, names: TargetNames, limits: BodyLimits, stop: AbortSignal): GuardedRoute {
  return {
    path: '/webhook',
    method: 'POST',
    allow: ['send'],
    async handle(exchange) {
      const { id, caller, request: { headers }, response } = exchange
      const key = parseKey(headers['idempotency-key'])
      const { deferred, isStrict } = parsePrefer(headers.prefer)
      const body = await readJson(exchange, limits, stop)
      const request = parseRequest(body, names)
      const { target, bot } = request
      exchange.target = writeTarget(target)
      exchange.ignored = unknownFields(body)
      const asked = isObject(body) && typeof body.to === 'string' && body.to ? body.to : exchange.target
      caller.demandTarget(target, bot.platform, asked)
      if (isStrict && exchange.ignored.length > 0) throw unknownError(exchange.ignored)
      caller.spend(request.items.length)
      const { delivery, isReplay, retryAfter } = await relay.submit({
        id, request, caller: caller.name, admit: platform => caller.demandTarget(target, platform, asked),
        signal: () => signalOf(response), ...key !== undefined && { key }, ...deferred && { deferred },
      })
      if (isReplay) response.setHeader('Idempotent-Replayed', 'true')
      // The record is that of the first request with the key (RFC 9110, section 8.7).
      if (delivery.id !== id) response.setHeader('Content-Location', `${prefix}/deliveries/${delivery.id}`)
      // Of a batch the answer is no failure, which is what this header is for.
      if (retryAfter !== undefined && request.mode === 'single') response.setHeader('Retry-After', retryAfter)
      const { data, status = 200 } = toAnswer(exchange, delivery, prefix)
      const applied = [...deferred && status === 202 ? ['respond-async'] : [], ...isStrict ? [strict] : []]
      if (applied.length > 0) response.setHeader('Preference-Applied', applied.join(', '))
      return { status, data: exchange.ignored.length > 0 ? { ...data, ignored: exchange.ignored } : data }
    },
  }
}

/** The preference for a failure where something in the request would be ignored (RFC 7240, section 4.4). */
const strict = 'handling=strict'

function unknownError(names: readonly string[]): RelayError {
  return new RelayError('bad-request', `unknown fields: ${names.join(', ')}`, {
    headers: { 'preference-applied': strict },
    logText: 'unknown fields',
  })
}

function toAnswer(exchange: Exchange, delivery: Delivery, prefix: string): Success {
  const { id, state, mode, results } = delivery
  const { response } = exchange
  if (state === 'queued' || state === 'sending') {
    exchange.outcome = state
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

function toBatchAnswer(exchange: Exchange, results: Results): Success {
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

/** What the header `Prefer` asks for. */
interface Preferences {
  /** To answer before the result is there, and how long to wait for it first, in milliseconds. */
  deferred?: { wait: number }
  /** To fail where something in the request would be ignored. */
  isStrict: boolean
}

/**
 * Reads the header `Prefer` (RFC 7240). Preferences and parameters that are not known are ignored, and so is one that is there twice, as
 * its section 2 asks.
 */
export function parsePrefer(header: string | string[] | undefined): Preferences {
  const values = new Map<string, string>()
  for (const preference of String(header ?? '').match(/(?:[^,"]|"[^"]*"?)+/g) ?? []) {
    const [, name = '', quoted, token] = /^\s*([\w-]+)\s*(?:=\s*(?:"([^"]*)"|([^\s";]*))\s*)?(?:;|$)/.exec(preference) ?? []
    if (!values.has(name.toLowerCase())) values.set(name.toLowerCase(), (quoted ?? token ?? '').toLowerCase())
  }
  const isStrict = values.get('handling') === 'strict'
  if (!values.has('respond-async')) return { isStrict }
  const wait = /^\d{1,9}$/.exec(values.get('wait') ?? '')?.[0]
  return { isStrict, deferred: { wait: Math.min(Number(wait ?? 0), maxWait) * 1000 } }
}
