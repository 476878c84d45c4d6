import { $, type Context, type Logger, type Query } from 'koishi'
import { LRUCache } from 'lru-cache'
import { readFile } from 'node:fs/promises'
// Gives the event loop a turn, which the statements of an embedded database do not.
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { Mutex } from '../lib/async'
import { placesOf, silently, unwrap } from '../lib/koishi'
import { printable } from '../lib/log'
import type { ParsedItem } from '../message/model'
import { readItems, writeItems } from '../message/parse'
import { writeTarget } from '../message/target'
import { inTime, pause, type Clock } from './clock'
import { isUnfinished, states, unfinished, type Delivery, type State } from './delivery/delivery'
import { NotOwner, fromRow, gone, keepsContent, lowestId, matches, nameOfError, noAnswer, sizeOfItems, toRow, writeCaller, type Filter, type Journal, type ListFilter, type OwnerRow, type OwnerStore, type Row } from './journal'
import type { RecordContent } from './delivery/summary'

declare module 'koishi' {
  interface Tables {
    message_relay_journal: JournalRow
    message_relay_owner: OwnerRow & { id: number }
  }
}

interface JournalRow extends Row {
  /** Grows with each write: the number of the owner that made it, times `versions`, and how many writes that had made before. */
  version: number
  /** The content as JSON, or `file:` and the ID of a file with it; `null` if the content is not kept. */
  items: string | null
}

type Value = string | number | null

/** A query for the rows in a range of IDs. */
type Stretch = Query.Expr<JournalRow> & { id: { $gte: string, $lt: string } }

/** The used part of koishi-plugin-database-sqlite 4.7.0. */
interface Sqlite {
  _run: (sql: string, values: readonly Value[]) => void
  db: { getRowsModified: () => number }
}

/** Files for content that is too large for a row. */
export interface ContentFiles {
  /** @returns the ID of the new file */
  saveData: (data: string, name: string) => Promise<string>
  /** @throws RelayError `file-not-found` */
  resolve: (id: string) => Promise<{ path: string }>
  /** Keeps a file at least until a time in milliseconds since the epoch. @throws RelayError `file-not-found` */
  keepUntil: (id: string, until: number) => Promise<void>
  remove: (id: string) => Promise<void>
}

export interface JournalOptions {
  clock: Clock
  logger: Pick<Logger, 'info' | 'warn'>
  files: ContentFiles
  /** How long the record of a delivery is kept, in milliseconds. */
  retention: number
  /** The most records. */
  recordLimit: number
  recordContent: RecordContent
}

/** After how long a statement counts as failed, in milliseconds. */
const statementTimeout = 8_000

const table = 'message_relay_journal'
const ownerTable = 'message_relay_owner'
/** The columns, in the order of the batched insert. */
const columns = [
  'id', 'state', 'target', 'caller', 'door', 'thread', 'key', 'updatedAt', 'summary', 'record', 'version', 'items',
] as const satisfies (keyof JournalRow)[]
/** The columns of a delivery. The items are read separately, because they may be large. */
const fields = columns.filter(name => name !== 'items')

/** The most rows that one statement writes, stamps or removes, because those of an embedded database block the event loop. */
const chunkSize = 250
/** How many rows one statement of a search without an index looks through, and how many it reads at least. */
const stretch = 2_000
const least = 20
/** The number of versions that each owner has. */
const versions = 2 ** 32
/** How often records are written, many together, in milliseconds. */
const writeInterval = 450
const day = 24 * 60 * 60 * 1000
/** The longest life of a waiting delivery, in milliseconds: scheduled 30 days ahead, it may expire 30 days later. */
const longestWait = 61 * day
/** The longest content of a row, in characters. Longer content becomes a file. */
const largest = 64 * 1024
/** The most content that one statement writes, in characters: MariaDB accepts statements of 16 MB by default (`max_allowed_packet`). */
const largestWrite = 1024 * 1024
const fileMark = 'file:'
const bufferSize = 64 * 1024 * 1024

/** Keeps deliveries in one table of Koishi's database. */
export class DatabaseJournal implements Journal, OwnerStore {
  readonly isDurable = true
  /** Whether the database runs in this process, so that no other process may use its file. */
  readonly isEmbedded: boolean
  private readonly database: Context['database']
  private readonly sqlite: Sqlite | undefined
  /** The records that wait to be written. The oldest are dropped while the database is away for long. */
  private readonly buffer = new LRUCache<string, { delivery: Delivery, items?: readonly ParsedItem[] }>({
    max: 10_000, maxSize: bufferSize, sizeCalculation: ({ items = [] }) => Math.min(1 + sizeOfItems(items), bufferSize),
  })

  private readonly writes = new Mutex()
  private owner = 0
  /** The owner under which all content was checked against the setting. */
  private checkedFor = -1
  private written = 0
  /** Stamped rows that no `adopt` has returned yet. */
  private readonly adopted = new Set<string>()
  /** Aborted when the database is taken away. */
  private readonly gone = new AbortController()
  /** The damaged rows that the log has. */
  private readonly damaged = new Set<string>()
  /** The content files of recently active deliveries. */
  private readonly contentFiles = new LRUCache<string, string>({ max: 1_000 })

  /** @param ctx a context with the database. Its tables are created on first use. */
  constructor(ctx: Context, private readonly options: JournalOptions) {
    this.database = unwrap(ctx.database)
    const { drivers } = this.database
    this.isEmbedded = !placesOf(this.database).includes('server')
    this.sqlite = drivers.flatMap(driver => isSqlite(driver) ? [driver] : [])[0]
    defineTables(ctx)
    ctx.on('dispose', () => this.gone.abort())
    void this.writeBehind(this.gone.signal)
  }

  async insert(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    const row = toRow(delivery)
    const { id } = row
    await this.writes.run(id, async () => {
      try {
        const content = await this.writeContent(id, items)
        await this.ask(() => this.database.create(table, { ...row, version: this.nextVersion(), items: content }))
      } catch (error) {
        await this.dropFile(id)
        throw error
      }
    })
  }

  async update(delivery: Delivery): Promise<void> {
    // The other columns never change, and have indexes.
    const { id, state, target, key, updatedAt, summary, record } = toRow(delivery)
    const isKept = keepsContent(delivery.state, this.options.recordContent)
    await this.writes.run(id, async () => {
      if (this.buffer.has(id)) await this.flush()
      await this.put({ id, state, target, key, updatedAt, summary, record, ...!isKept && { items: null } })
    })
    if (!isKept) await this.dropFile(id)
  }

  async cancel(id: string): Promise<void> {
    // The last version of this owner, so that nothing of it replaces it.
    const tombstone = { ...emptyRow, id, updatedAt: this.options.clock.wall(), version: (this.owner + 1) * versions - 1 }
    // The row has the file of an earlier process; this process has that of a row that is not there yet.
    await this.dropFiles([id])
    await this.dropFile(id)
    await this.writes.run(id, async () => {
      if (!await this.put(tombstone)) await this.ask(() => this.database.create(table, tombstone))
    })
  }

  record(delivery: Delivery, items: readonly ParsedItem[]): void {
    const isKept = items.length > 0 && keepsContent(delivery.state, this.options.recordContent)
    this.buffer.set(delivery.id, { delivery, ...isKept && { items } })
    if (!isKept) void this.dropFile(delivery.id).catch(() => undefined)
  }

  async flush(): Promise<void> {
    for (let left = this.buffer.size; left > 0 && this.buffer.size > 0;) left -= await this.writes.run(table, () => this.writeSome())
  }

  async find(id: string): Promise<Delivery | undefined> {
    return this.buffer.peek(id)?.delivery ?? this.read(await this.get({ id, state: { $ne: gone } }))[0]
  }

  async findByKey(key: string): Promise<Delivery | undefined> {
    return this.read(await this.get({ key }))[0]
  }

  async items(id: string): Promise<readonly ParsedItem[] | undefined> {
    const entry = this.buffer.peek(id)
    if (entry) return entry.items
    const [row] = await this.ask(() => this.database.get(table, { id }, ['items']))
    const content = row?.items && await this.readContent(id, row.items)
    try {
      return content ? readItems(JSON.parse(content)) : undefined
    } catch {
      this.reportDamage(id)
    }
  }

  async list(filter: ListFilter): Promise<Delivery[]> {
    const { order, limit } = filter
    const found: Delivery[] = []
    for await (const query of this.stretches(filter, order)) {
      for await (const rows of this.pages(query, Math.max(limit, least), order)) {
        found.push(...this.read(rows).filter(each => matches(each, filter)))
        if (found.length >= limit) return found.slice(0, limit)
      }
    }
    return found
  }

  async withContent(ids: readonly string[]): Promise<readonly string[]> {
    const query = { id: ids.filter(id => !this.buffer.has(id)), items: { $exists: true } }
    return [...ids.filter(id => this.buffer.peek(id)?.items), ...await this.idsOf(query, ids.length)]
  }

  async count(filter: Filter & { states: readonly State[] }): Promise<ReadonlyMap<State, number>> {
    const counts = new Map<State, number>()
    for await (const query of this.stretches(filter)) {
      for (const state of filter.states) {
        const count = await this.ask(() => this.database.select(table, { ...query, state }).execute(row => $.length(row.id)))
        counts.set(state, (counts.get(state) ?? 0) + count)
      }
    }
    return counts
  }

  async adopt(owner: number, since: number): Promise<Delivery[]> {
    this.owner = owner
    const version = owner * versions
    for (const query of [{ state: [...unfinished] }, { state: 'unanswered', updatedAt: { $gte: since } }]) {
      for await (const ids of this.chunks({ ...query, version: { $lt: version } })) {
        for (const id of ids) this.adopted.add(id)
        await this.change(ids, version, { version })
      }
    }
    // Rows are read after the stamp: until then the earlier owner may write.
    const left: Delivery[] = []
    for (let ids = [...this.adopted]; ids.length > 0; ids = ids.slice(chunkSize)) {
      const rows = await this.get({ id: ids.slice(0, chunkSize), state: [...unfinished, 'unanswered'] })
      left.push(...this.read(rows))
    }
    this.adopted.clear()
    return left.sort((a, b) => a.seq - b.seq)
  }

  async purge(wall: number): Promise<void> {
    const { owner, options: { retention, recordLimit, recordContent } } = this
    const expired = wall - retention
    // Rows that nothing depends on: ended, with no key or an expired one.
    const done: Query.Expr<JournalRow> = {
      state: { $nin: [...unfinished] }, $or: [{ key: { $exists: false } }, { id: { $lt: lowestId(wall - day) } }],
    }
    await this.removeAll({ $and: [done, { id: { $lt: lowestId(expired) }, updatedAt: { $lt: expired } }] })
    await this.removeAll({ state: gone, updatedAt: { $lt: wall - day } })
    const [beyond] = await this.idsOf({}, 1, 'desc', recordLimit)
    if (beyond !== undefined) await this.removeAll({ $and: [done, { id: { $lte: beyond } }] })
    if (recordContent === 'none') await this.dropContent({ state: 'unanswered', updatedAt: { $lt: wall - day } })
    if (recordContent === 'full' || this.checkedFor === owner) return
    // Rows may have ended under another setting. With a text, the range of all rows is divided.
    const state = recordContent === 'preview' ? ['sent'] : states.filter(each => !isUnfinished(each) && each !== 'unanswered')
    for await (const { id } of this.stretches({ text: '' }, 'asc')) await this.dropContent({ state, id })
    this.checkedFor = owner
  }

  async ping(): Promise<void> {
    await this.idsOf({ id: '' }, 1)
  }

  async readOwner(): Promise<OwnerRow | undefined> {
    const [row] = await this.ask(() => this.database.get(ownerTable, { id: 1 }, ['number', 'beat', 'name']))
    return row
  }

  /** One at a time, because SQLite's driver changes a row in two steps. */
  swapOwner(from: OwnerRow | undefined, to: OwnerRow): Promise<boolean> {
    return this.writes.run(ownerTable, async () => {
      if (from) {
        const { matched } = await this.ask(() => this.database.set(ownerTable, { id: 1, number: from.number, beat: from.beat }, to))
        return matched !== 0
      }
      try {
        await this.ask(() => this.database.create(ownerTable, { id: 1, ...to }))
        return true
      } catch (error) {
        if (await this.readOwner()) return false
        throw error
      }
    })
  }

  /** The version of this owner's next write. */
  private nextVersion(): number {
    return this.owner * versions + ++this.written
  }

  /**
   * Changes a row if no newer owner has it and its version is lower.
   *
   * @returns whether the row, or its tombstone, is there
   * @throws NotOwner
   */
  private async put({ id, ...change }: Partial<JournalRow> & Pick<JournalRow, 'id'>): Promise<boolean> {
    const { owner } = this
    const version = this.nextVersion()
    if (await this.change([id], version, { version, ...change }) > 0) return true
    const [present] = await this.ask(() => this.database.get(table, { id }, ['version', 'state']))
    if (present && present.version >= (owner + 1) * versions) throw new NotOwner()
    return present?.state === gone
  }

  private async writeBehind(gone: AbortSignal): Promise<void> {
    const { clock, logger } = this.options
    for (let isFailing = false; ;) {
      await pause(clock, writeInterval, gone)
      if (gone.aborted) return
      try {
        await this.flush()
        if (isFailing) logger.info('records are written to the database again')
        isFailing = false
      } catch (error) {
        if (!isFailing) logger.warn('records cannot be written to the database, and wait in memory: %s', nameOfError(error))
        isFailing = true
      }
    }
  }

  /** Writes the oldest waiting records, if another flush has not written them. @returns their number */
  private async writeSome(): Promise<number> {
    let size = 0
    const waiting = [...this.buffer.rvalues()].flatMap(entry => entry ?? []).slice(0, chunkSize)
    const entries = waiting.filter(({ items = [] }) => (size += Math.min(sizeOfItems(items), largest)) < largestWrite)
    if (entries.length === 0) return 0
    const version = this.owner * versions
    const rows = await Promise.all(entries.map(async ({ delivery, items = [] }) => {
      // On a full disk, the record is kept without its content.
      return { ...toRow(delivery), version, items: await this.writeContent(delivery.id, items).catch(() => null) }
    }))
    await this.ask(() => this.replace(rows))
    for (const entry of entries) {
      const { id } = entry.delivery
      // The delivery may have been recorded again since.
      if (this.buffer.peek(id) === entry) this.buffer.delete(id)
    }
    await yieldToOthers()
    return entries.length
  }

  private async replace(rows: readonly JournalRow[]): Promise<void> {
    const sql = `INSERT OR REPLACE INTO ${table} (${columns.join()}) VALUES ${rows.map(() => `(${marks(columns)})`).join()}`
    const written = await this.runDirectly(sql, rows.flatMap(row => columns.map(column => row[column])))
    if (written === undefined) await this.database.upsert(table, [...rows])
  }

  /** Changes the rows among these whose version is lower. @returns their number */
  private async change(ids: readonly string[], version: number, change: Partial<JournalRow>): Promise<number> {
    const assignments = Object.keys(change).map(column => `${column} = ?`).join()
    const sql = `UPDATE ${table} SET ${assignments} WHERE id IN (${marks(ids)}) AND version < ?`
    return this.ask(async () => {
      const changed = await this.runDirectly(sql, [...Object.values(change), ...ids, version])
      return changed ?? (await this.database.set(table, { id: [...ids], version: { $lt: version } }, change)).matched ?? 0
    })
  }

  /**
   * Runs a statement on SQLite directly: the driver would run one for each row, and each takes longer than a send.
   *
   * @returns the number of rows written; `undefined` if the database is not SQLite
   */
  private async runDirectly(sql: string, values: readonly Value[]): Promise<number | undefined> {
    const { database, sqlite } = this
    if (!sqlite) return
    await database.prepared()
    sqlite._run(sql, values)
    return sqlite.db.getRowsModified()
  }

  /** Removes the rows that still match at their turn: a delivery may have been sent again. */
  private async removeAll(query: Query.Expr<JournalRow>): Promise<void> {
    const { clock } = this.options
    for await (const ids of this.chunks(query)) {
      const began = clock.now()
      await this.dropFiles(ids)
      await this.ask(() => this.database.remove(table, { $and: [query, { id: ids }] }))
      // Other work gets half of the time while much is removed.
      const took = clock.now() - began
      if (took > 0) await pause(clock, took, this.gone.signal)
    }
  }

  /** Removes the content of matching rows, except rows that change meanwhile. */
  private async dropContent(query: Query.Expr<JournalRow>): Promise<void> {
    const version = this.nextVersion()
    for await (const ids of this.chunks({ $and: [query, { items: { $exists: true } }] })) {
      await this.dropFiles(ids)
      await this.change(ids, version, { items: null })
    }
  }

  /**
   * The conditions of a filter. A search for a text or a door, which have no index, is divided into ranges of so many rows, because one
   * statement for all of them would block an embedded database, and with it the process.
   */
  private async* stretches(filter: Filter, order: ListFilter['order'] = 'desc'): AsyncGenerator<Stretch> {
    await this.flush().catch(() => undefined)
    const { since = 0, until = Infinity, before = lowestId(Infinity), text, door } = filter
    const last = lowestId(until)
    const isUp = order === 'asc'
    const isWhole = text === undefined && door === undefined
    for (let [start, end] = [lowestId(since), before < last ? before : last]; start < end;) {
      const [edge = isUp ? end : start] = isWhole ? [] : await this.idsOf({ id: { $gte: start, $lt: end } }, 1, order, stretch)
      yield { ...conditionsOf(filter), id: isUp ? { $gte: start, $lt: edge } : { $gte: edge, $lt: end } }
      if (isUp) start = edge
      else end = edge
      await yieldToOthers()
    }
  }

  /** The rows of a query, in pages. */
  private async* pages(query: Query.Expr<JournalRow>, size: number, order: ListFilter['order']): AsyncGenerator<Omit<JournalRow, 'items'>[]> {
    for (let rest: Query.Expr<JournalRow> | undefined = {}; rest;) {
      const rows = await this.get({ $and: [query, rest] }, size, order)
      yield rows
      const last = rows.length === size ? rows.at(-1) : undefined
      rest = last && { id: order === 'asc' ? { $gt: last.id } : { $lt: last.id } }
      await yieldToOthers()
    }
  }

  /** The IDs of a query in pages, the oldest first. */
  private async* chunks(query: Query.Expr<JournalRow>): AsyncGenerator<string[]> {
    for (let last: string | undefined = ''; last !== undefined && !this.gone.signal.aborted;) {
      const ids: string[] = await this.idsOf({ $and: [query, { id: { $gt: last } }] }, chunkSize)
      if (ids.length > 0) yield ids
      last = ids.length === chunkSize ? ids.at(-1) : undefined
      await yieldToOthers()
    }
  }

  private async idsOf(query: Query.Expr<JournalRow>, limit: number, order: ListFilter['order'] = 'asc', offset = 0): Promise<string[]> {
    const rows = await this.ask(() => this.database.get(table, query, { sort: { id: order }, limit, offset, fields: ['id'] }))
    return rows.map(({ id }) => id)
  }

  private get(query: Query.Expr<JournalRow>, limit?: number, order: ListFilter['order'] = 'desc'): Promise<Omit<JournalRow, 'items'>[]> {
    return this.ask(() => this.database.get(table, query, { sort: { id: order }, fields, ...limit !== undefined && { limit } }))
  }

  /** Reads rows, and leaves damaged ones out. */
  private read(rows: readonly Row[]): Delivery[] {
    return rows.flatMap(row => {
      try {
        return [fromRow(row)]
      } catch {
        this.reportDamage(row.id)
        return []
      }
    })
  }

  private reportDamage(id: string): void {
    if (this.damaged.has(id)) return
    this.damaged.add(id)
    this.options.logger.warn('the row %s of the table %s is damaged and is left out: remove it, or restore it from a backup', printable(id), table)
  }

  /** The content for a row: itself, or the name of its file. The content of a delivery never changes. */
  private async writeContent(id: string, items: readonly ParsedItem[]): Promise<string | null> {
    if (items.length === 0) return null
    const json = JSON.stringify(writeItems(items))
    if (json.length <= largest) return json
    return fileMark + await this.keepFile(id, this.contentFiles.get(id) ?? await this.options.files.saveData(json, `${id}.json`))
  }

  private async readContent(id: string, written: string): Promise<string | undefined> {
    if (!written.startsWith(fileMark)) return written
    const file = await this.keepFile(id, written.slice(fileMark.length))
    const { path } = await this.options.files.resolve(file).catch(() => ({ path: undefined }))
    return path === undefined ? undefined : readFile(path, 'utf8')
  }

  /** Keeps a content file as long as its delivery may wait and be retried. It is removed with the row. */
  private async keepFile(id: string, file: string): Promise<string> {
    const { clock, files, retention } = this.options
    this.contentFiles.set(id, file)
    await files.keepUntil(file, clock.wall() + longestWait + retention).catch(() => undefined)
    return file
  }

  private async dropFile(id: string): Promise<void> {
    const file = this.contentFiles.get(id)
    this.contentFiles.delete(id)
    if (file !== undefined) await this.options.files.remove(file)
  }

  /** Removes the content files of rows. */
  private async dropFiles(ids: string[]): Promise<void> {
    const rows = await this.ask(() => this.database.get(table, { id: ids, items: new RegExp(`^${fileMark}`) }, ['items']))
    for (const { items } of rows) if (items !== null) await this.options.files.remove(items.slice(fileMark.length))
  }

  /** Runs a statement, for no longer than its time-out. */
  private async ask<T>(statement: () => Promise<T>): Promise<T> {
    const asked = silently(this.database, statement).then(value => ({ value }))
    const answer = await inTime(this.options.clock, asked, statementTimeout)
    // It may still carry out the statement.
    if (!answer) throw new Error(noAnswer)
    return answer.value
  }
}

/** The fields of a tombstone besides its ID. */
const emptyRow = { state: gone, target: '', caller: null, door: '', thread: null, key: null, summary: '', record: '', items: null } as const

/** The conditions of a filter that the database checks. More deliveries may pass than match. */
function conditionsOf({ states, targets, thread, caller, door, text }: Filter): Query.Expr<JournalRow> {
  return {
    state: states ? [...states] : { $ne: gone },
    ...targets && { target: targets.map(writeTarget) },
    ...thread !== undefined && { thread },
    ...caller !== undefined && { caller: writeCaller(caller) },
    // In ASCII, `0` follows `/`.
    ...door !== undefined && { door: { $gte: door, $lt: `${door}0` } },
    ...text !== undefined && { summary: textPattern(text) },
  }
}

/** A condition for a text in a summary, in any case. Only texts of items are called `msg`, and quotes in them are escaped. */
function textPattern(text: string): RegExp {
  const escaped = JSON.stringify(text).slice(1, -1).replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  return new RegExp(`"msg":"(?:[^"\\\\]|\\\\.)*?${escaped}`, 'i')
}

function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join()
}

function isSqlite(driver: object): driver is Sqlite {
  return /sqlite/i.test(driver.constructor.name) && '_run' in driver && 'db' in driver
}

/** Declares the tables. They are created on first use. */
function defineTables(ctx: Context): void {
  ctx.model.extend(table, {
    id: { type: 'string', length: 36, nullable: false },
    state: { type: 'string', length: 16, nullable: false },
    target: { type: 'string', length: 300, nullable: false },
    // In hexadecimal: the longest is `plugin:` with 64 characters.
    caller: { type: 'string', length: 400, nullable: true, initial: null },
    door: { type: 'string', length: 255, nullable: false },
    // A digest in hexadecimal, like the key.
    thread: { type: 'string', length: 64, nullable: true, initial: null },
    key: { type: 'string', length: 64, nullable: true, initial: null },
    updatedAt: { type: 'double', nullable: false },
    version: { type: 'double', nullable: false },
    summary: { type: 'text', length: 2 ** 24, nullable: false },
    record: { type: 'text', length: 2 ** 24, nullable: false },
    items: { type: 'text', length: 2 ** 30, nullable: true, initial: null },
  }, { primary: 'id', unique: ['key'], indexes: [['state', 'id'], ['target', 'id'], ['caller', 'id'], ['thread', 'id']] })
  ctx.model.extend(ownerTable, {
    id: { type: 'unsigned', nullable: false },
    number: { type: 'unsigned', nullable: false },
    beat: { type: 'double', nullable: false },
    name: { type: 'string', length: 255, nullable: false },
  }, { primary: 'id' })
}
