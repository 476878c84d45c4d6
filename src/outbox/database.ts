import { $, type Context } from 'koishi'
import type { ListFilter } from './filter'
import { states, writeResults, type DeliveryRecord, type State } from './record'
import { fromRow, recordFields, toRow, writeTarget, type DeliveryRow } from './row'

declare module 'koishi' {
  interface Tables {
    message_relay_delivery: DeliveryRow
  }
}

/** What may change of a delivery after it was stored. */
export type Patch = Partial<Pick<DeliveryRecord, 'state' | 'deferred' | 'attempts' | 'results' | 'sending' | 'key' | 'expiresAt'>>

/** A delivery with the body of its request. */
export interface StoredRequest {
  record: DeliveryRecord
  body: unknown
}

const table = 'message_relay_delivery'
const unfinished: State[] = ['queued', 'sending']
const finished = states.filter(state => !unfinished.includes(state))

/** How many records are removed at a time: each statement blocks the event loop of an embedded database. */
const purgeSize = 50

/** Keeps deliveries in the Koishi database. Every method throws the error of the database. */
export class DatabaseRecords {
  private readonly database: Context['database']

  /** @param ctx a context with the database; the table is created when it is first used */
  constructor(ctx: Context) {
    this.database = ctx.database
    ctx.model.extend(table, {
      id: { type: 'string', length: 36, nullable: false },
      state: { type: 'string', length: 16, nullable: false },
      mode: { type: 'string', length: 16, nullable: false },
      deferred: { type: 'boolean', nullable: false },
      lane: { type: 'string', length: 255, nullable: false },
      target: { type: 'string', length: 300, nullable: false },
      bot: { type: 'string', length: 255, nullable: false },
      createdAt: { type: 'double', nullable: false },
      updatedAt: { type: 'double', nullable: false },
      expiresAt: { type: 'double', nullable: true, initial: null },
      attempts: { type: 'unsigned', nullable: false },
      results: { type: 'text', length: 2 ** 24, nullable: false },
      sending: { type: 'text', length: 2 ** 24, nullable: true, initial: null },
      key: { type: 'string', length: 255, nullable: true, initial: null },
      fingerprint: { type: 'string', length: 64, nullable: true, initial: null },
      body: { type: 'text', length: 2 ** 30, nullable: true, initial: null },
    }, { primary: 'id', unique: ['key'], indexes: [['lane', 'state', 'id'], ['state', 'id'], ['target', 'id']] })
  }

  /** Stores a new delivery: one write. */
  async insert(record: DeliveryRecord, lane: string, body: unknown): Promise<void> {
    await this.database.create(table, toRow(record, lane, body))
  }

  /** @returns whether the delivery is still there */
  async update(id: string, { results, sending, ...rest }: Patch): Promise<boolean> {
    const { matched } = await this.database.set(table, id, {
      ...rest,
      ...results && { results: writeResults(results) },
      ...sending !== undefined && { sending: sending && JSON.stringify(sending) },
      updatedAt: Date.now(),
    })
    return matched !== 0
  }

  async get(id: string): Promise<DeliveryRecord | undefined> {
    const [row] = await this.database.get(table, { id }, [...recordFields])
    return row && fromRow(row)
  }

  async findByKey(key: string): Promise<DeliveryRecord | undefined> {
    const [row] = await this.database.get(table, { key }, [...recordFields])
    return row && fromRow(row)
  }

  /** The newest first. */
  async list({ state, target, before, limit }: ListFilter): Promise<DeliveryRecord[]> {
    const rows = await this.database.get(table, {
      ...state && { state },
      ...target && { target: writeTarget(target) },
      ...before !== undefined && { id: { $lt: before } },
    }, { sort: { id: 'desc' }, limit, fields: [...recordFields] })
    return rows.map(fromRow)
  }

  /** The lanes in which deferred deliveries wait, and the bots they need. */
  async waitingLanes(): Promise<{ lane: string, bot: string }[]> {
    return this.database.select(table, { state: unfinished, deferred: true }).groupBy(['lane', 'bot']).execute()
  }

  /** The oldest deferred delivery that waits in a lane, up to one. */
  async nextInLane(lane: string, upTo: string): Promise<StoredRequest | undefined> {
    const [row] = await this.database.get(table, {
      lane, state: unfinished, deferred: true, id: { $lte: upTo },
    }, { sort: { id: 'asc' }, limit: 1 })
    if (!row) return
    const body: unknown = JSON.parse(row.body ?? 'null')
    return { record: fromRow(row), body }
  }

  /** How many deferred deliveries wait, and since when the oldest does. */
  async backlog(): Promise<{ size: number, oldest?: number }> {
    const query = { state: unfinished, deferred: true }
    const size = await this.database.select(table, query).execute(row => $.count(row.id))
    const [first] = await this.database.get(table, query, { sort: { id: 'asc' }, limit: 1, fields: ['createdAt'] })
    return { size, ...first && { oldest: first.createdAt } }
  }

  /**
   * Removes a delivery, unless it has begun to leave.
   *
   * @returns whether it did
   */
  async withdraw(id: string): Promise<boolean> {
    const { removed } = await this.database.remove(table, { id, state: 'queued' })
    return removed !== 0
  }

  /**
   * Puts a finished delivery back into its lane.
   *
   * @returns the lane, `undefined` when its request was not stored
   */
  async requeue(id: string, patch: Patch): Promise<string | undefined> {
    const [row] = await this.database.get(table, { id }, ['lane', 'bot'])
    if (!row?.lane) return
    await this.update(id, patch)
    return row.lane
  }

  /** Takes the key from the delivery that holds it. */
  async releaseKey(key: string): Promise<void> {
    await this.database.set(table, { key }, { key: null })
  }

  /** Marks what a caller waited for when the process ended: nobody knows what became of it. */
  async abandonInterrupted(): Promise<void> {
    await this.database.set(table, { state: 'sending', deferred: false }, { state: 'unanswered' })
  }

  /** The deferred deliveries whose time is over and that have not begun to leave. */
  async overdue(now: number): Promise<DeliveryRecord[]> {
    const rows = await this.database.get(table, { state: 'queued', deferred: true, expiresAt: { $lt: now } }, { limit: purgeSize, fields: [...recordFields] })
    return rows.map(fromRow)
  }

  /**
   * Removes some of the finished records that are older than this.
   *
   * @param id the lowest ID to keep
   * @returns whether there may be more
   */
  async purge(id: string): Promise<boolean> {
    const rows = await this.database.get(table, { id: { $lt: id }, state: finished }, { sort: { id: 'asc' }, limit: purgeSize, fields: ['id'] })
    if (rows.length > 0) await this.database.remove(table, { id: rows.map(row => row.id) })
    return rows.length === purgeSize
  }

  /** Whether the database answers. */
  async ping(): Promise<void> {
    await this.database.get(table, { id: '' }, ['id'])
  }
}
