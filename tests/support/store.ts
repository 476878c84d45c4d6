import { RelayError } from '../../src/errors'
import { isString, objectOf, type Shape } from '../../src/lib/shape'
import { pause, type Clock } from '../../src/relay/clock'
import { Connection } from '../../src/relay/store/connection'
import type { Storage, Store, Value, Writer } from '../../src/relay/store/store'
import { words, type Text } from '../../src/texts/text'

/** How often a waiting process looks at the lock, and its holder renews it, in milliseconds. */
const lookInterval = 1_000
const renewInterval = 4_000
/** After how long without a renewal another host takes the lock, in milliseconds. */
const takeOverAfter = 12_000
/** After how long a commit is flushed that nobody waits for, in milliseconds. */
const tendInterval = 500

export interface FolderOptions {
  /** Whether several hosts want the folder, so that its lock has to be renewed. */
  isShared?: boolean
  /** How many commits are there after a power cut, between those that were flushed and all; otherwise those that were flushed. */
  keeps?: (flushed: number, all: number) => number
  /** Called after each commit with the number of all. */
  committed?: (all: number) => void
}

type Statement = readonly [sql: string, ...values: readonly Value[]]

/** Loading SQLite takes 0.2 s, so a process has one database, which every folder clears. */
let loaded: { connection: Connection, tables: readonly string[] } | undefined

function load(): NonNullable<typeof loaded> {
  const connection = new Connection(':memory:')
  connection.migrate()
  const found = connection.all(objectOf({ name: isString }), `SELECT name FROM sqlite_schema WHERE type = 'table'`)
  return { connection, tables: found.map(({ name }) => name) }
}

/**
 * A data folder, which outlives processes and machines: what was committed, up to where it is flushed, and the lock. There is one at a time
 * in a process; a new one takes the database of the one before.
 */
export class TestFolder {
  private readonly database = loaded ??= load()
  private commits: (readonly Statement[])[] = []
  private flushedUpTo = 0
  /** Who holds the lock, with the number of its renewals; after a kill nobody of that host. */
  private lock: { holder: TestStorage | undefined, host: string, renewals: number } | undefined

  constructor(private readonly options: FolderOptions = {}) {
    this.clear()
  }

  get connection(): Connection {
    return this.database.connection
  }

  get end(): number {
    return this.commits.length
  }

  get holder(): TestStorage | undefined {
    return this.lock?.holder
  }

  get host(): string | undefined {
    return this.lock?.host
  }

  get isFlushed(): boolean {
    return this.flushedUpTo >= this.end
  }

  get isShared(): boolean {
    return this.options.isShared ?? false
  }

  /** What a host shows of being alive. */
  get sign(): string {
    return `${this.lock?.host} ${this.lock?.renewals}`
  }

  /** @param isStale whether the holder has not renewed the lock for long enough. @returns whether the process has the lock now */
  take(by: TestStorage, isStale: boolean): boolean {
    const { lock } = this
    const isOfGone = lock && !lock.holder && lock.host === by.host
    if (lock && lock.holder !== by && !isOfGone && !isStale) return false
    // The file of another host is copied, and has what reached the disk.
    if (isStale && lock?.host !== by.host) this.cut()
    this.lock = { holder: by, host: by.host, renewals: 0 }
    return true
  }

  renew(by: TestStorage): void {
    if (this.lock?.holder === by) this.lock.renewals++
  }

  /** @param isClean whether the process has removed its lock; it was killed otherwise */
  release(by: TestStorage, isClean: boolean): void {
    if (this.lock?.holder !== by) return
    if (isClean) this.lock = undefined
    else this.lock.holder = undefined
  }

  commit<T>(write: (writer: Writer) => T): T {
    const { connection } = this
    const statements: Statement[] = []
    const writer: Writer = {
      all: (shape, sql, ...values) => connection.all(shape, sql, ...values),
      first: (shape, sql, ...values) => connection.first(shape, sql, ...values),
      run: (sql, ...values) => {
        const changed = connection.run(sql, ...values)
        if (changed > 0) statements.push([sql, ...values])
        return changed
      },
    }
    const result = connection.transaction(() => {
      const written = write(writer)
      if (written instanceof Promise) throw new Error('a commit must not wait')
      return written
    })
    if (statements.length === 0) return result
    this.commits.push(statements)
    this.options.committed?.(this.end)
    return result
  }

  flush(upTo: number): void {
    this.flushedUpTo = Math.max(this.flushedUpTo, Math.min(upTo, this.end))
  }

  /** The power of the host is cut: some commits that were not flushed are lost, the last ones first. */
  cut(): void {
    const { flushedUpTo, end, options: { keeps } } = this
    if (flushedUpTo >= end) return
    const kept = keeps?.(flushedUpTo, end) ?? flushedUpTo
    this.commits.length = kept
    this.clear()
    this.connection.transaction(() => this.commits.flat().forEach(statement => this.connection.run(...statement)))
  }

  private clear(): void {
    this.connection.transaction(() => this.database.tables.forEach(table => this.connection.run(`DELETE FROM ${table}`)))
  }
}

/** What one process, or one host after another, sees of a folder. */
export class TestStorage implements Storage {
  /** How long a flush takes, in milliseconds; 0 ends it in a microtask. */
  flushTakes = 0
  /** Whether the next flush fails, which ends the store. */
  isFlushFailing = false
  /** Whether the disk is full, and whether there is still room for what was accepted. */
  isFull = false
  hasReserve = false
  private store: TestStore | undefined
  private broken: RelayError | undefined
  private other: Text | undefined

  /** @param host machines have different ones; a process takes the lock that a killed one of its host has left at once */
  constructor(readonly clock: Clock, readonly folder = new TestFolder(), readonly host = 'host') {}

  get owner(): Text | undefined {
    return this.other ?? (this.folder.holder === this ? undefined : this.folder.host === undefined ? undefined : words(this.folder.host))
  }

  /** Another process has the folder, until this is `undefined` again. */
  set owner(other: Text | undefined) {
    this.other = other
    if (other !== undefined) this.store?.end(lost())
  }

  /** Why the file cannot be used. */
  get failure(): RelayError | undefined {
    return this.broken
  }

  set failure(failure: RelayError | undefined) {
    if (failure === this.broken) return
    this.broken = failure
    this.store?.end(failure)
  }

  async open(stop: AbortSignal): Promise<Store> {
    const seen = { sign: '', since: 0 }
    for (;;) {
      stop.throwIfAborted()
      const [{ sign }, now] = [this.folder, this.clock.now()]
      if (seen.sign !== sign) Object.assign(seen, { sign, since: now })
      // Another relay of this process may still be ending.
      const isInUse = this.store && !this.store.failure
      if (!isInUse && this.other === undefined && this.folder.take(this, now - seen.since >= takeOverAfter)) break
      await pause(this.clock, lookInterval, stop)
    }
    if (this.broken) this.folder.release(this, true)
    // What an earlier process has left is made safe first.
    else this.folder.flush(this.folder.end)
    return this.store = new TestStore(this, this.broken)
  }

  /** The process is killed: nothing of it is heard any more. What it committed is there. */
  kill(): void {
    this.store?.kill()
    this.store = undefined
    this.folder.release(this, false)
  }

  /** The power is cut, which also kills the process. */
  cut(): void {
    const isHolder = this.folder.holder === this
    this.kill()
    if (isHolder) this.folder.cut()
  }
}

function lost(): RelayError {
  return new RelayError('store-down', words('another process has the data folder'))
}

class TestStore implements Store {
  private readonly ending = new AbortController()
  private readonly folder: TestFolder
  private running: Promise<void> | undefined
  private next: Promise<void> | undefined
  private isDead = false
  private isTending = false

  constructor(private readonly storage: TestStorage, public failure: RelayError | undefined) {
    this.folder = storage.folder
    if (!failure && this.folder.isShared) void this.renew()
  }

  get over(): AbortSignal {
    return this.ending.signal
  }

  get isFull(): boolean {
    return this.storage.isFull
  }

  backup(): Promise<never> {
    return Promise.reject(new Error('there are no files'))
  }

  all<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T[] {
    this.check()
    return this.folder.connection.all(shape, sql, ...values)
  }

  first<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T | undefined {
    this.check()
    return this.folder.connection.first(shape, sql, ...values)
  }

  commit<T>(write: (writer: Writer) => T): T {
    this.check()
    if (this.folder.connection.isInTransaction) throw new Error('a commit must not contain another one')
    if (this.isFull && !this.storage.hasReserve) throw new RelayError('storage-full')
    const result = this.folder.commit(write)
    void this.tend()
    return result
  }

  /** One flush runs at a time. Whoever comes meanwhile shares the next one. */
  flushed(): Promise<void> {
    if (!this.failure && this.folder.isFlushed) return Promise.resolve()
    if (!this.running) return this.running = this.flush()
    return this.next ??= this.running.catch(() => undefined).then(() => {
      this.next = undefined
      return this.running = this.flush()
    })
  }

  async close(): Promise<void> {
    if (!this.failure && !this.isDead) await this.flushed().catch(() => undefined)
    this.end(new RelayError('stopping'))
  }

  /** The store is over. @param failure why; a store that could not be used keeps its own */
  end(failure: RelayError | undefined): void {
    if (!this.failure) this.folder.release(this.storage, true)
    this.failure ??= failure
    this.ending.abort()
  }

  kill(): void {
    this.isDead = true
  }

  demandLock(): void {
    this.check()
  }

  /** @throws RelayError why nothing can be read or written */
  private check(): void {
    if (this.isDead) throw new Error('a killed process has no store')
    if (!this.failure && this.folder.holder !== this.storage) this.end(lost())
    if (this.failure) throw this.failure
  }

  private async flush(): Promise<void> {
    const { storage, folder } = this
    this.check()
    const { end } = folder
    try {
      await (storage.flushTakes > 0 ? pause(storage.clock, storage.flushTakes) : undefined)
      if (this.isDead) await new Promise(() => undefined)
      if (storage.isFlushFailing) {
        storage.isFlushFailing = false
        this.end(new RelayError('store-down', words('the disk did not keep what was written')))
      }
      this.check()
      folder.flush(end)
    } finally {
      this.running = undefined
    }
  }

  /** Flushes what nobody waits for. */
  private async tend(): Promise<void> {
    if (this.isTending) return
    this.isTending = true
    await pause(this.storage.clock, tendInterval, this.over)
    this.isTending = false
    if (!this.failure) await this.flushed().catch(() => undefined)
  }

  private async renew(): Promise<void> {
    while (this.folder.holder === this.storage && !this.failure) {
      await pause(this.storage.clock, renewInterval, this.over)
      this.folder.renew(this.storage)
    }
    if (!this.isDead) this.end(lost())
  }
}
