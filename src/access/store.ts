import type { Context, Logger } from 'koishi'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, RelayError } from '../errors'
import { inTime, Mutex } from '../lib/async'
import { loadedPlaces, placesOf, silently, unwrap } from '../lib/koishi'
import { quoted } from '../lib/log'
import { isObject, type JsonObject } from '../lib/shape'
import { writeWhole } from '../lib/whole-file'

declare module 'koishi' {
  interface Tables {
    message_relay_made: { name: Name, version: number, content: string }
  }
}

/** The kinds of entries that can be made while the relay runs. */
type Name = 'keys' | 'targets'

/** Entries by name, and a version that grows with each change. */
interface Stored {
  content: JsonObject
  version: number
}

/** Stores the entries that were made while the relay runs. Its methods throw a RelayError that names the cause. */
interface Store {
  /** Whether other relays use the same store. */
  readonly isShared: boolean
  /** @returns `undefined` if nothing was ever written */
  read: () => Promise<Stored | undefined>
  /** Optimistic lock. @returns `false` if another relay has written since this version */
  write: (content: JsonObject, version: number) => Promise<boolean>
}

/** How often the relay looks for changes of other relays, in milliseconds. */
const lookInterval = 1_000
/** How long a database may take for a statement, in milliseconds. */
const statementTimeout = 8_000

const table = 'message_relay_made'

/** A file in the data folder, accessible to its owner only. */
class FileStore implements Store {
  readonly isShared = false
  private readonly path: string

  constructor(folder: string, private readonly name: Name) {
    this.path = join(folder, `${name}.json`)
  }

  async read(): Promise<Stored | undefined> {
    try {
      return { content: parse(await readFile(this.path, 'utf8')), version: 0 }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return
      throw this.failure('read', error)
    }
  }

  async write(content: JsonObject): Promise<true> {
    try {
      await writeWhole(this.path, `${JSON.stringify(content, undefined, 2)}\n`)
      return true
    } catch (error) {
      throw this.failure('written', error)
    }
  }

  private failure(operation: string, error: unknown): RelayError {
    const remedy = operation === 'read' ? 'repair or remove it, then load the plugin again' : 'make the data folder writable, and free some space'
    return new RelayError('store-down', `${this.name}.json in the data folder cannot be ${operation} (${error instanceof SyntaxError ? 'it is no JSON object' : codeOf(error)}): ${remedy}`)
  }
}

/** A row of a database server, for relays that share it. */
class TableStore implements Store {
  readonly isShared = true
  private readonly database: Context['database']

  constructor(ctx: Context, private readonly name: Name) {
    this.database = unwrap(ctx.database)
    ctx.model.extend(table, {
      name: { type: 'string', length: 16, nullable: false },
      version: { type: 'unsigned', nullable: false },
      content: { type: 'text', length: 2 ** 24, nullable: false },
    }, { primary: 'name' })
  }

  read(): Promise<Stored | undefined> {
    return this.ask(async () => {
      const [row] = await this.database.get(table, { name: this.name })
      return row && { content: parse(row.content), version: row.version }
    })
  }

  write(content: JsonObject, version: number): Promise<boolean> {
    const { database, name } = this
    const next = { version: version + 1, content: JSON.stringify(content) }
    return this.ask(async () => {
      if (version > 0) return (await database.set(table, { name, version }, next)).matched !== 0
      try {
        await database.create(table, { name, ...next })
        return true
      } catch (error) {
        if ((await database.get(table, { name }, ['name'])).length > 0) return false
        throw error
      }
    })
  }

  private async ask<T>(statement: () => Promise<T>): Promise<T> {
    const answer = await inTime(async () => ({ value: await silently(this.database, statement) }), statementTimeout)
    if (!answer) throw new RelayError('store-down')
    return answer.value
  }
}

/** The made entries of one kind. Changes are made one after the other, and take effect once they are stored. */
export class Made {
  private store: Store | undefined
  /** The store whose entries apply until the first write to `store`. */
  private earlier: Store | undefined
  private state: Stored | undefined
  /** The reason why nothing can be changed. */
  private problem: string | undefined = 'what was made while the relay ran is not read yet: try again later'
  private readonly mutex = new Mutex()
  private refreshing: Promise<void> | undefined

  /** @param prepare reads entries and returns a function that puts them into force; throws a RelayError if they are malformed */
  constructor(readonly name: Name, private readonly prepare: (content: JsonObject) => () => void, private readonly logger: Pick<Logger, 'warn'>) {}

  /**
   * Begins to use a store.
   *
   * @param earlier the store whose entries apply until the first write to `store`
   */
  open(store: Store, earlier?: Store): Promise<void> {
    return this.mutex.run('', () => {
      this.store = store
      this.earlier = earlier
      this.state = undefined
      return this.load()
    })
  }

  /** Applies the changes of other relays. One read at a time, because a change would have to wait for all reads of a slow database. */
  refresh(): Promise<void> {
    this.refreshing ??= this.mutex.run('', () => this.load()).finally(() => {
      this.refreshing = undefined
    })
    return this.refreshing
  }

  /**
   * Changes the entries.
   *
   * @param edit returns the new entries; called again if another relay was faster
   * @throws RelayError the errors of `edit` and `prepare`, `store-down`
   */
  change(edit: (content: JsonObject) => JsonObject): Promise<void> {
    return this.mutex.run('', async () => {
      for (;;) {
        const { store, state, problem } = this
        if (!store || !state || problem !== undefined) throw new RelayError('store-down', problem)
        const content = edit(state.content)
        const apply = this.prepare(content)
        if (await store.write(content, state.version)) {
          apply()
          this.state = { content, version: state.version + 1 }
          return
        }
        await this.load()
      }
    })
  }

  private async load(): Promise<void> {
    const { store } = this
    if (!store) return
    try {
      const found = await store.read() ?? { content: (this.state ?? await this.earlier?.read())?.content ?? {}, version: 0 }
      if (found.version !== this.state?.version) this.prepare(found.content)()
      this.state = found
      this.problem = undefined
    } catch (error) {
      const { message } = RelayError.from(error)
      // The last entries of a database stay in force until it answers again.
      const damage = store.isShared && this.state ? 'cannot be changed, those known go on' : 'cannot be used'
      if (message !== this.problem) this.logger.warn('%s', `${this.name} that were made while the relay ran ${damage}: ${message}`)
      this.problem = message
      // A broken file disables all its entries; a database is read again.
      if (!store.isShared) this.prepare({})()
    }
  }
}

/** Stores entries in the database of the bot if that is a server, which other relays may share; otherwise in the data folder. */
export function openStores(ctx: Context, dataDir: string, all: readonly Made[]): void {
  ctx.on('ready', async () => {
    if (loadedPlaces(unwrap(ctx.registry)).includes('server')) return
    for (const made of all) await made.open(new FileStore(dataDir, made.name))
  })
  ctx.inject(['database'], inner => {
    if (!placesOf(unwrap(inner.database)).includes('server')) return
    for (const made of all) void made.open(new TableStore(inner, made.name), new FileStore(dataDir, made.name))
    inner.setInterval(() => {
      for (const made of all) void made.refresh()
    }, lookInterval)
  })
}

/**
 * Reads a stored entry.
 *
 * @throws RelayError `bad-request`, which names the entry
 */
export function readEntry<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new RelayError('bad-request', `the entry ${quoted(name)}: ${RelayError.from(error).message}`)
  }
}

function parse(text: string): JsonObject {
  // Windows editors put a byte order mark at the start of a file.
  const content: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
  if (!isObject(content)) throw new SyntaxError('it is no object')
  return content
}
