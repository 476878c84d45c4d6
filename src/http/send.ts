import { parsePath } from '../message/destination'
import type { TargetNames } from '../message/model'
import { RequestFiles } from '../uploads/request-files'
import type { UploadStore } from '../uploads/store'
import { parseConduct, parseHandling } from './preferences'
import type { AllowedExchange, GuardedRoute, Success } from './routes'
import { readWish, type SendLimits } from './send-body'
import type { Sender } from './sender'

/** What `/send` needs of the rest of the relay. */
export interface SendOptions {
  sender: Sender
  uploads: UploadStore
  /** Those that a path may have in the place of a target. */
  names: TargetNames
  limits: SendLimits
  /** Aborted when the relay is stopping. */
  stop: AbortSignal
}

/**
 * `POST` and `PUT /send/<target>[,<target>…]`, and `PUT` with `/<file name>` behind it: sends a body as it is, for callers that make no
 * JSON.
 */
export function sendRoutes(options: SendOptions): GuardedRoute[] {
  const handle: GuardedRoute['handle'] = exchange => send(exchange, options)
  return [
    { path: '/send/:targets', method: 'POST', allow: ['send'], handle },
    { path: '/send/:targets', method: 'PUT', allow: ['send'], handle },
    { path: '/send/:targets/:name', method: 'PUT', allow: ['send'], handle },
  ]
}

async function send(exchange: AllowedExchange, { sender, uploads, names, limits, stop }: SendOptions): Promise<Success> {
  const { params: { targets = '' }, query, request } = exchange
  // Whatever can be refused is, before anything of the body is read.
  sender.demandTargets(exchange, parsePath(targets, {}, names))
  const handling = parseHandling(request.headers)
  parseConduct(query)
  const files = new RequestFiles(uploads)
  try {
    const { content, bot, ignored } = await readWish(exchange, files, limits, stop)
    exchange.ignored = ignored
    const order = { door: 'send', content, destinations: parsePath(targets, bot, names), files, ...handling }
    sender.admit(exchange, order)
    return await sender.send(exchange, order)
  } finally {
    await files.end()
  }
}
