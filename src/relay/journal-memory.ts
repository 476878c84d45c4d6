import { LRUCache } from 'lru-cache'
import type { ParsedItem } from '../message/model'
import type { Delivery, State } from './delivery/delivery'
import { cutList, keepsContent, matches, sizeOfItems, type Filter, type Journal, type ListFilter } from './journal'
import type { RecordContent } from './delivery/summary'

const mebibyte = 1024 * 1024
/** How long `none` keeps content that may still be sent again, in milliseconds. */
const day = 24 * 60 * 60 * 1000

/**
 * The journal without a database: the last ended deliveries, bounded in number and size, and their keys for longer. Nothing is copied or
 * serialised, because `record` is called for every send.
 */
export class MemoryJournal implements Journal {
  readonly isDurable = false
  private readonly records = bounded<Delivery>(10_000, 16 * mebibyte, sizeOf)
  private readonly contents = bounded<readonly ParsedItem[]>(10_000, 64 * mebibyte, sizeOfItems)
  /** The deliveries by key. They answer repeats even after their records were dropped. */
  private readonly keys = bounded<Delivery>(100_000, 64 * mebibyte, sizeOf)

  /** The content that is kept. */
  private content: RecordContent = 'preview'

  /** Without a database, no delivery is durable. */
  readonly insert = nothing
  readonly cancel = nothing
  readonly flush = nothing
  readonly ping = nothing

  /** Applies the setting `recordContent`, and drops content that may not be kept any more. */
  keepContent(content: RecordContent): void {
    this.content = content
    for (const { id, state } of this.records.values()) if (!keepsContent(state, content)) this.contents.delete(id)
  }

  /** After a reload, the next relay looks for the unanswered deliveries of the one before. */
  adopt(_: number, since: number): Promise<Delivery[]> {
    return Promise.resolve([...this.records.values()].filter(({ state, updatedAt }) => state === 'unanswered' && updatedAt >= since))
  }

  purge(wall: number): Promise<void> {
    const isOld = ({ updatedAt }: Delivery): boolean => this.content === 'none' && updatedAt < wall - day
    for (const delivery of this.records.values()) if (isOld(delivery)) this.contents.delete(delivery.id)
    return Promise.resolve()
  }

  record(delivery: Delivery, items: readonly ParsedItem[]): void {
    const { id, state } = delivery
    this.contents.delete(id)
    if (items.length > 0 && keepsContent(state, this.content)) this.contents.set(id, items)
    this.records.set(id, delivery)
    void this.update(delivery)
  }

  /** Moves all records to a journal that takes the place of this one. Their keys stay behind: the other may have given them away. */
  moveTo(journal: Journal): readonly Delivery[] {
    const moved = [...this.records.values()].map(delivery => ({ ...delivery, key: null }))
    for (const delivery of moved) journal.record(delivery, this.contents.peek(delivery.id) ?? [])
    this.records.clear()
    this.contents.clear()
    return moved
  }

  /** Only the key of a delivery is written down so. */
  update(delivery: Delivery): Promise<void> {
    const { id, key, requestKey = '' } = delivery
    if (key !== null) this.keys.set(key, { ...delivery, summary: noSummary })
    else if (this.keys.peek(requestKey)?.id === id) this.keys.delete(requestKey)
    return Promise.resolve()
  }

  find(id: string): Promise<Delivery | undefined> {
    return Promise.resolve(this.records.peek(id))
  }

  findByKey(key: string): Promise<Delivery | undefined> {
    const known = this.keys.peek(key)
    return Promise.resolve(known && (this.records.peek(known.id) ?? known))
  }

  items(id: string): Promise<readonly ParsedItem[] | undefined> {
    return Promise.resolve(this.contents.peek(id))
  }

  list(filter: ListFilter): Promise<Delivery[]> {
    return Promise.resolve(cutList([...this.records.values()].filter(delivery => matches(delivery, filter)), filter))
  }

  withContent(ids: readonly string[]): Promise<readonly string[]> {
    return Promise.resolve(ids.filter(id => this.contents.has(id)))
  }

  count(filter: Filter): Promise<ReadonlyMap<State, number>> {
    const counts = new Map<State, number>()
    for (const delivery of this.records.values()) {
      if (matches(delivery, filter)) counts.set(delivery.state, (counts.get(delivery.state) ?? 0) + 1)
    }
    return Promise.resolve(counts)
  }
}

function nothing(): Promise<void> {
  return Promise.resolve()
}

const noSummary: Delivery['summary'] = { items: [], calls: [], waited: null, platformTime: 0 }

/** The approximate memory of a delivery, in bytes. */
function sizeOf({ results, summary }: Delivery): number {
  return 500 + 180 * results.length + 400 * summary.calls.length
}

/**
 * A cache that drops its oldest entries once they are too many or too large. The newest entry stays, whatever its size. Each entry
 * counts as at least its share, so that there are at most about `count`.
 */
function bounded<V extends object>(count: number, maxSize: number, size: (value: V) => number): LRUCache<string, V> {
  return new LRUCache({ maxSize, sizeCalculation: value => Math.min(Math.max(size(value), Math.floor(maxSize / count)), maxSize) })
}
