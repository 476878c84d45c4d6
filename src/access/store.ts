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

/** What can be made while the relay runs. */
type Name = 'keys' | 'targets'

/** Entries by their names, and a number that grows with each change. */
interface Stored {
  content: JsonObject
  version: number
}

/** Where entries are kept that were made while the relay runs. Its methods throw a RelayError that names the cause. */
interface Store {
  /** Whether other relays write there as well. */
  readonly isShared: boolean
  /** @returns `undefined` where nothing was ever written */
  read: () => Promise<Stored | undefined>
  /** @returns `false` where another relay has written since this version */
  write: (content: JsonObject, version: number) => Promise<boolean>
}

/** How often the writes of other relays are looked for, in milliseconds. */
const lookInterval = 1_000
/** How long a database may take for a statement, in milliseconds. */
const statementTimeout = 8_000

const table = 'message_relay_made'

/** A file in the data folder, for its owner only. */
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

  private failure(deed: string, error: unknown): RelayError {
    const remedy = deed === 'read' ? 'repair or remove it, then load the plugin again' : 'make the data folder writable, and free some space'
    return new RelayError('store-down', `${this.name}.json in the data folder cannot be ${deed} (${error instanceof SyntaxError ? 'it is no JSON object' : codeOf(error)}): ${remedy}`)
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

/** Entries of one kind that were made while the relay runs. They are changed one after the other, and count once they are kept. */
export class Made {
  private store: Store | undefined
  /** What counts until something is written to the store. */
  private earlier: Store | undefined
  private state: Stored | undefined
  /** Why nothing can be changed. */
  private flaw: string | undefined = 'what was made while the relay ran is not read yet: try again later'
  private readonly mutex = new Mutex()
  private refreshing: Promise<void> | undefined

  /** @param prepare reads entries, and returns what puts them into force. @throws RelayError where they are not what they should be */
  constructor(readonly name: Name, private readonly prepare: (content: JsonObject) => () => void, private readonly logger: Pick<Logger, 'warn'>) {}

  /**
   * Begins to use a store.
   *
   * @param earlier what counts until something is written to the store
   */
  open(store: Store, earlier?: Store): Promise<void> {
    return this.mutex.run('', () => {
      this.store = store
      this.earlier = earlier
      this.state = undefined
      return this.load()
    })
  }

  /** Puts into force what other relays have written. One look at a time: a change would wait for all that a slow database has to answer. */
  refresh(): Promise<void> {
    this.refreshing ??= this.mutex.run('', () => this.load()).finally(() => {
      this.refreshing = undefined
    })
    return this.refreshing
  }

  /**
   * Changes the entries.
   *
   * @param edit is called again where another relay was faster
   * @throws RelayError those of `edit` and `prepare`, `store-down`
   */
  change(edit: (content: JsonObject) => JsonObject): Promise<void> {
    return this.mutex.run('', async () => {
      for (;;) {
        const { store, state, flaw } = this
        if (!store || !state || flaw !== undefined) throw new RelayError('store-down', flaw)
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
      this.flaw = undefined
    } catch (error) {
      const { message } = RelayError.from(error)
      // What a database gave before stays in force until it answers again.
      const damage = store.isShared && this.state ? 'cannot be changed, those known go on' : 'cannot be used'
      if (message !== this.flaw) this.logger.warn('%s', `${this.name} that were made while the relay ran ${damage}: ${message}`)
      this.flaw = message
      // A file stays as it is. That of a database is asked for again.
      if (!store.isShared) this.prepare({})()
    }
  }
}

/** Has entries kept in the database of the bot where that is a server, which other relays may share, and otherwise in the data folder. */
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
 * Reads an entry that was kept.
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
  // Editors of Windows begin a file with a byte order mark.
  const content: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
  if (!isObject(content)) throw new SyntaxError('it is no object')
  return content
}
