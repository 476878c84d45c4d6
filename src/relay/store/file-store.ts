import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { codeOf, RelayError } from '../../errors'
import { isNumber, objectOf, type Shape } from '../../lib/shape'
import { every, type Clock } from '../clock'
import type { Connection } from './connection'
import { explainOpening, isCrash, isDamage, isOfSQLite, nameOf } from './failures'
import { renewInterval, type FolderLock } from './lock'
import type { Backup, Store, Value, Writer } from './store'
import { copyDatabase, type Syncer } from './workers'
import { say } from '../../texts/text'

/** How often the store flushes what nobody waits for, in milliseconds. */
const tendInterval = 500
/** After how many pages SQLite itself moves the write-ahead log into the file, within a commit. */
export const longLog = 4_000
/** After how many commits the store does that itself, while it is idle. */
const checkpointAfter = 500
/** How many free pages the file may keep. */
const keptPages = 1_024
/** The size of the reserve, in bytes. */
export const reserveSize = 8 * 1_048_576
/** How much must be written to know that the disk is not full, in bytes. */
const probeSize = 1_048_576

const randomData = promisify(randomBytes)

/** The names in a data folder. */
export interface Files {
  folder: string
  file: string
  /** The write-ahead log. */
  log: string
  /** The directory by which the library locks the file. */
  libraryLock: string
  /** A copy that is being made of a file which another process may still write for a moment. */
  copy: string
  /** A complete copy that takes the place of the file. */
  next: string
  backup: string
  reserve: string
}

export function filesIn(folder: string): Files {
  const file = join(folder, 'relay.db')
  return {
    folder, file, log: `${file}-wal`, libraryLock: `${file}.lock`, copy: `${file}.copy`, next: `${file}.next`, backup: `${file}.backup`,
    reserve: join(folder, 'relay.reserve'),
  }
}

/** Makes an empty file, unless there is one. @throws the error of the file system, also if it cannot be written */
export function touch(path: string): void {
  withDescriptor(path, constants.O_RDWR | constants.O_CREAT, () => undefined)
}

export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Opens a file, for its owner alone if it is created, and closes it again. */
export function withDescriptor(path: string, flags: string | number, work: (descriptor: number) => void): void {
  const descriptor = openSync(path, flags, 0o600)
  try {
    work(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Whether the disk has room for so many bytes, and a reserve besides. */
export function hasRoomFor({ folder }: Files, bytes: number): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize >= bytes + reserveSize
}

/** Some MB of the disk that are given up when it is full: deliveries then still end, and old records are removed. */
export class Reserve {
  /** Whether the reserve was given up, or there was never room for it. */
  isGone: boolean
  private isTaken: boolean
  private isTaking = false

  constructor(private readonly files: Files) {
    this.isTaken = sizeOf(files.reserve) === reserveSize
    this.isGone = !this.isTaken && !hasRoomFor(files, reserveSize)
  }

  /** Takes the reserve, if the disk has room for twice as much. */
  async take(): Promise<void> {
    if (this.isTaken || this.isTaking || !hasRoomFor(this.files, reserveSize)) return
    this.isTaking = true
    try {
      // Zeros take no room on some file systems.
      await writeFile(this.files.reserve, await randomData(reserveSize), { mode: 0o600 })
      this.isTaken = true
    } catch {
      rmSync(this.files.reserve, { force: true })
    }
    this.isGone = !this.isTaken
    this.isTaking = false
  }

  /** Gives the reserve up if the disk is full, or the quota is used up. @returns whether that is so */
  giveUp(): boolean {
    if (this.hasRoom()) return false
    this.isTaken = false
    this.isGone = true
    rmSync(this.files.reserve, { force: true })
    return true
  }

  /** SQLite does not say that a disk is full, so this writes a file. */
  private hasRoom(): boolean {
    const probe = `${this.files.reserve}.probe`
    try {
      writeFileSync(probe, Buffer.alloc(probeSize))
      return true
    } catch (error) {
      return !['ENOSPC', 'EDQUOT', 'EFBIG'].includes(codeOf(error))
    } finally {
      rmSync(probe, { force: true })
    }
  }
}

/** What an open store consists of. */
export interface StoreParts {
  files: Files
  connection: Connection
  syncer: Syncer
  lock: FolderLock
  reserve: Reserve
  clock: Clock
  /** Called when the store is over because of a failure. */
  noteEnd: (failure: RelayError) => void
}

/** The open file. */
export class FileStore implements Store {
  failure: RelayError | undefined
  private readonly ending = new AbortController()
  private readonly endTending: () => void
  /** The commits so far, those that are safe from a power cut, in the file, and seen by the last look. */
  private readonly commits = { all: 0, synced: 0, checkpointed: 0, seen: 0 }
  private syncing: { upTo: number, done: Promise<void> } | undefined
  private queued: Promise<void> | undefined
  /** The copy that is being made, or is there. */
  private present: 'copying' | 'made' | undefined
  private renewed: number

  constructor(private readonly parts: StoreParts) {
    this.renewed = parts.clock.now()
    this.endTending = every(parts.clock, tendInterval, () => this.tend())
  }

  get over(): AbortSignal {
    return this.ending.signal
  }

  get isFull(): boolean {
    return this.parts.reserve.isGone
  }

  all<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T[] {
    return this.attempt(() => this.parts.connection.all(shape, sql, ...values))
  }

  first<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T | undefined {
    return this.attempt(() => this.parts.connection.first(shape, sql, ...values))
  }

  commit<T>(write: (writer: Writer) => T): T {
    return this.attempt(() => {
      if (this.parts.connection.isInTransaction) throw new Error('a commit must not be nested')
      this.demandLock()
      const result = this.parts.connection.transaction(() => {
        const value = write(this.parts.connection)
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

  async backup(): Promise<Backup> {
    if (this.failure) throw this.failure
    if (this.present !== undefined) throw new RelayError('conflict', say('other-backup'))
    this.present = 'copying'
    const { over, parts: { files, connection } } = this
    const path = files.backup
    const done = async (): Promise<void> => {
      await rm(path, { force: true })
      this.present = undefined
    }
    try {
      if (!hasRoomFor(files, sizeOf(files.file))) throw new RelayError('storage-full', say('no-room-for-backup'))
      await this.flushed()
      // With all in the file, and the log kept out of it meanwhile, the file does not change while it is copied.
      this.checkpoint()
      this.attempt(() => connection.value('PRAGMA wal_autocheckpoint = 0'))
      await copyDatabase(files.file, undefined, path, over)
      this.present = 'made'
      return { path, done }
    } catch (error) {
      await done()
      throw error instanceof RelayError ? error : new RelayError('store-down', say('backup-failed', { code: nameOf(error) }), { cause: error })
    } finally {
      if (this.isOpen()) connection.value(`PRAGMA wal_autocheckpoint = ${longLog}`)
    }
  }

  async close(): Promise<void> {
    if (this.failure) return
    await this.flushed().catch(() => undefined)
    if (this.isOpen()) await this.finish(new RelayError('stopping'), true)
  }

  private isOpen(): boolean {
    return this.failure === undefined
  }

  private sync(): Promise<void> {
    const upTo = this.commits.all
    const done = this.parts.syncer.sync().then(() => {
      // After a pause, what waits for this must not leave any more.
      this.demandLock()
      this.commits.synced = upTo
    }, (error: unknown) => {
      // The kernel may take the lost pages for written from now on.
      throw this.fail(new RelayError('store-down', say('disk-loses-data'), { cause: error }), true)
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
    if (error.message.includes('disk') && this.parts.reserve.giveUp()) return new RelayError('storage-full', undefined, { cause: error })
    return new RelayError('store-down', say('data-file-unusable', { code: nameOf(error) }), { cause: error })
  }

  demandLock(): void {
    if (this.failure) throw this.failure
    let isHeld: boolean
    try {
      isHeld = this.parts.lock.isHeld()
    } catch (error) {
      throw new RelayError('store-down', say('lock-unreadable', { code: codeOf(error) }), { cause: error })
    }
    if (!isHeld) throw this.fail(new RelayError('store-down', say('folder-lost')), false)
  }

  /** Moves the log into the file. @throws RelayError if that is not possible */
  private checkpoint(): void {
    const result = this.attempt(() => this.parts.connection.all(objectOf({ log: isNumber, checkpointed: isNumber }), 'PRAGMA wal_checkpoint(PASSIVE)'))
    if (result.some(({ log, checkpointed }) => log !== checkpointed)) throw new RelayError('store-down', say('log-not-moved'))
    this.commits.checkpointed = this.commits.all
  }

  /** Ends the store because of a failure. @param mayWrite whether the file can still be trusted and is still this relay's */
  private fail(failure: RelayError, mayWrite: boolean): RelayError {
    if (this.failure) return this.failure
    this.parts.noteEnd(failure)
    void this.finish(failure, mayWrite)
    return failure
  }

  private finish(failure: RelayError, mayWrite: boolean): Promise<void> {
    this.failure = failure
    this.endTending()
    const { connection, lock, syncer } = this.parts
    try {
      // Closing moves the log into the file and removes it by its name, which may be another process's by now.
      if (mayWrite && lock.isHeld()) connection.close()
      else connection.abandon()
    } catch {
      // The log keeps what could not be moved.
    }
    lock.release()
    this.ending.abort()
    return syncer.close()
  }

  /** Renews the lock, flushes what nobody waits for, and tidies up while nothing is to be done. */
  private tend(): void {
    const { commits, parts: { clock, connection } } = this
    const isIdle = commits.seen === commits.all && commits.synced === commits.all
    commits.seen = commits.all
    try {
      if (clock.now() - this.renewed >= renewInterval && this.parts.lock.renew()) {
        this.renewed = clock.now()
        void this.parts.reserve.take()
      }
      this.attempt(() => this.demandLock())
      if (!isIdle) {
        void this.flushed().catch(() => undefined)
      } else if (commits.all - commits.checkpointed >= checkpointAfter && this.present !== 'copying') {
        this.checkpoint()
      } else if (this.attempt(() => Number(connection.value('PRAGMA freelist_count'))) > keptPages) {
        this.attempt(() => connection.value('PRAGMA incremental_vacuum(64)'))
        commits.all++
      }
    } catch {
      // It is tried again, unless the store is over.
    }
  }
}
