import { setImmediate } from 'node:timers/promises'
import { validate as isUuid } from 'uuid'
import { RelayError } from '../errors'
import type { TargetNames } from '../message/model'
import { writeItems } from '../message/parse'
import { platformOf, readAddress, writeTarget } from '../message/target'
import { outcomeOf, states, type Delivery, type ItemResult, type Results, type State } from '../relay/delivery/delivery'
import type { History, ListFilter, Relay } from '../relay/relay'
import type { UploadStore } from '../uploads/store'
import { sendBytes } from './files'
import type { AllowedExchange, GuardedRoute } from './routes'

const defaultLimit = 100
const maxLimit = 1000
/** How many hours are counted at most: a week. */
const maxHours = 168
/** How many are read at once: other requests get their turn in between. */
const stretch = 50
/** The length of the deliveries of one answer from which on the rest is left to the next, in characters of JSON. */
const maxPage = 4 * 1024 * 1024

/**
 * `GET /deliveries`, `GET /deliveries/counts`, `GET` and `DELETE /deliveries/<id>`, `POST /deliveries/<id>/retry`,
 * `GET /deliveries/<id>/items` and `GET /deliveries/<id>/items/<index>`.
 *
 * @param names those that may stand for targets
 * @param prefix stands before the paths of the plugin
 */
export function deliveryRoutes(relay: Pick<Relay, 'history' | 'retry' | 'withdraw'>, names: TargetNames, uploads: UploadStore, prefix: string): GuardedRoute[] {
  const { history } = relay
  return [
    {
      path: '/deliveries/counts',
      method: 'GET',
      allow: ['read', 'manage'],
      async handle({ caller, query }) {
        const hours = await history.counts(parseHours(query), caller.confinedTo)
        return { data: { hours: hours.map(entry => ({ ...entry, hour: new Date(entry.hour).toISOString() })) } }
      },
    },
    {
      path: '/deliveries',
      method: 'GET',
      allow: ['read', 'manage'],
      async handle({ caller, query, response }) {
        const { deliveries, next } = await readPage(history, withinReach(parseFilter(query, names), caller.confinedTo))
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
        const delivery = await history.get(idOf(exchange))
        // As if there were none.
        if (confinedTo !== undefined && delivery.caller !== confinedTo) throw new RelayError('not-found')
        return { data: view(delivery, await history.withContent([delivery.id]), history) }
      },
    },
    {
      path: '/deliveries/:id/items',
      method: 'GET',
      allow: ['manage'],
      async handle(exchange) {
        return { data: { items: writeItems(await history.items(idOf(exchange))) } }
      },
    },
    {
      path: '/deliveries/:id/items/:index',
      method: 'GET',
      allow: ['manage'],
      async handle(exchange) {
        const { index = '' } = exchange.params
        const item = (await history.items(idOf(exchange)))[/^\d{1,4}$/.test(index) ? Number(index) : -1]
        if (!item || !('link' in item) || item.link.kind === 'remote') throw new RelayError('not-found', 'the bytes of this item are not with the relay')
        await sendBytes(exchange, item, item.link, uploads)
        return 'sent' as const
      },
    },
    {
      path: '/deliveries/:id',
      method: 'DELETE',
      allow: ['manage'],
      async handle(exchange) {
        const id = idOf(exchange)
        return { data: { delivery_id: id, state: await relay.withdraw(id) ?? 'withdrawn' } }
      },
    },
    {
      path: '/deliveries/:id/retry',
      method: 'POST',
      allow: ['manage'],
      async handle(exchange) {
        const { caller } = exchange
        const id = idOf(exchange)
        const { target, bot } = await history.get(id)
        caller.demandTarget(target, platformOf(bot), writeTarget(target))
        let isSpent = false
        await relay.retry(id, (platform, items) => {
          caller.demandTarget(target, platform, writeTarget(target))
          caller.demandMentions(items)
          // It is asked again where the delivery has changed meanwhile.
          if (!isSpent) caller.spend(items.length)
          isSpent = true
        })
        exchange.response.setHeader('Location', `${prefix}/deliveries/${id}`)
        return { status: 202, data: { delivery_id: id, state: 'queued' } }
      },
    },
  ]
}

/**
 * Reads as many deliveries as fit one answer.
 *
 * @returns with the ID before which it goes on, unless there are no more
 */
async function readPage(history: History, { limit, ...filter }: ListFilter): Promise<{ deliveries: object[], next?: string }> {
  const deliveries: object[] = []
  let length = 0
  for (let from = filter; ;) {
    const wanted = Math.min(stretch, limit - deliveries.length)
    // One more than is wanted tells whether there are more.
    const found = await history.list({ ...from, limit: wanted + 1 })
    const kept = await history.withContent(found.map(({ id }) => id))
    for (const [index, delivery] of found.slice(0, wanted).entries()) {
      const shown = view(delivery, kept, history)
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

/** What a caller may see of what it asks for. */
function withinReach(filter: ListFilter, confinedTo: string | undefined): ListFilter {
  if (confinedTo === undefined) return filter
  // There is nothing of others for it.
  const isForeign = filter.caller !== undefined && filter.caller !== confinedTo
  return { ...filter, caller: confinedTo, ...isForeign && { states: [] } }
}

/**
 * A delivery as callers see it.
 *
 * @param kept those of which it is kept what was to be sent
 */
function view(delivery: Delivery, kept: ReadonlySet<string>, history: Pick<History, 'toWall'>): object {
  const { id, state, target, bot, caller, door, createdAt, updatedAt, expiresAt, attempts, results, about } = delivery
  const toDate = (time: number): string => new Date(history.toWall(time)).toISOString()
  return {
    id,
    state,
    target: writeTarget(target),
    [target.kind === 'group' ? 'group_id' : 'user_id']: target.id,
    bot,
    ...caller !== null && { key_name: caller },
    ...door !== '' && { door },
    created_at: toDate(createdAt),
    updated_at: toDate(updatedAt),
    ...expiresAt !== null && { expires_at: toDate(expiresAt) },
    attempts,
    results: viewResults(results),
    items: about.items,
    history: about.calls.map(({ at, took, outcome, reason }) => ({
      at: toDate(at), took_ms: took, outcome, ...reason !== undefined && { reason },
    })),
    ...about.waited !== null && { waited_ms: Math.round(about.waited) },
    platform_ms: about.platformTime,
    ...kept.has(id) && { content: true },
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
function parseFilter(query: URLSearchParams, names: TargetNames): ListFilter {
  function read<T>(name: string, parse: (text: string) => T | undefined, requirement: string): T | undefined {
    const text = query.get(name)
    if (!text) return
    const value = parse(text)
    if (value === undefined) throw new RelayError('bad-request', `${name} must be ${requirement}`)
    return value
  }

  return {
    limit: read('limit', parseLimit, `a number from 1 to ${maxLimit}`) ?? defaultLimit,
    states: read('state', parseStates, `one of ${states.join(', ')}, or several with commas`),
    targets: read('target', text => parseTargets(text, names), 'group:<id>, private:<id>, one of these with its platform in front, or a name that the settings have'),
    door: read('door', text => text, ''),
    text: read('text', text => text, ''),
    caller: read('key', text => text, ''),
    since: read('since', parseTime, 'a time as in 2026-11-20T10:37:29Z'),
    until: read('until', parseTime, 'a time as in 2026-11-20T10:37:29Z'),
    before: read('before', text => isUuid(text) ? text.toLowerCase() : undefined, 'the ID of a delivery'),
  }
}

function parseStates(text: string): State[] | undefined {
  const words = text.split(',')
  const found = states.filter(name => words.includes(name))
  return found.length === new Set(words).size ? found : undefined
}

function parseTargets(text: string, names: TargetNames): ListFilter['targets'] {
  const address = readAddress(text)
  const addresses = address ? [address] : names.get(text)?.addresses
  return addresses?.map(({ target, platform }) => ({ ...target, platform }))
}

/** Reads a time (RFC 3339), with the date alone as well. */
function parseTime(text: string): number | undefined {
  // A plus sign in a query stands for a blank.
  const time = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[- +]\d\d:\d\d)?)?$/.test(text) ? Date.parse(text.replace(' ', '+')) : NaN
  return Number.isNaN(time) ? undefined : time
}

/** The hours that are counted: a day, unless the query says otherwise. */
function parseHours(query: URLSearchParams): number {
  const text = query.get('hours') || '24'
  const hours = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (hours < 1 || hours > maxHours) throw new RelayError('bad-request', `hours must be a number from 1 to ${maxHours}`)
  return hours
}

function parseLimit(text: string): number | undefined {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  return limit >= 1 && limit <= maxLimit ? limit : undefined
}
