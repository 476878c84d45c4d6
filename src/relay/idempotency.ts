import { RelayError } from '../errors'
import { digest } from '../lib/crypto'
import { isUnfinished, type Delivery, type Idempotency } from './delivery/delivery'
import { fingerprintOf } from './delivery/fingerprint'
import { keyConflict, type Submission, type Submitted } from './delivery/submission'
import type { Intake } from './intake'
import type { Repeats } from './repeats'
import type { Runtime } from './sending/runtime'
import { guard } from './store/store'
import type { Stores } from './stores'

/** How long an Idempotency-Key lives, in milliseconds. */
export const keyLifetime = 24 * 60 * 60 * 1000
/** In the place of the digest of a request, where it does not count what the request means. */
const anything = 'anything'

/** The requests with an Idempotency-Key: each key is good for one delivery, and whoever repeats it is told what became of that. */
export class KeyedRequests {
  /** The keys of requests under way, with the digests of what they mean; `end` is when it is known what became of them. */
  private readonly underWay = new Map<string, { fingerprint: string, end: Promise<void> }>()

  constructor(
    private readonly runtime: Pick<Runtime, 'clock' | 'digestUpload' | 'openCalls'>, private readonly stores: Stores,
    private readonly intake: Intake, private readonly repeats: Repeats,
  ) {}

  /**
   * Sends what a request asks for, unless its key says that this was done before.
   *
   * @param text its Idempotency-Key
   * @throws RelayError `in-progress`, `key-reused`, `key-unknown`, or what stops the request as such
   */
  async submit(submission: Submission, text: string): Promise<Submitted> {
    const key = digestKey(submission.caller ?? null, text)
    const fingerprint = submission.event ? anything : await fingerprintOf(submission.request, this.runtime.digestUpload)
    // Whoever tells of an event again is told what became of it.
    while (submission.event && this.underWay.has(key)) await this.underWay.get(key)?.end
    const other = this.underWay.get(key)
    if (other) throw keyConflict(other.fingerprint === fingerprint)
    const work = this.submitOnce(submission, { key, fingerprint })
    this.underWay.set(key, { fingerprint, end: work.then(() => undefined, () => undefined) })
    try {
      const { delivery, isReplay } = await work
      const settling = delivery.state === 'unanswered' ? this.runtime.openCalls.leftOf(delivery, submission.request.items) : 0
      return { delivery, isReplay, ...settling > 0 && { retryAfter: Math.ceil(settling / 1000) } }
    } finally {
      this.underWay.delete(key)
    }
  }

  private async submitOnce(submission: Submission, idempotency: Idempotency): Promise<Submitted> {
    const { event } = submission
    const earlier = await this.findByKey(idempotency.key, event?.lifetime)
    if (!earlier && event) return this.acceptEvent(submission, idempotency)
    if (!earlier) return { delivery: await this.intake.accept(submission, idempotency), isReplay: false }
    if (earlier.fingerprint !== idempotency.fingerprint) throw keyConflict(false)
    const isUnderWay = !earlier.deferred && isUnfinished(earlier.state)
    // Its caller did not wait for it.
    if (isUnderWay && this.intake.isInBackground(earlier.id)) return { delivery: earlier, isReplay: true }
    if (isUnderWay) {
      // In another process: nothing of this one has the key.
      const life = await guard(this.stores.storage?.lifeOf(earlier.id)) ?? 0
      if (life > 0 && event) return { delivery: earlier, isReplay: true }
      if (life > 0) throw keyConflict(true, life)
    }
    return isUnderWay || earlier.state === 'unanswered' ? this.repeats.ofKey(submission, earlier) : { delivery: earlier, isReplay: true }
  }

  /** Accepts what tells of an event, unless another process has just done so. */
  private async acceptEvent(submission: Submission, idempotency: Idempotency): Promise<Submitted> {
    try {
      return { delivery: await this.intake.accept(submission, idempotency), isReplay: false }
    } catch (thrown) {
      const isTold = thrown instanceof RelayError && thrown.code === 'in-progress'
      const delivery = isTold ? await this.findByKey(idempotency.key, submission.event?.lifetime) : undefined
      if (!delivery) throw thrown
      return { delivery, isReplay: true }
    }
  }

  private async findByKey(key: string, lifetime = keyLifetime): Promise<Delivery | undefined> {
    const { memory, storage } = this.stores
    const oldest = this.runtime.clock.now() - lifetime
    const remembered = memory.findByKey(key)
    if (remembered && remembered.createdAt > oldest) return remembered
    memory.releaseKey(key)
    const store = storage?.store
    // Whether a first request has sent anything is not known then.
    const stored = await guard(store?.findByKey(key), 'key-unknown')
    // What became of it is not written down yet, and would be once it is another delivery's key.
    if (stored && memory.get(stored.id)) throw new RelayError('key-unknown')
    if (!stored || stored.createdAt > oldest) return stored
    await guard(store?.releaseKey(key))
  }
}

/** What an Idempotency-Key is known by. No two callers have one in common: neither a key nor a name has a line break in it. */
function digestKey(caller: string | null, key: string): string {
  return caller === null ? digest(key) : digest(`${caller}\n`, key)
}
