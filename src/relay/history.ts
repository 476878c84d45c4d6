import { v7 as uuid, validate as isUuid } from 'uuid'
import { RelayError } from '../errors'
import type { ParsedItem } from '../message/model'
import type { Deliveries } from './deliveries'
import type { Delivery } from './delivery'
import { cutList, lowestId, matches, type Journal, type ListFilter } from './journal'
import { orStoreDown } from './replay'

/** How many deliveries of an hour ended how. */
export interface HourCounts extends Record<typeof endStates[number], number> {
  /** When it began, in milliseconds since the epoch. */
  hour: number
}

const endStates = ['sent', 'failed', 'unanswered', 'expired'] as const
const hour = 60 * 60 * 1000
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
    const stored = await orStoreDown(this.journal.list(filter))
    const active = [...this.deliveries.values()].map(({ delivery }) => delivery)
    if (active.length === 0) return stored
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
    if (!items) throw new RelayError('not-found', 'what was to be sent is not kept of this delivery: see recordContent in the settings')
    return items
  }

  /** Those of these deliveries whose content is kept. */
  async withContent(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set([...ids.filter(id => this.deliveries.get(id)), ...await orStoreDown(this.journal.withContent(ids))])
  }

  /**
   * How many deliveries ended how, by the hour in which they were accepted, the oldest first.
   *
   * @param wall milliseconds since the epoch
   * @param caller only those of the key with this name
   */
  async counts(hours: number, wall: number, caller?: string): Promise<HourCounts[]> {
    const start = (Math.floor(wall / hour) - hours + 1) * hour
    const none = { sent: 0, failed: 0, unanswered: 0, expired: 0 }
    const counts = Array.from({ length: hours }, (_, index) => ({ hour: start + index * hour, ...none }))
    const range = (from: number, until: number): { from: string, before: string } => ({ from: lowestId(from), before: lowestId(until) })
    for (const state of endStates) {
      // Where there is none at all, no hour needs to be asked for.
      if (await orStoreDown(this.journal.count(state, range(start, start + hours * hour), caller)) === 0) continue
      for (const entry of counts) entry[state] = await orStoreDown(this.journal.count(state, range(entry.hour, entry.hour + hour), caller))
    }
    return counts
  }

  /** The deliveries that were accepted since then, in milliseconds since the epoch, the newest first. */
  async* recent(since: number): AsyncGenerator<Delivery> {
    for (let before: string | undefined = uuid(); before !== undefined;) {
      const page = await this.list({ limit: pageSize, since, before })
      yield* page
      before = page.length < pageSize ? undefined : page.at(-1)?.id
    }
  }
}
