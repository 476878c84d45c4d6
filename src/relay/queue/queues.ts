import { RelayError } from '../../errors'
import type { CauseId } from '../../message/causes'
import type { Account, Closure } from '../../platform/port'
import { every } from '../clock'
import { checkItems } from '../send/compose'
import type { Active } from '../delivery/deliveries'
import { digestOf, failRest, isOverdue, isPassing, mayHaveArrived, outcomeOf, type Delivery, type Results } from '../delivery/delivery'
import { gather, joins } from './bundle'
import { nameOfError } from '../journal'
import { backlogOf, isScheduled, Queue, queueOf, readQueue, stateOf, untilDue, waitingIn, type Backlog, type QueueState, type Place } from './queue'
import type { Delay } from '../options'
import { currentWay, hasNextWay, nextWay } from './ways'
import { send, type SendContext, type SendEnd } from '../send/send'

/** The parts of the core for work that enters deliveries into queues. */
export interface EntryContext extends SendContext {
  queues: Queues
}

/** The terms on which a delivery waits in its queue. */
export interface Waiting {
  /** Aborted when the caller disconnects. */
  signal?: (() => AbortSignal) | undefined
  /** How long the caller waits for the turn of its message, in milliseconds. */
  patience?: number | undefined
  /** An accepted delivery with no other route: it may enter a full queue. */
  isAccepted?: boolean
  /** Why the delivery is late. Late deliveries may leave together, in a digest. */
  delay?: Delay | undefined
}

/** Why a delivery is removed from its line, and whether this ends it even where its route has a fallback. */
interface Removal { error: RelayError, isFinal: boolean }

/** The state of a queue at one moment: why it refuses callers, and the times of both clocks. */
interface Moment { refusal: RelayError | undefined, now: number, wall: number }

/** How many deliveries of a queue keep their content in memory. The others read it from the journal at their turn. */
const mostLoaded = 20
/** The most deliveries in one digest. */
const mostMembers = 500
/** How often each queue checks for expired, due and sendable deliveries, in milliseconds. */
const lookInterval = 1_000
/** How often an empty queue checks its hold, in milliseconds. */
const emptyLook = 60_000

/**
 * The queues: one per bot and target. A queue sends its deliveries one at a time, in the order of acceptance, whether or not their callers
 * wait. On each event a queue advances: it removes expired deliveries, sends the head once its gate is open, and reports the result to the
 * gate.
 *
 * | the queue is  | until                                   | a deferred delivery | a caller                             |
 * | ------------ | --------------------------------------- | ------------------- | ------------------------------------ |
 * | free         |                                         | leaves              | leaves                               |
 * | busy         | the present send ends                   | waits               | waits                                |
 * | closed       | its gate opens (`gates.ts`)             | waits               | is refused, even if already waiting  |
 * | offline      | the bot is online                       | waits               | is refused, even if already waiting  |
 * | without data | this relay owns a store that answers    | waits               | is refused behind a deferred one     |
 *
 * The head is the first delivery that is due. Scheduled deliveries, and those waiting for quiet hours or a digest, do not block the others.
 * Deferred texts at the head leave as one message if they have a digest or are late (`digest.ts`).
 */
export class Queues {
  private readonly queues = new Map<string, Queue>()
  private readonly endWatches: (() => void)[]
  private readonly working = new Set<Promise<void>>()

  constructor(private readonly context: SendContext) {
    const { port, clock, gates } = context
    // Pauses and holds from before a reload still count, show, and end.
    for (const at of gates.names().map(readQueue)) if (at) this.advance(this.queueAt(at, true))
    const unwatch = port.onHealth((bot, isOnline) => {
      for (const queue of isOnline ? this.queues.values() : []) if (queue.bot === bot) void this.onOnline(queue)
    })
    const unwatchChats = port.onChat((bot, target, closure) => this.onChat(this.queueAt({ bot, target }), closure))
    this.endWatches = [unwatch, unwatchChats, every(clock, lookInterval, () => this.tick())]
  }

  /**
   * Appends a delivery to its queue. A durable delivery does not leave before `saved` is called.
   *
   * @throws RelayError `queue-full`, or the reason why the queue refuses callers
   */
  enter(active: Active, { patience = Infinity, isAccepted, signal, delay }: Waiting = {}): void {
    const { clock } = this.context
    const { delivery: { deferred }, isDurable } = active
    const queue = this.queueAt(active.delivery, true)
    const refusal = deferred ? undefined : this.refusal(queue)
    if (refusal) throw refusal
    const place: Place = { active, isSaved: !isDurable, until: clock.now() + patience, signal }
    const isNext = this.isDue(queue, place) && !queue.first && this.rest(queue, place) === 0
    if (!isNext && !isAccepted && this.isFull(queue, place)) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    queue.delay ??= delay
    queue.put(place)
    if (!isNext) place.gone = signal?.()
    this.advance(queue, place)
  }

  /** Whether an earlier delivery in the queue will start the digest interval that this delivery then has to wait for. */
  awaitsDigest(delivery: Delivery): boolean {
    const digest = digestOf(delivery)
    if (digest === undefined) return false
    const { leaving, places } = this.queueAt(delivery)
    return [...leaving ? [leaving] : [], ...places].some(({ active }) => digestOf(active.delivery) === digest)
  }

  /** The journal has the delivery: it may leave. */
  saved(active: Active): void {
    const queue = this.queueAt(active.delivery)
    const place = queue.find(active.delivery.id)
    if (!place) return
    place.isSaved = true
    if (active.delivery.deferred && (queue.places.length > mostLoaded || place.since === undefined)) this.context.deliveries.shed(active)
    this.advance(queue, place)
  }

  /** Inserts a delivery from the journal at its place in the order. */
  join(active: Active): void {
    const queue = this.queueAt(active.delivery, true)
    queue.put({ active, isSaved: true })
    queue.delay ??= 'restarted'
    // Deliveries behind it join in the same turn of the event loop, and may leave in the same digest.
    this.lookAfter(queue, 0)
  }

  /**
   * Removes a waiting delivery from its queue.
   *
   * @returns whether the delivery was waiting; one that is being sent is not
   */
  giveUp({ id, bot, target }: Pick<Delivery, 'id' | 'bot' | 'target'>): boolean {
    const queue = this.queueAt({ bot, target })
    const [place] = queue.takeOut(({ active }) => active.delivery.id === id)
    this.advance(queue)
    return place !== undefined
  }

  /** The queues that are not empty, or are paused or held. Chats known only from notices of the platform are left out. */
  states(): QueueState[] {
    const { chats, clock, gates } = this.context
    const known = [...this.queues.values()].filter(({ isWanted, name }) => isWanted || chats.knows(name))
    return known.flatMap(queue => stateOf(queue, gates, clock) ?? [])
  }

  /** When a waiting delivery falls back to its next route, in milliseconds since the epoch; `undefined` if it never does. */
  nextWayAt(delivery: Delivery): number | undefined {
    const { clock } = this.context
    const { deferred, flow: { route }, results } = delivery
    const { since } = this.queues.get(queueOf(delivery))?.find(delivery.id) ?? {}
    if (!deferred || !route || since === undefined || !nextWay(delivery, results, clock.wall())) return
    return clock.wall() - clock.now() + since + route.after
  }

  /** The deferred deliveries of all queues. */
  backlog(): Backlog {
    return backlogOf(this.queues.values(), this.context.clock)
  }

  /** Ends the pause or hold of a queue. If the platform still reports the chat as closed, the queue is held again. */
  async resume(name: string): Promise<void> {
    const queue = this.queues.get(name)
    const { gates } = this.context
    const wasClosed = gates.isAboutChat(name)
    gates.resume(name)
    if (!queue) return
    if (wasClosed && this.isOnline(queue)) await gates.ask(queue)
    this.advance(queue)
  }

  /**
   * Ends every delivery waiting in a queue with this error.
   *
   * @returns their number
   */
  async drop(name: string, error: RelayError): Promise<number> {
    const places = this.queues.get(name)?.takeOut(({ isSaved }) => isSaved) ?? []
    await Promise.all(places.map(place => this.remove(place, { error, isFinal: true })))
    return places.length
  }

  /** Refuses waiting and new callers. Deferred deliveries stay in the journal. */
  close(): void {
    for (const end of this.endWatches) end()
    for (const queue of this.queues.values()) this.advance(queue)
  }

  /** Resolves once no send is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.working)
  }

  private get hasStopped(): boolean {
    return this.context.stop.aborted
  }

  private queueAt(at: Pick<Delivery, 'bot' | 'target'>, isWanted = false): Queue {
    const name = queueOf(at)
    const queue = this.queues.get(name) ?? new Queue(at)
    this.queues.set(name, queue)
    queue.isWanted ||= isWanted
    return queue
  }

  private isFull(queue: Queue, place: Place): boolean {
    return (isScheduled(place) ? queue.later.length : waitingIn(queue)) >= this.context.queue.capacity
  }

  /** Whether a delivery is due: its waiting time counts from then on. Quiet hours may begin while it is in the line. */
  private isDue({ name }: Queue, place: Place): boolean {
    const { clock, gates } = this.context
    const { active: { delivery }, deferral, isAlone } = place
    // Nothing defers a message whose caller waits, or of which a part may have arrived.
    const mayWait = delivery.deferred && delivery.open.length === 0
    const isKnown = deferral !== undefined && deferral.kind !== 'digest' && deferral.until > clock.wall()
    if (!isKnown) place.deferral = mayWait ? gates.deferral(name, delivery, isAlone) : undefined
    place.since = place.deferral ? undefined : place.since ?? clock.now()
    return place.deferral === undefined
  }

  /** The time until a queue may try its head, in milliseconds. */
  private rest(queue: Queue, { active: { delivery: { deferred } } }: Place): number {
    const { clock, deliveries, gates } = this.context
    const isKept = deferred && !deliveries.mayCall({ isDurable: true })
    // An event announces that the bot is online; the interval is for lost events.
    return Math.max(gates.rest(queue), isKept ? lookInterval : 0, this.isOnline(queue) ? 0 : lookInterval, queue.againAt - clock.now())
  }

  /** The account of a queue is back. It has not heard what the platform reported meanwhile, so it asks about a closed chat. */
  private async onOnline(queue: Queue): Promise<void> {
    const { gates } = this.context
    gates.online(queue.name, queue.first === undefined)
    this.advance(queue)
    if (gates.isAboutChat(queue.name) && await gates.ask(queue) === 'open') this.onChat(queue, 'open')
  }

  /** The platform reports that a chat is closed, or open again. */
  private onChat(queue: Queue, closure: Closure | 'open'): void {
    const { gates } = this.context
    if (closure === 'open') {
      gates.open(queue.name)
    } else {
      gates.close(queue.name, closure)
    }
    this.advance(queue)
  }

  /**
   * Removes expired deliveries, then sends the head or sets a timer for it.
   *
   * @param entered the new delivery, if that is the event: only this one can have expired
   */
  private advance(queue: Queue, entered?: Place): void {
    const { clock, gates } = this.context
    // An empty queue may have been dropped, and made anew, while the platform was asked.
    if (this.queues.get(queue.name) !== queue) return
    queue.cancel()
    this.sift(queue, entered ? [entered] : queue.places)
    if (this.hasStopped || queue.leaving) return
    // A send may have started a digest interval since, and quiet hours may have begun.
    const head = queue.places.find(place => this.isDue(queue, place))
    if (!head) {
      queue.delay = undefined
      if (queue.places.length > 0) this.lookAfter(queue, untilDue(queue, clock))
      else if (gates.hold(queue.name)) queue.cancel = clock.after(Math.max(gates.rest(queue), emptyLook), () => void this.look(queue))
      return
    }
    if (!head.isSaved) return
    const rest = this.rest(queue, head)
    if (rest === 0) {
      // A head that has waited is checked for expiry before it leaves.
      if (!entered || head === entered) this.begin(queue, head)
      else this.advance(queue)
      return
    }
    if (!this.isOnline(queue)) queue.delay ??= 'offline'
    else if (['held', 'paused'].includes(gates.block(queue)?.state ?? '')) queue.delay ??= 'closed'
    this.lookAfter(queue, rest)
  }

  private lookAfter(queue: Queue, ms: number): void {
    queue.cancel()
    queue.cancel = this.context.clock.after(ms, () => this.advance(queue))
  }

  /**
   * Removes the deliveries that are to wait no longer.
   *
   * @param places the ones to check
   * @param reason overrides the queue's own reason to refuse callers
   */
  private sift(queue: Queue, places: readonly Place[], reason?: RelayError): void {
    if (places.length === 0) return
    const { clock } = this.context
    const moment: Moment = { refusal: reason ?? this.refusal(queue), now: clock.now(), wall: clock.wall() }
    const removals = new Map<Place, Removal>()
    for (const place of places) {
      const removal = this.removalOf(queue, place, moment)
      if (removal) removals.set(place, removal)
    }
    if (removals.size > 0) queue.takeOut(place => removals.has(place))
    for (const [place, removal] of removals) void this.remove(place, removal)
  }

  /** Why a delivery is to wait no longer. One that is being saved always waits for the journal. */
  private removalOf(queue: Queue, place: Place, { refusal, now, wall }: Moment): Removal | undefined {
    // `isDue` notes since when a delivery has been due.
    if (place.since === undefined) this.isDue(queue, place)
    const { active: { delivery }, isSaved, since, until = Infinity, gone } = place
    const { deferred, flow: { route } } = delivery
    // A deferred delivery outlives a stop.
    if (!isSaved || (deferred && this.hasStopped)) return
    if (isOverdue(delivery, wall) || until <= now) return { error: new RelayError('expired'), isFinal: true }
    if (gone?.aborted) return { error: new RelayError('unsent', 'the caller went away while its message was waiting'), isFinal: true }
    if (!deferred) return refusal && { error: refusal, isFinal: this.hasStopped }
    if (!route || since === undefined) return
    // A fallback takes over after the time of the route, or at once where the account needs a person.
    if (now - since < route.after && !isLoggedOut(this.context.port.find(queue.bot))) return
    const error = refusal ?? new RelayError('unsent', 'it waited for too long: nothing was sent')
    return nextWay(delivery, failRest(delivery, error), wall) && { error, isFinal: false }
  }

  /** Why a queue refuses callers: its gate is closed, its bot is offline, or the delivery before them waits for the data store. */
  private refusal(queue: Queue): RelayError | undefined {
    const { deliveries, gates } = this.context
    if (this.hasStopped) return new RelayError('stopping')
    const { deferred = false } = queue.first?.active.delivery ?? {}
    const isStoreDown = deferred && (deliveries.isStoreDown || !deliveries.mayCall({ isDurable: true }))
    return gates.refusal(queue) ?? (isStoreDown ? new RelayError('store-down') : undefined)
  }

  private begin(queue: Queue, head: Place): void {
    // The doors count the requests of waiting callers. A deferred delivery does not start while the relay stops.
    const isCounted = head.active.delivery.deferred
    const done = isCounted ? this.context.enter() : undefined
    if (isCounted && !done) return
    queue.takeOut(place => place === head)
    queue.leaving = head
    // Where an account lets one queue send at a time, the one that has waited longest is advanced first.
    this.queues.delete(queue.name)
    this.queues.set(queue.name, queue)
    this.context.gates.leaving(queue.bot)
    const work = this.work(queue, head).then(left => {
      this.working.delete(work)
      done?.()
      queue.leaving = undefined
      for (const place of left) queue.put(place)
      if (left.length > 0) queue.againAt = this.context.clock.now() + lookInterval
      this.advance(queue)
    })
    this.working.add(work)
  }

  /** Sends the head, or a digest with it. @returns what the queue has to try again */
  private async work(queue: Queue, head: Place): Promise<readonly Place[]> {
    const { context, context: { clock, gates, logger, port } } = this
    let place = head
    try {
      const account = port.find(queue.bot)
      if (!account || !await gates.mayTry(queue, queue.delay === 'restarted')) return [head]
      place = queue.leaving = await this.take(queue, head, account)
      const leftAt = clock.now()
      const end = await send(context, place.active, account, queue)
      if (end.failure && gates.failed(queue, end.failure, leftAt)) {
        queue.delay ??= 'closed'
        if (gates.isAboutChat(queue.name)) void gates.ask(queue).then(() => this.advance(queue))
      }
      return await this.conclude(queue, place, end)
    } catch (error) {
      // The journal does not answer, or another relay owns it now.
      this.sift(queue, queue.places, new RelayError('store-down'))
      const { id } = head.active.delivery
      if (!context.stop.aborted) logger.warn('%s', `${id} waits: ${error instanceof RelayError ? error.message : nameOfError(error)}`)
      return [place]
    }
  }

  /** The delivery to send: the head, or a digest of the head and others. */
  private async take(queue: Queue, head: Place, account: Account): Promise<Place> {
    const { context, context: { clock, digest: { backlog } } } = this
    const isFit = (place: Place): boolean => {
      const { active: { delivery }, isSaved, isAlone } = place
      return isSaved && !isAlone && !isOverdue(delivery, clock.wall()) && joins(delivery, queue.delay)
    }
    if (!isFit(head)) return head
    const run = [head, ...takeWhile(queue.places.filter(place => this.isDue(queue, place)), isFit)].slice(0, mostMembers)
    const delay = backlog > 0 && run.length > backlog ? queue.delay : undefined
    const members = delay ? run : takeWhile(run, ({ active }) => joins(active.delivery, undefined))
    if (members.length < 2) return head
    // Out of the line, the members cannot be withdrawn any more.
    const taken = new Set(members)
    queue.takeOut(place => taken.has(place))
    try {
      const active = await gather(context, [head.active, ...members.slice(1).map(place => place.active)], account, delay)
      return { active, since: head.since, isSaved: true, members }
    } catch (error) {
      for (const place of members) if (place !== head) queue.put(place)
      throw error
    }
  }

  /**
   * Dissolves a digest that could not leave.
   *
   * @param isAlone whether each of its members leaves by itself from now on
   * @param reason why the chat takes nothing any more: the members fall back to their next routes, or end
   * @returns the members that go on waiting
   */
  private async dissolve({ active: { delivery }, members }: Place, isAlone: boolean, reason?: RelayError): Promise<readonly Place[]> {
    const { deliveries } = this.context
    const places = members ?? deliveries.membersOf(delivery).map((active): Place => ({ active, isSaved: true }))
    // Before a member leaves again: after a kill, the next process would send the digest beside it.
    await deliveries.cancel(delivery).catch(() => undefined)
    for (const place of places) {
      place.isAlone = isAlone
      if (reason) await this.remove(place, { error: reason, isFinal: false })
    }
    return reason ? [] : places
  }

  /**
   * Ends a delivery after its send, or has it wait again: a deferred one does where it could not leave for now.
   *
   * @returns as `work`
   */
  private async conclude(queue: Queue, place: Place, { results, failure }: SendEnd): Promise<readonly Place[]> {
    const { chats, deliveries, gates, stop, digest: { backlog } } = this.context
    const { active, active: { delivery: { id, flow, deferred } } } = place
    const hasLeft = results.some(mayHaveArrived)
    const members = deliveries.membersOf(active.delivery)
    if (hasLeft) {
      const isLate = ({ active, since }: Place): boolean => since !== undefined && joins(active.delivery, queue.delay)
      gates.digested(queue.name, [active, ...members].map(({ delivery }) => delivery))
      if (queue.delay && queue.places.filter(isLate).length <= backlog) queue.delay = undefined
    }
    // After a stop, the next owner looks for open messages.
    const waits = deferred && results.some(result => isPassing(result) || (stop.aborted && outcomeOf(result) === 'unanswered'))
    const { last } = failure ?? {}
    // A caller at the head may try for itself: only deferred deliveries close the queue.
    if (waits && last?.causeId === 'unreachable') gates.close(queue.name, { cause: last.causeId, until: null })
    if (waits && last?.outcome === 'unsent' && !last.limit) this.sift(queue, queue.places, last.toRelayError())
    if (members.length > 0 && !hasLeft && !stop.aborted) {
      const isOfChat = !waits && failure?.last.isAboutTarget === true
      return this.dissolve(place, !waits, isOfChat ? failure.toRelayError() : undefined)
    }
    if (waits) {
      await deliveries.postpone(active, results)
      return [place]
    }
    const left = flow.route && !stop.aborted ? await this.fallBack(place, results) : results
    if (left) await deliveries.end(active, left)
    if (left && !deliveries.get(id)) chats.written(queue.name, id, left)
    return []
  }

  /** Ends a delivery that was removed from its line, or has it fall back. If the database does not answer, its place is restored. */
  private async remove(place: Place, { error, isFinal }: Removal): Promise<void> {
    const { active, active: { delivery } } = place
    try {
      // The caller starts to wait for the end only after `enter` returns.
      await Promise.resolve()
      const results = failRest(delivery, error)
      const left = isFinal ? results : await this.fallBack(place, results)
      if (left) await this.context.deliveries.end(active, left, delivery.deferred || left !== results ? undefined : error)
    } catch {
      const queue = this.queueAt(delivery)
      if (!queue.find(delivery.id)) queue.put(place)
      if (this.hasStopped) this.advance(queue)
    }
  }

  /**
   * Moves a delivery to the next route that accepts it.
   *
   * @param results the results of the present route
   * @returns the results to end with if no route accepts it; the same `results` if there is no further route
   */
  private async fallBack({ active, until = Infinity, signal }: Place, results: Results): Promise<Results | undefined> {
    const { clock, deliveries, port } = this.context
    const { delivery } = active
    // Late deliveries leave together on the fallback as well.
    const delay = !delivery.deferred ? undefined : port.find(delivery.bot)?.isOnline ? 'closed' : 'offline'
    let end = results
    for (let change = nextWay(delivery, end, clock.wall()); change; change = nextWay(delivery, end, clock.wall())) {
      const items = await deliveries.itemsOf(active)
      deliveries.change(delivery, change)
      try {
        const { deferred, flow: { route } } = delivery
        const account = port.choose(currentWay(route) ?? {}, deferred)
        checkItems(account, delivery, items)
        deliveries.change(delivery, { bot: account.sid })
        this.enter(active, { signal, delay, patience: until - clock.now(), isAccepted: deferred && !hasNextWay(route) })
      } catch (error) {
        if (!(error instanceof RelayError) || error.code === 'stopping') throw error
        end = failRest(delivery, error)
        continue
      }
      try {
        await deliveries.save(active)
      } finally {
        this.saved(active)
      }
      return
    }
    return end
  }

  /** Advances every queue, also those that cannot send, and drops the empty ones. */
  private tick(): void {
    const { gates } = this.context
    for (const queue of this.queues.values()) {
      if (queue.places.length > 0) {
        this.advance(queue)
      } else if (!queue.leaving && !gates.isMemorable(queue)) {
        this.queues.delete(queue.name)
        gates.forget(queue.name)
      }
    }
  }

  /** Ends the hold of an empty queue after a while, unless the platform still reports its chat as closed: there is no send to end it. */
  private async look(queue: Queue): Promise<void> {
    const { port, gates } = this.context
    const account = port.find(queue.bot)
    // Nothing is tried in a hold of the account.
    const mayOpen = account && (!gates.isAboutChat(queue.name) || await gates.mayTry(queue))
    if (queue.places.length > 0) return
    if (!account || (mayOpen && gates.isOld(queue.name))) gates.open(queue.name)
    this.advance(queue)
  }

  private isOnline({ bot }: Queue): boolean {
    return this.context.port.find(bot)?.isOnline === true
  }
}

/** The causes that keep an account offline until a person acts. */
const lastingCauses: ReadonlySet<CauseId | undefined> = new Set(['logged-out', 'kicked', 'token-refused', 'bot-removed'])

/** Whether an account stays offline until a person acts. A missing account may still be loading. */
function isLoggedOut(account: Account | undefined): boolean {
  return account?.isOnline === false && lastingCauses.has(account.health.cause)
}

/** The leading elements that satisfy a predicate. */
function takeWhile<T>(list: readonly T[], isWanted: (element: T) => boolean): T[] {
  const end = list.findIndex(element => !isWanted(element))
  return list.slice(0, end < 0 ? list.length : end)
}
