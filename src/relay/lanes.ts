import { RelayError } from '../errors'
import { causes } from '../message/causes'
import type { Account, Closure } from '../platform/port'
import type { Active } from './deliveries'
import { digestOf, failRest, isOverdue, isPassing, outcomeOf, type Delivery, type Results } from './delivery'
import { gather, joins } from './digest'
import { nameOfError } from './journal'
import { isScheduled, Lane, laneOf, readLane, type Place } from './lane'
import { backlogOf, stateOf, waitingIn, type Backlog, type LaneState } from './lane-states'
import type { Delay } from './options'
import { currentRung, hasNextRung, nextRung } from './route'
import { send, type SendContext, type SendEnd } from './send'

/** How a delivery waits for its turn. */
export interface Waiting {
  /** Aborted when its caller has gone away. */
  signal?: (() => AbortSignal) | undefined
  /** How long its caller waits for its turn, in milliseconds. */
  patience?: number | undefined
  /** Whether it was accepted before, and can go nowhere else: then it finds a place in a full lane as well. */
  isAccepted?: boolean
  /** Why it is late, and may leave in a digest with others that are. */
  delay?: Delay | undefined
}

/** Why a delivery waits no longer, and whether it ends although there may be a further way. */
interface Over { error: RelayError, isFinal: boolean }

/** What holds for all that wait in a lane at one moment: why callers cannot wait there, and the two clocks. */
interface Moment { refusal: RelayError | undefined, now: number, wall: number }

/** The content of so many deliveries of a lane stays in memory; that of the others is read when their turn comes. */
const mostLoaded = 20
/** How many deliveries one digest stands for, at most. */
const mostMembers = 500
/** How often each lane looks who waits no longer, whose time has come, and whether it may go on, in milliseconds. */
const lookInterval = 1_000
/** How often it is looked whether an empty lane is still held, in milliseconds. */
const emptyLook = 60_000

/**
 * One lane per chat: the line of what goes to one target through one bot, in the order of acceptance, with or without a waiting caller. On
 * each event it advances: it takes out who waits no longer, sends the head once its gate is open, and tells the gate what came of it.
 *
 * | the lane is | until                                  | a deferred delivery | a caller                         |
 * | ----------- | -------------------------------------- | ------------------- | -------------------------------- |
 * | free        |                                        | leaves              | leaves                           |
 * | busy        | what is leaving has ended              | waits               | waits                            |
 * | closed      | its gate opens (`gates.ts`)            | waits               | is refused, also when it waits   |
 * | offline     | the bot is online                      | waits               | is refused, also when it waits   |
 * | without     | the data store is there, and ours      | waits               | is refused behind one that waits |
 *
 * The head is the first whose time has come: what is ordered for later, or must wait for quiet hours or a digest, holds nothing up.
 * Deferred texts at the head that have a digest, or are late, leave as one (`digest.ts`).
 */
export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private readonly endWatches: (() => void)[]
  private readonly working = new Set<Promise<void>>()

  constructor(private readonly context: SendContext) {
    const { port, clock, gates } = context
    // What a lane was paused or held for before a reload is still told, and ends.
    for (const at of gates.names().map(readLane)) if (at) this.advance(this.open(at, true))
    const unwatch = port.onOnline(bot => {
      gates.online(bot)
      for (const lane of this.lanes.values()) this.advance(lane)
    })
    const unwatchChats = port.onChat((bot, target, closure) => this.onChat(this.open({ bot, target }), closure))
    const tick = (): void => {
      this.tick()
      cancel = clock.after(lookInterval, tick)
    }
    let cancel = clock.after(lookInterval, tick)
    this.endWatches = [unwatch, unwatchChats, () => cancel()]
  }

  /**
   * Takes a place at the end of the lane of a delivery. Nothing leaves from it before `saved`, where the delivery must last.
   *
   * @throws RelayError `queue-full`, `stopping`, or why a caller cannot wait there
   */
  enter(active: Active, { patience = Infinity, isAccepted, signal, delay }: Waiting = {}): void {
    const { clock } = this.context
    const { delivery: { deferred }, mustLast } = active
    if (this.isClosed) throw new RelayError('stopping')
    const lane = this.open(active.delivery, true)
    const refusal = deferred ? undefined : this.refusal(lane)
    if (refusal) {
      this.advance(lane)
      throw refusal
    }
    const place: Place = { active, isSaved: !mustLast, until: clock.now() + patience, signal }
    const isNext = this.isDue(lane, place) && !lane.first && this.rest(lane, place) === 0
    if (!isNext && !isAccepted && this.isFull(lane, place)) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    lane.delay ??= delay
    lane.put(place)
    if (!isNext) place.gone = signal?.()
    this.advance(lane, place)
  }

  /** Whether something is before a delivery in its lane after which the time of its digest begins. */
  awaitsDigest(delivery: Delivery): boolean {
    const digest = digestOf(delivery)
    if (digest === undefined) return false
    const { leaving, places } = this.open(delivery)
    return [...leaving ? [leaving] : [], ...places].some(({ active }) => digestOf(active.delivery) === digest)
  }

  /** The delivery is on disk: it may leave. */
  saved(active: Active): void {
    const lane = this.open(active.delivery)
    const place = lane.find(active.delivery.id)
    if (!place) return
    place.isSaved = true
    if (active.delivery.deferred && (lane.places.length > mostLoaded || place.since === undefined)) this.context.deliveries.shed(active)
    this.advance(lane, place)
  }

  /** Puts a delivery that the journal has at its place in the order. */
  join(active: Active): void {
    const lane = this.open(active.delivery, true)
    lane.put({ active, isSaved: true })
    lane.delay ??= 'restarted'
    // Those behind it come right after it, and may leave with it.
    this.lookAfter(lane, 0)
  }

  /**
   * Takes a delivery out of its line.
   *
   * @returns whether it waited there; what is leaving does not
   */
  leave({ id, bot, target }: Pick<Delivery, 'id' | 'bot' | 'target'>): boolean {
    const lane = this.open({ bot, target })
    const [place] = lane.takeOut(({ active }) => active.delivery.id === id)
    this.advance(lane)
    return place !== undefined
  }

  /** The lanes in which something waits, or that are paused or held, except chats that nothing was to be sent to. */
  states(): LaneState[] {
    const { chats, clock, gates } = this.context
    return [...this.lanes.values()].filter(({ isWanted, name }) => isWanted || chats.knows(name)).flatMap(lane => {
      const next = this.untilDue(lane)
      return stateOf(lane, gates, clock, this.isOnline(lane), next) ?? []
    })
  }

  /** What waits to be sent later, in all lanes. */
  backlog(): Backlog {
    return backlogOf(this.lanes.values(), this.context.clock)
  }

  /** Ends what keeps a lane from sending. A lane whose chat the platform still calls closed is held again. */
  async resume(name: string): Promise<void> {
    const lane = this.lanes.get(name)
    const { gates, port } = this.context
    const wasClosed = gates.isAboutChat(name)
    gates.resume(name)
    if (!lane) return
    const account = port.find(lane.bot)
    if (wasClosed && account?.isOnline) await gates.ask(lane, account)
    this.advance(lane)
  }

  /**
   * Ends everything that waits in a lane for this reason.
   *
   * @returns how many there were
   */
  async drop(name: string, error: RelayError): Promise<number> {
    const places = this.lanes.get(name)?.takeOut(({ isSaved }) => isSaved) ?? []
    await Promise.all(places.map(place => this.give(place, { error, isFinal: true })))
    return places.length
  }

  /** Refuses the callers that wait, and takes nothing more. What is deferred stays in the journal. */
  close(): void {
    for (const end of this.endWatches) end()
    for (const lane of this.lanes.values()) this.advance(lane)
  }

  /** Resolves once nothing is leaving any more. */
  async idle(): Promise<void> {
    await Promise.all(this.working)
  }

  private get isClosed(): boolean {
    return this.context.stop.aborted
  }

  private open(at: Pick<Delivery, 'bot' | 'target'>, isWanted = false): Lane {
    const name = laneOf(at)
    const lane = this.lanes.get(name) ?? new Lane(at)
    this.lanes.set(name, lane)
    lane.isWanted ||= isWanted
    return lane
  }

  private isFull(lane: Lane, place: Place): boolean {
    return (isScheduled(place) ? lane.later.length : waitingIn(lane)) >= this.context.lane.capacity
  }

  /** Whether the time of a place has come; its waiting begins then. Quiet hours may have begun while it was in the line. */
  private isDue({ name }: Lane, place: Place): boolean {
    const { clock, gates } = this.context
    const { active: { delivery }, deferral, isAlone } = place
    // A caller waits for no such time, and what has begun to leave is brought to its end.
    const mayWait = delivery.deferred && delivery.state !== 'sending'
    const isKnown = deferral !== undefined && deferral.kind !== 'digest' && deferral.until > clock.wall()
    if (!isKnown) place.deferral = mayWait ? gates.deferral(name, delivery, isAlone) : undefined
    place.since = place.deferral ? undefined : place.since ?? clock.now()
    return place.deferral === undefined
  }

  /** How long until the time of one of those comes that wait for theirs, in milliseconds. */
  private untilDue(lane: Lane): number {
    const wall = this.context.clock.wall()
    return lane.later.reduce((least, place) => Math.min(least, this.isDue(lane, place) ? 0 : (place.deferral?.until ?? 0) - wall), Infinity)
  }

  /** How long until the head of a lane may be tried, in milliseconds. */
  private rest(lane: Lane, { active: { delivery: { deferred } } }: Place): number {
    const { clock, deliveries, gates } = this.context
    const isKept = deferred && !deliveries.mayCall({ mustLast: true })
    // It is told when its bot is online.
    return Math.max(gates.rest(lane), isKept ? lookInterval : 0, this.isOnline(lane) ? 0 : lookInterval, lane.againAt - clock.now())
  }

  /** The platform reports that it has closed a chat, or opened it again. */
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
   * Takes out who waits no longer, and sends the head as soon as that may be.
   *
   * @param entered the delivery that has come, which changes nothing for those that wait
   */
  private advance(lane: Lane, entered?: Place): void {
    const { clock, gates } = this.context
    // It may have been forgotten while the platform was asked, and another one made since.
    if (this.lanes.get(lane.name) !== lane) return
    lane.cancel()
    this.sift(lane, entered ? [entered] : lane.places)
    if (this.isClosed || lane.leaving) return
    // A message that left meanwhile may have begun the time of a digest, and quiet hours may have begun.
    const head = lane.places.find(place => this.isDue(lane, place))
    if (!head) {
      lane.delay = undefined
      if (lane.places.length > 0) this.lookAfter(lane, this.untilDue(lane))
      else if (gates.hold(lane.name)) lane.cancel = clock.after(Math.max(gates.rest(lane), emptyLook), () => void this.look(lane))
      return
    }
    if (!head.isSaved) return
    const rest = this.rest(lane, head)
    if (rest === 0) {
      // One that has waited is looked at before it leaves.
      if (!entered || head === entered) this.begin(lane, head)
      else this.advance(lane)
      return
    }
    if (!this.isOnline(lane)) lane.delay ??= 'offline'
    else if (gates.hold(lane.name) || gates.pause(lane.name) > 0) lane.delay ??= 'closed'
    this.lookAfter(lane, rest)
  }

  private lookAfter(lane: Lane, ms: number): void {
    lane.cancel()
    lane.cancel = this.context.clock.after(ms, () => this.advance(lane))
  }

  /**
   * Takes those out that wait no longer.
   *
   * @param places which of them are looked at
   * @param reason why callers cannot wait, where that is not a fact of the lane
   */
  private sift(lane: Lane, places: readonly Place[], reason?: RelayError): void {
    if (places.length === 0) return
    const { clock } = this.context
    const moment: Moment = { refusal: reason ?? this.refusal(lane), now: clock.now(), wall: clock.wall() }
    const over = new Map<Place, Over>()
    for (const place of places) {
      const why = this.whyOver(lane, place, moment)
      if (why) over.set(place, why)
    }
    if (over.size > 0) lane.takeOut(place => over.has(place))
    for (const [place, why] of over) void this.give(place, why)
  }

  /** Why a delivery waits no longer. What is not saved yet waits for that. */
  private whyOver(lane: Lane, place: Place, { refusal, now, wall }: Moment): Over | undefined {
    // It has waited since its time came.
    if (place.since === undefined) this.isDue(lane, place)
    const { active: { delivery }, isSaved, since, until = Infinity, gone } = place
    const { deferred, flow: { route } } = delivery
    // What is deferred outlives a stop.
    if (!isSaved || (deferred && this.isClosed)) return
    if (isOverdue(delivery, wall) || until <= now) return { error: new RelayError('expired'), isFinal: true }
    if (gone?.aborted) return { error: new RelayError('unsent', 'the caller went away while its message was waiting'), isFinal: true }
    if (!deferred) return refusal && { error: refusal, isFinal: this.isClosed }
    if (!route || since === undefined) return
    // It goes on by its next way once it has waited for long enough, or its account will not be back by itself.
    if (now - since < route.after && !isLoggedOut(this.context.port.find(lane.bot))) return
    const error = refusal ?? new RelayError('unsent', 'it waited for too long: nothing was sent')
    return nextRung(delivery, failRest(delivery, error), wall) && { error, isFinal: false }
  }

  /** Why callers cannot wait in a lane: its gate is closed, its bot is offline, or what is before them waits for the data store. */
  private refusal(lane: Lane): RelayError | undefined {
    const { deliveries, gates, port } = this.context
    if (this.isClosed) return new RelayError('stopping')
    const account = port.find(lane.bot)
    const isStoreDown = lane.first?.active.delivery.deferred === true && (deliveries.isStoreDown || !deliveries.mayCall({ mustLast: true }))
    return gates.refusal(lane) ?? (!account?.isOnline ? offlineError(account) : isStoreDown ? new RelayError('store-down') : undefined)
  }

  private begin(lane: Lane, head: Place): void {
    // A caller who waits is counted by its door. What nobody waits for does not begin before a stop.
    const isCounted = head.active.delivery.deferred
    const leave = isCounted ? this.context.enter() : undefined
    if (isCounted && !leave) return
    lane.takeOut(place => place === head)
    lane.leaving = head
    this.context.gates.leaving(lane.bot)
    const work = this.work(lane, head).then(isDone => {
      this.working.delete(work)
      leave?.()
      const { leaving } = lane
      lane.leaving = undefined
      if (!isDone && leaving) lane.put(leaving)
      if (!isDone) lane.againAt = this.context.clock.now() + lookInterval
      this.advance(lane)
    })
    this.working.add(work)
  }

  /** @returns whether the head has ended, or left this lane; otherwise it is tried again */
  private async work(lane: Lane, head: Place): Promise<boolean> {
    const { context, context: { clock, gates, logger, port } } = this
    try {
      const account = port.find(lane.bot)
      if (!account || !await gates.mayTry(lane, account, lane.delay === 'restarted')) return false
      const active = await this.take(lane, head, account)
      const leftAt = clock.now()
      const end = await send(context, active, account, lane)
      if (end.failure && gates.failed(lane, end.failure, leftAt)) {
        lane.delay ??= 'closed'
        if (gates.isAboutChat(lane.name)) void gates.ask(lane, account).then(() => this.advance(lane))
      }
      return await this.conclude(lane, head, active, end)
    } catch (error) {
      // The journal does not answer, or this relay has lost it.
      this.sift(lane, lane.places, new RelayError('store-down'))
      const { id } = head.active.delivery
      if (!context.stop.aborted) logger.warn('%s', `${id} waits: ${error instanceof RelayError ? error.message : nameOfError(error)}`)
      return false
    }
  }

  /** The delivery whose turn has come: a digest, where several can leave as one. */
  private async take(lane: Lane, head: Place, account: Account): Promise<Active> {
    const { context, context: { clock, digest: { backlog } } } = this
    const isFit = (place: Place): boolean => {
      const { active: { delivery }, isSaved, isAlone } = place
      return isSaved && !isAlone && !isOverdue(delivery, clock.wall()) && joins(delivery, lane.delay)
    }
    if (!isFit(head)) return head.active
    const run = [head, ...takeWhile(lane.places.filter(place => this.isDue(lane, place)), isFit)].slice(0, mostMembers)
    const delay = backlog > 0 && run.length > backlog ? lane.delay : undefined
    const members = delay ? run : takeWhile(run, ({ active }) => joins(active.delivery, undefined))
    if (members.length < 2) return head.active
    // What is leaving cannot be withdrawn.
    const taken = new Set(members)
    lane.takeOut(place => taken.has(place))
    try {
      const active = await gather(context, [head.active, ...members.slice(1).map(place => place.active)], account, delay)
      lane.leaving = { active, since: head.since, isSaved: true, members }
      return active
    } catch (error) {
      for (const place of members) if (place !== head) lane.put(place)
      throw error
    }
  }

  /**
   * A digest could not leave: its members take their places again.
   *
   * @param isAlone whether each leaves by itself
   * @param reason why nothing leaves to this chat any more; then they go on by their next ways, or end
   */
  private async dissolve(
    lane: Lane, { delivery }: Active, members: readonly Active[], isAlone: boolean, reason?: RelayError,
  ): Promise<void> {
    const places = lane.leaving?.members ?? members.map((active): Place => ({ active, isSaved: true }))
    await this.context.deliveries.withdraw(delivery).catch(() => undefined)
    for (const member of places) {
      member.isAlone = isAlone
      if (reason) await this.give(member, { error: reason, isFinal: false })
      else lane.put(member)
    }
  }

  /** @returns as `work`; a deferred delivery waits on where nothing of it could leave now */
  private async conclude(lane: Lane, head: Place, active: Active, { results, failure }: SendEnd): Promise<boolean> {
    const { chats, deliveries, gates, stop, digest: { backlog } } = this.context
    const { id, flow, deferred } = active.delivery
    const mayHaveArrived = results.some(result => ['sent', 'unanswered'].includes(outcomeOf(result)))
    const members = deliveries.membersOf(active.delivery)
    if (mayHaveArrived) {
      const isLate = ({ active, since }: Place): boolean => since !== undefined && joins(active.delivery, lane.delay)
      gates.digested(lane.name, [active, ...members].map(({ delivery }) => delivery))
      if (lane.delay && lane.places.filter(isLate).length <= backlog) lane.delay = undefined
    }
    const waits = deferred && (stop.aborted ? !results.every(result => result?.success) : results.some(isPassing))
    const { last } = failure ?? {}
    // A caller who comes first tries for itself.
    if (waits && last?.causeId === 'unreachable') gates.close(lane.name, { cause: last.causeId, until: null })
    if (waits && last?.outcome === 'unsent' && !last.limit) this.sift(lane, lane.places, last.toRelayError())
    if (members.length > 0 && !mayHaveArrived && !stop.aborted) {
      const isOfChat = !waits && failure?.last.isAboutTarget === true
      await this.dissolve(lane, active, members, !waits, isOfChat ? failure.toRelayError() : undefined)
      lane.leaving = undefined
      return !waits
    }
    if (waits) {
      await deliveries.postpone(active, results)
    } else {
      const left = flow.route && !stop.aborted ? await this.moveOn(head, results) : results
      if (left) await deliveries.end(active, left)
      if (left && !deliveries.get(id)) chats.written(lane.name, id, left)
    }
    return !waits
  }

  /** A delivery goes on by its next way, or ends. Where the database does not answer, it takes its place again. */
  private async give(place: Place, { error, isFinal }: Over): Promise<void> {
    const { active, active: { delivery } } = place
    try {
      // Its caller may not wait for its end yet.
      await Promise.resolve()
      const results = failRest(delivery, error)
      const left = isFinal ? results : await this.moveOn(place, results)
      if (left) await this.context.deliveries.end(active, left, delivery.deferred || left !== results ? undefined : error)
    } catch {
      const lane = this.open(delivery)
      if (!lane.find(delivery.id)) lane.put(place)
      if (this.isClosed) this.advance(lane)
    }
  }

  /**
   * Has a delivery go on by its next way.
   *
   * @param results what has become of it by the present one
   * @returns how it ends, where there is no further way that takes it: `results` themselves where there is none at all
   */
  private async moveOn({ active, until = Infinity, signal }: Place, results: Results): Promise<Results | undefined> {
    const { clock, deliveries, port } = this.context
    const { delivery } = active
    // What waited together comes together.
    const delay = !delivery.deferred ? undefined : port.find(delivery.bot)?.isOnline ? 'closed' : 'offline'
    let end = results
    for (let change = nextRung(delivery, end, clock.wall()); change; change = nextRung(delivery, end, clock.wall())) {
      const items = await deliveries.itemsOf(active)
      deliveries.change(delivery, change)
      try {
        const { target, deferred, mode, flow: { route } } = delivery
        const rung = (route && currentRung(route)) ?? {}
        const account = deferred ? port.chooseLater(rung) : port.choose(rung)
        const wrong = account.check(target, items).find(item => item instanceof RelayError)
        if (wrong instanceof RelayError && mode === 'single') throw wrong
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

  /** Looks who has waited for too long, also where a lane cannot go on, and forgets the lanes that are empty. */
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

  /** Ends the hold of an empty lane after a while, unless the platform says that its chat is closed: no try would do so. */
  private async look(lane: Lane): Promise<void> {
    const { port, gates } = this.context
    const account = port.find(lane.bot)
    const isOver = !account || (await gates.mayTry(lane, account) && gates.isOld(lane.name))
    if (lane.places.length > 0) return
    if (isOver) gates.open(lane.name)
    this.advance(lane)
  }

  private isOnline({ bot }: Lane): boolean {
    return this.context.port.find(bot)?.isOnline === true
  }
}

/** Why an account sends nothing until a person changes something. */
const goneCauses = [causes['logged-out'], causes.kicked, causes['token-refused'], causes['bot-removed']]

/** Whether an account is logged out: it will not be back by itself. One that is not there may only not be there yet. */
function isLoggedOut(account: Account | undefined): boolean {
  return account?.isOnline === false && goneCauses.some(({ en }) => account.health.cause?.startsWith(en))
}

/** The elements before the first one that is not wanted. */
function takeWhile<T>(list: readonly T[], isWanted: (element: T) => boolean): T[] {
  const end = list.findIndex(element => !isWanted(element))
  return list.slice(0, end < 0 ? list.length : end)
}

/** Why nothing is sent through an account that is not online. */
function offlineError(account: Account | undefined): RelayError {
  const cause = account?.health.cause
  return new RelayError('unsent', cause && `${cause}: nothing was sent, try again later`)
}
