import { RelayError } from '../errors'
import type { TargetNames } from '../message/model'
import { parseContent, parseTo, unknownFields } from '../message/parse'
import { readJson, type BodyLimits } from './body'
import { parseHandling } from './preferences'
import type { GuardedRoute } from './routes'
import type { Sender } from './sender'

/**
 * `POST /webhook`: sends a single message or a batch.
 *
 * @param names those that a request may have in the place of a target
 * @param stop aborted when the relay is stopping
 */
export function webhookRoute(sender: Sender, names: TargetNames, limits: BodyLimits, stop: AbortSignal): GuardedRoute {
  return {
    path: '/webhook',
    method: 'POST',
    allow: ['send'],
    async handle(exchange) {
      const { key, deferred, isStrict } = parseHandling(exchange.request.headers)
      const body = await readJson(exchange, limits, stop)
      const destinations = parseTo(body, names)
      const content = parseContent(body)
      exchange.ignored = unknownFields(body)
      const order = { content, destinations, ...key !== undefined && { key }, ...deferred && { deferred } }
      if (isStrict && exchange.ignored.length > 0) throw unknownError(exchange.ignored)
      sender.admit(exchange, order)
      const answer = await sender.send(exchange, order)
      if (isStrict) exchange.response.appendHeader('Preference-Applied', strict)
      return exchange.ignored.length > 0 ? { ...answer, data: { ...answer.data, ignored: exchange.ignored } } : answer
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
