import { v7 as uuid, validate as isUuid } from 'uuid'
import { RelayError } from '../errors'
import type { ParsedItem } from '../message/model'
import type { Deliveries } from './deliveries'
import { unfinished, type Delivery, type State } from './delivery'
import { cutList, matches, orStoreDown, type Filter, type Journal, type ListFilter } from './journal'

/** How many deliveries ended how. */
export type Counts = Record<typeof endStates[number], number>

const endStates = ['sent', 'failed', 'unanswered', 'expired'] as const
/** How many records are looked through before others get a turn. */
const pageSize = 200

/** What is known of all deliveries: those in memory, and those in the journal. */
export class History {
  constructor(private readonly deliveries: Deliveries, private readonly journal: Journal) {}

  /** @throws RelayError `not-found`, `store-down` */
  async get(id: string): Promise<Delivery> {
    const delivery = isUuid(id) ? this.deliveries.get(id)?.delivery ?? await orStoreDown(this.journal.find(id)) : undefined
    if (!delivery) throw new RelayError('not-found')
    return delivery
  }

  /** The newest first unless the filter says otherwise. Memory has the truth of what is active. */
  async list(filter: ListFilter): Promise<Delivery[]> {
    // What ends meanwhile is in one of the two.
    const active = [...this.deliveries.values()].map(({ delivery }) => delivery)
    const stored = await orStoreDown(this.journal.list(filter))
    const ids = new Set(active.map(({ id }) => id))
    const merged = [...stored.filter(({ id }) => !ids.has(id)), ...active.filter(delivery => matches(delivery, filter))]
    return cutList(merged, filter)
  }

  /**
   * What was to be sent, item by item.
   *
   * @throws RelayError `not-found`, also where it is not kept; `store-down`
   */
  async items(id: string): Promise<readonly ParsedItem[]> {
    const { id: found } = await this.get(id)
    const items = this.deliveries.get(found)?.items ?? await orStoreDown(this.journal.items(found))
    if (!items) throw new RelayError('not-found', 'the content of this delivery was not kept: see the setting recordContent')
    return items
  }

  /** Those of these deliveries whose content is kept. */
  async withContent(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set([...ids.filter(id => this.deliveries.get(id)), ...await orStoreDown(this.journal.withContent(ids))])
  }

  /**
   * Counts deliveries.
   *
   * @param filter which of them; its states do not count
   * @param edges times in milliseconds since the epoch, ascending: between two of them is a span
   * @returns how many ended how in each span by the time at which they were accepted, and how many there are at all in each state
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
    // No column tells the platform.
    if (targets?.some(({ platform }) => platform !== undefined)) {
      for await (const { state, createdAt } of this.all({ ...filter, states: [...unfinished, ...endStates] })) {
        add(state, 1, spans[edges.findLastIndex(edge => edge <= createdAt)])
      }
      return { spans, states }
    }
    // Those that have not ended are in memory.
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

  /** All that a filter asks for, the newest first. */
  async* all(filter: Omit<Filter, 'before'>): AsyncGenerator<Delivery> {
    for (let before: string | undefined = uuid(); before !== undefined;) {
      const page = await this.list({ ...filter, limit: pageSize, before })
      yield* page
      before = page.length < pageSize ? undefined : page.at(-1)?.id
    }
  }
}
