import { demand, RelayError } from '../../errors'
import { day } from '../../lib/time'
import { httpPlatform, type MessageRequest, type ParsedItem } from '../../message/model'
import { checkItems, fitTexts } from '../send/fit'
import type { Entry } from '../delivery/deliveries'
import { createDelivery, partsFor, type Delivery, type Idempotency } from '../delivery/delivery'
import { queueOf } from '../queue/queue'
import type { EntryContext } from '../queue/queues'
import type { Submission } from '../options'
import { currentWay, tryWays } from '../queue/ways'
import { say } from '../../texts/text'

/** The default lifetime of a deferred or retried delivery, in milliseconds. */
export const defaultExpiry = day

/** Turns submissions into deliveries and enters them into queues. */
export class Intake {
  private last: number

  /** @param last the highest sequence number in the file */
  constructor(private readonly context: EntryContext, last: number) {
    this.last = last
  }

  /** The next place in the order of acceptance. */
  nextSeq(): number {
    return ++this.last
  }

  /**
   * Keeps the uploaded files of a submission that may wait, before it is accepted.
   *
   * @returns `undefined` if there is nothing to wait for: then no other submission is to come in between
   * @throws RelayError `file-not-found`; in a batch, only the item with the missing file fails, at its turn
   */
  keepUploads({ request, deferred }: Submission): Promise<void> | undefined {
    const { clock, deliveries } = this.context
    const { items, mode, sendAt, expiresIn = defaultExpiry, route, policy } = request
    const mayWait = (sendAt ?? deferred ?? route ?? policy) !== undefined
    if (!mayWait || !items.some(item => 'link' in item && item.link.kind === 'upload')) return
    const kept = deliveries.keepUploads(items, Math.max(clock.wall(), sendAt?.at ?? 0) + expiresIn)
    return mode === 'single' ? kept : kept.catch(() => undefined)
  }

  /**
   * Accepts a submission, and waits for the end of its delivery as long as the caller does. Nothing waits before it is in memory, and what
   * is told to be accepted survives a power cut.
   *
   * @param idempotency its key. No delivery in memory has the same one.
   * @throws RelayError the reason why the request is refused as a whole
   */
  async accept(submission: Submission, idempotency?: Idempotency): Promise<Delivery> {
    const { deliveries, store } = this.context
    const { request, deferred, signal } = submission
    const entry = this.take(submission, idempotency)
    if (!entry.delivery.deferred) return deliveries.ended(entry)
    // Without a wait of its own, the caller waits as long as the first way may take, and not for a deferral.
    const wait = deferred?.wait ?? (entry.deferral ? 0 : request.route?.after ?? 0)
    // The answer shows the delivery as accepted. If this relay stops, the next one sends it.
    const accepted = { ...entry.delivery }
    await store.flushed().catch((cause: unknown) => {
      throw new RelayError('unanswered', say('disk-unconfirmed'), { cause })
    })
    if (wait === 0) return accepted
    return deliveries.ended(entry, wait, signal?.()).catch((error: unknown) => {
      // It was withdrawn.
      if (error instanceof RelayError && error.outcome) throw error
      return accepted
    })
  }

  /** Accepts a submission, and records a refusal. @throws RelayError */
  private take(submission: Submission, idempotency?: Idempotency): Entry {
    const { clock } = this.context
    const { id, caller = null, door } = submission
    const request = submission.complete?.(submission.request) ?? submission.request
    const delivery = createDelivery({ id, caller, door }, this.nextSeq(), clock.wall(), request, idempotency)
    try {
      return tryWays(delivery, clock, change => Object.assign(delivery, change), () => this.place({ ...submission, request }, delivery))
    } catch (thrown) {
      const error = RelayError.from(thrown)
      // Without an outcome the request was never a delivery, and has no record.
      if (error.outcome) this.reject(request, delivery, error)
      throw error
    }
  }

  /** Records a refusal, with the content if a retry can use the bot that was asked for, also if that is offline now. */
  private reject(request: MessageRequest, delivery: Delivery, error: RelayError): void {
    const { port, deliveries } = this.context
    const way = currentWay(delivery.flow.route) ?? request.bot
    const isAny = (way.platform ?? way.selfId) === undefined
    const bot = isAny ? port.find(delivery.bot) : port.candidate(way)
    // A retry sends the texts as they are kept, through any bot.
    const items = this.fit(request, delivery, bot ?? { longestText: Infinity, takesFiles: true })
    if (!isAny) delivery.bot = bot?.sid ?? ''
    const isKept = isAny || bot !== undefined || request.route !== undefined
    deliveries.reject(delivery, isKept ? items : [], error)
  }

  /** Puts a delivery into the queue of its present way. @throws RelayError why that does not take it */
  private place({ request, admit, signal, deferred }: Submission, delivery: Delivery): Entry {
    const { port, deliveries, gates, queues } = this.context
    const { expiresIn, sendAt } = request
    const { target, flow: { route } } = delivery
    const bot = currentWay(route) ?? request.bot
    demand(route !== undefined || bot.platform !== httpPlatform, say('http-by-name-only'))
    // Scheduled times and quiet hours do not depend on the queue, which is not known yet.
    let isLater = (sendAt ?? deferred ?? route ?? gates.deferral('', delivery)) !== undefined
    const account = port.choose(bot, isLater)
    const items = this.fit(request, delivery, account)
    admit?.({ target, platform: account.platform }, items.length - request.items.length)
    const checked = checkItems(account, delivery, items)
    delivery.bot = account.sid
    isLater ||= gates.deferral(queueOf(delivery), delivery) !== undefined || queues.awaitsDigest(delivery)
    const start = Math.max(delivery.createdAt, sendAt?.at ?? 0)
    if (isLater) Object.assign(delivery, { deferred: true, expiresAt: start + (expiresIn ?? defaultExpiry) })
    queues.demandRoom(delivery)
    // With a route, each way checks the items itself. The row and the place in the queue are made in one tick.
    const entry = deliveries.accept(delivery, route ? items : checked, request)
    queues.enter(entry, isLater ? {} : { signal, patience: expiresIn })
    return entry
  }

  /**
   * Fits the texts of a request to the longest message of an account, and the delivery to the items that come of it.
   *
   * @returns these items
   * @throws RelayError `bad-request`
   */
  private fit(request: MessageRequest, delivery: Delivery, account: Parameters<typeof fitTexts>[1]): readonly ParsedItem[] {
    const { longText, recordContent } = this.context
    const fitted = fitTexts(request, account, longText)
    Object.assign(delivery, partsFor(fitted, recordContent))
    return fitted.items
  }
}
