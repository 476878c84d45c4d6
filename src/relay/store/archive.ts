import { $, type Context, type Query } from 'koishi'
import { Mutex, yieldToOthers } from '../../lib/async'
import { unwrap } from '../../lib/unwrap'
import type { ParsedItem } from '../../message/model'
import { readItems } from '../../message/parse'
import type { Delivery } from '../delivery/delivery'
import type { LargeContent } from './large-content'
import { listNewest, textPattern, type Listed, type Part } from './listing'
import type { MemoryStore } from './memory-store'
import type { ListFilter } from './store'
import { fromText, pickFields } from './stored'

declare module 'koishi' {
  interface Tables {
    message_relay_record: RecordRow
    message_relay_kept: KeptRow
  }
}

/**
 * The record of a delivery that has ended and that nothing depends on any more: it had no key and was not to be sent later. It has only
 * the columns by which it is looked for, because to write one takes as long as there are columns and indexes.
 */
interface RecordRow {
  id: string
  state: string
  target: string
  caller: string | null
  door: string
  /** As `toText` has it. */
  record: string
}

/** What was to be sent of such a delivery. */
interface KeptRow {
  id: string
  /** In characters. */
  size: number
  /** As `LargeContent` has it. */
  items: string
}

const table = 'message_relay_record'
const keptTable = 'message_relay_kept'
const columns = ['id', 'state', 'target', 'caller', 'door', 'record'] as const satisfies (keyof RecordRow)[]

/** How many records a statement writes, reads or removes: an embedded database blocks the event loop meanwhile. */
const chunkSize = 250

/**
 * The history in the Koishi database: what has ended and was kept in memory only is written here behind the sends, many at a time. So a
 * crash may lose the last of it, and never a message. Every method rejects with the error of the database.
 */
export class Archive implements Listed {
  private readonly database: Context['database']
  /** How many records there are, and how long what is kept of what was to be sent is together, as far as this process knows. */
  private count = 0
  private keptSize = 0
  private isKnown = false
  /** Told each time before some are written. */
  beforeWrite: () => void = () => undefined
  /** What changes how much there is: one at a time, so that it can be counted along. */
  private readonly changes = new Mutex()

  /**
   * @param ctx a context with the database; the tables are created when they are first used
   * @param content where large content is
   * @param maxKept how long what is kept of what was to be sent may be together, in characters
   */
  constructor(ctx: Context, private readonly content: LargeContent, private readonly maxKept = 256 * 1024 * 1024) {
    this.database = unwrap(ctx.database)
    defineTables(ctx)
  }

  /**
   * Writes what has ended in memory and is not here yet.
   *
   * @param limit how many records are kept
   * @param rest when what is left after a full statement is written, as more comes in all the time: a statement costs a page of an index
   *   for each chat, however few its rows
   */
  async write(memory: MemoryStore, limit: number, rest: 'now' | 'later' = 'now'): Promise<void> {
    do {
      await this.changes.run(table, () => this.writeSome(memory, limit))
      await yieldToOthers()
    } while (memory.unwrittenCount >= (rest === 'now' ? 1 : chunkSize))
  }

  async get(id: string): Promise<Delivery | undefined> {
    const [row] = await this.database.get(table, { id }, ['record'])
    return row && fromText(row.record)
  }

  /** The newest first. */
  list(filter: ListFilter): Promise<Delivery[]> {
    return listNewest(filter, this)
  }

  /** What was to be sent, where it is kept. */
  async items(id: string): Promise<ParsedItem[] | undefined> {
    const [row] = await this.database.get(keptTable, { id })
    const items = row && await this.content.read(id, row.items)
    return items === undefined ? undefined : readItems(items)
  }

  /** Those of these deliveries of which it is kept what was to be sent. */
  async withContent(ids: readonly string[]): Promise<string[]> {
    return (await this.database.get(keptTable, { id: [...ids] }, ['id'])).map(({ id }) => id)
  }

  /** Forgets a record, because the delivery goes on elsewhere. */
  async remove(id: string): Promise<void> {
    await this.changes.run(table, async () => {
      const { removed } = await this.database.remove(table, { id })
      this.count -= removed ?? 0
      await this.forget({ id })
    })
  }

  /**
   * Removes some of the records below this ID, the oldest first.
   *
   * @returns whether there may be more
   */
  async purge(before: string): Promise<boolean> {
    return await this.changes.run(table, () => this.removeOldest(chunkSize, before)) === chunkSize
  }

  /**
   * Forgets what was to be sent of some of them.
   *
   * @returns whether there may be more
   */
  forgetContent(): Promise<boolean> {
    return this.changes.run(table, async () => {
      const rows = await this.database.get(keptTable, {}, { limit: chunkSize, fields: ['id'] })
      await this.forget({ id: rows.map(({ id }) => id) })
      return rows.length === chunkSize
    })
  }

  /** Learns anew how much there is, as others may have written. */
  recount(): void {
    this.isKnown = false
  }

  countIn(part: Part): Promise<number> {
    return this.database.select(table, { ...part }).execute(row => $.length(row.id))
  }

  async find({ text, ...part }: Part, limit: number): Promise<Delivery[]> {
    const query = { ...part, ...text !== undefined && { record: textPattern(text, 2) } }
    const rows = await this.database.get(table, query, { sort: { id: 'desc' }, limit, fields: ['record'] })
    return rows.map(({ record }) => fromText(record))
  }

  async idAt(part: Part, offset: number): Promise<string | undefined> {
    const [row] = await this.database.get(table, { ...part }, { sort: { id: 'desc' }, offset, limit: 1, fields: ['id'] })
    return row?.id
  }

  async doorAfter(door: string): Promise<string | undefined> {
    const [row] = await this.database.get(table, { door: { $gt: door } }, { sort: { door: 'asc' }, limit: 1, fields: ['door'] })
    return row?.door
  }

  private async writeSome(memory: MemoryStore, limit: number): Promise<void> {
    await this.learn()
    const entries = memory.unwritten(chunkSize).map(entry => ({ ...entry, row: toRow(entry.text) }))
    if (entries.length === 0) return
    this.beforeWrite()
    // Before its record, so that it is there as soon as that is.
    for (const { row: { id }, content } of entries) if (content !== undefined) await this.keep(id, content)
    await this.insert(entries.map(({ row }) => row))
    // An answer that came late has told that it is delivered after all.
    const delivered = entries.flatMap(({ isKnown, row: { id, state } }) => isKnown && state === 'sent' && !memory.keeps(state) ? [id] : [])
    if (delivered.length > 0) await this.forget({ id: delivered })
    memory.release(entries, ({ row }) => row.state === 'unanswered')
    this.count += entries.filter(({ isKnown }) => !isKnown).length
    await this.keepLimits(limit)
  }

  /** How much there is: from then on it counts along. */
  private async learn(): Promise<void> {
    if (this.isKnown) return
    this.count = await this.database.select(table, {}).execute(row => $.length(row.id))
    // It is `null` when there is nothing.
    const size = await this.database.select(keptTable, {}).execute(row => $.sum(row.size))
    this.keptSize = size > 0 ? size : 0
    this.isKnown = true
  }

  /**
   * SQLite is told all in one statement: through its driver each row takes longer than a send. `_run` is that of
   * koishi-plugin-database-sqlite 4.7.0.
   */
  private async insert(rows: RecordRow[]): Promise<void> {
    await this.database.prepared()
    const [driver, ...others] = this.database.drivers
    const run: unknown = driver && others.length === 0 && /sqlite/i.test(driver.constructor.name) ? Reflect.get(driver, '_run') : undefined
    if (typeof run !== 'function') {
      await this.database.upsert(table, rows)
      return
    }
    const places = rows.map(() => `(${columns.map(() => '?').join()})`).join()
    const sql = `INSERT OR REPLACE INTO ${table} (${columns.join()}) VALUES ${places}`
    Reflect.apply(run, driver, [sql, rows.flatMap(row => columns.map(column => row[column]))])
  }

  private async keep(id: string, content: string): Promise<void> {
    const earlier = await this.sizeOf({ id })
    await this.content.write(id, content, items => this.database.upsert(keptTable, [{ id, size: content.length, items }]))
    this.keptSize += content.length - earlier
  }

  /** Removes what is kept of what was to be sent. */
  private async forget(query: Query.Expr<KeptRow>): Promise<void> {
    const size = await this.sizeOf(query)
    if (size === 0) return
    await this.database.remove(keptTable, query)
    this.keptSize -= size
  }

  private async sizeOf(query: Query.Expr<KeptRow>): Promise<number> {
    return (await this.database.get(keptTable, query, ['size'])).reduce((sum, { size }) => sum + size, 0)
  }

  /** The oldest go first. */
  private async keepLimits(limit: number): Promise<void> {
    while (this.count > limit && await this.removeOldest(this.count - limit) > 0) await yieldToOthers()
    while (this.keptSize > this.maxKept) {
      const [oldest] = await this.database.get(keptTable, {}, { sort: { id: 'asc' }, limit: 1, fields: ['id'] })
      if (oldest) await this.forget({ id: oldest.id })
      else this.keptSize = 0
    }
  }

  /** @returns how many were there to be removed */
  private async removeOldest(count: number, before?: string): Promise<number> {
    const rows = await this.database.get(table, before === undefined ? {} : { id: { $lt: before } }, {
      sort: { id: 'asc' }, limit: Math.min(count, chunkSize), fields: ['id'],
    })
    const last = rows.at(-1)?.id
    if (last === undefined) return 0
    const { removed } = await this.database.remove(table, { id: { $lte: last } })
    this.count -= removed ?? rows.length
    await this.forget({ id: { $lte: last } })
    return rows.length
  }
}

/** Declares the tables, which are created when they are first used. */
function defineTables(ctx: Context): void {
  ctx.model.extend(table, {
    id: { type: 'string', length: 36, nullable: false },
    state: { type: 'string', length: 16, nullable: false },
    target: { type: 'string', length: 300, nullable: false },
    caller: { type: 'string', length: 128, nullable: true, initial: null },
    door: { type: 'string', length: 255, nullable: false },
    record: { type: 'text', length: 2 ** 24, nullable: false },
  }, { primary: 'id', indexes: [['state', 'id'], ['target', 'id'], ['caller', 'id'], ['door', 'id']] })
  ctx.model.extend(keptTable, {
    id: { type: 'string', length: 36, nullable: false },
    size: { type: 'double', nullable: false },
    items: { type: 'text', length: 2 ** 24, nullable: false },
  }, { primary: 'id' })
}

function toRow(record: string): RecordRow {
  const [id, state, target, caller, door] = pickFields(record, ['id', 'state', 'target', 'caller', 'door'])
  return { id: String(id), state: String(state), target: String(target), caller: typeof caller === 'string' ? caller : null, door: String(door), record }
}
