import type { Access } from '../access/access'
import type { Caller } from '../access/caller'
import { credentialsOf, queryCredentialsOf } from '../access/origin'
import { RelayError } from '../errors'
import type { BodyLimits } from '../http/body'
import type { Exchange, Route } from '../http/routes'
import type { JsonObject } from '../lib/shape'
import { say } from '../texts/text'
import { actionsOf, type ActionOptions } from './actions'
import { failure, success } from './answer'
import { readParams } from './params'

/** The parts of the plugin that the calls need. */
interface OneBotApiOptions extends ActionOptions {
  limits: BodyLimits
}

const methods = ['GET', 'POST'] as const

/**
 * `/onebot/<action>`: a drop-in replacement for the HTTP API of a OneBot 11 implementation. The path `/onebot` itself is not part of it,
 * because a OneBot implementation may connect to the bot there by WebSocket.
 */
export function oneBotRoutes(options: OneBotApiOptions): Route[] {
  const { limits } = options
  const actions = actionsOf(options)
  /** The parameters of the calls that were read. OneBot 11 answers any later failure with HTTP status 200. */
  const calls = new WeakMap<Exchange, JsonObject>()
  return methods.map(method => ({
    path: '/onebot/:action',
    method,
    allow: ['onebot'],
    identify,
    methods: () => methods,
    async handle(exchange) {
      const action = actions.get(exchange.params.action ?? '')
      if (!action) throw new RelayError('not-found', say('no-onebot-action'))
      const params = await readParams(exchange, exchange.query, limits)
      calls.set(exchange, params)
      return success(await action({ exchange, params }), params)
    },
    fail(error, exchange) {
      const params = calls.get(exchange)
      if (params) return failure(200, error, params)
      // OneBot 11 has a status of its own for a body of an unknown type.
      const known = error.code === 'unsupported-type' ? error.with({ status: 406 }) : error
      return failure(known.status, known, {})
    },
  }))
}

/** Follows OneBot 11 ("authorization"): the key may be in the query, and a wrong key has another status than a missing one. */
function identify({ request, query, address }: Exchange, access: Access): Caller {
  const candidates = [...credentialsOf(request.headers), ...queryCredentialsOf(query, 'access_token', 'forbidden')]
  try {
    return access.identify(candidates, address)
  } catch (error) {
    if (candidates.length === 0 || !(error instanceof RelayError && error.code === 'unauthorized')) throw error
    throw new RelayError('forbidden', say('wrong-access-token'), { logText: error.logText })
  }
}
