import type { Context } from 'koishi'
import { RelayError } from '../errors'
import { unwrap } from '../lib/unwrap'
import { awaitDatabase, isDatabaseLoaded, Storage, type Keeping, type StorageOptions } from './database'
import type { Delivery } from './delivery/delivery'
import type { MemoryStore } from './store/memory-store'
import type { Store } from './store/store'

/** Where deliveries are kept: in memory, and in the database while there is one. */
export class Stores {
  /** What there is of the database at present. */
  storage: Storage | undefined
  /** Those that were made for a database that may come back. */
  readonly known: Storage[] = []
  /** Whether the bot has a database, be it still on its way. */
  hasDatabase: () => boolean = () => false
  private last: Storage | undefined
  private arrival: Promise<void> = Promise.resolve()
  private hasArrived = false

  constructor(readonly memory: MemoryStore) {}

  /** Uses the database of a context, as long as that is there and the context is not disposed. */
  attach(ctx: Context, options: StorageOptions, keeping: Keeping): void {
    ctx.inject(['database'], inner => {
      const known = this.known.find(({ store }) => store.uses(inner.database))
      const storage = known ?? new Storage(inner, options)
      if (!known) this.known.push(storage)
      this.storage = this.last = storage
      storage.attach(inner, keeping)
      inner.on('dispose', () => {
        if (this.storage === storage) this.storage = undefined
      })
    })
    const registry = unwrap(ctx.registry)
    this.hasDatabase = () => isDatabaseLoaded(registry)
    this.hasArrived = false
    this.arrival = awaitDatabase(ctx).then(() => {
      this.hasArrived = true
    })
  }

  /**
   * Waits for a database that is still on its way.
   *
   * @param isNeeded whether nothing is to be done without it
   * @throws RelayError `store-down`
   */
  async arrived(isNeeded: boolean): Promise<void> {
    if (this.storage || (this.hasArrived && !isNeeded) || !this.hasDatabase()) return
    await this.arrival
    if (isNeeded && !this.isPresent()) throw new RelayError('store-down')
  }

  /** Where a delivery is kept for which its caller waits: one that may be asked about after a restart is in the database. */
  of({ key }: Delivery): Store {
    return key === null ? this.memory : this.storage?.store ?? this.memory
  }

  /** Writes what is left to be written, also where the context was disposed. */
  async finish(): Promise<void> {
    await this.last?.finish()
  }

  /** A function, because it may change at every wait. */
  private isPresent(): boolean {
    return this.storage !== undefined
  }
}
