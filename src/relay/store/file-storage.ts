import { accessSync, chmodSync, constants, existsSync, fdatasyncSync, fsyncSync, renameSync, rmSync, statSync } from 'node:fs'
import { codeOf, RelayError } from '../../errors'
import type { Log } from '../../lib/log'
import { every, pause, systemClock, type Clock } from '../clock'
import { Connection } from './connection'
import { ClosedStore, explainOpening, isCrash, isDamage, nameOf } from './failures'
import { FileStore, filesIn, hasRoomFor, longLog, Reserve, reserveSize, sizeOf, touch, withDescriptor, type Files, type StoreParts } from './file-store'
import { FolderLock } from './lock'
import type { Storage, Store } from './store'
import { copyDatabase, Syncer } from './workers'
import { say, type Text } from '../../texts/text'

/** How often a relay looks whether it may have the folder, in milliseconds. */
const lookInterval = 100
/** After how long a wait for the folder is logged, in milliseconds. */
const standbyTime = 2_000
/** How often a store that could not be opened looks whether its cause has changed, in milliseconds. */
const retryInterval = 5_000
/** After how long it tries again in any case, in milliseconds: not every cause can be seen from outside. */
const longestRetry = 60_000

export interface FileStorageOptions {
  /** The folder of the file; created if it does not exist. */
  dataDir: string
  logger: Pick<Log, 'info' | 'warn' | 'error'>
  clock?: Clock
}

/** The store in the file `relay.db` of a folder. */
export function fileStorage(options: FileStorageOptions): Storage {
  return new FileStorage(options)
}

class FileStorage implements Storage {
  owner: Text | undefined
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
    const lock = new FolderLock(this.options.dataDir, this.clock, () => touch(this.files.copy))
    try {
      await this.acquire(lock, stop)
      await this.replaceCopied(stop)
      const { files, clock } = this
      const noteEnd = (failure: RelayError): void => this.noteEnd(failure)
      const store = new FileStore({ ...this.openFile(), files, lock, reserve: new Reserve(files), clock, noteEnd })
      this.told = undefined
      return store
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
          logger.warn(say('stands-by', { owner: lock.holder ?? say('other-process') }))
        }
        await pause(clock, lookInterval, stop)
      }
    } finally {
      this.owner = undefined
    }
    if (isTold) logger.info(say('active-now'))
  }

  /**
   * Works on a copy of the file, if its last owner may only be paused: when that process goes on, it writes into the old file. Both in one
   * file would destroy it. Also removes what a killed process has left.
   */
  private async replaceCopied(stop: AbortSignal): Promise<void> {
    const { files } = this
    rmSync(files.libraryLock, { recursive: true, force: true })
    removeDatabase(files.backup)
    this.adopt()
    if (existsSync(files.copy) && existsSync(files.file)) {
      touch(files.log)
      await copyDatabase(files.file, files.log, files.copy, stop)
      renameSync(files.copy, files.next)
      this.syncFolder()
      this.adopt()
    }
    removeDatabase(files.copy)
  }

  /** Replaces the file by a complete copy, if there is one. */
  private adopt(): void {
    const { files } = this
    if (!existsSync(files.next)) return
    // The log belongs to the old file, and would damage the new one.
    rmSync(files.log, { force: true })
    this.syncFolder()
    renameSync(files.next, files.file)
  }

  /** Makes the names in the folder safe from a power cut, which Windows cannot do. */
  private syncFolder(): void {
    if (process.platform !== 'win32') withDescriptor(this.options.dataDir, 'r', fsyncSync)
  }

  /** @throws RelayError, or an error of the file system or of SQLite */
  private openFile(): Pick<StoreParts, 'connection' | 'syncer'> {
    const { files } = this
    // A store that was closed has no log.
    const isUnclean = sizeOf(files.log) > 0
    touch(files.file)
    if (isUnclean) touch(files.log)
    const connection = openConnection(files.file, this.wasDamaged ? 'integrity_check(1)' : isUnclean ? 'quick_check(1)' : undefined)
    try {
      const version = connection.migrate()
      if (version !== undefined) throw new RelayError('store-down', say('data-file-newer'))
      // After a sync that failed, the log in the cache may differ from the one on the disk: this writes all of it once more.
      if (isUnclean) connection.value('PRAGMA wal_checkpoint(TRUNCATE)')
      chmodSync(files.log, 0o600)
      withDescriptor(files.log, 'r+', fdatasyncSync)
      this.syncFolder()
      this.wasDamaged = false
      return { connection, syncer: new Syncer(files.log) }
    } catch (error) {
      discard(connection, error)
      throw error
    }
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
    const { cause, said } = failure
    const told = cause === undefined ? said : say('with-code', { failure: said, code: nameOf(cause) })
    this.options.logger.error(say('cannot-store', { folder: this.options.dataDir, failure: told }))
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
    const { files } = this
    const looks = [
      () => hasRoomFor(files, reserveSize),
      ...[files.folder, files.file, files.log].map(path => () => {
        accessSync(path, constants.R_OK | constants.W_OK)
        const { ino, mode, mtimeMs, size } = statSync(path)
        return path === files.folder ? [ino, mode] : [ino, mode, mtimeMs, size]
      }),
    ]
    return JSON.stringify(looks.map(look => {
      try {
        return look()
      } catch (error) {
        return codeOf(error)
      }
    }))
  }
}

/** Removes a database, with what a killed process has left of its use. */
function removeDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-journal', '.lock']) rmSync(path + suffix, { recursive: true, force: true })
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
    // It writes, so only a new file gets it.
    if (sizeOf(file) === 0) connection.value('PRAGMA auto_vacuum = INCREMENTAL')
    demand('journal_mode = WAL', 'wal')
    demand(`wal_autocheckpoint = ${longLog}`, longLog)
    demand(`journal_size_limit = ${4 * longLog * 4_096}`, 4 * longLog * 4_096)
    connection.value('PRAGMA synchronous = NORMAL')
    connection.value('PRAGMA temp_store = MEMORY')
    const answer = check === undefined ? 'ok' : connection.value(`PRAGMA ${check}`)
    if (answer !== 'ok') throw new RelayError('store-down', say('data-file-damaged'), { cause: new Error(`malformed: ${String(answer)}`) })
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
