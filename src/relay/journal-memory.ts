import { LRUCache } from 'lru-cache'
import { RelayError } from '../errors'
import type { ParsedItem, Target } from '../message/model'
import type { Delivery, State } from './delivery'
import { KeyTaken, keepsContent, matches, type Head, type Journal, type ListFilter } from './journal'
import type { RecordContent } from './summary'

const mebibyte = 1024 * 1024

/** One delivery that has ended. Each `record` makes a new entry, by which a later one is told from an earlier one. */
export interface Entry {
  readonly delivery: Delivery
}

/**
 * The journal where there is no database: the last deliveries that ended, bounded in number and in size, and their keys for longer. Nothing
 * is copied or serialised, because `record` is called for every send.
 */
export class MemoryJournal implements Journal {
  readonly isDurable = false
  private readonly records = bounded<Entry>(10_000, 16 * mebibyte, ({ delivery }) => sizeOf(delivery))
  private readonly contents = bounded<readonly ParsedItem[]>(10_000, 64 * mebibyte, sizeOfItems)
  /** What a repeat of a key is answered from, also when its record was dropped. */
  private readonly keys = bounded<Delivery>(100_000, 64 * mebibyte, sizeOfKey, ({ id }) => this.keyOf.delete(id))
  private readonly keyOf = new Map<string, string>()

  // It has nothing to write, to adopt or to remove, and nobody else to share with.
  readonly flush = nothing
  readonly purge = nothing
  readonly ping = nothing
  readonly adopt = (): Promise<Head[]> => Promise.resolve([])
  readonly readOwner = (): Promise<undefined> => Promise.resolve(undefined)
  readonly swapOwner = (): Promise<boolean> => Promise.resolve(true)

  /** @param content what is kept of what was to be sent */
  constructor(private content: RecordContent = 'preview') {}

  /** Another setting of what is kept of what was to be sent. What must not be kept any more is dropped now. */
  keepContent(content: RecordContent): void {
    this.content = content
    for (const { delivery: { id, state } } of this.records.values()) if (!keepsContent(state, content)) this.contents.delete(id)
  }

  get size(): number {
    return this.records.size
  }

  has(id: string): boolean {
    return this.records.has(id)
  }

  /** The first of those that are here, in the order in which they were recorded. */
  oldest(count: number): Entry[] {
    const entries: Entry[] = []
    for (const entry of this.records.rvalues()) if (entry && entries.push(entry) === count) break
    return entries
  }

  /** Forgets an entry, unless the delivery was recorded again since. */
  release(entry: Entry): void {
    if (this.records.peek(entry.delivery.id) === entry) this.drop(entry.delivery.id)
  }

  insert(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    const known = delivery.key !== null && this.keys.peek(delivery.key)
    if (known && known.id !== delivery.id) return Promise.reject(new KeyTaken())
    this.record(delivery, items)
    return Promise.resolve()
  }

  update(delivery: Delivery): Promise<void> {
    if (this.has(delivery.id)) this.record(delivery, this.contents.peek(delivery.id) ?? [])
    return Promise.resolve()
  }

  cancel(id: string): Promise<void> {
    this.drop(id)
    return Promise.resolve()
  }

  freeKey(key: string): Promise<void> {
    const known = this.keys.peek(key)
    if (known) this.dropKey(known.id)
    return Promise.resolve()
  }

  record(delivery: Delivery, items: readonly ParsedItem[]): void {
    const { id, key, state } = delivery
    this.contents.delete(id)
    if (items.length > 0 && keepsContent(state, this.content)) this.contents.set(id, items)
    this.records.set(id, { delivery })
    this.dropKey(id)
    if (key === null) return
    this.keys.set(key, { ...delivery, summary: noSummary })
    this.keyOf.set(id, key)
  }

  find(id: string): Promise<Delivery | undefined> {
    return Promise.resolve(this.records.peek(id)?.delivery)
  }

  findByKey(key: string): Promise<Delivery | undefined> {
    const known = this.keys.peek(key)
    return Promise.resolve(known && (this.records.peek(known.id)?.delivery ?? known))
  }

  items(id: string): Promise<readonly ParsedItem[] | undefined> {
    return Promise.resolve(this.contents.peek(id))
  }

  list(filter: ListFilter): Promise<Delivery[]> {
    return Promise.resolve(this.newest(delivery => matches(delivery, filter), filter.limit))
  }

  withContent(ids: readonly string[]): Promise<readonly string[]> {
    return Promise.resolve(ids.filter(id => this.contents.peek(id)))
  }

  count(state: State, { from, before }: { from: string, before: string }, caller?: string): Promise<number> {
    const isCounted = (each: Delivery): boolean => each.state === state && each.id >= from && each.id < before
      && (caller === undefined || each.caller === caller)
    return Promise.resolve(this.newest(isCounted, Infinity).length)
  }

  sentTo(bot: string, { kind, id }: Target, limit: number): Promise<Delivery[]> {
    return Promise.resolve(this.newest(each => each.bot === bot && each.target.kind === kind && each.target.id === id, limit))
  }

  private newest(isWanted: (delivery: Delivery) => boolean, limit: number): Delivery[] {
    const found = Array.from(this.records.values(), ({ delivery }) => delivery).filter(isWanted)
    return found.sort((a, b) => a.id < b.id ? 1 : -1).slice(0, limit)
  }

  private drop(id: string): void {
    this.records.delete(id)
    this.contents.delete(id)
    this.dropKey(id)
  }

  private dropKey(id: string): void {
    const key = this.keyOf.get(id)
    if (key !== undefined) this.keys.delete(key)
  }
}

function nothing(): Promise<void> {
  return Promise.resolve()
}

const noSummary: Delivery['summary'] = { items: [], calls: [], waited: null, platformTime: 0 }

/** How much memory a delivery takes, in bytes, roughly. */
function sizeOf(delivery: Delivery): number {
  const { items, calls } = delivery.summary
  const words = items.reduce((sum, { msg = '', name = '' }) => sum + 100 + 2 * (msg.length + name.length), 0)
  return sizeOfKey(delivery) + words + calls.reduce((sum, { reason = '' }) => sum + 100 + 2 * reason.length, 0)
}

/** The same without its summary. */
function sizeOfKey({ results }: Delivery): number {
  return 500 + 150 * results.length
}

/** The characters of what was to be sent, and something for each item. */
function sizeOfItems(items: readonly ParsedItem[]): number {
  return items.reduce((sum, item) => sum + 100 + lengthOf(item), 0)
}

function lengthOf(item: ParsedItem): number {
  if (item instanceof RelayError) return item.message.length
  if (item.type === 'text') return item.text.length
  return 'link' in item && item.link.kind === 'data' ? item.link.base64.length : 0
}

/**
 * A cache that drops its oldest entries where they are too many or too large together; the newest one stays, whatever its size.
 * An entry counts as at least its share, so that there are about `count` of them.
 */
function bounded<V extends object>(
  count: number, maxSize: number, size: (value: V) => number, dispose: (value: V) => void = () => undefined,
): LRUCache<string, V> {
  return new LRUCache({ maxSize, dispose, sizeCalculation: value => Math.min(Math.max(size(value), Math.floor(maxSize / count)), maxSize) })
}
