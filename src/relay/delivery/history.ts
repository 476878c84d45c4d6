import { v7 as uuid, validate as isUuid } from 'uuid'
import { RelayError } from '../../errors'
import type { ParsedItem } from '../../message/model'
import type { Deliveries } from './deliveries'
import { isUnfinished, type Delivery, type State } from './delivery'
import { cutList, matches, type Filter, type ListFilter } from './filter'
import { say } from '../../texts/text'

/** The numbers of deliveries by their end. */
export type Counts = Record<typeof endStates[number], number>

const endStates = ['sent', 'failed', 'unanswered', 'expired'] as const
/** How many records are read before other work gets a turn. */
const pageSize = 200

/** All deliveries, in memory and in the file. Its methods throw a RelayError `store-down` while the file cannot be read. */
export class History {
  constructor(private readonly deliveries: Deliveries) {}

  /** @throws RelayError `not-found` */
  get(id: string): Delivery {
    const { deliveries } = this
    const delivery = isUuid(id) ? deliveries.get(id)?.delivery ?? deliveries.table.find(id) : undefined
    if (!delivery) throw new RelayError('not-found')
    return delivery
  }

  /** Lists deliveries in the order of the filter. */
  async list(filter: ListFilter): Promise<Delivery[]> {
    const { deliveries } = this
    deliveries.tryToWrite()
    // These may be written meanwhile.
    const unstored = this.unstored(filter)
    const ids = new Set(unstored.map(({ id }) => id))
    const stored = (await deliveries.table.list(filter)).filter(({ id }) => !ids.has(id))
    const present = stored.map(delivery => deliveries.get(delivery.id)?.delivery ?? delivery)
    return cutList([...present.filter(delivery => matches(delivery, filter)), ...unstored], filter)
  }

  /** The content of a delivery. @throws RelayError `not-found`, also if the content is not kept */
  items(id: string): readonly ParsedItem[] {
    const { id: found } = this.get(id)
    const items = this.deliveries.get(found)?.items ?? this.deliveries.table.items(found)
    if (!items) throw new RelayError('not-found', say('content-not-recorded'))
    return items
  }

  /** The deliveries among these whose content is kept. */
  withContent(ids: readonly string[]): ReadonlySet<string> {
    return new Set([...ids.filter(id => this.deliveries.get(id)), ...this.deliveries.table.withContent(ids)])
  }

  /**
   * Counts deliveries.
   *
   * @param filter which of them; its states do not count
   * @param edges ascending times in milliseconds since the epoch; a span lies between two of them
   * @returns the ends of the deliveries accepted in each span, and the number of all deliveries in each state
   */
  async counts(
    { states: wanted, ...filter }: Filter, edges: readonly number[],
  ): Promise<{ spans: Counts[], states: Record<State, number> }> {
    const { since = 0, until = Infinity } = filter
    const states = { queued: 0, sending: 0, sent: 0, failed: 0, unanswered: 0, expired: 0 }
    const spans = edges.slice(1).map(() => ({ sent: 0, failed: 0, unanswered: 0, expired: 0 }))
    if (wanted?.length === 0) return { spans, states }
    this.deliveries.tryToWrite()
    for (const { state } of this.unstored(filter)) states[state]++
    const bounds = [0, ...edges, Infinity]
    for (const [index, bound] of bounds.entries()) {
      const range = { since: Math.max(bound, since), until: Math.min(bounds[index + 1] ?? 0, until) }
      if (range.since >= range.until) continue
      for (const [state, count] of await this.deliveries.table.count({ ...filter, ...range })) {
        states[state] += count
        const ended = endStates.find(each => each === state)
        const span = spans[index - 1]
        if (span && ended) span[ended] += count
      }
    }
    return { spans, states }
  }

  /** The deliveries that have not ended. */
  unfinished(filter: Filter): Delivery[] {
    return this.unfinishedAmong([...this.deliveries.values()], filter)
  }

  /** The deliveries that have no row yet: messages of waiting callers. */
  private unstored(filter: Filter): Delivery[] {
    return this.unfinishedAmong([...this.deliveries.values()].filter(({ hasRow }) => !hasRow), filter)
  }

  private unfinishedAmong(entries: readonly { delivery: Delivery }[], filter: Filter): Delivery[] {
    return entries.map(({ delivery }) => delivery).filter(delivery => isUnfinished(delivery.state) && matches(delivery, filter))
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
