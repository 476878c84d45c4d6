import type { ParsedItem } from '../message/model'
import type { Delivery } from './delivery'
import type { Queues } from './queue'
import type { Runtime } from './runtime'
import { queueOf, type Store } from './store'
import type { Verdict, Worker } from './worker'

/** When a delivery without an answer is looked for again, in milliseconds after its send has ended. */
const looks = [60_000, 5 * 60_000]
/** How many deliveries are looked for at a time; of further ones only an answer that comes late is heard. */
const most = 1_000

export interface FollowUpOptions {
  queues: Queues
  worker: Worker
  runtime: Runtime
  /** Has it sent again: it has settled and did not arrive, and nobody waits for it. */
  sendAgain: (delivery: Delivery) => Promise<unknown>
}

/** Goes on looking for what went unanswered, also when nobody waits for it. */
export class FollowUps {
  private readonly timers = new Set<NodeJS.Timeout>()

  constructor(private readonly options: FollowUpOptions) {}

  /** A send has ended without an answer. */
  add(delivery: Delivery, store: Store, items: readonly ParsedItem[]): void {
    const { runtime: { openCalls } } = this.options
    if (this.timers.size >= most || !delivery.inDoubt) return
    const settling = openCalls.leftOf(delivery, items)
    for (const time of [...looks, ...settling > 0 ? [settling + 1_000] : []]) {
      const timer = setTimeout(() => {
        this.timers.delete(timer)
        void this.look(delivery.id, store, items).catch(() => {
          // The queue is full or paused, the database is away, or the relay stops. There is another look, or its owner can ask.
        })
      }, time)
      timer.unref()
      this.timers.add(timer)
    }
  }

  /**
   * Finds out what became of a delivery that went unanswered.
   *
   * @returns the verdict on what is missing where that may be sent now
   * @param signal aborted when nobody waits for it any more
   * @throws what `Queues.use` throws, or the error of the database
   */
  async reconcile(
    delivery: Delivery, store: Store, items: readonly ParsedItem[], signal?: () => AbortSignal,
  ): Promise<Verdict | undefined> {
    const { queues, worker, runtime: { port } } = this.options
    const account = port.find(delivery.bot)
    if (!account?.isOnline) return
    // In the slot, so that nothing else leaves for the target meanwhile whose equal message could be taken for this one.
    return queues.use(queueOf(delivery.bot, delivery.target), signal ? { signal } : {}, slot =>
      worker.reconcile(slot, { delivery, items, store, account, isOurs: () => true }))
  }

  /** Ends all of it. */
  clear(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }

  private async look(id: string, store: Store, items: readonly ParsedItem[]): Promise<void> {
    const { runtime: { policy }, sendAgain } = this.options
    const delivery = await store.get(id)
    if (delivery?.state !== 'unanswered') return
    const mayRepeat = await this.reconcile(delivery, store, items)
    // The calls that were made count, whoever made them.
    if (mayRepeat && delivery.deferred && delivery.attempts <= policy.retries) await sendAgain(delivery)
  }
}
