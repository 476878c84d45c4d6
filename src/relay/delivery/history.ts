import { v7 as uuid, validate as isUuid } from 'uuid'
import { RelayError } from '../../errors'
import type { ParsedItem } from '../../message/model'
import type { Deliveries } from './deliveries'
import { unfinished, type Delivery, type State } from './delivery'
import { cutList, matches, orStoreDown, type Filter, type Journal, type ListFilter } from '../journal'

/** The numbers of deliveries by their end. */
export type Counts = Record<typeof endStates[number], number>

const endStates = ['sent', 'failed', 'unanswered', 'expired'] as const
/** How many records are read before other work gets a turn. */
const pageSize = 200

/** All deliveries, in memory and in the journal. */
export class History {
  constructor(private readonly deliveries: Deliveries, private readonly journal: Journal) {}

  /** @throws RelayError `not-found`, `store-down` */
  async get(id: string): Promise<Delivery> {
    const delivery = isUuid(id) ? this.deliveries.get(id)?.delivery ?? await orStoreDown(this.journal.find(id)) : undefined
    if (!delivery) throw new RelayError('not-found')
    return delivery
  }

  /** Lists deliveries in the order of the filter. Active ones are taken from memory. */
  async list(filter: ListFilter): Promise<Delivery[]> {
    // Memory first: a delivery that ends meanwhile is then in one of the two.
    const active = [...this.deliveries.values()].map(({ delivery }) => delivery)
    const stored = await orStoreDown(this.journal.list(filter))
    const ids = new Set(active.map(({ id }) => id))
    const merged = [...stored.filter(({ id }) => !ids.has(id)), ...active.filter(delivery => matches(delivery, filter))]
    return cutList(merged, filter)
  }

  /**
   * The content of a delivery.
   *
   * @throws RelayError `not-found`, also if the content is not kept; `store-down`
   */
  async items(id: string): Promise<readonly ParsedItem[]> {
    const { id: found } = await this.get(id)
    const items = this.deliveries.get(found)?.items ?? await orStoreDown(this.journal.items(found))
    if (!items) throw new RelayError('not-found', 'the content of this delivery was not kept: see the setting recordContent')
    return items
  }

  /** The deliveries among these whose content is kept. */
  async withContent(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set([...ids.filter(id => this.deliveries.get(id)), ...await orStoreDown(this.journal.withContent(ids))])
  }

  /**
   * Counts deliveries.
   *
   * @param filter which of them; its states do not count
   * @param edges ascending times in milliseconds since the epoch; a span lies between two of them
   * @returns the ends of the deliveries accepted in each span, and the number of all deliveries in each state
   */
  async counts(filter: Filter, edges: readonly number[]): Promise<{ spans: Counts[], states: Record<State, number> }> {
    const { since = 0, until = Infinity, targets } = filter
    const states = { queued: 0, sending: 0, sent: 0, failed: 0, unanswered: 0, expired: 0 }
    const spans = edges.slice(1).map(() => ({ sent: 0, failed: 0, unanswered: 0, expired: 0 }))
    if (filter.states?.length === 0) return { spans, states }
    const add = (state: State, count: number, span: Counts | undefined): void => {
      states[state] += count
      const ended = endStates.find(each => each === state)
      if (span && ended) span[ended] += count
    }
    // No column has the platform.
    if (targets?.some(({ platform }) => platform !== undefined)) {
      for await (const { state, createdAt } of this.all({ ...filter, states: [...unfinished, ...endStates] })) {
        add(state, 1, spans[edges.findLastIndex(edge => edge <= createdAt)])
      }
      return { spans, states }
    }
    // Unended deliveries are in memory.
    for (const { delivery } of this.deliveries.values()) {
      if (matches(delivery, { ...filter, states: unfinished })) states[delivery.state]++
    }
    const bounds = [0, ...edges, Infinity]
    for (const [index, bound] of bounds.entries()) {
      const span = { since: Math.max(bound, since), until: Math.min(bounds[index + 1] ?? 0, until) }
      if (span.since >= span.until) continue
      const counts = await orStoreDown(this.journal.count({ ...filter, ...span, states: endStates }))
      for (const [state, count] of counts) add(state, count, spans[index - 1])
    }
    return { spans, states }
  }

  /** All deliveries of a filter, the newest first. */
  async* all(filter: Omit<Filter, 'before'>): AsyncGenerator<Delivery> {
    for (let before: string | undefined = uuid(); before !== undefined;) {
      const page = await this.list({ ...filter, limit: pageSize, before })
      yield* page
      before = page.length < pageSize ? undefined : page.at(-1)?.id
    }
  }
}
