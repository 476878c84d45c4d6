import type { Logger } from 'koishi'
import { accessSync, closeSync, constants, existsSync, fdatasyncSync, fsyncSync, openSync, renameSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, RelayError } from '../../errors'
import type { Shape } from '../../lib/shape'
import { every, pause, systemClock, type Clock } from '../clock'
import { Connection } from './connection'
import { ClosedStore, damaged, explainOpening, isCrash, isDamage, isOfSQLite, nameOf, newer } from './failures'
import { FolderLock, renewInterval } from './lock'
import type { Storage, Store, Value, Writer } from './store'
import { Syncer } from './workers'

/** How often a relay looks whether it may have the folder, in milliseconds. */
const lookInterval = 100
/** After how long a wait for the folder is logged, in milliseconds. */
const standbyTime = 2_000
/** How often a store that could not be opened looks whether its cause has changed, in milliseconds. */
const retryInterval = 5_000
/** After how long it tries again in any case, in milliseconds: not every cause can be seen from outside. */
const longestRetry = 60_000
/** How often the store flushes what nobody waits for, in milliseconds. */
const tendInterval = 500
/** After how many pages SQLite itself moves the write-ahead log into the file, within a commit. */
const longLog = 4_000
/** After how many commits the store does that itself, while it is idle. */
const checkpointAfter = 500
/** How many free pages the file may keep. */
const keptPages = 1_024

export interface FileStorageOptions {
  /** The folder of the file; created if it does not exist. */
  dataDir: string
  logger: Pick<Logger, 'info' | 'warn' | 'error'>
  clock?: Clock
}

/** The store in the file `relay.db` of a folder. */
export function fileStorage(options: FileStorageOptions): Storage {
  return new FileStorage(options)
}

class FileStorage implements Storage {
  owner: string | undefined
  private readonly clock: Clock
  private readonly files: Files
  /** The last failure that was logged. */
  private told: string | undefined
  /** Whether the file was found damaged, so that it is checked thoroughly at its next opening. */
  private wasDamaged = false
  /** Why nothing can be opened any more. */
  private end: RelayError | undefined

  constructor(private readonly options: FileStorageOptions) {
    this.clock = options.clock ?? systemClock
    this.files = filesIn(options.dataDir)
  }

  async open(stop: AbortSignal): Promise<Store> {
    const lock = new FolderLock(this.options.dataDir, this.clock, () => undefined)
    try {
      await this.acquire(lock, stop)
      const connection = this.openFile()
      this.told = undefined
      return new FileStore(this.files, connection, lock, this.clock, error => this.noteEnd(error))
    } catch (error) {
      lock.release()
      stop.throwIfAborted()
      return this.closed(explainOpening(this.end ?? error))
    }
  }

  /** Waits for the lock. @throws the error of the file system, or if `stop` is aborted */
  private async acquire(lock: FolderLock, stop: AbortSignal): Promise<void> {
    const { clock, options: { logger } } = this
    const since = clock.now()
    let isTold = false
    try {
      for (;;) {
        stop.throwIfAborted()
        if (this.end) throw this.end
        if (lock.take()) break
        this.owner = lock.holder
        if (!isTold && clock.now() - since >= standbyTime) {
          isTold = true
          logger.warn('%s', `this relay stands by: ${lock.holder ?? 'another process'} works its data; it takes over when that one ends`)
        }
        await pause(clock, lookInterval, stop)
      }
    } finally {
      this.owner = undefined
    }
    if (isTold) logger.info('this relay is active now')
  }

  /** @throws RelayError, or an error of the file system or of SQLite */
  private openFile(): Connection {
    const { files } = this
    // Whoever has the folder removes what a killed process has left of the library's own lock.
    if (existsSync(files.libraryLock)) rmdirSync(files.libraryLock)
    if (existsSync(files.next)) {
      rmSync(files.log, { force: true })
      renameSync(files.next, files.file)
    }
    // A store that was closed has no log.
    const isUnclean = sizeOf(files.log) > 0
    for (const path of [files.file, files.log]) withDescriptor(path, constants.O_RDWR | constants.O_CREAT, () => undefined)
    const connection = openConnection(files.file, this.wasDamaged ? 'integrity_check(1)' : isUnclean ? 'quick_check(1)' : undefined)
    try {
      const version = connection.migrate()
      if (version !== undefined) throw new RelayError('store-down', newer)
      // After a sync that failed, the log in the cache may differ from the one on the disk: this writes all of it once more.
      if (isUnclean) connection.value('PRAGMA wal_checkpoint(TRUNCATE)')
      withDescriptor(files.log, 'r+', fdatasyncSync)
      // Windows cannot make the names in a folder safe.
      if (process.platform !== 'win32') withDescriptor(this.options.dataDir, 'r', fsyncSync)
    } catch (error) {
      discard(connection, error)
      throw error
    }
    this.wasDamaged = false
    return connection
  }

  private noteEnd(failure: RelayError): void {
    this.report(failure)
    this.wasDamaged = isDamage(failure)
    // All stores of this process share the memory of WebAssembly.
    if (isCrash(failure.cause)) this.end = failure
  }

  /** A failure is logged once, until the file could be opened. */
  private report(failure: RelayError): void {
    if (this.told === failure.message) return
    this.told = failure.message
    const cause = failure.cause === undefined ? '' : ` (${nameOf(failure.cause)})`
    this.options.logger.error('%s', `nothing can be stored in ${this.options.dataDir}: ${failure.message}${cause}`)
  }

  private closed(failure: RelayError): Store {
    this.report(failure)
    const retry = new AbortController()
    if (this.end) return new ClosedStore(failure, retry.signal)
    const { clock } = this
    const signature = this.signature()
    const since = clock.now()
    const endWatch = every(clock, retryInterval, () => {
      const isOld = clock.now() - since >= longestRetry && !isDamage(failure)
      if (this.signature() === signature && !isOld) return
      endWatch()
      retry.abort()
    })
    return new ClosedStore(failure, retry.signal, endWatch)
  }

  /** Changes when somebody repairs what kept the file from being opened. Looks at nothing that an attempt to open it changes. */
  private signature(): string {
    return JSON.stringify([this.options.dataDir, this.files.file, this.files.log].map((path, index) => {
      try {
        accessSync(path, constants.R_OK | constants.W_OK)
        const { ino, mtimeMs, size, mode } = statSync(path)
        return index === 0 ? [ino, mode] : [ino, mode, mtimeMs, size]
      } catch (error) {
        return codeOf(error)
      }
    }))
  }
}

/** The names in a data folder. */
interface Files {
  file: string
  /** The write-ahead log. */
  log: string
  /** The directory by which the library locks the file. */
  libraryLock: string
  /** A complete file that takes the place of the present one. */
  next: string
}

function filesIn(folder: string): Files {
  const file = join(folder, 'relay.db')
  return { file, log: `${file}-wal`, libraryLock: `${file}.lock`, next: `${file}.next` }
}

/** Opens the file as this process alone uses it. @throws the error of SQLite, or that the file is damaged */
function openConnection(file: string, check: string | undefined): Connection {
  const connection = new Connection(file)
  const demand = (pragma: string, answer: unknown): void => {
    const value = connection.value(`PRAGMA ${pragma}`)
    if (value !== answer) throw new Error(`PRAGMA ${pragma}: ${String(value)}`)
  }
  try {
    // Without shared memory, and so before the write-ahead log is used.
    demand('locking_mode = EXCLUSIVE', 'exclusive')
    connection.value('PRAGMA auto_vacuum = INCREMENTAL')
    demand('journal_mode = WAL', 'wal')
    demand(`wal_autocheckpoint = ${longLog}`, longLog)
    demand(`journal_size_limit = ${4 * longLog * 4_096}`, 4 * longLog * 4_096)
    connection.value('PRAGMA synchronous = NORMAL')
    connection.value('PRAGMA temp_store = MEMORY')
    const answer = check === undefined ? 'ok' : connection.value(`PRAGMA ${check}`)
    if (answer !== 'ok') throw new RelayError('store-down', damaged, { cause: new Error(`malformed: ${String(answer)}`) })
    return connection
  } catch (error) {
    discard(connection, error)
    throw error
  }
}

/** Closes a database after an error, without a change to a damaged file. */
function discard(connection: Connection, error: unknown): void {
  if (isDamage(error) || isCrash(error)) connection.abandon()
  else connection.close()
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Opens a file, for its owner alone if it is created, and closes it again. */
function withDescriptor(path: string, flags: string | number, work: (descriptor: number) => void): void {
  const descriptor = openSync(path, flags, 0o600)
  try {
    work(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

class FileStore implements Store {
  failure: RelayError | undefined
  private readonly ending = new AbortController()
  private readonly syncer: Syncer
  private readonly endTending: () => void
  /** The commits so far, those that are safe from a power cut, in the file, and seen by the last look. */
  private readonly commits = { all: 0, synced: 0, checkpointed: 0, seen: 0 }
  private syncing: { upTo: number, done: Promise<void> } | undefined
  private queued: Promise<void> | undefined
  private renewed: number

  constructor(
    files: Files, private readonly connection: Connection, private readonly lock: FolderLock, private readonly clock: Clock,
    private readonly noteEnd: (failure: RelayError) => void,
  ) {
    this.syncer = new Syncer(files.log)
    this.renewed = clock.now()
    this.endTending = every(clock, tendInterval, () => this.tend())
  }

  get over(): AbortSignal {
    return this.ending.signal
  }

  all<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T[] {
    return this.attempt(() => this.connection.all(shape, sql, ...values))
  }

  first<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T | undefined {
    return this.attempt(() => this.connection.first(shape, sql, ...values))
  }

  commit<T>(write: (writer: Writer) => T): T {
    return this.attempt(() => {
      if (this.connection.isInTransaction) throw new Error('a commit must not be nested')
      this.demandLock()
      const result = this.connection.transaction(() => {
        const value = write(this.connection)
        if (value instanceof Promise) throw new Error('a commit must not wait for anything')
        return value
      })
      this.commits.all++
      return result
    })
  }

  flushed(): Promise<void> {
    const { failure, commits, syncing } = this
    if (failure) return Promise.reject(failure)
    if (commits.synced === commits.all) return Promise.resolve()
    if (!syncing) return this.sync()
    if (syncing.upTo === commits.all) return syncing.done
    const next = (): Promise<void> => {
      this.queued = undefined
      return this.flushed()
    }
    return this.queued ??= syncing.done.then(next)
  }

  async close(): Promise<void> {
    if (this.failure) return
    await this.flushed().catch(() => undefined)
    // A flush that has failed has ended the store.
    if (!this.isOpen()) return
    this.finish(new RelayError('stopping'), this.isMine())
  }

  private isOpen(): boolean {
    return this.failure === undefined
  }

  private sync(): Promise<void> {
    const upTo = this.commits.all
    const done = this.syncer.sync().then(() => {
      this.commits.synced = upTo
    }, (error: unknown) => {
      // The kernel may take the lost pages for written from now on.
      throw this.fail(new RelayError('store-down', 'the disk of the relay does not keep what is written: check the disk', { cause: error }), true)
    }).finally(() => {
      this.syncing = undefined
    })
    this.syncing = { upTo, done }
    return done
  }

  /** Runs statements. @throws RelayError in place of the errors of SQLite */
  private attempt<T>(work: () => T): T {
    if (this.failure) throw this.failure
    try {
      return work()
    } catch (error) {
      throw this.explain(error)
    }
  }

  private explain(error: unknown): unknown {
    if (isDamage(error) || isCrash(error)) return this.fail(explainOpening(error), false)
    if (!isOfSQLite(error)) return error
    return new RelayError('store-down', `the relay cannot use its data file (${nameOf(error)}): try again later`, { cause: error })
  }

  /** @throws RelayError if another process may have the folder */
  private demandLock(): void {
    if (!this.isMine()) throw this.fail(new RelayError('store-down', 'another process has taken the data folder of the relay: nothing was stored'), false)
  }

  private isMine(): boolean {
    try {
      return this.lock.isHeld()
    } catch (error) {
      throw new RelayError('store-down', `the lock of the data folder cannot be read (${codeOf(error)}): try again later`, { cause: error })
    }
  }

  /** Ends the store because of a failure. @param mayWrite whether the file can still be trusted and is still this relay's */
  private fail(failure: RelayError, mayWrite: boolean): RelayError {
    if (this.failure) return this.failure
    this.noteEnd(failure)
    this.finish(failure, mayWrite)
    this.ending.abort()
    return failure
  }

  private finish(failure: RelayError, mayWrite: boolean): void {
    this.failure = failure
    this.endTending()
    try {
      // Closing moves the log into the file and removes it by its name, which may be another process's by now.
      if (mayWrite) this.connection.close()
      else this.connection.abandon()
    } catch {
      // The log keeps what could not be moved.
    }
    void this.syncer.close()
    this.lock.release()
  }

  /** Renews the lock, flushes what nobody waits for, and tidies up while nothing is to be done. */
  private tend(): void {
    const { clock, commits, connection } = this
    const isIdle = commits.seen === commits.all && commits.synced === commits.all
    commits.seen = commits.all
    try {
      if (clock.now() - this.renewed >= renewInterval && this.lock.renew()) this.renewed = clock.now()
      this.attempt(() => this.demandLock())
      if (!isIdle) {
        void this.flushed().catch(() => undefined)
      } else if (commits.all - commits.checkpointed >= checkpointAfter) {
        this.attempt(() => connection.value('PRAGMA wal_checkpoint(PASSIVE)'))
        commits.checkpointed = commits.all
      } else if (this.attempt(() => Number(connection.value('PRAGMA freelist_count'))) > keptPages) {
        this.attempt(() => connection.value('PRAGMA incremental_vacuum(64)'))
        commits.all++
      }
    } catch {
      // It is tried again, unless the store is over.
    }
  }
}
