import { validate as isUuid } from 'uuid'
import { RelayError } from '../errors'
import { yieldToOthers } from '../lib/async'
import type { ParsedItem } from '../message/model'
import type { Delivery } from './delivery/delivery'
import type { Archive } from './store/archive'
import type { Clock } from './store/clock'
import { lastId } from './store/listing'
import { guard, lowestId, type ListFilter } from './store/store'
import { writeCaller } from './store/stored'
import type { Stores } from './stores'

/** How many deliveries of an hour have ended how. */
export interface HourCounts extends Record<typeof endStates[number], number> {
  /** When it began, in milliseconds since the epoch. */
  hour: number
}

const endStates = ['sent', 'failed', 'unanswered', 'expired'] as const
const hour = 60 * 60 * 1000
/** How long items that were read are remembered, in milliseconds: the pictures of a batch are asked for one by one. */
const memoryOfItems = 5_000
/** How many records are looked through before others get a turn. */
const pageSize = 200

/**
 * What is known of all deliveries, those in memory and in the database together. Where something is asked of the database that does not
 * answer, methods reject with the RelayError `store-down`.
 */
export class History {
  /** The items that were read last; they change with their delivery only. */
  private latest: { version: string, items: Promise<readonly ParsedItem[]> } | undefined
  private forgetting: NodeJS.Timeout | undefined

  constructor(private readonly stores: Pick<Stores, 'memory' | 'storage'>, private readonly clock: Clock) {}

  /** @throws RelayError `not-found`, `store-down` */
  async get(id: string): Promise<Delivery> {
    // Whatever else a caller sends need not come as far as the database.
    const delivery = isUuid(id) ? this.stores.memory.get(id) ?? await guard(this.getStored(id)) : undefined
    if (!delivery) throw new RelayError('not-found')
    return delivery
  }

  /**
   * The newest first, those in memory and in the database together.
   *
   * @throws RelayError `store-down`
   */
  async list(filter: ListFilter): Promise<Delivery[]> {
    const remembered = this.stores.memory.list(filter)
    const ids = new Set(remembered.map(({ id }) => id))
    // It may have been written meanwhile.
    const stored = (await guard(this.listStored(filter))).filter(({ id }) => !ids.has(id))
    return [...remembered, ...stored].sort((a, b) => a.id < b.id ? 1 : -1).slice(0, filter.limit)
  }

  /**
   * What was to be sent, item by item.
   *
   * @throws RelayError `not-found`, also where it is not kept; `store-down`
   */
  async items(id: string): Promise<readonly ParsedItem[]> {
    const { updatedAt } = await this.get(id)
    const version = `${id} ${updatedAt}`
    if (this.latest?.version === version) return this.latest.items
    const items = this.readItems(id)
    const latest = this.latest = { version, items }
    const forget = (): void => {
      if (this.latest === latest) this.latest = undefined
    }
    clearTimeout(this.forgetting)
    this.forgetting = setTimeout(forget, memoryOfItems).unref()
    items.catch(forget)
    return items
  }

  private async readItems(id: string): Promise<readonly ParsedItem[]> {
    const { memory, storage } = this.stores
    const items = memory.items(id) ?? (await guard(storage?.store.getQueued(id)))?.items ?? await guard(storage?.archive.items(id))
    if (!items) throw new RelayError('not-found', 'what was to be sent is not kept of this delivery: see recordContent in the settings')
    return items
  }

  /**
   * Those of these deliveries of which it is kept what was to be sent.
   *
   * @throws RelayError `store-down`
   */
  async withContent(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const { memory, storage } = this.stores
    const [here, there] = [ids.filter(id => memory.hasContent(id)), ids.filter(id => !memory.hasContent(id))]
    if (!storage || there.length === 0) return new Set(here)
    const stored = await guard(storage.store.withContent(there))
    return new Set([...here, ...stored, ...await guard(storage.archive.withContent(there))])
  }

  /**
   * How many deliveries have ended how, by the hour in which they were accepted, the oldest first.
   *
   * @param caller only those of the key with this name
   * @throws RelayError `store-down`
   */
  async counts(hours: number, caller?: string): Promise<HourCounts[]> {
    const { memory, storage } = this.stores
    const start = (Math.floor(Date.now() / hour) - hours + 1) * hour
    const counts = Array.from({ length: hours }, (_, index) => ({
      hour: start + index * hour, sent: 0, failed: 0, unanswered: 0, expired: 0,
    }))
    for (const { id, state } of memory.states(lowestId(start), caller)) {
      const entry = counts[Math.floor((timeOf(id) - start) / hour)]
      const ended = endStates.find(name => name === state)
      if (entry && ended) entry[ended]++
    }
    for (const table of storage ? [storage.store, storage.archive] : []) await guard(countStored(table, counts, caller))
    return counts
  }

  /** The deliveries that were accepted within the last so many milliseconds, the newest first. */
  async* recent(time: number): AsyncGenerator<Delivery> {
    const since = this.clock.now() - time
    for (let before: string | undefined; ;) {
      const page = await this.list({ limit: pageSize, ...before !== undefined && { before } })
      for (const delivery of page) {
        if (delivery.createdAt < since) return
        yield delivery
      }
      before = page.at(-1)?.id
      if (page.length < pageSize) return
      await yieldToOthers()
    }
  }

  /** When a time of a delivery was, in milliseconds since the epoch by the machine's clock as it is now. */
  toWall(time: number): number {
    return this.clock.toWall(time)
  }

  private async getStored(id: string): Promise<Delivery | undefined> {
    return await this.stores.storage?.store.get(id) ?? await this.stores.storage?.archive.get(id)
  }

  /** What memory has is newer than what is stored of it, and what is to be sent again newer than its record before that. */
  private async listStored(filter: ListFilter): Promise<Delivery[]> {
    const storage = this.stores.storage
    if (!storage) return []
    const { store, archive } = storage
    const stored = (await store.list(filter)).filter(({ id }) => !this.stores.memory.get(id))
    const found: Delivery[] = []
    for (let { before } = filter; ;) {
      const records = await archive.list({ ...filter, ...before !== undefined && { before } })
      const known = records.length > 0 ? await store.known(records.map(({ id }) => id)) : []
      found.push(...records.filter(({ id }) => !this.stores.memory.get(id) && !known.includes(id)))
      before = records.at(-1)?.id
      if (records.length < filter.limit || found.length >= filter.limit) return [...stored, ...found]
    }
  }
}

/** Counts what a table has of these hours. What nothing is found of is not counted by the hour. */
async function countStored(table: Pick<Archive, 'countIn'>, counts: HourCounts[], caller: string | undefined): Promise<void> {
  const [first] = counts
  if (!first) return
  const own = caller === undefined ? {} : { caller: writeCaller(caller) }
  for (const state of endStates) {
    if (await table.countIn({ ...own, state, id: { $gte: lowestId(first.hour), $lt: lastId } }) === 0) continue
    for (const entry of counts) {
      entry[state] += await table.countIn({ ...own, state, id: { $gte: lowestId(entry.hour), $lt: lowestId(entry.hour + hour) } })
      await yieldToOthers()
    }
  }
}

/** When a UUIDv7 was made, in milliseconds since the epoch by the machine's clock. */
function timeOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
