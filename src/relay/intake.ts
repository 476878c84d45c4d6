import { RelayError } from '../errors'
import type { MessageRequest } from '../message/model'
import type { Active, Deliveries } from './deliveries'
import { createDelivery, failRest, type Delivery, type Idempotency } from './delivery'
import { later, reasonOf, type Gates } from './gates'
import { laneOf } from './lane'
import type { Lanes } from './lanes'
import { fitTexts } from './long-text'
import type { RelayOptions, Submission } from './options'
import { currentRung, nextRung } from './route'
import { summarize } from './summary'

/** After which time a deferred delivery, or one that is sent again, is dropped unless its request says otherwise, in milliseconds. */
export const defaultExpiry = 24 * 60 * 60 * 1000

/** What accepting needs of the rest of the core. */
export interface IntakeContext extends RelayOptions {
  deliveries: Deliveries
  gates: Gates
  lanes: Lanes
}

/** Makes submissions deliveries and gives each its place in a lane. */
export class Intake {
  private last: number

  /** @param last the highest sequence number that the journal has */
  constructor(private readonly context: IntakeContext, last: number) {
    this.last = last
  }

  /** The next place in the order of acceptance. */
  nextSeq(): number {
    return ++this.last
  }

  /**
   * Accepts a submission, and waits for its end as long as its caller wants to.
   *
   * @param idempotency its key, which no other delivery has in memory
   * @throws RelayError why the request as a whole is stopped
   */
  async accept(submission: Submission, idempotency?: Idempotency): Promise<Delivery> {
    const { clock, deliveries, gates, recordContent } = this.context
    const { id, request, caller = null, door, deferred } = submission
    const { items, bot, route } = request
    if ((request.sendAt ?? (deferred && deferred.inMemory === undefined)) && !deliveries.isDurable) throw new RelayError('no-database')
    const origin = { id, caller, door, summary: summarize(items, recordContent) }
    const delivery = createDelivery(origin, this.nextSeq(), clock.wall(), request, idempotency)
    const draft = { request }
    let active: Active
    try {
      active = this.place(submission, draft, delivery)
    } catch (thrown) {
      deliveries.forget(delivery.id)
      const error = RelayError.from(thrown)
      // Without an outcome it was no delivery at all.
      // What asked for a bot that was not there cannot be sent again by another one.
      const isSure = delivery.bot !== '' || route !== undefined || (bot.platform === undefined && bot.selfId === undefined)
      // What is sent again later leaves as it is kept, through whatever bot is there.
      if (delivery.bot === '') this.fit(draft, request, delivery, { longestText: Infinity, takesFiles: true })
      if (error.outcome) deliveries.reject(delivery, isSure ? draft.request.items : [], error)
      throw error
    }
    if (!delivery.deferred || deferred) return this.waitFor(submission, active)
    // Its ways may take as long as the first of them has. What must wait for its time is not waited for.
    const wait = route && !gates.deferral(laneOf(delivery), delivery) ? route.after : 0
    return this.waitFor({ ...submission, deferred: { wait } }, active)
  }

  /**
   * Gives a delivery a place in a lane: of several ways, that of the first one that takes it.
   *
   * @param draft gets the request with texts as long as that way takes them
   * @throws RelayError why the only way, or the last one, does not
   */
  private place(submission: Submission, draft: { request: MessageRequest }, delivery: Delivery): Active {
    const { clock } = this.context
    for (;;) {
      try {
        return this.placeOnce(submission, draft, delivery)
      } catch (error) {
        const next = nextRung(delivery, failRest(delivery, RelayError.from(error)), clock.wall())
        if (!next) throw error
        Object.assign(delivery, next)
      }
    }
  }

  private placeOnce({ request, admit, signal, deferred }: Submission, draft: { request: MessageRequest }, delivery: Delivery): Active {
    const { clock, port, deliveries, gates, lanes } = this.context
    const { expiresIn, sendAt } = request
    const { target, flow: { route } } = delivery
    const bot = (route && currentRung(route)) ?? request.bot
    // Neither a time nor quiet hours are those of a lane.
    let isLater = (sendAt ?? deferred ?? route ?? gates.deferral('', delivery)) !== undefined && deliveries.isDurable
    const account = isLater ? port.chooseLater(bot) : port.choose(bot)
    const { items, mode } = this.fit(draft, request, delivery, account)
    admit?.({ target, platform: account.platform }, items.length - request.items.length)
    const checked = account.check(target, items)
    if (mode === 'single') for (const item of checked) if (item instanceof RelayError) throw item
    delivery.bot = account.sid
    const hold = gates.deferral(laneOf(delivery), delivery)
    if (hold && !deliveries.isDurable) {
      const reason = `${reasonOf(hold, delivery.flow)}, and without a database nothing waits that long: nothing was sent`
      throw later('unsent', hold.until - clock.wall(), reason, hold.until)
    }
    isLater ||= hold !== undefined || (deliveries.isDurable && lanes.awaitsDigest(delivery))
    const start = Math.max(delivery.createdAt, sendAt?.at ?? 0)
    if (isLater) Object.assign(delivery, { deferred: true, expiresAt: start + (expiresIn ?? defaultExpiry) })
    // Another way may take what this one cannot.
    const active = deliveries.add(delivery, route ? items : checked)
    lanes.enter(active, isLater ? {} : { signal: deferred ? undefined : signal, patience: expiresIn })
    return active
  }

  /** Makes the texts of a request as long as an account takes them. @throws RelayError `bad-request` */
  private fit(
    draft: { request: MessageRequest }, request: MessageRequest, delivery: Delivery, account: Parameters<typeof fitTexts>[1],
  ): MessageRequest {
    const { longText, recordContent } = this.context
    const before = draft.request
    const { items, mode } = draft.request = fitTexts(request, account, longText)
    if (draft.request !== before) {
      Object.assign(delivery, { mode, results: items.map(() => undefined), summary: summarize(items, recordContent) })
    }
    return draft.request
  }

  /** Writes down what must last, and waits as long as the caller wants to. */
  private async waitFor({ deferred, signal }: Submission, active: Active): Promise<Delivery> {
    const { deliveries, lanes, enter } = this.context
    const { delivery, items = [] } = active
    if (active.mustLast) {
      try {
        if (delivery.expiresAt !== null) {
          await deliveries.keepUploads(items, delivery.expiresAt).catch((error: unknown) => {
            // In a batch, the item fails in its turn.
            if (delivery.mode === 'single') throw error
          })
        }
        await deliveries.insert(active)
      } catch (error) {
        lanes.leave(delivery)
        deliveries.forget(delivery.id)
        throw error
      }
      // The answer tells what was accepted, not what has become of it since. What this relay cannot end any more, the next owner sends.
      const accepted = { ...delivery }
      lanes.saved(active)
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
