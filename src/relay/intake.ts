import { RelayError } from '../errors'
import { waitFor } from '../lib/async'
import type { MessageRequest, ParsedItem } from '../message/model'
import { aboutOf } from './delivery/about'
import { abandon, createDelivery, isUnfinished, settle, type Delivery, type Idempotency } from './delivery/delivery'
import { keyConflict, type Submission } from './delivery/submission'
import type { Outcomes } from './sending/outcomes'
import type { Queues } from './sending/queue'
import type { Runtime } from './sending/runtime'
import type { Worker } from './sending/worker'
import { guard, noPosition, queueOf, type Store } from './store/store'
import type { Stores } from './stores'
import { Deadline, Result } from './waiter'

/** After which time a deferred delivery, or one that is sent again, is dropped unless its request says otherwise, in milliseconds. */
export const defaultExpiry = 24 * 60 * 60 * 1000
/** How much longer than its delivery waits an uploaded file is kept, for a send that begins at the last moment, in milliseconds. */
const uploadMargin = 60 * 60 * 1000

/** Makes submissions deliveries, stores them, and has them delivered: at once, in the background, or in their turn from the database. */
export class Intake {
  /** Those that are delivered from memory although nobody waits for them, by their IDs. */
  private readonly background = new Set<string>()

  constructor(
    private readonly runtime: Runtime, private readonly queues: Queues, private readonly stores: Stores,
    private readonly worker: Worker, private readonly outcomes: Outcomes,
  ) {}

  /** Whether a delivery is under way from memory although nobody waits for it. */
  isInBackground(id: string): boolean {
    return this.background.has(id)
  }

  /**
   * Makes a submission a delivery, and waits for its result as long as its caller likes to.
   *
   * @param idempotency its key, which is no other delivery's
   * @throws RelayError what stops the request as such
   */
  accept(submission: Submission, idempotency?: Idempotency): Promise<Delivery> {
    const { runtime: { clock, recordContent } } = this
    const { id, request, caller, door, deferred } = submission
    const about = aboutOf(request.items, recordContent)
    const delivery = createDelivery(id, clock.now(), request, idempotency, { caller, door, about })
    if (!deferred) return this.deliver(submission, delivery)
    return deferred.inMemory !== undefined && !this.stores.hasDatabase()
      ? this.deliverInBackground(submission, delivery, deferred.inMemory)
      : this.defer(submission, delivery, deferred.wait)
  }

  /**
   * Delivers without a database, and waits for the result no longer than this.
   *
   * @param wait in milliseconds
   * @param isKnown whether the delivery is in its store already
   */
  async deliverInBackground(submission: Submission, delivery: Delivery, wait: number, isKnown = false): Promise<Delivery> {
    const { background, runtime: { inFlight, stop } } = this
    const leave = inFlight.enter()
    background.add(delivery.id)
    const work = this.deliver({ ...submission, signal: undefined }, delivery, isKnown).finally(() => {
      background.delete(delivery.id)
      leave()
    })
    await waitFor(work, wait, stop)
    return delivery
  }

  /**
   * Delivers while the caller waits.
   *
   * @param isKnown whether the delivery is in its store already
   */
  async deliver({ request, admit, signal }: Submission, delivery: Delivery, isKnown = false): Promise<Delivery> {
    const { queues, worker, outcomes, stores, runtime } = this
    const { items, target } = request
    const store = stores.of(delivery)
    const { storage } = stores
    // What an earlier process left comes first.
    if (storage && !storage.backlog.isOpen) await storage.backlog.opened
    const deadline = new Deadline(signal, request.expiresIn)
    let isKept = isKnown
    try {
      const account = runtime.port.choose(request.bot)
      admit?.(account.platform)
      account.checkIds(target, items)
      if (!isKnown) {
        delivery.bot = account.sid
        const inserted = this.insert(store, delivery, items)
        if (inserted) await inserted
      }
      isKept = true
      const isOurs = (): boolean => !store.isDurable || storage?.isAlive() === true
      const end = await queues.use(queueOf(account.sid, target), { signal: () => deadline.signal() }, slot =>
        worker.deliver(slot, { delivery, items, store, account, isOurs }))
      if (end !== 'gone') return delivery
      // The others have taken this relay for dead, and settled it, or may do so at any time.
      const present = await guard(store.get(delivery.id))
      if (present && !isUnfinished(present.state)) return present
      throw present && present.updatedAt !== delivery.updatedAt ? keyConflict(true) : new RelayError('unsent')
    } catch (thrown) {
      const error = RelayError.from(thrown)
      // What an earlier request with its key has left without an answer may have arrived, whatever stops this one.
      const results = abandon(delivery, error)
      if (isKept) {
        await outcomes.settle(delivery, store, results, { asRead: true })
        this.keepFiles(delivery, items)
        if (delivery.state === 'unanswered') return delivery
      } else if (error.outcome) {
        // It is not sent again where it is not known through which bot.
        const isSure = delivery.bot !== '' || (request.bot.platform === undefined && request.bot.selfId === undefined)
        // Without an outcome it was no delivery at all.
        stores.memory.insert(Object.assign(delivery, settle(delivery, results)), noPosition, isSure ? items : [])
        runtime.observer.ended(delivery, runtime.clock.now() - delivery.createdAt)
        if (isSure) this.keepFiles(delivery, items)
      }
      throw error
    } finally {
      deadline.end()
    }
  }

  /** Stores what is to be sent later, and waits a while for the result if the caller likes to. */
  private async defer({ id, request, admit, signal }: Submission, delivery: Delivery, wait: number): Promise<Delivery> {
    const { stores: { storage }, runtime: { port } } = this
    if (!storage) throw new RelayError('no-database')
    const account = port.chooseLater(request.bot)
    admit?.(account.platform)
    account.checkIds(request.target, request.items)
    const expiresAt = delivery.createdAt + (request.expiresIn ?? defaultExpiry)
    Object.assign(delivery, { deferred: true, bot: account.sid, expiresAt })
    await this.keepUploads(request, expiresAt)
    const result = wait > 0 ? new Result(this.outcomes, id) : undefined
    try {
      await this.insertInto(storage.store, delivery, () => storage.backlog.add(delivery, request.items))
      return await result?.within(wait, signal?.(), this.runtime.stop) ?? delivery
    } finally {
      result?.end()
    }
  }

  private insert(store: Store, delivery: Delivery, items: MessageRequest['items']): Promise<void> | undefined {
    if (store.isDurable) return this.insertInto(store, delivery, () => store.insert(delivery, noPosition, items))
    void store.insert(delivery, noPosition, items)
  }

  /** @throws RelayError `in-progress` or `key-reused` when its key was taken meanwhile, `queue-full`, `store-down` */
  private async insertInto(store: Store, delivery: Delivery, insert: () => Promise<void> | void): Promise<void> {
    try {
      await insert()
    } catch (cause) {
      if (cause instanceof RelayError) throw cause
      this.takeBack(store, delivery.id)
      // Drivers word a duplicate key differently; asking for it is the same everywhere.
      const other = delivery.key === null ? undefined : await guard(store.findByKey(delivery.key))
      if (other && other.id !== delivery.id) throw keyConflict(other.fingerprint === delivery.fingerprint)
      throw new RelayError('store-down', undefined, { cause })
    }
  }

  /** What could not be inserted may be there although the answer was lost, but nobody is told that it is. */
  takeBack(store: Store, id: string): void {
    void Promise.resolve(store.discard(id)).catch(() => undefined)
  }

  /** What can be sent again needs its files. */
  keepFiles({ state }: Delivery, items: readonly ParsedItem[]): void {
    const { runtime: { clock, retention }, stores: { memory } } = this
    if (memory.keeps(state)) void this.keepUploads({ items, mode: 'batch' }, clock.now() + retention)
  }

  /**
   * @param until by the relay's clock
   * @throws RelayError `file-not-found` when the one file of a single message is not there; in a batch, the item fails in its turn
   */
  async keepUploads({ items, mode }: Pick<MessageRequest, 'items' | 'mode'>, until: number): Promise<void> {
    const { clock, keepUpload } = this.runtime
    for (const item of items) {
      if (!('link' in item) || item.link.kind !== 'upload') continue
      try {
        await keepUpload(item.link.id, clock.toWall(until) + uploadMargin)
      } catch (error) {
        if (mode === 'single') throw error
      }
    }
  }
}
