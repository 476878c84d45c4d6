import { SQLite3Error } from 'node-sqlite3-wasm'
import { codeOf, RelayError } from '../../errors'
import type { TextId } from '../../texts/table'
import type { Store } from './store'
import { say } from '../../texts/text'

/** The causes that people can remedy, by the codes of the file system. */
const causes = {
  EACCES: 'folder-not-writable',
  EPERM: 'folder-not-writable',
  EROFS: 'folder-read-only',
  ENOSPC: 'disk-full-free-some',
  EDQUOT: 'disk-full-free-some',
  ENOTDIR: 'folder-is-file',
  EEXIST: 'folder-is-file',
  EISDIR: 'file-is-folder',
  EMFILE: 'too-many-open-files',
} as const satisfies Readonly<Record<string, TextId>>

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
    ? say(error instanceof Error && error.message.includes('not a database') ? 'data-file-foreign' : 'data-file-damaged')
    : isCrash(error) ? say('store-crashed') : isRemediable(code) ? say(causes[code]) : say('folder-unusable', { code: nameOf(error) }), { cause: error })
}

function isRemediable(code: string): code is keyof typeof causes {
  return Object.hasOwn(causes, code)
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
