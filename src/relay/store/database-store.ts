import { $, type Context, type Query } from 'koishi'
import { RelayError } from '../../errors'
import { Mutex, yieldToOthers } from '../../lib/async'
import { digest } from '../../lib/crypto'
import { unwrap } from '../../lib/unwrap'
import type { ParsedItem } from '../../message/model'
import { readItems, writeItems } from '../../message/parse'
import { writeTarget } from '../../message/target'
import { writeAbout } from '../delivery/about'
import { messageIdsOf, states, unfinished, type Change, type Delivery, type State } from '../delivery/delivery'
import type { Clock, Reading } from './clock'
import { LargeContent } from './large-content'
import { lastId, listNewest, textPattern, type Listed, type Part } from './listing'
import { lowestId, noPosition, queueOf, type Backlog, type ListFilter, type QueuedDelivery, type Store, type Waiting, type WaitingQueue } from './store'
import { fromStored, storedFields, toStored, writeResults, type StoredDelivery } from './stored'

declare module 'koishi' {
  interface Tables {
    message_relay_delivery: DeliveryRow
    message_relay_clock: ClockRow
  }
}

/** A delivery as it is stored. Times are milliseconds since the epoch. */
export interface DeliveryRow extends StoredDelivery {
  /** Digest of the name of its queue, empty when it has no position there. MySQL takes names for equal that differ in case. */
  queue: string
  position: number
  /** The relay process that changed it last. */
  owner: string
  /** What is needed to send it later, as JSON; where that is large, the number of its parts. */
  items: string | null
}

/** The clock of the relays, in the only row of its table. */
interface ClockRow extends Reading {
  id: number
}

const table = 'message_relay_delivery'
const clockTable = 'message_relay_clock'

/** What is read of a delivery; the items may be large and are read only to be sent. */
const fields = [...storedFields]

const finished = states.filter(state => !unfinished.some(name => name === state))

/** How many deliveries are read or removed at a time: each statement blocks the event loop of an embedded database. */
const chunkSize = 50

const contentGone = 'the content of this delivery is gone: send it again as a new request'
/** For how long after its last change what went unanswered is looked for by the next process, in milliseconds. */
const openFor = 15 * 60 * 1000

/** Keeps deliveries in the Koishi database. Every method rejects with the error of the database. */
export class DatabaseStore implements Store, Listed {
  readonly isDurable = true
  private readonly database: Context['database']
  /** SQLite changes rows in two steps, between which another statement may come: those about one delivery wait for one another. */
  private readonly changes = new Mutex()
  /** Of those that were discarded, the ones that may still be there. */
  private readonly discarded = new Set<string>()
  /** Where large content is. */
  readonly content: LargeContent
  /** Whether what was to be sent is kept of a delivery that has ended like this. */
  keeps: (state: State) => boolean = state => state !== 'sent'

  /**
   * @param ctx a context with the database; the tables are created when they are first used
   * @param owner of what is changed here: this process
   */
  constructor(ctx: Context, private readonly clock: Clock, private readonly owner: string) {
    this.database = unwrap(ctx.database)
    this.content = new LargeContent(ctx, this.database)
    defineTables(ctx)
  }

  /** Whether this store uses this database. */
  uses(database: Context['database']): boolean {
    return this.database === unwrap(database)
  }

  async insert(delivery: Delivery, position: number, items: readonly ParsedItem[]): Promise<void> {
    // Where it is tried again, it must not be the earlier one that is removed late.
    if (this.discarded.has(delivery.id)) await this.discard(delivery.id)
    const { items: content, ...row } = toRow(delivery, { position, owner: this.owner }, items)
    await this.content.write(row.id, content, place => this.database.create(table, { ...row, items: place }))
  }

  update(delivery: Delivery, from: readonly State[], change: Change): Promise<boolean> {
    return this.set(delivery, from, change, {})
  }

  amend(delivery: Delivery, from: readonly State[], change: Change): Promise<boolean> {
    return this.set(delivery, from, change, {}, { updatedAt: delivery.updatedAt })
  }

  requeue(delivery: Delivery, from: readonly State[], change: Change, position: number): Promise<boolean> {
    const { bot, target, updatedAt } = delivery
    return this.set(delivery, from, change, { queue: digest(queueOf(bot, target)), position }, { updatedAt })
  }

  /** The statements are one after another, so that none comes between the two steps of a change. */
  withdraw(id: string): Promise<boolean> {
    return this.changes.run(id, async () => {
      const { removed } = await this.database.remove(table, { id, state: 'queued', queue: { $gt: '' }, inDoubt: { $exists: false } })
      return removed !== 0
    })
  }

  async discard(id: string): Promise<void> {
    this.discarded.add(id)
    await this.changes.run(id, async () => {
      // Another relay may have inserted the same, to send it again, and what was sent meanwhile after all stays known.
      await this.database.remove(table, { id, owner: this.owner, state: 'queued', inDoubt: { $exists: false } })
      this.discarded.delete(id)
    })
  }

  /** Removes what was discarded while the database did not answer. */
  async removeDiscarded(): Promise<void> {
    for (const id of this.discarded) await this.discard(id)
  }

  async get(id: string): Promise<Delivery | undefined> {
    const [row] = await this.database.get(table, { id }, fields)
    return row && fromStored(row)
  }

  async findByKey(key: string): Promise<Delivery | undefined> {
    const [row] = await this.database.get(table, { key }, fields)
    if (!row || !this.discarded.has(row.id)) return row && fromStored(row)
    await this.discard(row.id)
  }

  async releaseKey(key: string): Promise<void> {
    await this.database.set(table, { key }, { key: null })
  }

  list(filter: ListFilter): Promise<Delivery[]> {
    return listNewest(filter, this)
  }

  async find({ text, ...part }: Part, limit: number): Promise<Delivery[]> {
    const rows = await this.database.get(table, { ...part, ...text !== undefined && { about: textPattern(text, 1) } }, { sort: { id: 'desc' }, limit, fields })
    return rows.map(row => fromStored(row))
  }

  async idAt(part: Part, offset: number): Promise<string | undefined> {
    const [row] = await this.database.get(table, { ...part }, { sort: { id: 'desc' }, offset, limit: 1, fields: ['id'] })
    return row?.id
  }

  async doorAfter(door: string): Promise<string | undefined> {
    const [row] = await this.database.get(table, { door: { $gt: door } }, { sort: { door: 'asc' }, limit: 1, fields: ['door'] })
    return row?.door ?? undefined
  }

  countIn(part: Part): Promise<number> {
    return this.database.select(table, { ...part }).execute(row => $.length(row.id))
  }

  /** Those of these deliveries that are here. */
  async known(ids: readonly string[]): Promise<string[]> {
    return (await this.database.get(table, { id: [...ids] }, ['id'])).map(({ id }) => id)
  }

  /** Those of these deliveries of which it is known here what was to be sent. */
  async withContent(ids: readonly string[]): Promise<string[]> {
    return (await this.database.get(table, { id: [...ids], items: { $exists: true } }, ['id'])).map(({ id }) => id)
  }

  async getQueued(id: string): Promise<QueuedDelivery | undefined> {
    const [row] = await this.database.get(table, { id })
    return row && row.items !== null ? this.toQueued(row) : undefined
  }

  /** It goes from queue to queue, however many wait in each. */
  async queues(): Promise<WaitingQueue[]> {
    const queues = new Map<string, WaitingQueue>()
    for (const state of unfinished) {
      let row = await this.firstAfter('', state)
      while (row) {
        const { bot, target } = fromStored(row)
        queues.set(row.queue, { queue: queueOf(bot, target), bot })
        await yieldToOthers()
        row = await this.firstAfter(row.queue, state)
      }
    }
    return [...queues.values()]
  }

  next(queue: string, upTo: number): Promise<QueuedDelivery | undefined> {
    return this.first({ state: 'queued', queue: digest(queue), position: { $lte: upTo } })
  }

  interrupted(queue: string): Promise<QueuedDelivery | undefined> {
    return this.first({ state: 'sending', queue: digest(queue) })
  }

  async waiting(queue: string): Promise<Waiting> {
    const [waiting] = await this.database.select(table, { state: [...unfinished], queue: digest(queue) })
      .groupBy([], { count: row => $.sum($.if($.eq(row.state, 'queued'), 1, 0)), last: row => $.max(row.position) }).execute()
    const { count, last }: { count?: number | null, last?: number | null } = waiting ?? {}
    // Both are `null` when there is nothing.
    return { count: count ?? 0, last: last ?? noPosition }
  }

  async backlog(): Promise<Backlog> {
    // Counted in the index alone.
    const size = await this.database.select(table, { state: [...unfinished], queue: { $gt: '' } }).execute(row => $.length(row.position))
    const [first] = await this.database.get(table, { state: 'queued', queue: { $gt: '' } }, { sort: { id: 'asc' }, limit: 1, fields: ['createdAt'] })
    return { size, ...first && { oldest: first.createdAt } }
  }

  async overdue(state: typeof unfinished[number], then: number): Promise<Delivery[]> {
    const rows = await this.database.get(table, { state, expiresAt: { $lt: then } }, { sort: { expiresAt: 'asc' }, limit: chunkSize, fields })
    return rows.map(row => fromStored(row))
  }

  /**
   * The IDs of the messages that deliveries through the same bot to the same target are known to have become, and of those that were in
   * the chat before them.
   *
   * @param since only of those that have changed since then, in milliseconds since the epoch
   */
  async messageIds({ bot, target }: Pick<Delivery, 'bot' | 'target'>, since: number): Promise<string[]> {
    const messageIds: string[] = []
    const inChat = { target: writeTarget(target) }
    // Which of them have changed is in no index: one statement for all would block the event loop for as long as there are records.
    for (let last: string | undefined = lastId; last !== undefined;) {
      const before: string = last
      const [first] = await this.database.get(table, { ...inChat, id: { $lt: before } }, {
        sort: { id: 'desc' }, offset: 2 * chunkSize, limit: 1, fields: ['id'],
      })
      last = first?.id
      const id = last === undefined ? { $lt: before } : { $lt: before, $gte: last }
      const rows = await this.database.get(table, { ...inChat, id, bot, updatedAt: { $gte: since } }, ['state', 'target', 'results', 'inDoubt'])
      for (const delivery of rows.map(row => fromStored(row))) messageIds.push(...messageIdsOf(delivery), ...delivery.inDoubt?.before ?? [])
      await yieldToOthers()
    }
    return messageIds
  }

  /** The process that changed a delivery last. */
  async ownerOf(id: string): Promise<string | undefined> {
    const [row] = await this.database.get(table, { id }, ['owner'])
    return row?.owner
  }

  /** The processes besides this one that have left something which `takeOver` would take. */
  async otherOwners(): Promise<string[]> {
    const rows = await this.database.get(table, { owner: { $ne: this.owner }, $or: [{ state: [...unfinished], queue: '' }, this.open()] }, ['owner'])
    return [...new Set(rows.map(({ owner }) => owner))]
  }

  /**
   * Settles what callers waited for when a process ended: what had begun to leave is unanswered, and what only waited never left, so that
   * its key may be used again.
   *
   * @returns the IDs of what is unanswered now or was before, and has to be looked for
   */
  async takeOver(owner: string): Promise<string[]> {
    const interrupted = await this.database.get(table, { owner, state: 'sending', queue: '' }, ['id'])
    const open = await this.database.get(table, { owner, ...this.open() }, { sort: { id: 'desc' }, limit: 2 * chunkSize, fields: ['id'] })
    const waiting = await this.database.get(table, { owner, state: 'queued', queue: '' }, ['id', 'inDoubt'])
    const lost = [...interrupted, ...open].map(({ id }) => id)
    // Whoever repeats a key may be finding out at this moment what became of it.
    for (const id of lost) await this.inherit({ id, owner, state: ['sending', 'unanswered'] }, { state: 'unanswered' })
    const failed = { state: 'failed', key: null, ...!this.keeps('failed') && { items: null } }
    for (const { id, inDoubt } of waiting) {
      // It was to be sent once more, and may have arrived before.
      if (inDoubt !== null) lost.push(id)
      await this.inherit({ id, owner, state: 'queued', queue: '' }, inDoubt === null ? failed : { state: 'unanswered' })
    }
    return lost
  }

  /** Takes over a delivery that is still as it was left. */
  private inherit(left: Query.Expr<DeliveryRow> & { id: string }, change: Partial<DeliveryRow>): Promise<unknown> {
    return this.changes.run(left.id, () => this.database.set(table, left, { ...change, owner: this.owner }))
  }

  /** What the clock of the relays showed when it was written down last, `undefined` when it never was. */
  async readClock(): Promise<Reading | undefined> {
    const [row] = await this.database.get(clockTable, { id: 1 })
    return row
  }

  async writeClock(reading: Reading): Promise<void> {
    await this.database.upsert(clockTable, [{ id: 1, ...reading }])
  }

  /**
   * Removes some of the deliveries that are older than this and wait for nothing.
   *
   * @param time what was accepted or has changed since is kept
   * @returns whether there may be more
   */
  async purge(time: number): Promise<boolean> {
    const rows = await this.database.get(table, {
      // IDs are made by the machine's clock.
      id: { $lt: lowestId(this.clock.toWall(time)) }, updatedAt: { $lt: time }, $or: [{ state: finished }, { queue: '' }],
    }, {
      sort: { id: 'asc' }, limit: chunkSize, fields: ['id'],
    })
    if (rows.length > 0) await this.database.remove(table, { id: rows.map(row => row.id) })
    return rows.length === chunkSize
  }

  /**
   * Removes some of the deliveries that are more than so many, the oldest first, as long as nothing depends on them: neither what waits,
   * nor a key, nor what went unanswered.
   *
   * @param keyTime since when keys are good, by the machine's clock
   * @returns whether there may be more
   */
  async purgeBeyond(limit: number, keyTime: number): Promise<boolean> {
    const beyond = await this.idAt({ id: { $lt: lastId } }, limit)
    if (beyond === undefined) return false
    const oldest = [beyond, lowestId(keyTime)].sort()[0] ?? beyond
    const rows = await this.database.get(table, { id: { $lte: oldest }, state: finished, updatedAt: { $lt: this.clock.now() - openFor } }, {
      sort: { id: 'asc' }, limit: chunkSize, fields: ['id'],
    })
    if (rows.length > 0) await this.database.remove(table, { id: rows.map(row => row.id) })
    return rows.length === chunkSize
  }

  /**
   * Forgets what was to be sent of some of what has ended, but for what went unanswered.
   *
   * @param after from which ID on; absent: from the first
   * @returns up to which ID that is done, `undefined` when there are no more
   */
  async forgetEnded(after = ''): Promise<string | undefined> {
    const [last] = await this.database.get(table, { id: { $gt: after } }, { sort: { id: 'asc' }, offset: chunkSize, limit: 1, fields: ['id'] })
    const ended = { state: finished.filter(state => state !== 'unanswered'), items: { $exists: true } }
    const rows = await this.database.get(table, { ...ended, id: { $gt: after, ...last && { $lte: last.id } } }, ['id'])
    for (const { id } of rows) await this.changes.run(id, () => this.database.set(table, { ...ended, id }, { items: null }))
    return last?.id
  }

  /** Forgets what was to be sent of what has gone unanswered and is looked for no more. */
  async forgetUnanswered(): Promise<void> {
    const now = this.clock.now()
    await this.database.set(table, {
      state: 'unanswered', items: { $exists: true }, updatedAt: { $lt: now - openFor }, $or: [{ expiresAt: { $lt: now } }, { deferred: false }],
    }, { items: null })
  }

  /**
   * Removes content that belongs to no delivery. To be called from time to time.
   *
   * @param others finds those of these IDs whose content belongs elsewhere
   */
  removeOrphans(others: (ids: string[]) => Promise<string[]> = () => Promise.resolve([])): Promise<void> {
    // Here last: a delivery that comes over meanwhile is here before it is gone elsewhere.
    return this.content.removeOrphans(async ids => [...await others(ids), ...await this.withContent(ids)])
  }

  /** Rejects when the database does not answer. */
  async ping(): Promise<void> {
    await this.database.get(table, { id: '' }, ['id'])
  }

  private set(
    delivery: Delivery, from: readonly State[], change: Change, place: Partial<DeliveryRow>, more: Query.Expr<DeliveryRow> = {},
  ): Promise<boolean> {
    const { id, attempts, about } = delivery
    const updatedAt = this.clock.now()
    const { results, inDoubt, ...rest } = change
    const update = {
      attempts, ...rest, ...place, ...change.deferred === false && { queue: '', position: noPosition }, updatedAt, owner: this.owner, about: writeAbout(about),
      ...results && { results: writeResults(results) },
      ...inDoubt !== undefined && { inDoubt: inDoubt && JSON.stringify(inDoubt) },
      ...change.state && finished.includes(change.state) && !this.keeps(change.state) && { items: null },
    }
    return this.changes.run(id, async () => {
      const { matched } = await this.database.set(table, { id, state: [...from], ...more }, update)
      if (matched !== 0) Object.assign(delivery, change, { updatedAt })
      return matched !== 0
    })
  }

  /** What has gone unanswered and may still be found, or sent again. */
  private open(): Query.Expr<DeliveryRow> {
    const now = this.clock.now()
    return { state: 'unanswered', $or: [{ updatedAt: { $gte: now - openFor } }, { expiresAt: { $gt: now } }] }
  }

  private async first(query: Query<DeliveryRow>): Promise<QueuedDelivery | undefined> {
    const [row] = await this.database.get(table, query, { sort: { position: 'asc' }, limit: 1 })
    if (!row || !this.discarded.has(row.id)) return row && this.toQueued(row)
    await this.discard(row.id)
    return this.first(query)
  }

  private async toQueued(row: DeliveryRow): Promise<QueuedDelivery> {
    const delivery = fromStored({ ...row })
    const items = await this.content.read(row.id, row.items ?? '[]')
    return {
      delivery, position: row.position, isOurs: row.owner === this.owner,
      // Where the delivery was withdrawn meanwhile, none of this is sent.
      items: items === undefined ? delivery.results.map(() => new RelayError('internal', contentGone)) : readItems(items),
    }
  }

  private async firstAfter(queue: string, state: State) {
    const rows = await this.database.get(table, { state, queue: { $gt: queue } }, { sort: { queue: 'asc' }, limit: 1, fields: [...fields, 'queue'] })
    return rows[0]
  }
}

/** Declares the tables, which are created when they are first used. */
function defineTables(ctx: Context): void {
  ctx.model.extend(table, {
    id: { type: 'string', length: 36, nullable: false },
    state: { type: 'string', length: 16, nullable: false },
    mode: { type: 'string', length: 16, nullable: false },
    deferred: { type: 'boolean', nullable: false },
    queue: { type: 'string', length: 64, nullable: false },
    position: { type: 'double', nullable: false },
    owner: { type: 'string', length: 36, nullable: false },
    target: { type: 'string', length: 300, nullable: false },
    // Hexadecimal of at most 64 bytes. Records of earlier releases have none.
    caller: { type: 'string', length: 128, nullable: true, initial: null },
    bot: { type: 'string', length: 255, nullable: false },
    createdAt: { type: 'double', nullable: false },
    updatedAt: { type: 'double', nullable: false },
    expiresAt: { type: 'double', nullable: true, initial: null },
    attempts: { type: 'unsigned', nullable: false },
    results: { type: 'text', length: 2 ** 24, nullable: false },
    inDoubt: { type: 'text', length: 2 ** 24, nullable: true, initial: null },
    key: { type: 'string', length: 64, nullable: true, initial: null },
    fingerprint: { type: 'string', length: 64, nullable: true, initial: null },
    items: { type: 'text', length: 2 ** 30, nullable: true, initial: null },
    // Records of earlier releases have neither.
    door: { type: 'string', length: 255, nullable: true, initial: null },
    about: { type: 'text', length: 2 ** 24, nullable: true, initial: null },
  }, {
    primary: 'id',
    unique: ['key'],
    indexes: [
      ['state', 'queue', 'position'], ['state', 'expiresAt'], ['state', 'id'], ['target', 'id'], ['target', 'state', 'id'],
      ['caller', 'id'], ['caller', 'state', 'id'], ['caller', 'target', 'id'], ['door', 'id'],
    ],
  })
  ctx.model.extend(clockTable, {
    id: { type: 'unsigned', nullable: false },
    time: { type: 'double', nullable: false },
    wall: { type: 'double', nullable: false },
    uptime: { type: 'double', nullable: false },
    boot: { type: 'string', length: 64, nullable: false },
  }, { primary: 'id' })
}

/** The row of a new delivery. */
export function toRow(delivery: Delivery, { position, owner }: Pick<DeliveryRow, 'position' | 'owner'>, items: readonly ParsedItem[]): DeliveryRow & { items: string } {
  return {
    ...toStored(delivery),
    queue: position === noPosition ? '' : digest(queueOf(delivery.bot, delivery.target)),
    position,
    owner,
    items: JSON.stringify(writeItems(items)),
  }
}
