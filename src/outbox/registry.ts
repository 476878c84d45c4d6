import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import type { ListFilter } from './filter'
import { guard } from './ledger'
import type { MemoryRecords } from './memory'
import { outcomeOf, type DeliveryRecord } from './record'
import type { Storage } from './storage'

export interface RegistryOptions {
  memory: MemoryRecords
  storage: () => Storage | undefined
}

/** After which time a delivery that is tried again is dropped, in milliseconds. */
const retryExpiry = 24 * 60 * 60 * 1000

/** Shows what became of deliveries, and lets their owners step in. */
export class Registry {
  constructor(private readonly options: RegistryOptions) {}

  /** @throws RelayError `not-found`, `store-down` */
  async get(id: string): Promise<DeliveryRecord> {
    const record = this.options.memory.get(id) ?? await guard(this.options.storage()?.records.get(id))
    if (!record) throw new RelayError('not-found')
    return record
  }

  /**
   * The newest first, those in memory and in the database together.
   *
   * @throws RelayError `store-down`
   */
  async list(filter: ListFilter): Promise<DeliveryRecord[]> {
    const remembered = this.options.memory.list(filter)
    const stored = await guard(this.options.storage()?.records.list(filter)) ?? []
    const ids = new Set(remembered.map(({ id }) => id))
    return [...remembered, ...stored.filter(({ id }) => !ids.has(id))]
      .sort((a, b) => a.id < b.id ? 1 : -1)
      .slice(0, filter.limit)
  }

  /**
   * Takes a delivery back that has not begun to leave.
   *
   * @throws RelayError `not-found`, `conflict`, `store-down`
   */
  async withdraw(id: string): Promise<void> {
    const record = await this.get(id)
    const records = this.options.storage()?.records
    if (!records || record.state !== 'queued' || !await guard(records.withdraw(id))) {
      throw new RelayError('conflict', `this delivery is ${record.state}: only a queued one can be withdrawn`)
    }
  }

  /**
   * Sends what was not delivered of a finished delivery again.
   *
   * @throws RelayError `not-found`, `conflict`, `no-database`, `store-down`
   */
  async retry(id: string): Promise<DeliveryRecord> {
    const record = await this.get(id)
    const storage = this.options.storage()
    if (!['failed', 'unanswered', 'expired'].includes(record.state)) {
      throw new RelayError('conflict', `this delivery is ${record.state}: only one that was not delivered can be sent again`)
    }
    if (!storage) throw new RelayError('no-database')
    const lane = await guard(storage.records.requeue(id, {
      state: 'queued', deferred: true, sending: null, expiresAt: Date.now() + retryExpiry,
      results: record.results.map(result => outcomeOf(result) === 'sent' ? result : undefined),
    }))
    if (lane === undefined) {
      throw new RelayError('conflict', 'the content of this delivery was not stored: send it as a new request')
    }
    storage.outbox.drain(lane, uuid())
    return this.get(id)
  }
}
