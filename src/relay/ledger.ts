import type { Doubt, ItemResult, Journal } from './transmitter'
import { RelayError } from '../errors'
import type { DatabaseRecords } from './database-store'
import type { MemoryRecords } from './memory-store'
import { persist } from './patience'
import { settlement, states, withLate, type DeliveryRecord } from './delivery'
import type { Storage } from './storage'
import type { Trace } from './sent-log'

/**
 * The account of a delivery whose caller waits. One with an Idempotency-Key is in the database where there is one, so that the
 * key survives a restart; the others, and those that the database did not take, are in memory.
 */
export class Ledger implements Journal {
  private readonly key: string | null
  private readonly storage: Storage | undefined
  /** Only for what may be asked about after a restart. */
  readonly sending?: (doubt: Doubt) => Promise<void>
  private isOpen = false
  /** What answers told that came too late, by the places of the items. */
  private lateResults: Map<number, ItemResult> | undefined

  constructor(
    private readonly record: DeliveryRecord,
    private readonly memory: MemoryRecords,
    private readonly trace: Trace,
    storage: Storage | undefined,
  ) {
    this.key = record.key
    if (record.key === null || !storage) return
    this.storage = storage
    let hasLeft = false
    // Of the first one; it is written down with the result.
    this.sending = doubt => {
      if (!hasLeft) record.sending = { ...doubt, indices: [] }
      hasLeft = true
      return Promise.resolve()
    }
  }

  /**
   * Begins it.
   *
   * @throws RelayError `in-progress` when another relay has just taken the key, `key-reused`, `store-down`
   */
  async open(body: unknown): Promise<void> {
    if (this.storage) await insert(this.storage.records, this.record, '', body)
    else this.remember()
    this.isOpen = true
  }

  attempt(): void {
    const { record } = this
    record.attempts++
    record.sending ??= { indices: [], since: Date.now(), others: [] }
  }

  async late(indices: readonly number[], messageIds: string[]): Promise<boolean> {
    const { record, storage, memory, trace } = this
    if (indices.every(index => record.results[index]?.success)) return true
    this.lateResults ??= new Map()
    for (const index of indices) this.lateResults.set(index, { success: true, messageIds })
    // It is taken down with the rest.
    if (record.state === 'sending') return true
    this.settle(record.results)
    if (!storage) {
      memory.update(record)
      trace.write(record)
      return true
    }
    const { id, state, results, sending } = record
    // Unless it waits to be sent again meanwhile; then it is looked up before.
    return !storage.stop.aborted && await storage.records.change(id, ['unanswered'], { state, results, sending })
  }

  /** Writes down what has become of it so far. What was sent was sent, so a database that is away does not make it fail. */
  async close(results: readonly (ItemResult | undefined)[]): Promise<void> {
    const { record, storage, memory, trace } = this
    this.settle(results)
    if (!storage) {
      if (this.key !== null && record.key === null) memory.releaseKey(this.key)
      memory.update(record)
      trace.write(record)
      return
    }
    try {
      await this.write(storage.records)
    } catch {
      // Meanwhile it is in memory; a restart would find it interrupted, and so unanswered.
      if (memory.get(record.id)) memory.update(record)
      else this.remember()
      void persist(() => this.write(storage.records), storage).then(() => memory.forget(record), () => undefined)
    }
  }

  /** Takes down that none of it was sent, for this reason. Without an outcome it was no delivery at all. */
  async fail(error: RelayError): Promise<void> {
    const results = this.record.results.map(() => ({ success: false as const, error }))
    if (this.isOpen) {
      await this.close(results)
    } else if (error.outcome) {
      this.settle(results)
      this.memory.add(this.record)
    }
  }

  private settle(results: readonly (ItemResult | undefined)[]): void {
    const { record, lateResults } = this
    const known = lateResults ? withLate(results, lateResults) : [...results]
    Object.assign(record, settlement(record, known), { updatedAt: Date.now() })
  }

  private remember(): void {
    this.memory.add(this.record)
    this.memory.addKey(this.record)
  }

  private async write(records: DatabaseRecords): Promise<void> {
    const { id, state, results, sending, attempts, key } = this.record
    await records.change(id, states, { state, results, sending, attempts, key })
  }
}

/**
 * Stores a new delivery.
 *
 * @throws RelayError `in-progress` or `key-reused` when its key was taken meanwhile, `store-down`
 */
export async function insert(records: DatabaseRecords, record: DeliveryRecord, position: string, body: unknown): Promise<void> {
  try {
    await records.insert(record, position, body)
  } catch (cause) {
    // Drivers word a duplicate key differently; asking for it is the same everywhere.
    const other = record.key === null ? undefined : await guard(records.findByKey(record.key))
    if (other && other.id !== record.id) throw keyConflict(other.fingerprint === record.fingerprint)
    // It may be there although the answer was lost, but nobody is told that it is.
    records.discard(record.id).catch(() => undefined)
    throw new RelayError('store-down', undefined, { cause })
  }
}

/** The failure of a request whose key belongs to another one that is under way, or that had another body. */
export function keyConflict(isSameBody: boolean): RelayError {
  return isSameBody ? new RelayError('in-progress', undefined, { headers: { 'retry-after': '1' } }) : new RelayError('key-reused')
}

/** @throws RelayError `store-down` for whatever the database throws */
export async function guard<T>(work: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await work
  } catch (cause) {
    throw new RelayError('store-down', undefined, { cause })
  }
}
