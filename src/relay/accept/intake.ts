import { demand, RelayError } from '../../errors'
import { httpPlatform, type MessageRequest, type ParsedItem } from '../../message/model'
import { checkItems, fitTexts } from '../send/compose'
import type { Active } from '../delivery/deliveries'
import { createDelivery, failRest, partsFor, type Delivery, type Idempotency } from '../delivery/delivery'
import { later, reasonOf } from '../queue/gates'
import { queueOf } from '../queue/queue'
import type { EntryContext } from '../queue/queues'
import type { Submission } from '../options'
import { currentWay, nextWay } from '../queue/ways'

/** The default lifetime of a deferred or retried delivery, in milliseconds. */
export const defaultExpiry = 24 * 60 * 60 * 1000

/** Turns submissions into deliveries and enters them into queues. */
export class Intake {
  private last: number

  /** @param last the highest sequence number in the journal */
  constructor(private readonly context: EntryContext, last: number) {
    this.last = last
  }

  /** The next place in the order of acceptance. */
  nextSeq(): number {
    return ++this.last
  }

  /**
   * Accepts a submission, and waits for the end of its delivery as long as the caller does.
   *
   * @param idempotency its key. No delivery in memory has the same one.
   * @throws RelayError the reason why the request is refused as a whole
   */
  async accept(submission: Submission, idempotency?: Idempotency): Promise<Delivery> {
    const { clock, port, deliveries, gates, recordContent } = this.context
    const { id, request, caller = null, door, deferred } = submission
    const { route } = request
    if ((request.sendAt ?? (deferred && deferred.inMemory === undefined)) && !deliveries.isDurable) throw new RelayError('no-database')
    const delivery = createDelivery({ id, caller, door, recordContent }, this.nextSeq(), clock.wall(), request, idempotency)
    let active: Active
    try {
      active = this.place(submission, delivery)
    } catch (thrown) {
      deliveries.forget(delivery.id)
      const error = RelayError.from(thrown)
      const way = currentWay(delivery.flow.route) ?? request.bot
      const isAny = way.platform === undefined && way.selfId === undefined
      // A retry has to use the bot that was asked for, also if that is offline now.
      if (!isAny) delivery.bot = port.candidate(way)?.sid ?? ''
      // Without a bot, a retry may use any: if the one that was asked for is missing, the content is not kept, so that nobody can retry it.
      const isSure = isAny || delivery.bot !== '' || route !== undefined
      // A retry sends the texts as they are kept, through any bot.
      const kept = this.fit(request, delivery, port.find(delivery.bot) ?? { longestText: Infinity, takesFiles: true })
      // Without an outcome the request was never a delivery, and has no record.
      if (error.outcome) deliveries.reject(delivery, isSure ? kept : [], error)
      throw error
    }
    if (!delivery.deferred || deferred) return this.waitFor(submission, active)
    // The caller waits as long as the first way may take, and not for a deferral.
    const wait = route && !gates.deferral(queueOf(delivery), delivery) ? route.after : 0
    return this.waitFor({ ...submission, deferred: { wait } }, active)
  }

  /**
   * Enters a delivery into a queue: that of the first way that accepts it.
   *
   * @throws RelayError why the last way refuses it
   */
  private place(submission: Submission, delivery: Delivery): Active {
    const { clock } = this.context
    for (;;) {
      try {
        return this.placeOnce(submission, delivery)
      } catch (error) {
        const next = nextWay(delivery, failRest(delivery, RelayError.from(error)), clock.wall())
        if (!next) throw error
        Object.assign(delivery, next)
      }
    }
  }

  private placeOnce({ request, admit, signal, deferred }: Submission, delivery: Delivery): Active {
    const { clock, port, deliveries, gates, queues } = this.context
    const { expiresIn, sendAt } = request
    const { target, flow: { route } } = delivery
    const bot = currentWay(route) ?? request.bot
    demand(route !== undefined || bot.platform !== httpPlatform, 'an HTTP address is reached by its name only')
    // Scheduled times and quiet hours do not depend on the queue, which is not known yet.
    let isLater = (sendAt ?? deferred ?? route ?? gates.deferral('', delivery)) !== undefined && deliveries.isDurable
    const account = port.choose(bot, isLater)
    const items = this.fit(request, delivery, account)
    admit?.({ target, platform: account.platform }, items.length - request.items.length)
    const checked = checkItems(account, delivery, items)
    delivery.bot = account.sid
    const hold = gates.deferral(queueOf(delivery), delivery)
    if (hold && !deliveries.isDurable) {
      const reason = `${reasonOf(hold, delivery.flow)}, and without a database nothing waits that long: nothing was sent`
      throw later('unsent', hold.until - clock.wall(), reason, hold.until)
    }
    isLater ||= hold !== undefined || (deliveries.isDurable && queues.awaitsDigest(delivery))
    const start = Math.max(delivery.createdAt, sendAt?.at ?? 0)
    if (isLater) Object.assign(delivery, { deferred: true, expiresAt: start + (expiresIn ?? defaultExpiry) })
    // With a route, each way checks the items itself.
    const active = deliveries.add(delivery, route ? items : checked)
    queues.enter(active, isLater ? {} : { signal: deferred ? undefined : signal, patience: expiresIn })
    return active
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

  /** Saves a durable delivery, and waits as long as the caller does. */
  private async waitFor({ deferred, signal }: Submission, active: Active): Promise<Delivery> {
    const { deliveries, queues, enter } = this.context
    const { delivery, items = [] } = active
    if (active.isDurable) {
      try {
        if (delivery.expiresAt !== null) {
          await deliveries.keepUploads(items, delivery.expiresAt).catch((error: unknown) => {
            // In a batch, only the item with the missing file fails, at its turn.
            if (delivery.mode === 'single') throw error
          })
        }
        await deliveries.insert(active)
      } catch (error) {
        queues.giveUp(delivery)
        deliveries.forget(delivery.id)
        throw error
      }
      // The answer shows the delivery as accepted. If this relay stops, the next owner sends it.
      const accepted = { ...delivery }
      queues.saved(active)
      if (deferred?.wait === 0) return accepted
      if (deferred) {
        return deliveries.ended(active, deferred.wait, signal?.()).catch((error: unknown) => {
          // It was withdrawn.
          if (error instanceof RelayError && error.outcome) throw error
          return accepted
        })
      }
    }
    if (!deferred) return deliveries.ended(active)
    const end = enter()
    void deliveries.ended(active).catch(() => undefined).then(end)
    return deliveries.ended(active, deferred.inMemory ?? 0)
  }
}
