import { $, type Context, type Query } from 'koishi'
import { v7 as uuid } from 'uuid'
import { laneOf } from '../platform/bots'
import { unwrap } from '../lib/unwrap'
import { writeTarget } from '../message/target'
import type { ListFilter } from './filter'
import { Mutex } from '../lib/mutex'
import { breathe } from './patience'
import { messageIdsOf, states, writeResults, type DeliveryRecord, type State } from './delivery'
import { defineTable, digest, fromRow, recordFields, table, toRow, type DeliveryRow } from './row'

/** What may change of a delivery after it was stored. */
export type Patch = Partial<Pick<DeliveryRecord, 'state' | 'deferred' | 'attempts' | 'results' | 'sending' | 'key' | 'expiresAt'>>

/** A delivery with the body of its request. */
export interface StoredRequest {
  record: DeliveryRecord
  /** As in the row. */
  position: string
  body: unknown
}

/** A lane in which something waits, and the bot that it needs. */
export interface WaitingLane {
  lane: string
  bot: string
}

const unfinished = ['queued', 'sending'] as const
const finished = states.filter(state => !unfinished.some(name => name === state))

/** How many records are read or removed at a time: each statement blocks the event loop of an embedded database. */
const chunkSize = 50

const hour = 60 * 60 * 1000
/** How long before a message an equal one may have been sent and be taken for it, in milliseconds: more than `clockTolerance`. */
const equalWithin = 60_000

/** Keeps deliveries in the Koishi database. Every method throws the error of the database. */
export class DatabaseRecords {
  private readonly database: Context['database']
  /** SQLite changes rows in two steps, between which another statement may come: those about one delivery wait for one another. */
  private readonly changes = new Mutex()

  /** @param ctx a context with the database; the table is created when it is first used */
  constructor(ctx: Context) {
    this.database = unwrap(ctx.database)
    defineTable(ctx)
  }

  /**
   * Stores a new delivery: one write.
   *
   * @param position as in the row
   */
  async insert(record: DeliveryRecord, position: string, body: unknown): Promise<void> {
    await this.database.create(table, toRow(record, position, body))
  }

  /** @returns whether the delivery was there, in one of these states */
  change(id: string, from: readonly State[], patch: Patch): Promise<boolean> {
    return this.set(id, from, toUpdate(patch))
  }

  async get(id: string): Promise<DeliveryRecord | undefined> {
    const [row] = await this.database.get(table, { id }, [...recordFields])
    return row && fromRow(row)
  }

  /**
   * The IDs of the last messages that deliveries through the same bot to the same target are known to have become.
   *
   * @param since when a message left for which one of them could be taken, in milliseconds since the epoch
   */
  async messageIds({ bot, target }: DeliveryRecord, since: number): Promise<string[]> {
    const rows = await this.database.get(table, { target: writeTarget(target), bot, updatedAt: { $gte: since - equalWithin } }, {
      sort: { id: 'desc' }, limit: chunkSize, fields: [...recordFields],
    })
    return rows.flatMap(row => messageIdsOf(fromRow(row)))
  }

  /** The latest deliveries that have changed shortly before that. Those accepted more than an hour earlier may be missing. */
  async changedBefore(now: number): Promise<DeliveryRecord[]> {
    const time = now - equalWithin
    const rows = await this.database.get(table, { id: { $gte: firstId(time - hour) }, updatedAt: { $gte: time } }, {
      sort: { id: 'desc' }, limit: 10 * chunkSize, fields: [...recordFields],
    })
    return rows.map(fromRow)
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

  /** The lanes in which deferred deliveries wait. It goes from lane to lane, however many wait in each. */
  async waitingLanes(): Promise<WaitingLane[]> {
    const lanes = new Map<string, WaitingLane>()
    for (const state of unfinished) {
      let row = await this.firstAfter('', state)
      while (row) {
        const { bot, target } = fromRow(row)
        lanes.set(row.lane, { lane: laneOf(bot, target), bot })
        await breathe()
        row = await this.firstAfter(row.lane, state)
      }
    }
    return [...lanes.values()]
  }

  private async firstAfter(lane: string, state: State) {
    const rows = await this.database.get(table, { state, lane: { $gt: lane } }, {
      sort: { lane: 'asc' }, limit: 1, fields: [...recordFields, 'lane'],
    })
    return rows[0]
  }

  /** The first deferred delivery that waits in a lane, up to this position. */
  nextInLane(lane: string, upTo: string): Promise<StoredRequest | undefined> {
    return this.firstInLane({ state: 'queued', lane: digest(lane), position: { $lte: upTo } })
  }

  /** A delivery of this lane that had begun to leave. */
  interruptedIn(lane: string): Promise<StoredRequest | undefined> {
    return this.firstInLane({ state: 'sending', lane: digest(lane) })
  }

  private async firstInLane(query: Query<DeliveryRow>): Promise<StoredRequest | undefined> {
    const [row] = await this.database.get(table, query, { sort: { position: 'asc' }, limit: 1 })
    return row && toRequest(row)
  }

  /** How many deferred deliveries wait in a lane and have not begun to leave. */
  countWaiting(lane: string): Promise<number> {
    return this.database.select(table, { state: 'queued', lane: digest(lane) }).execute(row => $.length(row.position))
  }

  /** How many deferred deliveries wait, and since when the oldest does. */
  async backlog(): Promise<{ size: number, oldest?: number }> {
    // Counted in the index alone.
    const size = await this.database.select(table, { state: [...unfinished], lane: { $gt: '' } }).execute(row => $.length(row.position))
    const [first] = await this.database.get(table, { state: 'queued' }, { sort: { id: 'asc' }, limit: 1, fields: ['createdAt'] })
    return { size, ...first && { oldest: first.createdAt } }
  }

  /**
   * Removes a delivery that has not begun to leave.
   *
   * @returns whether it did
   */
  withdraw(id: string): Promise<boolean> {
    return this.changes.run(id, async () => {
      const { removed } = await this.database.remove(table, { id, state: 'queued' })
      return removed !== 0
    })
  }

  /** Removes a delivery of which nobody was told. */
  async discard(id: string): Promise<void> {
    await this.database.remove(table, { id })
  }

  /** The request of a delivery, where it was stored. */
  async getRequest(id: string): Promise<StoredRequest | undefined> {
    const [row] = await this.database.get(table, { id })
    return row && row.body !== null ? toRequest(row) : undefined
  }

  /**
   * Puts a finished delivery into its lane.
   *
   * @returns whether it was in one of these states
   */
  requeue(record: DeliveryRecord, from: readonly State[], position: string, patch: Patch): Promise<boolean> {
    return this.set(record.id, from, { ...toUpdate(patch), lane: digest(laneOf(record.bot, record.target)), position })
  }

  /** Takes the key from the delivery that holds it. */
  async releaseKey(key: string): Promise<void> {
    await this.database.set(table, { key }, { key: null })
  }

  /** Marks what a caller waited for when the process ended: nobody knows what became of it. */
  async abandonInterrupted(before: number): Promise<void> {
    await this.database.set(table, { state: 'sending', lane: '', createdAt: { $lt: before } }, { state: 'unanswered' })
  }

  /** Some of the deferred deliveries in this state whose time was over then. */
  async overdue(state: typeof unfinished[number], then: number): Promise<DeliveryRecord[]> {
    const rows = await this.database.get(table, { state, expiresAt: { $lt: then } }, {
      sort: { expiresAt: 'asc' }, limit: chunkSize, fields: [...recordFields],
    })
    return rows.map(fromRow)
  }

  /**
   * Removes some of the records that are older than this and wait for nothing.
   *
   * @param time what was accepted or has changed since is kept, in milliseconds since the epoch
   * @returns whether there may be more
   */
  async purge(time: number): Promise<boolean> {
    const rows = await this.database.get(table, { id: { $lt: firstId(time) }, updatedAt: { $lt: time }, $or: [{ state: finished }, { lane: '' }] }, {
      sort: { id: 'asc' }, limit: chunkSize, fields: ['id'],
    })
    if (rows.length > 0) await this.database.remove(table, { id: rows.map(row => row.id) })
    return rows.length === chunkSize
  }

  /** Whether the database answers. */
  async ping(): Promise<void> {
    await this.database.get(table, { id: '' }, ['id'])
  }

  private set(id: string, from: readonly State[], update: Partial<DeliveryRow>): Promise<boolean> {
    return this.changes.run(id, async () => {
      const { matched } = await this.database.set(table, { id, state: [...from] }, update)
      return matched !== 0
    })
  }
}

/** The lowest ID that a delivery accepted at this time can have. */
function firstId(time: number): string {
  return uuid({ msecs: time, seq: 0, random: new Uint8Array(16) })
}

function toUpdate({ results, sending, ...rest }: Patch): Partial<DeliveryRow> {
  return {
    ...rest,
    ...results && { results: writeResults(results) },
    ...sending !== undefined && { sending: sending && JSON.stringify(sending) },
    updatedAt: Date.now(),
  }
}

function toRequest(row: DeliveryRow): StoredRequest {
  const body: unknown = JSON.parse(row.body ?? 'null')
  return { record: fromRow(row), position: row.position, body }
}
