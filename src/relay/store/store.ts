import type { RelayError } from '../../errors'
import type { Shape } from '../../lib/shape'
import type { Text } from '../../texts/text'

/** What SQLite stores. A text must not contain NUL: write JSON, hexadecimal, or what a parser has checked. */
export type Value = string | number | null

/** Reads what is committed, and, inside a commit, what this one has written so far. */
export interface Reader {
  /**
   * All rows of a statement, one by one checked for their shape.
   *
   * @throws RelayError as {@link Store.commit}, also for a row of another shape
   */
  all<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T[]
  /** The first row of a statement; `undefined` without one. @throws as `all` */
  first<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T | undefined
}

/** Writes in a transaction. It lasts as long as the function that got it runs. */
export interface Writer extends Reader {
  /** @returns the number of rows written */
  run(sql: string, ...values: readonly Value[]): number
}

/** Nothing that is written may wait for anything: a transaction ends in the tick in which it began. */
type Synchronous<T> = T extends PromiseLike<unknown> ? never : T

/**
 * What the relay remembers: one SQLite file, of which this process is the only user. Statements run now. What was committed is visible,
 * ordered and safe from a kill; what was committed before `flushed` resolves is safe from a power cut as well. After a cut the file is what
 * it was after some commit since the last flush.
 */
export interface Store extends Reader {
  /**
   * Runs statements in one transaction: all of them count, or none. Change memory after it, never inside. Not to be nested.
   *
   * @throws RelayError `storage-full` or `store-down`, with the cause in plain words: nothing was written
   */
  commit<T>(write: (writer: Writer) => Synchronous<T>): T
  /** Asks, right before something that only the owner of the folder may do. @throws RelayError if another process may have it */
  demandLock(): void
  /** Whether the disk is almost full: accept nothing new. Other commits have the last few MB, so that what was accepted can end. */
  readonly isFull: boolean
  /** Resolves once everything committed so far is safe from a power cut. @throws RelayError `store-down` */
  flushed(): Promise<void>
  /** Why nothing can be read or written, as a RelayError `store-down` in plain words; `undefined` while the store is open. */
  readonly failure: RelayError | undefined
  /** Aborted once this store is over: closed, a flush failed, another process has the folder, or a failure to open may be gone. */
  readonly over: AbortSignal
  /**
   * Makes a copy of everything committed so far, one at a time, while the store is used on.
   *
   * @throws RelayError `conflict` while there is another copy, `storage-full` without room for it, or `store-down`
   */
  backup(): Promise<Backup>
  /** Closes the file, after a last flush. */
  close(): Promise<void>
}

/** A copy of the file, which holds API keys. */
export interface Backup {
  /** One file of SQLite, complete and checked. */
  path: string
  /** Removes the copy. */
  done(): Promise<void>
}

/** Where a store is opened. */
export interface Storage {
  /**
   * Waits until this process owns the data folder, then opens the file. If file or folder cannot be used, the store has a `failure`, and is
   * over as soon as another try may succeed.
   *
   * @param stop ends the wait: then this rejects
   */
  open(stop: AbortSignal): Promise<Store>
  /** The process that owns the data folder, as people see it, while this one waits for it. */
  readonly owner: Text | undefined
}
