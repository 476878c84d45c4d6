import { RelayError } from '../errors'
import type { Log } from '../lib/log'
import { toName } from '../message/target'
import type { Store } from '../relay/store/store'
import { say, type Text } from '../texts/text'
import { Loaded, type MadeTable } from './loaded'

/** An entry and its origin. */
export interface Listed<T> {
  name: string
  entry: T
  source: 'settings' | 'made'
}

export interface MadeOptions<T> {
  table: MadeTable
  /** What an entry is, for errors. */
  kind: keyof typeof kinds
  /** The entries of the settings. */
  fixed: ReadonlyMap<string, T>
  /** Returns the present store. */
  store: () => Store
  logger: Pick<Log, 'warn'>
  /**
   * Reads an entry.
   *
   * @param isNew whether all that it refers to has to exist. What it refers to may be gone since a stored entry was made
   * @throws RelayError `bad-request`, which names the field
   */
  parse: (name: string, value: unknown, isNew: boolean) => T
  /** What uses an entry, such as `the rota "oncall"`: it cannot be removed then. */
  usersOf?: (name: string) => readonly Text[]
}

const kinds = { name: 'kind-name', person: 'kind-person', rota: 'kind-rota', beat: 'kind-beat' } as const

/** The most entries. */
const most = 1000

/** Entries by their names: those of the settings, and those that are made while the relay runs. The former take precedence. */
export class Made<T> {
  private readonly made: Loaded<T>
  private readonly none: ReadonlyMap<string, T> = new Map()

  constructor(private readonly options: MadeOptions<T>) {
    const { store, table, parse, logger } = options
    this.made = new Loaded(store, table, (name, value) => parse(name, value, false), logger)
  }

  get(name: string): T | undefined {
    return this.options.fixed.get(name) ?? this.present().get(name)
  }

  isFixed(name: string): boolean {
    return this.options.fixed.has(name)
  }

  /** Why the entries that were made are missing. */
  get failure(): Error | undefined {
    const made = this.made.tryGet()
    return made instanceof Error ? made : undefined
  }

  /** All entries, those of the settings first, including made ones without effect because the settings use the same name. */
  list(): Listed<T>[] {
    const listOf = (entries: ReadonlyMap<string, T>, source: Listed<T>['source']): Listed<T>[] => [...entries].map(([name, entry]) => ({ name, entry, source }))
    return [...listOf(this.options.fixed, 'settings'), ...listOf(this.present(), 'made')]
  }

  /** The entries that have effect. */
  inForce(): Listed<T>[] {
    return this.list().filter(({ name, source }) => source === 'settings' || !this.isFixed(name))
  }

  /**
   * Makes or changes an entry. It counts when this resolves.
   *
   * @returns the entry, and whether it is new
   * @throws RelayError `bad-request`, which names the field; `conflict`, `store-down`, `storage-full`
   */
  async put(written: string, value: unknown): Promise<{ listed: Listed<T>, isNew: boolean }> {
    const name = toName(written)
    const made = this.made.get()
    const entry = this.options.parse(name, value, true)
    this.demandFree(name)
    const isNew = !made.has(name)
    if (isNew && made.size >= most) throw new RelayError('conflict', say('too-many-made', { most, kind: say(kinds[this.options.kind]) }))
    await this.made.change(name, { json: value, entry })
    return { listed: { name, entry, source: 'made' }, isNew }
  }

  /** @throws RelayError `not-found`; `conflict`, also while something uses it; `store-down`, `storage-full` */
  async remove(written: string): Promise<void> {
    const name = toName(written)
    const { kind, fixed, usersOf } = this.options
    if (!this.made.get().has(name)) {
      this.demandFree(name)
      throw new RelayError('not-found', say('no-such-kind', { kind: say(kinds[kind]) }))
    }
    const users = fixed.has(name) ? [] : usersOf?.(name) ?? []
    if (users.length > 0) throw new RelayError('conflict', say('made-is-used', { kind: say(kinds[kind]), users }))
    await this.made.change(name, undefined)
  }

  private demandFree(name: string): void {
    const { kind, fixed } = this.options
    if (fixed.has(name)) throw new RelayError('conflict', say('made-is-fixed', { kind: say(kinds[kind]) }))
  }

  /** The made entries; none while they cannot be read. */
  protected present(): ReadonlyMap<string, T> {
    const made = this.made.tryGet()
    return made instanceof Error ? this.none : made
  }
}
