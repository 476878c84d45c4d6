import { $, Driver, type Context, type Logger, type Query } from 'koishi'
import { LRUCache } from 'lru-cache'
import { readFile } from 'node:fs/promises'
import { Mutex, sleep, yieldToOthers } from '../lib/async'
import { printable } from '../lib/log'
import { unwrap } from '../lib/unwrap'
import type { ParsedItem, Target } from '../message/model'
import { readItems, writeItems } from '../message/parse'
import { writeTarget } from '../message/target'
import type { Clock } from './clock'
import { isUnfinished, unfinished, type Delivery, type State } from './delivery'
import { KeyTaken, NotOwner, fromRow, gone, headOf, keepsContent, lastId, lowestId, matches, toRow, writeCaller, type Head, type Journal, type ListFilter, type OwnerRow, type Row } from './journal'
import { MemoryJournal } from './journal-memory'
import type { RecordContent } from './summary'

declare module 'koishi' {
  interface Tables {
    message_relay_journal: JournalRow
    message_relay_owner: OwnerRow & { id: number }
  }
}

interface JournalRow extends Row {
  /** The number of the owner that wrote it last. */
  owner: number
  /** Grows with each write of one owner. */
  version: number
  /** What was to be sent, as JSON, or `file:` and the ID of a file with it; `null` where that is not kept. */
  items: string | null
}

/** A row that is taken over: each owner counts its versions from 1. */
type Adoption = Pick<JournalRow, 'owner' | 'version'>

/** Keeps content that is too large for a row. */
export interface ContentFiles {
  /** @returns the ID of the new file */
  saveData: (data: string, name: string) => Promise<string>
  /** @throws RelayError `file-not-found` */
  resolve: (id: string) => Promise<{ path: string }>
  /** Keeps a file at least until then, in milliseconds since the epoch. @throws RelayError `file-not-found` */
  keepUntil: (id: string, until: number) => Promise<void>
  remove: (id: string) => Promise<void>
}

export interface JournalOptions {
  clock: Clock
  logger: Pick<Logger, 'warn'>
  files: ContentFiles
  /** For how long the record of a delivery is kept, in milliseconds. */
  retention: number
  /** How many records are kept. */
  limit: number
  content: RecordContent
  /** For how long a key is kept, in milliseconds. */
  keyLifetime: number
  /** After how long a statement counts as failed, in milliseconds. */
  statementTimeout: number
}

const table = 'message_relay_journal'
const ownerTable = 'message_relay_owner'
/** In this order they are written. */
const columns = [
  'id', 'state', 'target', 'caller', 'door', 'key', 'updatedAt', 'summary', 'record', 'owner', 'version', 'items',
] as const satisfies (keyof JournalRow)[]
/** What is read of a delivery. The items may be large. */
const fields = columns.filter(name => name !== 'items')

/** How many rows one statement writes, stamps or removes: the statements of an embedded database block the event loop. */
const chunkSize = 250
/** How many rows of an index one statement of a listing looks through, and how many it reads at least. */
const stretch = 500
const least = 20
/** How long a record waits for others to be written with it, and how long after a failure, in milliseconds. */
const writeInterval = 450
const retryInterval = 1_000
const day = 24 * 60 * 60 * 1000
/** The longest content of a row, in characters; what is longer becomes a file. */
const largest = 64 * 1024
const fileMark = 'file:'

/** Keeps deliveries in one table of Koishi's database. */
export class DatabaseJournal implements Journal {
  readonly isDurable = true
  /** Whether the database is within this process, so that no other process may use its file. */
  readonly isEmbedded: boolean
  private readonly database: Context['database']
  /** Records that are not written yet; the oldest are dropped where the database is away for long. */
  private readonly buffer: MemoryJournal
  private readonly writes = new Mutex()
  private owner = 0
  private version = 0
  private cancelTimer: (() => void) | undefined
  private isFailing = false
  private isDisposed = false
  /** Rows that cannot be read and stand in the log. */
  private readonly damaged = new Set<string>()
  private pending = 0
  private unsilence: () => void = () => undefined
  /** Whether the content that another setting kept was cleared. */
  private isCleared = false
  /** The files with the content of deliveries that were active lately. */
  private readonly contentFiles = new LRUCache<string, string>({ max: 1_000 })

  /** @param ctx a context with the database; the tables are created when they are first used */
  constructor(ctx: Context, private readonly options: JournalOptions) {
    this.database = unwrap(ctx.database)
    this.isEmbedded = this.database.drivers.every(driver => /sqlite|memory/i.test(driver.constructor.name))
    this.buffer = new MemoryJournal(options.content)
    defineTables(ctx)
    ctx.on('dispose', () => {
      this.isDisposed = true
      this.cancelTimer?.()
    })
  }

  async insert(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    const own = toRow(delivery)
    const written = this.change(own.id, async () => {
      const row = { ...own, items: await this.writeContent(delivery, items) }
      try {
        await this.ask(() => this.database.create(table, { ...row, owner: this.owner, version: ++this.version }))
      } catch (error) {
        if (error instanceof NoAnswer) throw error
        await this.settleInsert(row, error)
      }
    })
    await written.catch(async (error: unknown) => {
      await this.dropFile(own.id)
      throw error
    })
  }

  async update(delivery: Delivery): Promise<void> {
    const isKept = keepsContent(delivery.state, this.options.content)
    const row = { ...toRow(delivery), ...!isKept && { items: null } }
    await this.change(row.id, async () => {
      if (this.buffer.has(row.id)) await this.flush()
      await this.put(row)
    })
    if (isKept) await this.keepFile(delivery)
    else await this.dropFile(row.id)
  }

  async cancel(id: string): Promise<void> {
    await this.buffer.cancel(id)
    await this.dropFile(id)
    await this.change(id, async () => {
      const tombstone = { ...emptyRow, updatedAt: this.options.clock.wall() }
      if (await this.put({ id, ...tombstone })) return
      try {
        await this.ask(() => this.database.create(table, { id, ...tombstone, owner: this.owner, version: ++this.version }))
      } catch (error) {
        // The late insert came in between.
        if (!await this.put({ id, ...tombstone })) throw error
      }
    })
  }

  async freeKey(key: string): Promise<void> {
    await this.buffer.freeKey(key)
    await this.change(key, () => this.ask(() => this.database.set(table, { key }, { key: null })))
  }

  record(delivery: Delivery, items: readonly ParsedItem[]): void {
    this.buffer.record(delivery, items)
    if (this.buffer.size === chunkSize && !this.isFailing) this.writeLater(0)
    else if (!this.cancelTimer) this.writeLater(writeInterval)
  }

  async flush(): Promise<void> {
    for (let left = this.buffer.size; left > 0; left -= chunkSize) await this.writeSome()
  }

  async find(id: string): Promise<Delivery | undefined> {
    return await this.buffer.find(id) ?? this.read(await this.get({ id, state: { $ne: gone } }))[0]
  }

  async findByKey(key: string): Promise<Delivery | undefined> {
    return await this.buffer.findByKey(key) ?? this.read(await this.get({ key }))[0]
  }

  async items(id: string): Promise<readonly ParsedItem[] | undefined> {
    if (this.buffer.has(id)) return this.buffer.items(id)
    const [row] = await this.ask(() => this.database.get(table, { id }, ['items']))
    const content = await this.readContent(id, row?.items)
    if (content === undefined) return
    try {
      return readItems(JSON.parse(content))
    } catch {
      this.reportDamage(id)
    }
  }

  async list(filter: ListFilter): Promise<Delivery[]> {
    await this.flushQuietly()
    const found: Delivery[] = []
    for (const lead of await this.leadsOf(filter)) found.push(...await this.follow(lead, filter, each => matches(each, filter)))
    return found.sort((a, b) => a.id < b.id ? 1 : -1).slice(0, filter.limit)
  }

  async withContent(ids: readonly string[]): Promise<readonly string[]> {
    const buffered = await this.buffer.withContent(ids)
    const others = ids.filter(id => !this.buffer.has(id))
    const rows = await this.ask(() => this.database.get(table, { id: others, items: { $exists: true } }, ['id']))
    return [...buffered, ...rows.map(({ id }) => id)]
  }

  async count(state: State, { from, before }: { from: string, before: string }, caller?: string): Promise<number> {
    await this.flushQuietly()
    const query = { state, id: { $gte: from, $lt: before }, ...caller !== undefined && { caller: writeCaller(caller) } }
    return this.ask(() => this.database.select(table, query).execute(row => $.length(row.id)))
  }

  async sentTo(bot: string, target: Target, limit: number): Promise<Delivery[]> {
    await this.flushQuietly()
    return this.follow({ target: writeTarget(target) }, { limit }, each => each.bot === bot)
  }

  async adopt(owner: number, since: number): Promise<Head[]> {
    this.owner = owner
    const heads: Head[] = []
    for (const left of [{ state: [...unfinished] }, { state: 'unanswered', updatedAt: { $gte: since } }]) {
      for await (const ids of this.changeAll({ ...left, owner: { $lt: owner } }, { owner, version: 0 })) {
        // They are read after they were stamped: until then the earlier owner may write.
        const deliveries = this.read(await this.get({ id: ids }))
        heads.push(...deliveries.filter(({ state }) => isUnfinished(state) || state === 'unanswered').map(headOf))
      }
    }
    return heads.sort((a, b) => a.seq - b.seq)
  }

  async purge(wall: number): Promise<void> {
    const { retention, limit, keyLifetime, content } = this.options
    const expired = wall - retention
    // Nothing depends on it: it has ended, and its key may be used again.
    const done: Query.Expr<JournalRow> = {
      state: { $nin: [...unfinished] }, $or: [{ key: { $exists: false } }, { id: { $lt: lowestId(wall - keyLifetime) } }],
    }
    await this.removeAll({ $and: [done, { id: { $lt: lowestId(expired) }, updatedAt: { $lt: expired } }] })
    await this.removeAll({ state: gone, updatedAt: { $lt: wall - day } })
    const [beyond] = await this.idsOf({}, 'desc', 1, limit)
    if (beyond !== undefined) await this.removeAll({ $and: [done, { id: { $lte: beyond } }] })
    if (content !== 'none') return
    await this.clearContent({ state: 'unanswered', updatedAt: { $lt: wall - day } })
    // What ended under another setting.
    if (!this.isCleared) await this.clearContent({ state: { $nin: [...unfinished, 'unanswered'] } })
    this.isCleared = true
  }

  async ping(): Promise<void> {
    await this.ask(() => this.database.get(table, { id: '' }, ['id']))
  }

  async readOwner(): Promise<OwnerRow | undefined> {
    const [row] = await this.ask(() => this.database.get(ownerTable, { id: 1 }, ['number', 'beat', 'name']))
    return row
  }

  swapOwner(from: OwnerRow | undefined, to: OwnerRow): Promise<boolean> {
    return this.change(ownerTable, async () => {
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

  /** Finds out why a row could not be inserted: an earlier attempt may have arrived, or its key is another delivery's. */
  private async settleInsert(row: Row & Pick<JournalRow, 'items'>, error: unknown): Promise<void> {
    const [present] = await this.ask(() => this.database.get(table, { id: row.id }, ['state']))
    if (present && present.state !== gone) {
      await this.put(row)
      return
    }
    const { key } = row
    if (!present && key !== null && (await this.idsOf({ key }, 'asc', 1)).length > 0) throw new KeyTaken()
    throw error
  }

  /**
   * Changes a row that no newer owner has, and whose version is lower.
   *
   * @returns whether there is such a row
   * @throws NotOwner
   */
  private async put({ id, ...change }: Partial<JournalRow> & Pick<JournalRow, 'id'>): Promise<boolean> {
    const { owner } = this
    const version = ++this.version
    const isOlder = [{ owner: { $lt: owner } }, { owner, version: { $lt: version } }]
    const query = { id, $or: isOlder, state: { $ne: gone } }
    const { matched } = await this.ask(() => this.database.set(table, query, { ...change, owner, version }))
    if (matched !== 0) return true
    const [present] = await this.ask(() => this.database.get(table, { id }, ['owner', 'state']))
    if (present && present.owner > owner) throw new NotOwner()
    return present?.state === gone
  }

  /**
   * Makes changes of a row one after another. SQLite changes a row in two steps, and no other write may come in between, whatever it is
   * about; its statements wait for one another anyway.
   */
  private change<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.writes.run(this.isEmbedded ? '' : id, work)
  }

  /** Has records written after so many milliseconds. */
  private writeLater(ms: number): void {
    if (this.isDisposed) return
    this.cancelTimer?.()
    this.cancelTimer = this.options.clock.after(ms, () => void this.writeBehind())
  }

  /** Writes as long as statements are full: each costs a page of an index for every chat, however few its rows. */
  private async writeBehind(): Promise<void> {
    try {
      do await this.writeSome()
      while (this.buffer.size >= chunkSize && !this.isDisposed)
      this.isFailing = false
    } catch (error) {
      if (!this.isFailing) this.options.logger.warn('records cannot be written to the database, and wait in memory: %s', nameOf(error))
      this.isFailing = true
    }
    this.cancelTimer = undefined
    if (this.buffer.size > 0) this.writeLater(this.isFailing ? retryInterval : writeInterval)
  }

  private writeSome(): Promise<void> {
    return this.writes.run(table, async () => {
      const entries = this.buffer.oldest(chunkSize)
      if (entries.length === 0) return
      const { owner } = this
      const rows = await Promise.all(entries.map(async ({ delivery }) => {
        const items = await this.buffer.items(delivery.id) ?? []
        // A full disk costs the content, not the record.
        return { ...toRow(delivery), owner, version: 0, items: await this.writeContent(delivery, items).catch(() => null) }
      }))
      await this.ask(() => this.replace(rows))
      for (const entry of entries) this.buffer.release(entry)
      await yieldToOthers()
    })
  }

  private async flushQuietly(): Promise<void> {
    await this.flush().catch(() => undefined)
  }

  /** SQLite is told all in one statement: through its driver each row takes longer than a send. */
  private async replace(rows: readonly JournalRow[]): Promise<void> {
    const places = rows.map(() => `(${columns.map(() => '?').join()})`).join()
    const sql = `INSERT OR REPLACE INTO ${table} (${columns.map(quote).join()}) VALUES ${places}`
    if (!await this.runDirectly(sql, rows.flatMap(row => columns.map(column => row[column])))) await this.database.upsert(table, [...rows])
  }

  /**
   * Runs a statement past the driver's own ways. `_run` is that of koishi-plugin-database-sqlite 4.7.0.
   *
   * @returns whether this is such a database
   */
  private async runDirectly(sql: string, values: readonly (string | number | null)[]): Promise<boolean> {
    await this.database.prepared()
    const [driver, ...others] = this.database.drivers
    const run: unknown = driver && others.length === 0 && /sqlite/i.test(driver.constructor.name) ? Reflect.get(driver, '_run') : undefined
    if (typeof run !== 'function') return false
    Reflect.apply(run, driver, [sql, values])
    return true
  }

  /** Whatever still matches when its turn comes is removed: a delivery may have been sent again. */
  private async removeAll(query: Query.Expr<JournalRow>): Promise<void> {
    await drain(this.inChunks(query, async ids => {
      await this.dropFiles(ids)
      await this.database.remove(table, { $and: [query, { id: ids }] })
    }))
  }

  private async clearContent(query: Query.Expr<JournalRow>): Promise<void> {
    await drain(this.changeAll({ $and: [query, { items: { $exists: true } }] }, { items: null }))
  }

  /** Changes all rows of a query. The driver of SQLite would make a statement, and a transaction, of each row. */
  private changeAll(query: Query.Expr<JournalRow>, change: Adoption | { items: null }): AsyncGenerator<string[]> {
    const columns = Object.keys(change).map(column => `${quote(column)} = ?`).join()
    return this.inChunks(query, async ids => {
      if ('items' in change) await this.dropFiles(ids)
      const sql = `UPDATE ${table} SET ${columns} WHERE id IN (${ids.map(() => '?').join()})`
      const isDone = await this.runDirectly(sql, [...Object.values(change), ...ids])
      if (!isDone) await this.database.set(table, { $and: [query, { id: ids }] }, change)
    })
  }

  /** Has a statement made for the rows of a query, some at a time, which makes them leave it. Gives their IDs. */
  private async* inChunks(query: Query.Expr<JournalRow>, statement: (ids: string[]) => Promise<unknown>): AsyncGenerator<string[]> {
    for (let count = chunkSize; count === chunkSize && !this.isDisposed;) {
      const ids = await this.change(table, async () => {
        const found = await this.idsOf(query, 'asc', chunkSize)
        if (found.length > 0) await this.ask(() => statement(found))
        return found
      })
      count = ids.length
      if (count > 0) yield ids
      await yieldToOthers()
    }
  }

  /** The conditions of which one holds for each delivery that matches, each with an index, and that leave the least to look through. */
  private async leadsOf({ states, targets, caller, door }: ListFilter): Promise<Query.Expr<JournalRow>[]> {
    // Nearly all deliveries are sent.
    if (states && !states.includes('sent') && caller === undefined) return states.map(state => ({ state }))
    if (targets) return [...new Set(targets.map(writeTarget))].map(target => ({ target }))
    if (caller !== undefined) return [{ caller: writeCaller(caller) }]
    if (door !== undefined) return (await this.doorsOf(door)).map(each => ({ door: each }))
    return states ? states.map(state => ({ state })) : [{}]
  }

  /** The doors that a word stands for: itself, or all of a kind. */
  private async doorsOf(word: string): Promise<string[]> {
    const doors = [word]
    for (let after = `${word}/`; ;) {
      const query = { door: { $gt: after } }
      const [next] = await this.ask(() => this.database.get(table, query, { sort: { door: 'asc' }, limit: 1, fields: ['door'] }))
      if (!next?.door.startsWith(`${word}/`)) return doors
      doors.push(after = next.door)
    }
  }

  /** Goes along an index from the newest on, and looks through what it leads to in stretches where there are other conditions. */
  private async follow(lead: Query.Expr<JournalRow>, filter: ListFilter, isWanted: (delivery: Delivery) => boolean): Promise<Delivery[]> {
    const { since, until, limit } = filter
    const from = since === undefined ? '' : lowestId(since)
    let before = [filter.before ?? lastId, until === undefined ? lastId : lowestId(until)].sort()[0]
    const found: Delivery[] = []
    while (before !== undefined && found.length < limit) {
      const range = { $lt: before, $gte: from }
      const [bound] = await this.idsOf({ ...lead, id: range }, 'desc', 1, stretch)
      const wanted = Math.max(limit - found.length, least)
      const query = { $and: [conditionsOf(filter), lead, { id: { ...range, $gte: bound ?? from } }] }
      const rows = await this.get(query, wanted)
      found.push(...this.read(rows).filter(isWanted))
      before = rows.length === wanted ? rows.at(-1)?.id : bound
      await yieldToOthers()
    }
    return found.slice(0, limit)
  }

  private async idsOf(query: Query.Expr<JournalRow>, order: 'asc' | 'desc', limit: number, offset = 0): Promise<string[]> {
    const rows = await this.ask(() => this.database.get(table, query, { sort: { id: order }, limit, offset, fields: ['id'] }))
    return rows.map(({ id }) => id)
  }

  private get(query: Query.Expr<JournalRow>, limit?: number): Promise<Omit<JournalRow, 'items'>[]> {
    return this.ask(() => this.database.get(table, query, { sort: { id: 'desc' }, fields, ...limit !== undefined && { limit } }))
  }

  /** A damaged row is left out, so that the others are still there. */
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

  /** What a row has of the content: all of it, or where it is. The content of a delivery never changes. */
  private async writeContent(delivery: Delivery, items: readonly ParsedItem[]): Promise<string | null> {
    const { id, state } = delivery
    if (items.length === 0 || !keepsContent(state, this.options.content)) return null
    const json = JSON.stringify(writeItems(items))
    if (json.length <= largest) return json
    const file = this.contentFiles.get(id) ?? await this.options.files.saveData(json, `${id}.json`)
    this.contentFiles.set(id, file)
    await this.keepFile(delivery)
    return fileMark + file
  }

  private async readContent(id: string, written: string | null | undefined): Promise<string | undefined> {
    if (!written?.startsWith(fileMark)) return written ?? undefined
    const file = written.slice(fileMark.length)
    this.contentFiles.set(id, file)
    const { path } = await this.options.files.resolve(file).catch(() => ({ path: undefined }))
    return path === undefined ? undefined : readFile(path, 'utf8')
  }

  /** Keeps the file with the content of a delivery for as long as its row. */
  private async keepFile({ id, expiresAt }: Delivery): Promise<void> {
    const { clock, files, retention } = this.options
    const file = this.contentFiles.get(id)
    if (file !== undefined) await files.keepUntil(file, Math.max(clock.wall(), expiresAt ?? 0) + retention + day).catch(() => undefined)
  }

  private async dropFile(id: string): Promise<void> {
    const file = this.contentFiles.get(id)
    this.contentFiles.delete(id)
    if (file !== undefined) await this.options.files.remove(file)
  }

  /** Removes the files of rows whose content goes. */
  private async dropFiles(ids: string[]): Promise<void> {
    const rows = await this.database.get(table, { id: ids, items: new RegExp(`^${fileMark}`) }, ['id', 'items'])
    for (const { id, items } of rows) {
      if (items !== null) this.contentFiles.set(id, items.slice(fileMark.length))
      await this.dropFile(id)
    }
  }

  /**
   * Makes a statement, and waits for it as long as it may take. While statements are made the drivers are kept from writing those that fail
   * to the log with their values, and so with the messages in them.
   */
  private ask<T>(statement: () => Promise<T>): Promise<T> {
    const { clock, statementTimeout } = this.options
    if (this.pending++ === 0) this.unsilence = silenceStatements(this.database)
    const answer = statement().finally(() => {
      if (--this.pending === 0) this.unsilence()
    })
    return new Promise((resolve, reject) => {
      const cancel = clock.after(statementTimeout, () => reject(new NoAnswer()))
      answer.finally(cancel).then(resolve, reject)
    })
  }
}

/** The database did not answer a statement in time, which may still be carried out. */
class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  override readonly message = 'the database did not answer in time'
}

/** What a tombstone has besides its ID. */
const emptyRow = { state: gone, target: '', caller: null, door: '', key: null, summary: '', record: '', items: null } as const

/** The conditions of a listing that the database checks; it may let more through. */
function conditionsOf({ states, targets, caller, door, text }: ListFilter): Query.Expr<JournalRow> {
  return {
    state: states ? [...states] : { $ne: gone },
    ...targets && { target: targets.map(writeTarget) },
    ...caller !== undefined && { caller: writeCaller(caller) },
    // In ASCII the zero comes right after the slash.
    ...door !== undefined && { door: { $gte: door, $lt: `${door}0` } },
    ...text !== undefined && { summary: textPattern(text) },
  }
}

/** What finds a text in JSON, whatever its case. */
function textPattern(text: string): RegExp {
  return new RegExp(JSON.stringify(text).slice(1, -1).replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'), 'i')
}

async function drain(work: AsyncGenerator): Promise<void> {
  while (!(await work.next()).done) continue
}

function quote(name: string): string {
  return `\`${name}\``
}

function nameOf(error: unknown): string {
  return error instanceof Error ? printable(error.name) : typeof error
}

/** Declares the tables, which are created when they are first used. */
function defineTables(ctx: Context): void {
  ctx.model.extend(table, {
    id: { type: 'string', length: 36, nullable: false },
    state: { type: 'string', length: 16, nullable: false },
    target: { type: 'string', length: 300, nullable: false },
    // Hexadecimal of at most 64 bytes.
    caller: { type: 'string', length: 128, nullable: true, initial: null },
    door: { type: 'string', length: 255, nullable: false },
    key: { type: 'string', length: 64, nullable: true, initial: null },
    updatedAt: { type: 'double', nullable: false },
    owner: { type: 'unsigned', nullable: false },
    version: { type: 'double', nullable: false },
    summary: { type: 'text', length: 2 ** 24, nullable: false },
    record: { type: 'text', length: 2 ** 24, nullable: false },
    items: { type: 'text', length: 2 ** 30, nullable: true, initial: null },
  }, { primary: 'id', unique: ['key'], indexes: [['state', 'id'], ['target', 'id'], ['caller', 'id'], ['door', 'id']] })
  ctx.model.extend(ownerTable, {
    id: { type: 'unsigned', nullable: false },
    number: { type: 'unsigned', nullable: false },
    beat: { type: 'double', nullable: false },
    name: { type: 'string', length: 255, nullable: false },
  }, { primary: 'id' })
}

/** How long a database may take to be there after the relay was loaded, in milliseconds. */
const arrivalTime = 2_000

/** Whether there is a database, or one that is on its way: right after the start its driver is loaded and not yet connected. */
export function isDatabaseLoaded(registry: Context['registry']): boolean {
  return [...registry.values()].some(({ plugin }) => typeof plugin === 'function' && plugin.prototype instanceof Driver)
}

/** Resolves when the database is there, has not come in its time, or the context is disposed. */
export function awaitDatabase(ctx: Context): Promise<void> {
  const isDone = new AbortController()
  const end = (): void => isDone.abort()
  ctx.inject(['database'], end)
  ctx.on('dispose', end)
  return sleep(arrivalTime, isDone.signal)
}

/**
 * Keeps statements about this plugin's tables out of the log, until the function returned is called. The loggers are those of `Driver` of
 * minato 3.7.0.
 */
function silenceStatements({ drivers }: Context['database']): () => void {
  const restores: (() => void)[] = []
  for (const { logger } of drivers) {
    for (const method of ['warn', 'debug'] as const) {
      const original = logger[method]
      const filtered: typeof original = (...args: [unknown, ...unknown[]]) => {
        if (!args.some(arg => typeof arg === 'string' && arg.includes('message_relay_'))) original(...args)
      }
      logger[method] = filtered
      restores.push(() => {
        // Another plugin may have replaced it since.
        if (logger[method] === filtered) logger[method] = original
      })
    }
  }
  return () => {
    for (const restore of restores) restore()
  }
}
