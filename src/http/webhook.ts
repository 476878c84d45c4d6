import type { TargetNames } from '../message/model'
import { ignoredFields, parseContent, parseTo } from '../message/parse'
import { readJson, type BodyLimits } from './body'
import { parseHandling, readTiming } from './preferences'
import { route, type Route } from './routes'
import type { Sender } from './sender'

/**
 * `POST /webhook`: sends a single message or a batch.
 *
 * @param names the names of targets
 */
export function webhookRoute(sender: Sender, names: TargetNames, limits: BodyLimits): Route {
  return route('POST', '/webhook', ['send'], async exchange => {
    const handling = parseHandling(exchange.request.headers, exchange.query)
    const body = await readJson(exchange, limits)
    const destinations = parseTo(body, names)
    const content = { ...readTiming(exchange.query), ...parseContent(body) }
    const order = { door: 'webhook', content, destinations, ignored: ignoredFields(body), ...handling }
    sender.admit(exchange, order)
    return sender.send(exchange, order)
  })
}
