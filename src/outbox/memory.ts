import type { DeliveryRecord } from './record'
import { matches, type ListFilter } from './filter'

/** How many deliveries are remembered. */
const capacity = 10_000
/** How many Idempotency-Keys are remembered where there is no database. */
const keyCapacity = 100_000

/** Remembers the last deliveries, for those that cost no write to a database. */
export class MemoryRecords {
  private readonly records = new Map<string, DeliveryRecord>()
  private readonly keys = new Map<string, DeliveryRecord>()

  add(record: DeliveryRecord): void {
    this.records.set(record.id, record)
    if (this.records.size > capacity) dropFirst(this.records)
  }

  /** Remembers a delivery under its key, beyond the last ones. */
  addKey(record: DeliveryRecord): void {
    if (record.key === null) return
    this.keys.delete(record.key)
    this.keys.set(record.key, record)
    if (this.keys.size > keyCapacity) dropFirst(this.keys)
  }

  /** Lets go of a delivery that is kept elsewhere. */
  forget({ id, key }: DeliveryRecord): void {
    this.records.delete(id)
    if (key !== null && this.keys.get(key)?.id === id) this.keys.delete(key)
  }

  get(id: string): DeliveryRecord | undefined {
    return this.records.get(id)
  }

  findByKey(key: string): DeliveryRecord | undefined {
    return this.keys.get(key)
  }

  releaseKey(key: string): void {
    this.keys.delete(key)
  }

  /** The newest first. */
  list(filter: ListFilter): DeliveryRecord[] {
    return [...this.records.values()].reverse().filter(record => matches(record, filter)).slice(0, filter.limit)
  }
}

function dropFirst(map: Map<string, unknown>): void {
  // A Map keeps the order in which its entries came.
  for (const first of map.keys()) {
    map.delete(first)
    return
  }
}
