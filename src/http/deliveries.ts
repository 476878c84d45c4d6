import { setImmediate } from 'node:timers/promises'
import { validate as isUuid } from 'uuid'
import { RelayError } from '../errors'
import { readTarget, writeTarget } from '../message/target'
import { outcomeOf, states, type Delivery, type ItemResult, type Results } from '../relay/delivery'
import type { ListFilter, Relay } from '../relay/relay'
import type { AllowedExchange, GuardedRoute } from './routes'

const defaultLimit = 100
const maxLimit = 1000
/** How many are read at once: other requests get their turn in between. */
const stretch = 20
/** The length of the deliveries of one answer from which on the rest is left to the next, in characters of JSON. */
const maxPage = 4 * 1024 * 1024

/**
 * `GET /deliveries`, `GET` and `DELETE /deliveries/<id>`, `POST /deliveries/<id>/retry`.
 *
 * @param prefix stands before the paths of the plugin
 */
export function deliveryRoutes(relay: Relay, prefix: string): GuardedRoute[] {
  return [
    {
      path: '/deliveries',
      method: 'GET',
      allow: ['read', 'manage'],
      async handle({ caller, query, response }) {
        const { deliveries, next } = await readPage(relay, { ...parseFilter(query), caller: caller.confinedTo })
        if (next !== undefined) {
          const rest = new URLSearchParams(query)
          rest.set('before', next)
          response.setHeader('Link', `<${prefix}/deliveries?${rest.toString()}>; rel="next"`)
        }
        return { data: { deliveries } }
      },
    },
    {
      path: '/deliveries/:id',
      method: 'GET',
      allow: ['read', 'manage'],
      async handle(exchange) {
        const { confinedTo } = exchange.caller
        const delivery = await relay.get(idOf(exchange))
        // As if there were none.
        if (confinedTo !== undefined && delivery.caller !== confinedTo) throw new RelayError('not-found')
        return { data: view(delivery, relay) }
      },
    },
    {
      path: '/deliveries/:id',
      method: 'DELETE',
      allow: ['manage'],
      async handle(exchange) {
        const id = idOf(exchange)
        await relay.withdraw(id)
        return { data: { delivery_id: id, state: 'withdrawn' } }
      },
    },
    {
      path: '/deliveries/:id/retry',
      method: 'POST',
      allow: ['manage'],
      async handle(exchange) {
        const { caller } = exchange
        const { target, bot, results } = await relay.get(idOf(exchange))
        caller.demandTarget(target, platformOf(bot), writeTarget(target))
        caller.spend(results.filter(result => !result?.success).length)
        const { id, state } = await relay.retry(idOf(exchange))
        exchange.response.setHeader('Location', `${prefix}/deliveries/${id}`)
        return { status: 202, data: { delivery_id: id, state } }
      },
    },
  ]
}

/**
 * Reads as many deliveries as fit one answer.
 *
 * @returns with the ID before which it goes on, unless there are no more
 */
async function readPage(relay: Relay, { limit, ...filter }: ListFilter): Promise<{ deliveries: object[], next?: string }> {
  const deliveries: object[] = []
  let length = 0
  for (let from = filter; ;) {
    const wanted = Math.min(stretch, limit - deliveries.length)
    // One more than is wanted tells whether there are more.
    const found = await relay.list({ ...from, limit: wanted + 1 })
    for (const [index, delivery] of found.slice(0, wanted).entries()) {
      const shown = view(delivery, relay)
      deliveries.push(shown)
      length += JSON.stringify(shown).length
      from = { ...filter, before: delivery.id }
      const isFull = deliveries.length === limit || length >= maxPage
      if (isFull && index < found.length - 1) return { deliveries, next: delivery.id }
    }
    if (found.length <= wanted) return { deliveries }
    await setImmediate()
  }
}

/** The platform of a bot, of which `platform:selfId` is known. */
export function platformOf(sid: string): string {
  return sid.slice(0, Math.max(sid.indexOf(':'), 0))
}

/** A delivery as callers see it. */
function view({ id, state, target, bot, caller, createdAt, updatedAt, expiresAt, attempts, results }: Delivery, relay: Relay): object {
  const toDate = (time: number): string => new Date(relay.toWall(time)).toISOString()
  return {
    id,
    state,
    target: writeTarget(target),
    [target.kind === 'group' ? 'group_id' : 'user_id']: target.id,
    bot,
    ...caller !== null && { key_name: caller },
    created_at: toDate(createdAt),
    updated_at: toDate(updatedAt),
    ...expiresAt !== null && { expires_at: toDate(expiresAt) },
    attempts,
    results: viewResults(results),
  }
}

/** The results of items as callers see them, without those that are not known yet. */
export function viewResults(results: Results): object[] {
  return results.flatMap((result, index) => result ? [viewResult(result, index)] : [])
}

function viewResult(result: ItemResult, index: number): object {
  if (result.success) return { index, success: true, message_ids: result.messageIds }
  return { index, success: false, code: result.error.status, msg: result.error.message, outcome: outcomeOf(result) }
}

function idOf({ params }: AllowedExchange): string {
  return (params.id ?? '').toLowerCase()
}

/** @throws RelayError `bad-request` */
function parseFilter(query: URLSearchParams): ListFilter {
  function read<T>(name: string, parse: (text: string) => T | undefined, requirement: string): T | undefined {
    const text = query.get(name)
    if (!text) return
    const value = parse(text)
    if (value === undefined) throw new RelayError('bad-request', `${name} must be ${requirement}`)
    return value
  }

  return {
    limit: read('limit', parseLimit, `a number from 1 to ${maxLimit}`) ?? defaultLimit,
    state: read('state', text => states.find(name => name === text), `one of ${states.join(', ')}`),
    target: read('target', readTarget, 'group:<id> or private:<id>'),
    before: read('before', text => isUuid(text) ? text.toLowerCase() : undefined, 'the ID of a delivery'),
  }
}

function parseLimit(text: string): number | undefined {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  return limit >= 1 && limit <= maxLimit ? limit : undefined
}
