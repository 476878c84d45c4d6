import { RelayError } from '../errors'
import { parseJson } from '../lib/json'
import { quoted, type Log } from '../lib/log'
import { isString, objectOf } from '../lib/shape'
import type { Store } from '../relay/store/store'
import { say } from '../texts/text'

const isRow = objectOf({ name: isString, entry: isString })

/** The tables of what is made while the relay runs. */
export type MadeTable = 'targets' | 'people' | 'rotas' | 'beats'

/** The entries of a table by their names, in memory. They are read again when another store takes the place of the present one. */
export class Loaded<T> {
  private last: { store: Store, entries: ReadonlyMap<string, T> } | undefined

  /**
   * @param store returns the present store
   * @param parse reads an entry. If it throws a RelayError, only this entry is left out, with a line in the log
   */
  constructor(
    private readonly store: () => Store, private readonly table: MadeTable | 'keys' | 'swaps',
    private readonly parse: (name: string, entry: unknown) => T, private readonly logger: Pick<Log, 'warn'>,
  ) {}

  /** @throws RelayError `store-down` */
  get(): ReadonlyMap<string, T> {
    const store = this.store()
    if (store.failure) throw store.failure
    if (this.last?.store !== store) this.last = { store, entries: this.read(store) }
    return this.last.entries
  }

  /** The entries, or why they cannot be read. */
  tryGet(): ReadonlyMap<string, T> | Error {
    try {
      return this.get()
    } catch (error) {
      return RelayError.from(error)
    }
  }

  /**
   * Writes or removes an entry. It counts when this returns; the promise resolves when it is safe from a power cut.
   *
   * @param change the JSON of the entry and what was read from it; `undefined` removes it
   * @throws RelayError `store-down`, `storage-full`
   */
  change(name: string, change: { json: unknown, entry: T } | undefined): Promise<void> {
    const [store, entries] = [this.store(), new Map(this.get())]
    if (change && store.isFull) throw new RelayError('storage-full')
    store.commit(writer => change
      ? writer.run(`INSERT INTO ${this.table} (name, entry) VALUES (?, ?) ON CONFLICT DO UPDATE SET entry = excluded.entry`, name, JSON.stringify(change.json))
      : writer.run(`DELETE FROM ${this.table} WHERE name = ?`, name))
    if (change) entries.set(name, change.entry)
    else entries.delete(name)
    this.last = { store, entries }
    return store.flushed()
  }

  private read(store: Store): ReadonlyMap<string, T> {
    const entries = new Map<string, T>()
    for (const { name, entry } of store.all(isRow, `SELECT name, entry FROM ${this.table} ORDER BY rowid`)) {
      try {
        entries.set(name, this.parse(name, parseJson(entry)))
      } catch (error) {
        this.logger.warn(say('made-unreadable', { table: this.table, name: quoted(name), reason: RelayError.from(error).said }))
      }
    }
    return entries
  }
}
