import { RelayError } from '../errors'
import type { DatabaseRecords } from './database'
import type { MemoryRecords } from './memory'
import type { DeliveryRecord } from './record'

/** How long to wait before a write that failed is tried again, in milliseconds. */
const pause = 1_000
const maxTries = 600

/**
 * The account of a delivery that has an Idempotency-Key: in the database where there is one, so that the key survives a
 * restart, and in memory where there is none, or while the database is away.
 */
export class KeyedLedger {
  /** @param key what the record loses when the request does not use it up */
  constructor(
    private readonly key: string,
    private readonly record: DeliveryRecord,
    private readonly memory: MemoryRecords,
    private readonly records: DatabaseRecords | undefined,
  ) {}

  /** @throws RelayError `in-progress` when another relay has just taken the key, `store-down` */
  async open(): Promise<void> {
    if (this.records) await insert(this.records, this.record, '', null)
    else this.remember()
  }

  /** Writes down the end. What was sent was sent, so a database that is away does not make it fail. */
  async close(): Promise<void> {
    if (!this.records) {
      if (this.record.key === null) this.memory.releaseKey(this.key)
      return
    }
    try {
      await this.write(this.records)
    } catch {
      this.remember()
      void this.writeLater(this.records)
    }
  }

  private async write(records: DatabaseRecords): Promise<void> {
    const { id, state, results, attempts, key } = this.record
    await records.update(id, { state, results, attempts, key })
  }

  private async writeLater(records: DatabaseRecords): Promise<void> {
    for (let tries = 0; tries < maxTries; tries++) {
      await new Promise(resolve => setTimeout(resolve, pause).unref())
      try {
        await this.write(records)
        return
      } catch {
        // It stays in memory meanwhile, and a restart would find it as interrupted: unanswered.
      }
    }
  }

  private remember(): void {
    this.memory.add(this.record)
    this.memory.addKey(this.record)
  }
}

/**
 * Stores a new delivery.
 *
 * @throws RelayError `in-progress` when its key was taken meanwhile, `store-down`
 */
export async function insert(records: DatabaseRecords, record: DeliveryRecord, lane: string, body: unknown): Promise<void> {
  try {
    await records.insert(record, lane, body)
  } catch (cause) {
    // Drivers word a duplicate key differently; asking for it is the same everywhere.
    const isTaken = record.key !== null && await guard(records.findByKey(record.key)) !== undefined
    if (isTaken) throw new RelayError('in-progress', undefined, { headers: { 'retry-after': '1' } })
    throw new RelayError('store-down', undefined, { cause })
  }
}

/** @throws RelayError `store-down` for whatever the database throws */
export async function guard<T>(work: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await work
  } catch (cause) {
    throw new RelayError('store-down', undefined, { cause })
  }
}
