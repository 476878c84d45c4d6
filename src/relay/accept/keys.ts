import { LRUCache } from 'lru-cache'
import { RelayError } from '../../errors'
import { hash } from '../../lib/crypto'
import { platformOf } from '../../message/target'
import { checkItems } from '../send/compose'
import type { Active } from '../delivery/deliveries'
import { again, failureOf, isRetryable, isUnfinished, type Delivery, type Idempotency, type ItemResult } from '../delivery/delivery'
import { fingerprintOf } from './fingerprint'
import { defaultExpiry, type Intake } from './intake'
import { orStoreDown, type Journal } from '../journal'
import { queueOf } from '../queue/queue'
import type { EntryContext, Waiting } from '../queue/queues'
import type { AdmitRetry, Submission, Submitted } from '../options'
import { isChanging, requeue, type Recheck } from '../look-up/recheck'
import { currentWay, firstWay } from '../queue/ways'

/** The lifetime of an Idempotency-Key, in milliseconds. The journal's purge keeps keys as long. */
const keyLifetime = 24 * 60 * 60 * 1000
/** How long a refusal by a chat is repeated without a call, in milliseconds, and for how many keys. */
const refusalLifetime = 5 * 60 * 1000
const mostRefusals = 10_000
/** The fingerprint of every event: their content is not compared. */
const anything = 'anything'

export interface ReplayContext extends EntryContext {
  journal: Journal
  intake: Intake
  recheck: Recheck
}

/** Handles repeated requests with an Idempotency-Key, and retries by operators. */
export class Replay {
  /** The fingerprints of present requests by their keys. */
  private readonly underWay = new Map<string, { fingerprint: string, end: Promise<unknown> }>()
  private readonly retrying = new Set<string>()
  /** Deliveries refused because of their chat or account, by keys that are free again. */
  private readonly refused = new LRUCache<string, { delivery: Delivery, at: number }>({ maxSize: mostRefusals, sizeCalculation: () => 1 })

  constructor(private readonly context: ReplayContext) {}

  /**
   * Carries out a request, unless an earlier one with its key did.
   *
   * @param text the Idempotency-Key
   * @throws RelayError `in-progress`, `key-reused`, `key-unknown`, or the reason why the request is refused as a whole
   */
  async submit(submission: Submission, text: string): Promise<Submitted> {
    const { caller = null, event, request } = submission
    // Keys of different callers differ, because neither keys nor names contain a line break.
    const key = caller === null ? hash(text) : hash(`${caller}\n`, text)
    const fingerprint = event ? anything : await fingerprintOf(request, id => this.context.files.hash(id))
    for (let other = this.underWay.get(key); other; other = this.underWay.get(key)) {
      if (!event) throw other.fingerprint === fingerprint ? inProgress() : new RelayError('key-reused')
      await other.end
    }
    const work = this.submitOnce(submission, { key, fingerprint })
    this.underWay.set(key, { fingerprint, end: work.catch(() => undefined) })
    try {
      const submitted = await work
      const settling = submitted.delivery.state === 'unanswered' ? this.context.recheck.settling(submitted.delivery) : 0
      return settling > 0 ? { ...submitted, retryAfter: Math.ceil(settling / 1000) } : submitted
    } finally {
      this.underWay.delete(key)
    }
  }

  private async submitOnce(submission: Submission, idempotency: Idempotency): Promise<Submitted> {
    const { clock, intake } = this.context
    const replay = await this.repeat(submission, idempotency)
    if (replay) return replay
    const delivery = await intake.accept(submission, idempotency)
    if (delivery.results.some(isOfChat)) this.refused.set(idempotency.key, { delivery, at: clock.now() })
    return { delivery, isReplay: false }
  }

  /** Answers a request from an earlier one with the same key; `undefined` if there is none. */
  private async repeat(submission: Submission, idempotency: Idempotency): Promise<Submitted | undefined> {
    const { event } = submission
    const earlier = await this.find(idempotency.key, event?.lifetime) ?? this.refusalOf(idempotency)
    if (!earlier) return
    if (earlier.fingerprint !== idempotency.fingerprint) throw new RelayError('key-reused')
    const isUnderWay = isUnfinished(earlier.state) && !earlier.deferred
    if (isUnderWay && !event) throw inProgress()
    return earlier.state === 'unanswered' ? this.resend(submission, earlier) : { delivery: earlier, isReplay: true }
  }

  /** Repeats the refusal of a chat or account, so that callers who repeat a request do not cause calls into a closed chat. */
  private refusalOf({ key, fingerprint }: Idempotency): Delivery | undefined {
    const { clock, gates } = this.context
    const { delivery, at } = this.refused.get(key) ?? {}
    const isSame = delivery?.fingerprint === fingerprint && at !== undefined && clock.now() - at < refusalLifetime
    return isSame && gates.isShut(queueOf(delivery)) ? delivery : undefined
  }

  /** The delivery that has this key. @throws RelayError `in-progress`, `key-unknown` */
  private async find(key: string, lifetime = keyLifetime): Promise<Delivery | undefined> {
    const { deliveries, journal, clock } = this.context
    const active = deliveries.findByKey(key)
    if (active) return this.checkActive(active, key)
    const earlier = await orStoreDown(journal.findByKey(key), 'key-unknown')
    if (!earlier) return
    // Unended deliveries are in memory. A late row of an earlier term may still be cancelled by that term.
    if (isUnfinished(earlier.state)) throw inProgress()
    const { createdAt, flow: { sendAt = 0 } } = earlier
    if (Math.max(createdAt, sendAt) > clock.wall() - lifetime) return earlier
    await orStoreDown(deliveries.freeKey(earlier), 'key-unknown')
  }

  private checkActive(active: Active, key: string): Delivery {
    const { deliveries } = this.context
    const { delivery } = active
    // The row is being cancelled, or the end that frees the key is being written.
    if (!deliveries.get(delivery.id) || delivery.key !== key) throw inProgress()
    // Another relay may have sent the message.
    if (!isUnfinished(delivery.state) && !deliveries.mayCall(active)) throw new RelayError('key-unknown')
    return delivery
  }

  /** Answers for an unanswered first request: with the result of a look-up, or by sending the missing items once that is safe. */
  private async resend(submission: Submission, earlier: Delivery): Promise<Submitted> {
    const { deliveries, recheck, clock, intake, policy } = this.context
    const { request: { expiresIn }, admit, signal, deferred } = submission
    const active = deliveries.find(earlier.id) ?? deliveries.toActive(earlier)
    const { delivery } = active
    const replay: Submitted = { delivery, isReplay: true }
    if (!await recheck.look(active).catch(() => false) || delivery.state !== 'unanswered') return replay
    admit?.({ target: delivery.target, platform: platformOf(delivery.bot) ?? '' }, 0)
    const isLater = delivery.deferred
    const change = { ...again(delivery, intake.nextSeq(), true), ...isLater && { expiresAt: clock.wall() + (expiresIn ?? defaultExpiry) } }
    const waiting: Waiting = isLater ? {} : { signal: deferred ? undefined : signal, patience: expiresIn }
    // Even if the queue or the journal refuses the repeat, the first request may have arrived.
    const queued = await requeue(this.context, active, change, waiting).catch(() => undefined)
    if (!queued) return replay
    // Without a wait of its own, the repeat waits until the deferred delivery should have been sent.
    const patience = policy.timeout * (policy.retries + 1)
    const limit = isLater ? deferred?.wait ?? patience : deferred?.inMemory
    return { delivery: await deliveries.ended(queued, limit, signal?.()), isReplay: false }
  }

  /**
   * Sends the items of a delivery again that were not delivered. Unanswered ones are looked up first.
   *
   * @param admit called before any change, with the target and the items to send; may throw to refuse
   * @throws RelayError `not-found`, `conflict`, `unsent`, `store-down`, or what `admit` throws
   */
  async retry(id: string, admit: AdmitRetry): Promise<void> {
    if (this.retrying.has(id)) throw isChanging()
    this.retrying.add(id)
    try {
      await this.context.deliveries.written(id)
      await this.retryOnce(id, admit)
    } finally {
      this.retrying.delete(id)
    }
  }

  private async retryOnce(id: string, admit: AdmitRetry): Promise<void> {
    const { deliveries, journal, port, clock, intake, recheck } = this.context
    const known = deliveries.find(id)
    const delivery = known?.delivery ?? await orStoreDown(journal.find(id))
    if (!delivery) throw new RelayError('not-found')
    const obstacle = obstacleTo(delivery)
    if (obstacle !== undefined) throw new RelayError('conflict', obstacle)
    const requestKey = await this.keyFor(delivery)
    const items = known?.items ?? await orStoreDown(journal.items(id))
    if (!items?.length) throw new RelayError('conflict', 'the content of this delivery is not kept: send it as a new request')
    const seconds = Math.ceil(recheck.settling(delivery) / 1000)
    if (seconds > 0) {
      throw new RelayError('conflict', `the platform may still be carrying it out: try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
    }
    const first = delivery.state === 'unanswered' ? {} : firstWay(delivery, way => port.candidate(way) !== undefined)
    const next = { ...delivery, ...first }
    if (next.bot === '') {
      const account = port.choose(currentWay(next.flow.route) ?? {}, true)
      checkItems(account, next, items)
      next.bot = account.sid
    }
    admit({ target: next.target, platform: platformOf(next.bot) ?? '' }, items.filter((_, index) => !delivery.results[index]?.success))
    const isLater = deliveries.isDurable
    const expiresAt = isLater ? clock.wall() + defaultExpiry : null
    // An item whose file is gone fails at its turn.
    await deliveries.keepUploads(items, expiresAt ?? clock.wall()).catch(() => undefined)
    const change = { ...again(delivery, intake.nextSeq(), true), ...first, bot: next.bot, deferred: isLater, expiresAt, key: requestKey }
    await requeue(this.context, known ?? deliveries.toActive(delivery, items), change, { delay: 'failed' })
  }

  /** The key that a retried delivery takes again; `null` if another request has it. @throws RelayError `conflict` */
  private async keyFor({ id, requestKey: key, fingerprint }: Delivery): Promise<string | null> {
    if (key === undefined) return null
    if (this.underWay.has(key)) throw isChanging()
    const { deliveries, journal } = this.context
    const holder = deliveries.findByKey(key)?.delivery ?? await orStoreDown(journal.findByKey(key))
    if (!holder || holder.id === id) return key
    if (holder.fingerprint !== fingerprint) return null
    throw new RelayError('conflict', `the same request came again with its Idempotency-Key, as delivery ${holder.id}`)
  }
}

/** The error for a delivery that cannot be sent again. */
function obstacleTo({ state, flow: { members, digest } }: Delivery): string | undefined {
  if (!isRetryable(state)) return `this delivery is ${state}: only an undelivered one can be retried`
  if (members && state !== 'unanswered') return 'this is a digest that did not arrive: retry its members'
  if (digest && state === 'unanswered') return `this delivery left in the digest ${digest.id}: retry that one`
}

/** Whether an item was refused because of its chat or account. */
function isOfChat(result: ItemResult | undefined): boolean {
  const failure = failureOf(result)
  return failure !== undefined && (failure.isAboutTarget || failure.about === 'account')
}

/** The error for a request whose key is in use by a present one. */
function inProgress(): RelayError {
  return new RelayError('in-progress', undefined, { headers: { 'retry-after': '1' } })
}
