import { RelayError } from '../../errors'
import type { Entry } from '../delivery/deliveries'
import { failRest, isPassing, mayHaveArrived, outcomeOf, type Delivery, type Results } from '../delivery/delivery'
import type { Delay } from '../options'
import { checkItems } from '../send/fit'
import type { SendContext } from '../send/context'
import type { SendEnd } from '../send/send'
import { joins } from './bundle'
import type { Gates } from './gates'
import type { Queue, Waiting } from './queue'
import { currentWay, hasNextWay, nextWay, tryWays } from './ways'

/** The parts of the core that queues need. */
export interface QueuesContext extends SendContext {
  gates: Gates
}

/** The part of the queues that ends need. */
interface Line {
  demandRoom(delivery: Delivery, waiting: Waiting): void
  enter(entry: Entry, waiting: Waiting): void
  sift(queue: Queue, refusal: RelayError): void
}

/** Why a delivery is removed from its queue, and whether this ends it even where it has a further way. */
export interface Removal { error: RelayError, isFinal: boolean }

/** Carries out what follows from the end of a send, or of a wait. */
export class Ends {
  constructor(private readonly context: QueuesContext, private readonly queues: Line) {}

  /**
   * Carries out what follows from the end of a send: the delivery waits, goes on to its next way, or ends. A digest that could not leave
   * falls apart.
   *
   * @returns what the queue has to try again
   * @throws RelayError if a digest cannot be removed: its members must not leave beside it
   */
  conclude(queue: Queue, entry: Entry, end: SendEnd): readonly Entry[] {
    const { claims, deliveries, stop: { aborted: hasStopped } } = this.context
    const { delivery, delivery: { id, deferred, flow: { route } } } = entry
    const { results, failure } = end
    const members = deliveries.membersOf(delivery)
    const hasLeft = results.some(mayHaveArrived)
    if (hasLeft) this.noteLeft(queue, [entry, ...members])
    // Where the relay stops, the next one looks for open messages.
    const waits = deferred && results.some(result => isPassing(result) || (hasStopped && outcomeOf(result) === 'unanswered'))
    if (waits) this.noteUnsent(queue, end)
    if (members.length > 0 && !hasStopped && !hasLeft) {
      const isOfChat = !waits && failure?.last.isAboutTarget === true
      return this.dissolve(delivery, members, !waits, isOfChat ? failure.toRelayError() : undefined)
    }
    if (waits) {
      deliveries.postpone(entry, results)
      return [entry]
    }
    const left = route && !hasStopped ? this.goOn(entry, results) : results
    if (left) {
      deliveries.end(entry, left)
      if (!deliveries.get(id)) claims.written(queue.name, id, left)
    }
    return []
  }

  /** Digest intervals begin, and a queue that has caught up is not late any more. */
  private noteLeft(queue: Queue, left: readonly Entry[]): void {
    const { gates, digest: { backlog } } = this.context
    gates.digested(queue.name, left.map(({ delivery }) => delivery))
    if (!queue.delay) return
    const late = queue.entries.filter(({ since, delivery }) => since !== undefined && joins(delivery, queue.delay))
    if (late.length <= backlog) queue.delay = undefined
  }

  /** A deferred delivery could not leave for now, and nobody behind it could. A caller at the head may try for itself. */
  private noteUnsent(queue: Queue, { failure }: SendEnd): void {
    if (!failure) return
    const { causeId, outcome, limit } = failure.last
    if (causeId === 'unreachable') this.context.gates.close(queue.name, { cause: causeId, until: null })
    if (outcome === 'unsent' && !limit) this.queues.sift(queue, failure.last.toRelayError())
  }

  /**
   * Removes a digest that could not leave. Its members wait, each by itself if `isAlone`, or, with a reason, go on to their next ways.
   *
   * @returns the members that wait
   */
  private dissolve(digest: Delivery, members: readonly Entry[], isAlone: boolean, reason: RelayError | undefined): readonly Entry[] {
    this.context.deliveries.withdraw(digest)
    for (const entry of members) entry.isAlone = isAlone
    if (!reason) return members
    for (const entry of members) this.remove(entry, { error: reason, isFinal: false })
    return []
  }

  /** Ends a delivery that was removed from its queue, or has it go on to its next way. */
  remove(entry: Entry, { error, isFinal }: Removal): void {
    const { delivery } = entry
    // The caller starts to wait for the end only after it has entered.
    queueMicrotask(() => {
      const results = failRest(delivery, error)
      const left = isFinal ? results : this.goOn(entry, results)
      if (left) this.context.deliveries.end(entry, left, delivery.deferred || left !== results ? undefined : error)
    })
  }

  /**
   * Moves a delivery to the next way that accepts it.
   *
   * @param results the results of the present way
   * @returns the results to end with if no way accepts it, the same `results` if there is no further way; `undefined` if it goes on
   */
  private goOn(entry: Entry, results: Results): Results | undefined {
    const { clock, deliveries, port } = this.context
    const { delivery, until = Infinity, signal } = entry
    const next = nextWay(delivery, results, clock.wall())
    if (!next) return results
    // Late deliveries leave together on the next way as well.
    const delay: Delay | undefined = !delivery.deferred ? undefined : port.find(delivery.bot)?.isOnline ? 'closed' : 'offline'
    deliveries.change(delivery, next)
    try {
      tryWays(delivery, clock, change => deliveries.change(delivery, change), () => {
        const { deferred, flow: { route } } = delivery
        const account = port.choose(currentWay(route) ?? {}, deferred)
        checkItems(account, delivery, deliveries.itemsOf(entry))
        deliveries.change(delivery, { bot: account.sid })
        const waiting = { signal, delay, patience: until - clock.now(), isAccepted: deferred && !hasNextWay(route) }
        this.queues.demandRoom(delivery, waiting)
        deliveries.note([entry])
        this.queues.enter(entry, waiting)
      })
    } catch (error) {
      return failRest(delivery, RelayError.from(error))
    }
  }
}
