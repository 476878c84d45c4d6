import { LRUCache } from 'lru-cache'
import { RelayError } from '../../errors'
import { hash } from '../../lib/crypto'
import { day } from '../../lib/time'
import type { ParsedItem } from '../../message/model'
import { platformOf } from '../../message/target'
import { toEntry, type Entry } from '../delivery/deliveries'
import { again, failureOf, isRetryable, isUnfinished, type Delivery, type ItemResult } from '../delivery/delivery'
import type { AdmitRetry, Submission, Submitted } from '../options'
import { queueOf } from '../queue/queue'
import type { EntryContext } from '../queue/queues'
import { currentWay, firstWay } from '../queue/ways'
import { checkItems } from '../send/fit'
import { fingerprintOf } from './fingerprint'
import { defaultExpiry, type Intake } from './intake'
import { requeue, type Recheck } from './recheck'
import { say, type Text } from '../../texts/text'

/** The lifetime of an Idempotency-Key, in milliseconds. The purge keeps rows as long. */
const keyLifetime = day
/** How long a refusal by a chat is repeated without a call, in milliseconds, and for how many keys. */
const refusalLifetime = 5 * 60 * 1000
const mostRefusals = 10_000
/** The fingerprint of every event: their content is not compared. */
const anything = 'anything'

export interface KeysContext extends EntryContext {
  intake: Intake
  recheck: Recheck
}

/** Handles requests with an Idempotency-Key, which may be repeated, and retries by operators. */
export class Keys {
  /** Deliveries refused because of their chat or account, by the hashes of Idempotency-Keys that are free again. */
  private readonly refused = new LRUCache<string, { delivery: Delivery, at: number }>({ maxSize: mostRefusals, sizeCalculation: () => 1 })

  constructor(private readonly context: KeysContext) {}

  /**
   * Carries out a request, unless an earlier one with its Idempotency-Key did.
   *
   * @param text the Idempotency-Key
   * @throws RelayError `in-progress`, `key-reused`, or the reason why the request is refused as a whole
   */
  async submit(submission: Submission, text: string): Promise<Submitted> {
    const { clock, files, intake, recheck } = this.context
    const { caller = null, event, request } = submission
    // Idempotency-Keys of different callers differ, because neither they nor names contain a line break.
    const key = caller === null ? hash(text) : hash(`${caller}\n`, text)
    const fingerprint = event ? anything : await fingerprintOf(request, id => files.hash(id))
    // From here until the delivery is in memory nothing waits, so that no other request with the key comes in between.
    const earlier = this.find(key, event?.lifetime) ?? this.refusalOf(key, fingerprint)
    let submitted: Submitted
    if (earlier) {
      submitted = await this.repeat(submission, earlier, fingerprint)
    } else {
      submitted = { delivery: await intake.accept(submission, { key, fingerprint }), isReplay: false }
      if (submitted.delivery.results.some(isOfChat)) this.refused.set(key, { delivery: submitted.delivery, at: clock.now() })
    }
    const settling = submitted.delivery.state === 'unanswered' ? recheck.settling(submitted.delivery) : 0
    return settling > 0 ? { ...submitted, retryAfter: Math.ceil(settling / 1000) } : submitted
  }

  /** Answers a request from an earlier one with the same Idempotency-Key. */
  private async repeat(submission: Submission, earlier: Delivery, fingerprint: string): Promise<Submitted> {
    if (earlier.fingerprint !== fingerprint) throw new RelayError('key-reused')
    const isUnderWay = isUnfinished(earlier.state) && !earlier.deferred
    if (isUnderWay && !submission.event) throw new RelayError('in-progress', undefined, { headers: { 'retry-after': '1' } })
    if (earlier.state === 'unanswered') return this.resend(submission, earlier)
    // It may have been accepted a moment ago.
    await this.context.store.flushed()
    return { delivery: earlier, isReplay: true }
  }

  /** Repeats the refusal of a chat or account, so that callers who repeat a request do not cause calls into a closed chat. */
  private refusalOf(key: string, fingerprint: string): Delivery | undefined {
    const { clock, gates } = this.context
    const { delivery, at } = this.refused.get(key) ?? {}
    const isSame = delivery?.fingerprint === fingerprint && at !== undefined && clock.now() - at < refusalLifetime
    return isSame && gates.isShut(queueOf(delivery)) ? delivery : undefined
  }

  /** The delivery that has this Idempotency-Key. @throws RelayError `store-down`, `storage-full` */
  private find(key: string, lifetime = keyLifetime): Delivery | undefined {
    const { deliveries, clock } = this.context
    try {
      const known = this.holderOf(key)
      if (!known || deliveries.get(known.id)) return known
      const { createdAt, flow: { sendAt = 0 } } = known
      if (Math.max(createdAt, sendAt) > clock.wall() - lifetime) return known
      deliveries.freeKey(known)
    } catch (error) {
      // An earlier request may have sent the message.
      throw RelayError.from(error).with({ outcome: null })
    }
  }

  private holderOf(key: string): Delivery | undefined {
    const { deliveries } = this.context
    const entry = deliveries.findByKey(key)
    if (entry?.delivery.key === key) return entry.delivery
    // Its end freed the Idempotency-Key, which the file does not know yet.
    if (entry) deliveries.write()
    return deliveries.table.findByKey(key)
  }

  /** Answers for an unanswered first request: with the result of a look-up, or by sending the missing items once that is safe. */
  private async resend(submission: Submission, earlier: Delivery): Promise<Submitted> {
    const { deliveries, recheck, clock, intake, policy } = this.context
    const { request: { expiresIn }, admit, signal, deferred } = submission
    const entry = deliveries.find(earlier.id) ?? toEntry(earlier)
    const { delivery } = entry
    const replay: Submitted = { delivery, isReplay: true }
    if (!await recheck.look(entry).catch(() => false) || delivery.state !== 'unanswered') return replay
    admit?.({ target: delivery.target, platform: platformOf(delivery.bot) ?? '' }, 0)
    const isLater = delivery.deferred
    const change = { ...again(delivery, intake.nextSeq()), ...isLater && { expiresAt: clock.wall() + (expiresIn ?? defaultExpiry) } }
    let queued: Entry
    try {
      queued = requeue(this.context, entry, change, isLater ? {} : { signal, patience: expiresIn })
    } catch {
      // Even if the queue or the file refuses the repeat, the first request may have arrived.
      return replay
    }
    // Without a wait of its own, the repeat waits until the deferred delivery should have been sent.
    const limit = isLater ? deferred?.wait ?? policy.timeout * (policy.retries + 1) : undefined
    return { delivery: await deliveries.ended(queued, limit, signal?.()), isReplay: false }
  }

  /**
   * Sends the items of a delivery again that were not delivered. Unanswered ones are looked up first.
   *
   * @param admit called before any change, with the target and the items to send; may throw to refuse
   * @throws RelayError `not-found`, `conflict`, `unsent`, `store-down`, `storage-full`, or what `admit` throws
   */
  async retry(id: string, admit: AdmitRetry): Promise<void> {
    const { deliveries, clock, store } = this.context
    deliveries.write()
    const items = deliveries.find(id)?.items ?? deliveries.table.items(id) ?? []
    // An item whose file is gone fails at its turn.
    await deliveries.keepUploads(items, clock.wall() + defaultExpiry).catch(() => undefined)
    this.retryNow(id, items, admit)
    await store.flushed()
  }

  private retryNow(id: string, items: readonly ParsedItem[], admit: AdmitRetry): void {
    const { deliveries, port, clock, intake, recheck } = this.context
    const known = deliveries.find(id)
    const delivery = known?.delivery ?? deliveries.table.find(id)
    if (!delivery) throw new RelayError('not-found')
    const obstacle = obstacleTo(delivery)
    if (obstacle !== undefined) throw new RelayError('conflict', obstacle)
    const requestKey = this.keyFor(delivery)
    if (items.length === 0) throw new RelayError('conflict', say('content-not-kept'))
    const seconds = Math.ceil(recheck.settling(delivery) / 1000)
    if (seconds > 0) {
      throw new RelayError('conflict', say('still-carried-out', { seconds }), { headers: { 'retry-after': String(seconds) } })
    }
    const first = delivery.state === 'unanswered' ? {} : firstWay(delivery, way => port.candidate(way) !== undefined)
    const next = { ...delivery, ...first }
    if (next.bot === '') {
      const account = port.choose(currentWay(next.flow.route) ?? {}, true)
      checkItems(account, next, items)
      next.bot = account.sid
    }
    admit({ target: next.target, platform: platformOf(next.bot) ?? '' }, items.filter((_, index) => !delivery.results[index]?.success))
    const change = {
      ...again(delivery, intake.nextSeq()), ...first,
      bot: next.bot, deferred: true, expiresAt: clock.wall() + defaultExpiry, key: requestKey,
    }
    requeue(this.context, known ?? toEntry(delivery, items), change, { delay: 'failed' })
  }

  /** The key that a retried delivery takes again; `null` if another request has it. @throws RelayError `conflict` */
  private keyFor({ id, requestKey: key, fingerprint }: Delivery): string | null {
    const holder = key === undefined ? undefined : this.holderOf(key)
    if (key === undefined || !holder || holder.id === id) return key ?? null
    if (holder.fingerprint !== fingerprint) return null
    throw new RelayError('conflict', say('same-key-again', { id: holder.id }))
  }
}

/** The error for a delivery that cannot be sent again. */
function obstacleTo({ state, flow: { members, digest } }: Delivery): Text | undefined {
  if (!isRetryable(state)) return say('retry-only-undelivered', { state })
  if (members && state !== 'unanswered') return say('retry-members')
  if (digest && state === 'unanswered') return say('retry-digest', { id: digest.id })
}

/** Whether an item was refused because of its chat or account. */
function isOfChat(result: ItemResult | undefined): boolean {
  const failure = failureOf(result)
  return failure !== undefined && (failure.isAboutTarget || failure.about === 'account')
}
