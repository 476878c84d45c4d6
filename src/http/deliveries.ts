import { setImmediate } from 'node:timers/promises'
import { validate as isUuid } from 'uuid'
import type { Caller } from '../access/caller'
import { demand, RelayError } from '../errors'
import { hour, minute, toIso } from '../lib/time'
import { mustBe, readValue } from '../lib/words'
import type { TargetNames } from '../message/model'
import { writeItems } from '../message/parse'
import { platformOf, reachOf, readAddress, toName, writeTarget } from '../message/target'
import { isRetryable, isScheduled, states, type Delivery, type State } from '../relay/delivery/delivery'
import type { ListFilter } from '../relay/delivery/filter'
import { alertDoor } from '../relay/options'
import type { Relay } from '../relay/relay'
import type { UploadStore } from '../uploads/store'
import { sendBytes } from './files'
import { say, type Text } from '../texts/text'
import { route, type Exchange, type Route } from './routes'
import { viewDelivery, type ShownState, type Waits } from './views'

const maxLimit = 1000
/** The query parameters that filter deliveries. */
const filters = ['state', 'target', 'door', 'text', 'key', 'since', 'until', 'before', 'limit']
/** The states in which a delivery can be retried. */
const retryable = states.filter(isRetryable)
/** The most hours of counts: a week. */
const maxHours = 168
const maxDays = 90
/** The states by which deliveries can be filtered. Internally, `scheduled` and `waiting` deliveries are queued. */
const shownStates = [...states, 'scheduled', 'waiting'] as const
/** How many deliveries are read at once. Other requests get a turn in between. */
const chunk = 50
/** The size of a page, in characters of JSON: once it is reached, the rest goes to the next page. */
const maxPage = 4 * 1024 * 1024

/**
 * `GET /deliveries`, `GET /deliveries/counts`, `POST /deliveries/retry`, `GET` and `DELETE /deliveries/<id>`,
 * `POST /deliveries/<id>/retry`, `GET /deliveries/<id>/items` and `GET /deliveries/<id>/items/<index>`.
 *
 * @param names the names of targets
 * @param prefix the prefix of the plugin's paths
 */
export function deliveryRoutes(relay: Pick<Relay, 'history' | 'retry' | 'withdraw'> & Waits, names: TargetNames, uploads: UploadStore, prefix: string): Route[] {
  return [
    route('GET', '/deliveries/counts', ['read', 'manage'], async ({ caller, query }) => {
      const filter = confine({ ...parseFilter(query, names), states: undefined }, caller.confinedTo)
      const days = readValue('days', query.get('days'), upTo(maxDays), say('number-rule', { most: maxDays }))
      const length = days === undefined ? hour : 24 * hour
      const count = days ?? readValue('hours', query.get('hours'), upTo(maxHours), say('number-rule', { most: maxHours })) ?? 24
      const east = days === undefined ? 0 : readValue('offset', query.get('offset'), parseOffset, say('offset-rule')) ?? 0
      // The present hour or day is the last one.
      const end = (Math.floor((Date.now() + east * minute) / length) + 1) * length - east * minute
      const edges = Array.from({ length: count + 1 }, (_, index) => end - (count - index) * length)
      const history = await relay.history()
      const { spans, states } = await history.counts(filter, edges)
      const scheduled = history.unfinished(filter).filter(delivery => isScheduled(delivery, Date.now())).length
      const nameOf = (start = 0): object => days === undefined
        ? { hour: toIso(start) }
        : { day: toIso(start + east * minute).slice(0, 10) }
      const named = spans.map((span, index) => ({ ...nameOf(edges[index]), ...span }))
      return { data: { ...days === undefined ? { hours: named } : { days: named }, states: { ...states, scheduled } } }
    }),
    route('GET', '/deliveries', ['read', 'manage'], async ({ caller, query }) => {
      const { deliveries, next } = await readPage(relay, confine(parseFilter(query, names), caller.confinedTo), stateFilterOf(query))
      if (next === undefined) return { data: { deliveries } }
      const rest = new URLSearchParams(query)
      rest.set('before', next)
      return { data: { deliveries }, headers: { Link: `<${prefix}/deliveries?${rest.toString()}>; rel="next"` } }
    }),
    route('POST', '/deliveries/retry', ['manage'], async ({ caller, query }) => {
      const state = retryable.find(each => each === query.get('state'))
      if (!state) throw new RelayError('bad-request', mustBe('state', say('one-of', { choices: retryable })))
      // A misspelt filter would send more again than was meant. The language of the answer is no filter.
      const unknown = [...query.keys()].find(name => name !== 'lang' && !filters.includes(name))
      demand(unknown === undefined, say('no-filter', { name: unknown ?? '', filters }))
      const { limit, ...filter } = parseFilter(query, names, maxLimit)
      const found = await (await relay.history()).list({ ...filter, states: [state], order: 'asc', limit: limit + 1 })
      const skipped: { id: string, msg: Text }[] = []
      for (const delivery of found.slice(0, limit)) {
        try {
          demand(delivery.door !== alertDoor, say('alert-may-be-over'))
          await retry(relay, caller, delivery)
        } catch (error) {
          const { code, status, said: msg } = RelayError.from(error)
          // A failure of the relay itself would repeat for all the others.
          if (status >= 500 && code !== 'unsent') throw error
          skipped.push({ id: delivery.id, msg })
        }
      }
      const queued = Math.min(found.length, limit) - skipped.length
      return { status: 202, data: { queued, skipped, more: found.length > limit }, log: say('retried-log', { queued, skipped: skipped.length }) }
    }),
    route('GET', '/deliveries/:id', ['read', 'manage'], async exchange => {
      const { confinedTo } = exchange.caller
      const history = await relay.history()
      const delivery = history.get(idOf(exchange))
      // The answer does not reveal that the delivery exists.
      if (confinedTo !== undefined && delivery.caller !== confinedTo) throw new RelayError('not-found')
      return { data: viewDelivery(delivery, history.withContent([delivery.id]), relay) }
    }),
    route('GET', '/deliveries/:id/items', ['manage'], async exchange => {
      return { data: { items: writeItems((await relay.history()).items(idOf(exchange))) } }
    }),
    route('GET', '/deliveries/:id/items/:index', ['manage'], async exchange => {
      const { index = '' } = exchange.params
      const item = ((await relay.history()).items(idOf(exchange)))[/^\d{1,4}$/.test(index) ? Number(index) : -1]
      if (!item || !('link' in item) || item.link.kind === 'remote') throw new RelayError('not-found', say('no-kept-file'))
      await sendBytes(exchange, item, item.link, uploads)
      return 'sent' as const
    }),
    route('DELETE', '/deliveries/:id', ['manage'], async exchange => {
      const id = idOf(exchange)
      return { data: { delivery_id: id, state: await relay.withdraw(id) ?? 'withdrawn' } }
    }),
    route('POST', '/deliveries/:id/retry', ['manage'], async exchange => {
      const id = idOf(exchange)
      await retry(relay, exchange.caller, (await relay.history()).get(id))
      return { status: 202, data: { delivery_id: id, state: 'queued' }, headers: { Location: `${prefix}/deliveries/${id}` } }
    }),
  ]
}

/**
 * Sends the rest of a delivery again.
 *
 * @throws RelayError `forbidden`, `rate-limited`, or the reason why it cannot be retried
 */
async function retry(relay: Pick<Relay, 'retry'>, caller: Caller, { id, target, bot, flow }: Delivery): Promise<void> {
  // By a name with several ways, a key may reach targets that it may not address directly.
  const asked = flow.route?.name ?? writeTarget(target)
  for (const way of flow.route?.ways ?? [{ target, platform: platformOf(bot) }]) caller.demandTarget(way.target, way.platform, asked)
  let isSpent = false
  await relay.retry(id, (way, items) => {
    caller.demandTarget(way.target, way.platform, asked)
    caller.demandMentions(items)
    // This check is repeated if the delivery has changed meanwhile; the messages count only once.
    if (!isSpent) caller.spend(items.length)
    isSpent = true
  })
}

/**
 * Reads one page of deliveries.
 *
 * @param isWanted whether a delivery with this shown state is listed; by default all are
 * @returns the deliveries, and if there are more, the ID before which the next page starts
 */
async function readPage(
  relay: Pick<Relay, 'history'> & Waits, { limit, ...filter }: ListFilter, isWanted?: (state: ShownState) => boolean,
): Promise<{ deliveries: object[], next?: string }> {
  const history = await relay.history()
  const deliveries: object[] = []
  let length = 0
  for (let from = filter; ;) {
    const wanted = isWanted ? chunk : Math.min(chunk, limit - deliveries.length)
    // One more than needed, to see whether there are more.
    const found = await history.list({ ...from, limit: wanted + 1 })
    const kept = history.withContent(found.map(({ id }) => id))
    for (const [index, delivery] of found.slice(0, wanted).entries()) {
      from = { ...filter, before: delivery.id }
      const shown = viewDelivery(delivery, kept, relay)
      if (isWanted?.(shown.state) === false) continue
      deliveries.push(shown)
      length += JSON.stringify(shown).length
      const isFull = deliveries.length === limit || length >= maxPage
      if (isFull && index < found.length - 1) return { deliveries, next: delivery.id }
    }
    if (found.length <= wanted) return { deliveries }
    await setImmediate()
  }
}

/** Confines a filter to the deliveries of one key, if the caller may see only those. */
function confine(filter: ListFilter, confinedTo: string | undefined): ListFilter {
  if (confinedTo === undefined) return filter
  const isForeign = filter.caller !== undefined && filter.caller !== confinedTo
  return { ...filter, caller: confinedTo, ...isForeign && { states: [] } }
}

function idOf({ params }: Exchange): string {
  return (params.id ?? '').toLowerCase()
}

/** @throws RelayError `bad-request` */
function parseFilter(query: URLSearchParams, names: TargetNames, defaultLimit = 100): ListFilter {
  return {
    limit: readValue('limit', query.get('limit'), upTo(maxLimit), say('number-rule', { most: maxLimit })) ?? defaultLimit,
    states: readValue('state', query.get('state'), parseStates, say('some-of', { choices: shownStates })),
    targets: readValue('target', query.get('target'), text => parseTargets(text, names), say('target-filter-rule')),
    door: query.get('door') || undefined,
    text: query.get('text') || undefined,
    caller: query.get('key') || undefined,
    since: readValue('since', query.get('since'), parseTime, say('time-rule')),
    until: readValue('until', query.get('until'), parseTime, say('time-rule')),
    before: readValue('before', query.get('before'), text => isUuid(text) ? text.toLowerCase() : undefined, say('delivery-id')),
  }
}

function parseStates(text: string): State[] | undefined {
  const words = text.split(',')
  const found = shownStates.filter(name => words.includes(name))
  if (found.length < new Set(words).size) return
  return [...new Set(found.map(state => state === 'scheduled' || state === 'waiting' ? 'queued' : state))]
}

/** Filters deliveries by their shown state. `queued` includes `scheduled` and `waiting`; each of these without it excludes the other. */
function stateFilterOf(query: URLSearchParams): ((state: ShownState) => boolean) | undefined {
  const words = query.get('state')?.split(',') ?? []
  const [isAll, isScheduled, isWaiting] = ['queued', 'scheduled', 'waiting'].map(word => words.includes(word))
  if (!isAll && isScheduled !== isWaiting) return state => state !== (isScheduled ? 'queued' : 'scheduled')
}

function parseTargets(text: string, names: TargetNames): ListFilter['targets'] {
  const address = readAddress(text)
  const name = toName(text)
  const named = names.get(name)
  const addresses = address ? [address] : named && reachOf(name, named, names)
  return addresses?.map(({ target, platform }) => ({ ...target, platform }))
}

/** Reads a time (RFC 3339) or a date. */
function parseTime(text: string): number | undefined {
  // A plus sign in a query arrives as a blank.
  const time = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[- +]\d\d:\d\d)?)?$/.test(text) ? Date.parse(text.replace(' ', '+')) : NaN
  return Number.isNaN(time) ? undefined : time
}

function parseOffset(text: string): number | undefined {
  return /^-?\d{1,3}$/.test(text) && Math.abs(Number(text)) <= 840 ? Number(text) : undefined
}

/** Makes a parser of whole numbers from 1 to a maximum. */
function upTo(max: number): (text: string) => number | undefined {
  return text => {
    const number = /^\d{1,4}$/.test(text) ? Number(text) : 0
    return number >= 1 && number <= max ? number : undefined
  }
}
