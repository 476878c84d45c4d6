import { validate as isUuid } from 'uuid'
import { RelayError } from '../errors'
import { parseRequest } from '../message/parse'
import type { ListFilter } from './filter'
import { guard } from './ledger'
import type { MemoryRecords } from './memory-store'
import { doubtOf, outcomeOf, usesUpKey, type DeliveryRecord, type State } from './delivery'
import type { Storage } from './storage'
import { keepUploads, type KeepUpload } from './uploads'

export interface RegistryOptions {
  memory: MemoryRecords
  storage: () => Storage | undefined
  /** Keeps the files of a delivery that is sent again. */
  keepUpload: KeepUpload
}

/** After which time a delivery that is tried again is dropped, in milliseconds. */
const retryExpiry = 24 * 60 * 60 * 1000
const retryable: readonly State[] = ['failed', 'unanswered', 'expired']

/** Shows what became of deliveries, and lets their owners step in. */
export class Registry {
  constructor(private readonly options: RegistryOptions) {}

  /** @throws RelayError `not-found`, `store-down` */
  async get(id: string): Promise<DeliveryRecord> {
    // Whatever else comes in a path need not come as far as the database.
    if (!isUuid(id)) throw new RelayError('not-found')
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
    const storage = this.options.storage()
    if (record.state === 'queued' && usesUpKey(record.results)) {
      throw new RelayError('conflict', 'a part of this delivery has been sent: it cannot be withdrawn any more')
    }
    if (storage && record.state === 'queued' && await guard(storage.outbox.withdraw(record))) return
    const { state } = await this.get(id)
    throw new RelayError('conflict', `this delivery is ${state}: only a queued one can be withdrawn`)
  }

  /**
   * Sends what was not delivered of a finished delivery again. What went unanswered is looked up first.
   *
   * @throws RelayError `not-found`, `conflict`, `no-database`, `store-down`
   */
  async retry(id: string): Promise<DeliveryRecord> {
    const { state } = await this.get(id)
    const storage = this.options.storage()
    if (!retryable.some(name => name === state)) throw notRetryable(state)
    if (!storage) throw new RelayError('no-database')
    const stored = await guard(storage.records.getRequest(id))
    if (!stored) throw new RelayError('conflict', 'the content of this delivery was not stored: send it as a new request')
    const { record, body } = stored
    const expiresAt = Date.now() + retryExpiry
    const { keepUpload } = this.options
    // A file that is gone already makes its item fail in its turn.
    await keepUploads(parseRequest(body), expiresAt, keepUpload).catch(() => undefined)
    const isQueued = await guard(storage.outbox.requeue(record, retryable, {
      state: 'queued',
      deferred: true,
      expiresAt,
      sending: doubtOf(record, record.results),
      results: record.results.map(result => outcomeOf(result) === 'sent' ? result : undefined),
    }))
    if (!isQueued) throw notRetryable((await this.get(id)).state)
    return { ...record, state: 'queued' }
  }
}

function notRetryable(state: State): RelayError {
  return new RelayError('conflict', `this delivery is ${state}: only one that was not delivered can be sent again`)
}
