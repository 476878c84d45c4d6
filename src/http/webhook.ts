import type { TargetNames } from '../message/model'
import { parseContent, parseTo, ignoredFields } from '../message/parse'
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
      const handling = parseHandling(exchange.request.headers)
      const body = await readJson(exchange, limits, stop)
      const destinations = parseTo(body, names)
      const order = { door: 'webhook', content: parseContent(body), destinations, ...handling }
      exchange.ignored = ignoredFields(body)
      sender.admit(exchange, order)
      return sender.send(exchange, order)
    },
  }
}
