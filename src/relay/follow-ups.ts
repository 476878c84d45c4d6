import { RelayError } from '../errors'
import type { ParsedItem } from '../message/model'
import type { Port } from '../platform/port'
import type { Delivery } from './delivery/delivery'
import type { AttemptPolicy } from './sending/attempts'
import type { OpenCalls } from './sending/open-calls'
import type { Queues } from './sending/queue'
import type { Verdict, Worker } from './sending/worker'
import { queueOf, type Store } from './store/store'

/** When a delivery without an answer is looked for again, in milliseconds after its send has ended. */
const looks = [60_000, 5 * 60_000]
/** When a look that could not be made is tried again, and how long after its settling time a delivery is looked for, in milliseconds. */
const retryPause = 60_000
const margin = 1_000
/** How many deliveries are looked for at a time; of further ones only an answer that comes late is heard. */
const most = 1_000
/** How long what was to be sent of those may be together of which it is kept nowhere else, in characters. */
const mostHeld = 16 * 1024 * 1024

export interface FollowUpOptions {
  queues: Queues
  worker: Pick<Worker, 'reconcile'>
  runtime: { openCalls: OpenCalls, port: Pick<Port, 'find'>, policy: Pick<AttemptPolicy, 'retries'> }
  /** Whether this store keeps what was to be sent of what went unanswered. */
  keepsItems: (store: Store) => boolean
  /** What was to be sent, where it is kept; otherwise it rejects. */
  readItems: (id: string) => Promise<readonly ParsedItem[]>
  /** Has it sent again: it has settled and did not arrive, and nobody waits for it. */
  sendAgain: (delivery: Delivery) => Promise<unknown>
}

/** A delivery that is looked for. */
interface FollowUp {
  readonly id: string
  readonly store: Store
  /** What was to be sent, where that is kept nowhere else. */
  readonly items?: readonly ParsedItem[]
  /** How long that is, in characters. */
  readonly length: number
  /** When what is open has settled, on the monotonic clock. */
  readonly settledAt: number
  timer?: NodeJS.Timeout
}

/** Goes on looking for what went unanswered, also when nobody waits for it. It holds no content that is kept elsewhere. */
export class FollowUps {
  /** By their IDs. */
  private readonly present = new Map<string, FollowUp>()
  private held = 0
  private isPaused = false

  constructor(private readonly options: FollowUpOptions) {}

  /** A send has ended without an answer. */
  add(delivery: Delivery, store: Store, items: readonly ParsedItem[]): void {
    const { runtime: { openCalls }, keepsItems } = this.options
    const { id } = delivery
    this.end(id)
    if (this.present.size >= most || !delivery.inDoubt) return
    const length = keepsItems(store) ? 0 : lengthOf(items)
    if (this.held + length > mostHeld) return
    const settledAt = performance.now() + openCalls.leftOf(delivery, items)
    const followUp: FollowUp = { id, store, length, settledAt, ...length > 0 && { items } }
    this.present.set(id, followUp)
    this.held += length
    this.schedule(followUp, pausesBefore(followUp))
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

  /** Looks for nothing until `resume`. */
  pause(): void {
    this.isPaused = true
    for (const { timer } of this.present.values()) clearTimeout(timer)
  }

  /** Goes on, from the first look. */
  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    for (const followUp of this.present.values()) this.schedule(followUp, pausesBefore(followUp))
  }

  /** @param pauses before each look, in milliseconds after the one before */
  private schedule(followUp: FollowUp, [pause, ...further]: readonly number[]): void {
    if (this.isPaused || this.present.get(followUp.id) !== followUp) return
    if (pause === undefined) {
      this.end(followUp.id)
      return
    }
    followUp.timer = setTimeout(() => {
      void this.look(followUp).then(
        () => this.schedule(followUp, further),
        // The bot is offline, the queue is full or paused, or the database is away; or it is not known any more what was to be sent.
        (error: unknown) => this.schedule(followUp, RelayError.from(error).code === 'not-found' ? further : [retryPause, ...further]),
      )
    }, pause)
    followUp.timer.unref()
  }

  private end(id: string): void {
    const followUp = this.present.get(id)
    if (!followUp) return
    clearTimeout(followUp.timer)
    this.present.delete(id)
    this.held -= followUp.length
  }

  private async look({ id, store, items }: FollowUp): Promise<void> {
    const { runtime: { policy, port }, readItems, sendAgain } = this.options
    const delivery = await store.get(id)
    if (delivery?.state !== 'unanswered') {
      this.end(id)
      return
    }
    const content = items ?? await readItems(id)
    if (!port.find(delivery.bot)?.isOnline) throw new RelayError('unsent')
    const mayRepeat = await this.reconcile(delivery, store, content)
    // The calls that were made count, whoever made them; those of a process that was killed are not among the attempts.
    const made = Math.max(delivery.attempts, delivery.inDoubt?.calls ?? 0)
    if (mayRepeat && delivery.deferred && made <= policy.retries) await sendAgain(delivery)
  }
}

/** The times between looks, and before the first. */
function pausesBefore({ settledAt }: FollowUp): number[] {
  const settling = settledAt - performance.now()
  const times = [...looks, ...settling > 0 ? [settling + margin] : []].sort((a, b) => a - b)
  return times.map((time, index) => time - (times[index - 1] ?? 0))
}

function lengthOf(items: readonly ParsedItem[]): number {
  return items.reduce((sum, item) => {
    if (item instanceof RelayError || !('text' in item || 'link' in item)) return sum
    return sum + ('text' in item ? item.text.length : item.link.kind === 'data' ? item.link.base64.length : 0)
  }, 1)
}
