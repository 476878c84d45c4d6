import { RelayError } from '../errors'
import { causes } from '../message/causes'
import type { Account, Closure } from '../platform/port'
import { every } from './clock'
import { checkItems } from './compose'
import type { Active } from './deliveries'
import { digestOf, failRest, isOverdue, isPassing, mayHaveArrived, outcomeOf, type Delivery, type Results } from './delivery'
import { gather, joins } from './digest'
import { nameOfError } from './journal'
import { backlogOf, isScheduled, Lane, laneOf, readLane, stateOf, untilDue, waitingIn, type Backlog, type LaneState, type Place } from './lane'
import type { Delay } from './options'
import { currentRung, hasNextRung, nextRung } from './route'
import { send, type SendContext, type SendEnd } from './send'

/** The parts of the core for work that enters deliveries into lanes. */
export interface EntryContext extends SendContext {
  lanes: Lanes
}

/** The terms on which a delivery waits in its lane. */
export interface Waiting {
  /** Aborted when the caller disconnects. */
  signal?: (() => AbortSignal) | undefined
  /** How long the caller waits for the turn of its message, in milliseconds. */
  patience?: number | undefined
  /** An accepted delivery with no other route: it may enter a full lane. */
  isAccepted?: boolean
  /** Why the delivery is late. Late deliveries may leave together, in a digest. */
  delay?: Delay | undefined
}

/** Why a delivery is removed from its line, and whether this ends it even where its route has a fallback. */
interface Removal { error: RelayError, isFinal: boolean }

/** The state of a lane at one moment: why it refuses callers, and the times of both clocks. */
interface Moment { refusal: RelayError | undefined, now: number, wall: number }

/** How many deliveries of a lane keep their content in memory. The others read it from the journal at their turn. */
const mostLoaded = 20
/** The most deliveries in one digest. */
const mostMembers = 500
/** How often each lane checks for expired, due and sendable deliveries, in milliseconds. */
const lookInterval = 1_000
/** How often an empty lane checks its hold, in milliseconds. */
const emptyLook = 60_000

/**
 * The lanes: one per bot and target. A lane sends its deliveries one at a time, in the order of acceptance, whether or not their callers
 * wait. On each event a lane advances: it removes expired deliveries, sends the head once its gate is open, and reports the result to the
 * gate.
 *
 * | the lane is  | until                                   | a deferred delivery | a caller                             |
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
export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private readonly endWatches: (() => void)[]
  private readonly working = new Set<Promise<void>>()

  constructor(private readonly context: SendContext) {
    const { port, clock, gates } = context
    // Pauses and holds from before a reload still count, show, and end.
    for (const at of gates.names().map(readLane)) if (at) this.advance(this.laneAt(at, true))
    const unwatch = port.onHealth((bot, isOnline) => {
      for (const lane of isOnline ? this.lanes.values() : []) if (lane.bot === bot) void this.onOnline(lane)
    })
    const unwatchChats = port.onChat((bot, target, closure) => this.onChat(this.laneAt({ bot, target }), closure))
    this.endWatches = [unwatch, unwatchChats, every(clock, lookInterval, () => this.tick())]
  }

  /**
   * Appends a delivery to its lane. A durable delivery does not leave before `saved` is called.
   *
   * @throws RelayError `queue-full`, or the reason why the lane refuses callers
   */
  enter(active: Active, { patience = Infinity, isAccepted, signal, delay }: Waiting = {}): void {
    const { clock } = this.context
    const { delivery: { deferred }, isDurable } = active
    const lane = this.laneAt(active.delivery, true)
    const refusal = deferred ? undefined : this.refusal(lane)
    if (refusal) throw refusal
    const place: Place = { active, isSaved: !isDurable, until: clock.now() + patience, signal }
    const isNext = this.isDue(lane, place) && !lane.first && this.rest(lane, place) === 0
    if (!isNext && !isAccepted && this.isFull(lane, place)) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    lane.delay ??= delay
    lane.put(place)
    if (!isNext) place.gone = signal?.()
    this.advance(lane, place)
  }

  /** Whether an earlier delivery in the lane will start the digest interval that this delivery then has to wait for. */
  awaitsDigest(delivery: Delivery): boolean {
    const digest = digestOf(delivery)
    if (digest === undefined) return false
    const { leaving, places } = this.laneAt(delivery)
    return [...leaving ? [leaving] : [], ...places].some(({ active }) => digestOf(active.delivery) === digest)
  }

  /** The journal has the delivery: it may leave. */
  saved(active: Active): void {
    const lane = this.laneAt(active.delivery)
    const place = lane.find(active.delivery.id)
    if (!place) return
    place.isSaved = true
    if (active.delivery.deferred && (lane.places.length > mostLoaded || place.since === undefined)) this.context.deliveries.shed(active)
    this.advance(lane, place)
  }

  /** Inserts a delivery from the journal at its place in the order. */
  join(active: Active): void {
    const lane = this.laneAt(active.delivery, true)
    lane.put({ active, isSaved: true })
    lane.delay ??= 'restarted'
    // Deliveries behind it join in the same turn of the event loop, and may leave in the same digest.
    this.lookAfter(lane, 0)
  }

  /**
   * Removes a waiting delivery from its lane.
   *
   * @returns whether the delivery was waiting; one that is being sent is not
   */
  giveUp({ id, bot, target }: Pick<Delivery, 'id' | 'bot' | 'target'>): boolean {
    const lane = this.laneAt({ bot, target })
    const [place] = lane.takeOut(({ active }) => active.delivery.id === id)
    this.advance(lane)
    return place !== undefined
  }

  /** The lanes that are not empty, or are paused or held. Chats known only from notices of the platform are left out. */
  states(): LaneState[] {
    const { chats, clock, gates } = this.context
    const known = [...this.lanes.values()].filter(({ isWanted, name }) => isWanted || chats.knows(name))
    return known.flatMap(lane => stateOf(lane, gates, clock) ?? [])
  }

  /** When a waiting delivery falls back to its next route, in milliseconds since the epoch; `undefined` if it never does. */
  nextWayAt(delivery: Delivery): number | undefined {
    const { clock } = this.context
    const { deferred, flow: { route }, results } = delivery
    const { since } = this.lanes.get(laneOf(delivery))?.find(delivery.id) ?? {}
    if (!deferred || !route || since === undefined || !nextRung(delivery, results, clock.wall())) return
    return clock.wall() - clock.now() + since + route.after
  }

  /** The deferred deliveries of all lanes. */
  backlog(): Backlog {
    return backlogOf(this.lanes.values(), this.context.clock)
  }

  /** Ends the pause or hold of a lane. If the platform still reports the chat as closed, the lane is held again. */
  async resume(name: string): Promise<void> {
    const lane = this.lanes.get(name)
    const { gates } = this.context
    const wasClosed = gates.isAboutChat(name)
    gates.resume(name)
    if (!lane) return
    if (wasClosed && this.isOnline(lane)) await gates.ask(lane)
    this.advance(lane)
  }

  /**
   * Ends every delivery waiting in a lane with this error.
   *
   * @returns their number
   */
  async drop(name: string, error: RelayError): Promise<number> {
    const places = this.lanes.get(name)?.takeOut(({ isSaved }) => isSaved) ?? []
    await Promise.all(places.map(place => this.remove(place, { error, isFinal: true })))
    return places.length
  }

  /** Refuses waiting and new callers. Deferred deliveries stay in the journal. */
  close(): void {
    for (const end of this.endWatches) end()
    for (const lane of this.lanes.values()) this.advance(lane)
  }

  /** Resolves once no send is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.working)
  }

  private get hasStopped(): boolean {
    return this.context.stop.aborted
  }

  private laneAt(at: Pick<Delivery, 'bot' | 'target'>, isWanted = false): Lane {
    const name = laneOf(at)
    const lane = this.lanes.get(name) ?? new Lane(at)
    this.lanes.set(name, lane)
    lane.isWanted ||= isWanted
    return lane
  }

  private isFull(lane: Lane, place: Place): boolean {
    return (isScheduled(place) ? lane.later.length : waitingIn(lane)) >= this.context.lane.capacity
  }

  /** Whether a delivery is due: its waiting time counts from then on. Quiet hours may begin while it is in the line. */
  private isDue({ name }: Lane, place: Place): boolean {
    const { clock, gates } = this.context
    const { active: { delivery }, deferral, isAlone } = place
    // Nothing defers a message whose caller waits, or of which a part may have arrived.
    const mayWait = delivery.deferred && delivery.open.length === 0
    const isKnown = deferral !== undefined && deferral.kind !== 'digest' && deferral.until > clock.wall()
    if (!isKnown) place.deferral = mayWait ? gates.deferral(name, delivery, isAlone) : undefined
    place.since = place.deferral ? undefined : place.since ?? clock.now()
    return place.deferral === undefined
  }

  /** The time until a lane may try its head, in milliseconds. */
  private rest(lane: Lane, { active: { delivery: { deferred } } }: Place): number {
    const { clock, deliveries, gates } = this.context
    const isKept = deferred && !deliveries.mayCall({ isDurable: true })
    // An event announces that the bot is online; the interval is for lost events.
    return Math.max(gates.rest(lane), isKept ? lookInterval : 0, this.isOnline(lane) ? 0 : lookInterval, lane.againAt - clock.now())
  }

  /** The account of a lane is back. It has not heard what the platform reported meanwhile, so it asks about a closed chat. */
  private async onOnline(lane: Lane): Promise<void> {
    const { gates } = this.context
    gates.online(lane.name, lane.first === undefined)
    this.advance(lane)
    if (gates.isAboutChat(lane.name) && await gates.ask(lane) === 'open') this.onChat(lane, 'open')
  }

  /** The platform reports that a chat is closed, or open again. */
  private onChat(lane: Lane, closure: Closure | 'open'): void {
    const { gates } = this.context
    if (closure === 'open') {
      gates.open(lane.name)
    } else {
      gates.close(lane.name, closure)
    }
    this.advance(lane)
  }

  /**
   * Removes expired deliveries, then sends the head or sets a timer for it.
   *
   * @param entered the new delivery, if that is the event: only this one can have expired
   */
  private advance(lane: Lane, entered?: Place): void {
    const { clock, gates } = this.context
    // An empty lane may have been dropped, and made anew, while the platform was asked.
    if (this.lanes.get(lane.name) !== lane) return
    lane.cancel()
    this.sift(lane, entered ? [entered] : lane.places)
    if (this.hasStopped || lane.leaving) return
    // A send may have started a digest interval since, and quiet hours may have begun.
    const head = lane.places.find(place => this.isDue(lane, place))
    if (!head) {
      lane.delay = undefined
      if (lane.places.length > 0) this.lookAfter(lane, untilDue(lane, clock))
      else if (gates.hold(lane.name)) lane.cancel = clock.after(Math.max(gates.rest(lane), emptyLook), () => void this.look(lane))
      return
    }
    if (!head.isSaved) return
    const rest = this.rest(lane, head)
    if (rest === 0) {
      // A head that has waited is checked for expiry before it leaves.
      if (!entered || head === entered) this.begin(lane, head)
      else this.advance(lane)
      return
    }
    if (!this.isOnline(lane)) lane.delay ??= 'offline'
    else if (['held', 'paused'].includes(gates.block(lane)?.state ?? '')) lane.delay ??= 'closed'
    this.lookAfter(lane, rest)
  }

  private lookAfter(lane: Lane, ms: number): void {
    lane.cancel()
    lane.cancel = this.context.clock.after(ms, () => this.advance(lane))
  }

  /**
   * Removes the deliveries that are to wait no longer.
   *
   * @param places the ones to check
   * @param reason overrides the lane's own reason to refuse callers
   */
  private sift(lane: Lane, places: readonly Place[], reason?: RelayError): void {
    if (places.length === 0) return
    const { clock } = this.context
    const moment: Moment = { refusal: reason ?? this.refusal(lane), now: clock.now(), wall: clock.wall() }
    const removals = new Map<Place, Removal>()
    for (const place of places) {
      const removal = this.removalOf(lane, place, moment)
      if (removal) removals.set(place, removal)
    }
    if (removals.size > 0) lane.takeOut(place => removals.has(place))
    for (const [place, removal] of removals) void this.remove(place, removal)
  }

  /** Why a delivery is to wait no longer. One that is being saved always waits for the journal. */
  private removalOf(lane: Lane, place: Place, { refusal, now, wall }: Moment): Removal | undefined {
    // `isDue` notes since when a delivery has been due.
    if (place.since === undefined) this.isDue(lane, place)
    const { active: { delivery }, isSaved, since, until = Infinity, gone } = place
    const { deferred, flow: { route } } = delivery
    // A deferred delivery outlives a stop.
    if (!isSaved || (deferred && this.hasStopped)) return
    if (isOverdue(delivery, wall) || until <= now) return { error: new RelayError('expired'), isFinal: true }
    if (gone?.aborted) return { error: new RelayError('unsent', 'the caller went away while its message was waiting'), isFinal: true }
    if (!deferred) return refusal && { error: refusal, isFinal: this.hasStopped }
    if (!route || since === undefined) return
    // A fallback takes over after the time of the route, or at once where the account needs a person.
    if (now - since < route.after && !isLoggedOut(this.context.port.find(lane.bot))) return
    const error = refusal ?? new RelayError('unsent', 'it waited for too long: nothing was sent')
    return nextRung(delivery, failRest(delivery, error), wall) && { error, isFinal: false }
  }

  /** Why a lane refuses callers: its gate is closed, its bot is offline, or the delivery before them waits for the data store. */
  private refusal(lane: Lane): RelayError | undefined {
    const { deliveries, gates } = this.context
    if (this.hasStopped) return new RelayError('stopping')
    const { deferred = false } = lane.first?.active.delivery ?? {}
    const isStoreDown = deferred && (deliveries.isStoreDown || !deliveries.mayCall({ isDurable: true }))
    return gates.refusal(lane) ?? (isStoreDown ? new RelayError('store-down') : undefined)
  }

  private begin(lane: Lane, head: Place): void {
    // The doors count the requests of waiting callers. A deferred delivery does not start while the relay stops.
    const isCounted = head.active.delivery.deferred
    const done = isCounted ? this.context.enter() : undefined
    if (isCounted && !done) return
    lane.takeOut(place => place === head)
    lane.leaving = head
    // Where an account lets one lane send at a time, the one that has waited longest is advanced first.
    this.lanes.delete(lane.name)
    this.lanes.set(lane.name, lane)
    this.context.gates.leaving(lane.bot)
    const work = this.work(lane, head).then(left => {
      this.working.delete(work)
      done?.()
      lane.leaving = undefined
      for (const place of left) lane.put(place)
      if (left.length > 0) lane.againAt = this.context.clock.now() + lookInterval
      this.advance(lane)
    })
    this.working.add(work)
  }

  /** Sends the head, or a digest with it. @returns what the lane has to try again */
  private async work(lane: Lane, head: Place): Promise<readonly Place[]> {
    const { context, context: { clock, gates, logger, port } } = this
    let place = head
    try {
      const account = port.find(lane.bot)
      if (!account || !await gates.mayTry(lane, lane.delay === 'restarted')) return [head]
      place = lane.leaving = await this.take(lane, head, account)
      const leftAt = clock.now()
      const end = await send(context, place.active, account, lane)
      if (end.failure && gates.failed(lane, end.failure, leftAt)) {
        lane.delay ??= 'closed'
        if (gates.isAboutChat(lane.name)) void gates.ask(lane).then(() => this.advance(lane))
      }
      return await this.conclude(lane, place, end)
    } catch (error) {
      // The journal does not answer, or another relay owns it now.
      this.sift(lane, lane.places, new RelayError('store-down'))
      const { id } = head.active.delivery
      if (!context.stop.aborted) logger.warn('%s', `${id} waits: ${error instanceof RelayError ? error.message : nameOfError(error)}`)
      return [place]
    }
  }

  /** The delivery to send: the head, or a digest of the head and others. */
  private async take(lane: Lane, head: Place, account: Account): Promise<Place> {
    const { context, context: { clock, digest: { backlog } } } = this
    const isFit = (place: Place): boolean => {
      const { active: { delivery }, isSaved, isAlone } = place
      return isSaved && !isAlone && !isOverdue(delivery, clock.wall()) && joins(delivery, lane.delay)
    }
    if (!isFit(head)) return head
    const run = [head, ...takeWhile(lane.places.filter(place => this.isDue(lane, place)), isFit)].slice(0, mostMembers)
    const delay = backlog > 0 && run.length > backlog ? lane.delay : undefined
    const members = delay ? run : takeWhile(run, ({ active }) => joins(active.delivery, undefined))
    if (members.length < 2) return head
    // Out of the line, the members cannot be withdrawn any more.
    const taken = new Set(members)
    lane.takeOut(place => taken.has(place))
    try {
      const active = await gather(context, [head.active, ...members.slice(1).map(place => place.active)], account, delay)
      return { active, since: head.since, isSaved: true, members }
    } catch (error) {
      for (const place of members) if (place !== head) lane.put(place)
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
  private async conclude(lane: Lane, place: Place, { results, failure }: SendEnd): Promise<readonly Place[]> {
    const { chats, deliveries, gates, stop, digest: { backlog } } = this.context
    const { active, active: { delivery: { id, flow, deferred } } } = place
    const hasLeft = results.some(mayHaveArrived)
    const members = deliveries.membersOf(active.delivery)
    if (hasLeft) {
      const isLate = ({ active, since }: Place): boolean => since !== undefined && joins(active.delivery, lane.delay)
      gates.digested(lane.name, [active, ...members].map(({ delivery }) => delivery))
      if (lane.delay && lane.places.filter(isLate).length <= backlog) lane.delay = undefined
    }
    // After a stop, the next owner looks for open messages.
    const waits = deferred && results.some(result => isPassing(result) || (stop.aborted && outcomeOf(result) === 'unanswered'))
    const { last } = failure ?? {}
    // A caller at the head may try for itself: only deferred deliveries close the lane.
    if (waits && last?.causeId === 'unreachable') gates.close(lane.name, { cause: last.causeId, until: null })
    if (waits && last?.outcome === 'unsent' && !last.limit) this.sift(lane, lane.places, last.toRelayError())
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
    if (left && !deliveries.get(id)) chats.written(lane.name, id, left)
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
      const lane = this.laneAt(delivery)
      if (!lane.find(delivery.id)) lane.put(place)
      if (this.hasStopped) this.advance(lane)
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
    for (let change = nextRung(delivery, end, clock.wall()); change; change = nextRung(delivery, end, clock.wall())) {
      const items = await deliveries.itemsOf(active)
      deliveries.change(delivery, change)
      try {
        const { deferred, flow: { route } } = delivery
        const account = port.choose(currentRung(route) ?? {}, deferred)
        checkItems(account, delivery, items)
        deliveries.change(delivery, { bot: account.sid })
        this.enter(active, { signal, delay, patience: until - clock.now(), isAccepted: deferred && !hasNextRung(route) })
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

  /** Advances every lane, also those that cannot send, and drops the empty ones. */
  private tick(): void {
    const { gates } = this.context
    for (const lane of this.lanes.values()) {
      if (lane.places.length > 0) {
        this.advance(lane)
      } else if (!lane.leaving && !gates.isMemorable(lane)) {
        this.lanes.delete(lane.name)
        gates.forget(lane.name)
      }
    }
  }

  /** Ends the hold of an empty lane after a while, unless the platform still reports its chat as closed: there is no send to end it. */
  private async look(lane: Lane): Promise<void> {
    const { port, gates } = this.context
    const account = port.find(lane.bot)
    // Nothing is tried in a hold of the account.
    const mayOpen = account && (!gates.isAboutChat(lane.name) || await gates.mayTry(lane))
    if (lane.places.length > 0) return
    if (!account || (mayOpen && gates.isOld(lane.name))) gates.open(lane.name)
    this.advance(lane)
  }

  private isOnline({ bot }: Lane): boolean {
    return this.context.port.find(bot)?.isOnline === true
  }
}

/** The causes that keep an account offline until a person acts. */
const goneCauses = [causes['logged-out'], causes.kicked, causes['token-refused'], causes['bot-removed']]

/** Whether an account stays offline until a person acts. A missing account may still be loading. */
function isLoggedOut(account: Account | undefined): boolean {
  return account?.isOnline === false && goneCauses.some(({ en }) => account.health.cause?.startsWith(en))
}

/** The leading elements that satisfy a predicate. */
function takeWhile<T>(list: readonly T[], isWanted: (element: T) => boolean): T[] {
  const end = list.findIndex(element => !isWanted(element))
  return list.slice(0, end < 0 ? list.length : end)
}
