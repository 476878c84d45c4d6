import { SQLite3Error } from 'node-sqlite3-wasm'
import { codeOf, RelayError } from '../../errors'
import type { Store } from './store'

const notAllowed = 'the relay may not write to its data folder, or to a file in it: give folder and files to the user that runs the bot'
const full = 'the disk of the relay is full: free some space'
const noFolder = 'the data folder of the relay is a file, or inside of one: set dataDir to a folder'

/** The causes that people can remedy, by the codes of the file system. */
const causes: Readonly<Record<string, string>> = {
  EACCES: notAllowed,
  EPERM: notAllowed,
  EROFS: 'the data folder of the relay is read-only: make it writable, or set dataDir to another folder',
  ENOSPC: full,
  EDQUOT: full,
  ENOTDIR: noFolder,
  EEXIST: noFolder,
  EISDIR: 'relay.db or relay.db-wal in the data folder of the relay is a folder: move it away',
  EMFILE: 'the bot has too many open files: raise its limit',
}

/** Words for what is wrong with the file itself. It is left as it is. */
export const damaged = 'the data file of the relay is damaged, and was left as it is: restore a backup, or move relay.db and relay.db-wal away'
export const foreign = 'relay.db in the data folder of the relay is no data file of a relay, and was left as it is: move it away, or restore a backup'
export const newer = 'relay.db was written by a newer release of the relay: install that release again, or move the file away'
export const broken = 'the store of the relay has crashed: restart the bot'

/** Whether the file is damaged, as SQLite or its checks say. */
export function isDamage(error: unknown): boolean {
  return error instanceof Error && (/malformed|file is not a database/.test(error.message) || isDamage(error.cause))
}

/** Whether SQLite refused a statement. */
export function isOfSQLite(error: unknown): error is Error {
  return error instanceof SQLite3Error
}

/** Whether WebAssembly has crashed, so that nothing in its memory can be trusted any more. */
export function isCrash(error: unknown): boolean {
  return error instanceof Error && error.name === 'RuntimeError'
}

/** Why a data folder or the file in it cannot be used, in plain words without paths. */
export function explainOpening(error: unknown): RelayError {
  if (error instanceof RelayError) return error
  const code = codeOf(error)
  return new RelayError('store-down', isDamage(error)
    ? error instanceof Error && error.message.includes('not a database') ? foreign : damaged
    : isCrash(error) ? broken : causes[code] ?? `the data folder of the relay cannot be used (${nameOf(error)}): check its disk, and that it has space`, { cause: error })
}

/** The code of a system error, or the text of SQLite, which names no paths. */
export function nameOf(error: unknown): string {
  const code = codeOf(error)
  return isOfSQLite(error) ? error.message : code
}

/** A store that cannot be read or written. */
export class ClosedStore implements Store {
  readonly isFull = false

  /**
   * @param over aborted when another try may succeed
   * @param stop called when the store is closed
   */
  constructor(readonly failure: RelayError, readonly over: AbortSignal, private readonly stop: () => void = () => undefined) {}

  all(): never {
    throw this.failure
  }

  first(): never {
    throw this.failure
  }

  commit(): never {
    throw this.failure
  }

  demandLock(): never {
    throw this.failure
  }

  flushed(): Promise<never> {
    return Promise.reject(this.failure)
  }

  backup(): Promise<never> {
    return Promise.reject(this.failure)
  }

  close(): Promise<void> {
    this.stop()
    return Promise.resolve()
  }
}
