import type { Access } from '../access/access'
import type { Caller } from '../access/caller'
import { credentialsOf, queryCredentialsOf } from '../access/origin'
import { RelayError } from '../errors'
import type { BodyLimits } from '../http/body'
import type { Exchange, PlainAnswer, Route } from '../http/routes'
import type { Sender } from '../http/sender'
import type { JsonObject } from '../lib/shape'
import type { Relay } from '../relay/relay'
import { actionsOf, type Action } from './actions'
import { failure, success } from './answer'
import { readParams } from './params'

/** What the calls need of the rest of the plugin. */
export interface OneBotApiOptions {
  sender: Sender
  limits: BodyLimits
  relay: Relay
  /** Whether any bot is online. */
  isOnline: () => boolean
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/**
 * `/onebot/<action>`: what calls the HTTP API of a OneBot 11 implementation today can call this. The path `/onebot` itself is none of it:
 * there a OneBot implementation may dial the bot by WebSocket.
 */
export function oneBotRoutes(options: OneBotApiOptions): Route[] {
  const api = new OneBotApi(options)
  return [api.route('GET'), api.route('POST')]
}

class OneBotApi {
  private readonly actions: ReadonlyMap<string, Action>
  /** The parameters of the calls that could be read. What fails from then on is no matter of HTTP: OneBot 11 answers it with 200. */
  private readonly calls = new WeakMap<Exchange, JsonObject>()

  constructor(private readonly options: OneBotApiOptions) {
    this.actions = actionsOf(options)
  }

  route(method: 'GET' | 'POST'): Route {
    return {
      path: '/onebot/:action',
      method,
      allow: ['onebot'],
      identify,
      handle: exchange => this.handle(exchange),
      fail: (error, exchange) => this.fail(error, exchange),
      methods: () => ['GET', 'POST'],
    }
  }

  private async handle(exchange: Exchange): Promise<PlainAnswer> {
    const { query, params: { action: name = '' } } = exchange
    const action = this.actions.get(name)
    if (!action) throw new RelayError('not-found', 'the relay has no such action')
    const { limits, stop } = this.options
    const params = await readParams(exchange, query, limits, stop)
    this.calls.set(exchange, params)
    return success(await action({ exchange, params }), params)
  }

  private fail(error: RelayError, exchange: Exchange): PlainAnswer {
    const params = this.calls.get(exchange)
    if (params) return failure(200, error, params)
    // OneBot 11 has another status for a body of a type that is not known.
    const known = error.code === 'unsupported-type' ? error.with({ status: 406 }) : error
    return failure(known.status, known, {})
  }
}

/** As OneBot 11 has it ("authorization"): the key may stand in the query, and a wrong one is another failure than none. */
function identify({ request, query }: Exchange, access: Access, addressOf: () => string | undefined): Caller {
  const candidates = [...credentialsOf(request.headers), ...queryCredentialsOf(query, 'access_token', 'forbidden')]
  try {
    return access.identify(candidates, addressOf)
  } catch (error) {
    if (candidates.length === 0 || !(error instanceof RelayError)) throw error
    throw new RelayError('forbidden', 'wrong access token: it matches no key', { logText: error.logText })
  }
}
