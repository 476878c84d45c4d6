import { RelayError } from '../../errors'
import { writeTarget } from '../../message/target'
import {
  abandon, isUnfinished, outcomeOf, settle, unfinished, withLate, type Change, type Delivery, type ItemResult, type Results, type State,
} from '../delivery/delivery'
import type { MemoryStore } from '../store/memory-store'
import type { Store } from '../store/store'
import type { Slot } from './queue'
import { persist, type Runtime } from './runtime'

/** How the end of a delivery is recorded. */
export interface Ending {
  /** The states in which it may be; those of one that has not ended, unless given. */
  from?: readonly State[]
  /** Whose other waiters are turned away as long as the database is away. */
  slot?: Slot
  /** Whether it must not have changed since it was read: it is not at work here. */
  asRead?: boolean
}

/** The end of a delivery that could not be written. */
interface Unwritten {
  /** The delivery as it is written. */
  readonly read: Delivery
  readonly store: Store
  readonly change: Change
  readonly ending: Ending
}

/** How often something is added to a delivery that others change at the same time. */
const mostTries = 3

/** Told how a delivery has ended. */
type Watcher = (delivery: Delivery) => void

/**
 * Records what became of deliveries and tells whoever waits for it, also what is learned after the end. It changes a delivery only as far
 * as nobody else has changed it meanwhile.
 */
export class Outcomes {
  private readonly watchers = new Map<string, Set<Watcher>>()
  /** What could not be written, by the IDs of the deliveries. */
  private readonly unwritten = new Map<string, Unwritten>()

  /** @param fallback keeps what became of a delivery while its own store cannot be written to */
  constructor(private readonly runtime: Runtime, private readonly fallback: MemoryStore) {}

  /**
   * Records what became of a delivery. What was sent was sent: a database that is away does not make it fail. One that nobody waits for
   * is written down before this resolves, however long that takes, so that nothing overtakes its record.
   *
   * @returns whether the delivery was as `ending` has it
   */
  async settle(delivery: Delivery, store: Store, results: Results, ending: Ending = {}): Promise<boolean> {
    const change = settle(delivery, results)
    const hadEnded = !isUnfinished(delivery.state)
    const record = (): Promise<boolean> => this.record(delivery, store, change, ending)
    let wasThere: boolean
    if (!store.isDurable) wasThere = write(store, delivery, change, ending) === true
    else if (delivery.deferred) wasThere = await persist(this.runtime, record, () => ending.slot?.turnAway(new RelayError('store-down')))
    else wasThere = await record().catch(() => this.keepMeanwhile(delivery, store, change, ending))
    if (!wasThere) return false
    if (!store.isDurable) this.runtime.sentLog.write(delivery, false)
    this.tell(delivery, hadEnded)
    return true
  }

  /**
   * Adds what became known of some items to a delivery that has ended without an answer. Others may have changed it since it was read, and
   * what they know counts as well.
   *
   * @param delivery as it is known here; it becomes what is recorded
   * @param known by the places of the items
   * @returns whether it is recorded now, by whomever
   */
  async correct(delivery: Delivery, store: Store, known: ReadonlyMap<number, ItemResult>): Promise<boolean> {
    if (this.unwritten.has(delivery.id)) {
      this.keepMeanwhile(delivery, store, settle(delivery, withLate(delivery.results, known)), {})
      this.tell(delivery, true)
      return true
    }
    for (let tries = 0; tries < mostTries; tries++) {
      const present = await readAgain(store, delivery)
      const hasChanged = present?.state === 'unanswered'
        && await this.settle(present, store, withLate(present.results, known), { from: ['unanswered'], asRead: true })
      if (hasChanged || (present && isRecorded(present, known))) {
        Object.assign(delivery, present)
        return true
      }
      if (present?.state !== 'unanswered') return false
    }
    return false
  }

  /**
   * Records that the platform has said no in the end, unless there was a further call since: that one may have arrived.
   *
   * @param delivery as it was when the calls were made that were answered
   */
  async deny(delivery: Delivery, store: Store, denied: ReadonlyMap<number, ItemResult>): Promise<void> {
    if (this.unwritten.has(delivery.id)) return
    const present = await readAgain(store, delivery)
    if (present?.state !== 'unanswered' || present.attempts !== delivery.attempts) return
    await this.settle(present, store, withLate(present.results, denied), { from: ['unanswered'], asRead: true })
  }

  /**
   * Ends a delivery of which nothing more is to be sent, for this reason. Rejects with the error of the store.
   *
   * @returns whether it did: it may have begun to leave meanwhile
   */
  async abandon(delivery: Delivery, store: Store, error: RelayError): Promise<boolean> {
    const change = settle(delivery, abandon(delivery, error))
    const wasThere = await this.record(delivery, store, change, { from: [delivery.state], asRead: true })
    if (wasThere) this.tell(delivery)
    return wasThere
  }

  /** @param isCorrection whether it had ended before, and this is what is known of it later */
  private tell(delivery: Delivery, isCorrection = false): void {
    const { logger, clock, observer } = this.runtime
    const { id, state, target, attempts, deferred, createdAt } = delivery
    if (!isCorrection) observer.ended(delivery, clock.now() - createdAt)
    if (deferred) logger.info('%s', `${id} deferred ${writeTarget(target)} ${state} after ${attempts} attempts`)
    const watchers = this.watchers.get(id)
    if (watchers) for (const watcher of [...watchers]) watcher(delivery)
  }

  /** Calls back when a delivery has ended; what it returns ends the watch. */
  watch(id: string, callback: Watcher): () => void {
    const watchers = this.watchers.get(id) ?? new Set()
    this.watchers.set(id, watchers.add(callback))
    return () => {
      watchers.delete(callback)
      if (watchers.size === 0) this.watchers.delete(id)
    }
  }

  /**
   * Changes a delivery in its store, and then logs what was sent of it: as long as the store has it as leaving, the next process has to
   * find it in the chat.
   */
  async record(delivery: Delivery, store: Store, change: Change, ending: Ending = {}): Promise<boolean> {
    const wasThere = await write(store, delivery, change, ending)
    if (wasThere) this.runtime.sentLog.write(delivery, store.isDurable)
    return wasThere
  }

  /** A restart would find it interrupted, and so unanswered; meanwhile memory tells what became of it. */
  private keepMeanwhile(delivery: Delivery, store: Store, change: Change, ending: Ending): true {
    const { id } = delivery
    // A later end is that of the same row, as it is written.
    const { read, ending: first } = this.unwritten.get(id) ?? { read: { ...delivery }, ending }
    this.unwritten.set(id, { read, store, change, ending: first })
    Object.assign(delivery, change, { updatedAt: this.runtime.clock.now() })
    this.fallback.remember({ ...delivery })
    this.writeLate(id)
    return true
  }

  /** Goes on with what could not be written before the relay was stopped. */
  resume(): void {
    for (const id of this.unwritten.keys()) this.writeLate(id)
  }

  private writeLate(id: string): void {
    void persist(this.runtime, () => this.writeUnwritten(id)).catch(() => undefined)
  }

  private async writeUnwritten(id: string): Promise<void> {
    for (let entry = this.unwritten.get(id); entry; entry = this.unwritten.get(id)) {
      const { read, store, change, ending } = entry
      const wasThere = await this.record({ ...read }, store, change, ending)
      if (this.unwritten.get(id) !== entry) continue
      this.unwritten.delete(id)
      // Others may have taken this relay for dead meanwhile, and recorded that nobody knows.
      if (!wasThere) await this.correct({ ...read }, store, knownOf(change.results ?? []))
      if (!this.unwritten.has(id)) this.fallback.discard(id)
    }
  }
}

/** A delivery as it is now, or here where the database does not answer. In memory, one with a key may be known by that alone. */
async function readAgain(store: Store, delivery: Delivery): Promise<Delivery | undefined> {
  const { id, key } = delivery
  try {
    const found = await store.get(id) ?? (key === null ? undefined : await store.findByKey(key))
    if (found?.id !== id) return
    // How its calls ended is told here, as long as nobody else has made further ones.
    return found.updatedAt === delivery.updatedAt ? { ...found, about: delivery.about } : found
  } catch {
    return delivery
  }
}

function write(store: Store, delivery: Delivery, change: Change, ending: Ending): boolean | Promise<boolean> {
  const { from = unfinished, asRead = false } = ending
  return asRead ? store.amend(delivery, from, change) : store.update(delivery, from, change)
}

/** Whether it is known of all these items that they have arrived. */
function isRecorded({ results }: Delivery, found: ReadonlyMap<number, ItemResult>): boolean {
  return [...found.keys()].every(index => results[index]?.success)
}

/** What is known for certain of items, by their places. */
export function knownOf(results: Results): Map<number, ItemResult> {
  return new Map(results.flatMap((result, index): [number, ItemResult][] => result && outcomeOf(result) !== 'unanswered' ? [[index, result]] : []))
}
