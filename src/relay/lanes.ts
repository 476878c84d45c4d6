import { RelayError } from '../errors'
import { causes } from '../message/causes'
import type { Target } from '../message/model'
import { timeOfDay } from '../message/quiet'
import { readTarget, writeTarget } from '../message/target'
import type { Account, Closure } from '../platform/port'
import { nameOfError, type Active } from './deliveries'
import { failRest, isOverdue, isPassing, outcomeOf, type Delivery, type Hold, type Results } from './delivery'
import { gather, joins } from './digest'
import { dueAt } from './flow'
import type { Gated } from './gates'
import { headOf, type Head } from './journal'
import type { Delay } from './options'
import { currentRung, hasNextRung, nextRung } from './route'
import { send, type SendContext, type SendEnd } from './send'

/** A lane in which something waits, or that is paused, as operators see it. */
export interface LaneState {
  queue: string
  /** `platform:selfId`. */
  bot: string
  target: Target
  /** How many deliveries wait in it. */
  waiting: number
  /**
   * What keeps it: failures in a row, a chat that is closed for a while, a bot that is offline, a limit of the platform, a message on its
   * way, or its interval.
   */
  state: 'paused' | 'held' | 'offline' | 'limited' | 'busy' | 'waiting'
  /** Since when the first of them waits, in milliseconds since the epoch. */
  oldest?: number
  /** When its pause ends, in milliseconds since the epoch. */
  pausedUntil?: number
  /** When the platform takes messages again, in milliseconds since the epoch. */
  limitedUntil?: number
  /** Why it is paused, held or limited. */
  reason?: string
  hold?: Hold
  /** How many wait for their time, also by what gives it, and for how long the next one does. */
  later?: { count: number, kinds: Readonly<Record<Deferral['kind'], number>>, next: number }
}

/** Why a delivery waits although its chat is open, and until when, in milliseconds since the epoch. */
export interface Deferral { kind: 'scheduled' | 'quiet' | 'digest', until: number }

/** What waits to be sent later. */
export interface Backlog {
  size: number
  /** When the oldest of it was accepted, in milliseconds since the epoch. */
  oldest?: number
}

/** A place in the line of a lane. Of a delivery that the journal has, only this much is in memory. */
interface Place extends Head {
  /** On the monotonic clock. */
  readonly since: number
  /** Nothing leaves from here before the delivery is saved. */
  isSaved: boolean
  /** When its time comes, in milliseconds since the epoch; absent where it has come, but for a digest. */
  due?: number | undefined
  /** Whether it leaves by itself, because a digest with it was refused. */
  isAlone?: boolean
  /** The places of the members of a digest. After a restart they are not known: then it leaves as it is. */
  members?: readonly Place[]
  /** Ends the watch of its caller and of its time. */
  unwatch?: () => void
}

interface Lane extends Gated {
  /** Those whose time has come, in the order of acceptance. The first of them is leaving where the lane is busy. */
  line: Place[]
  /** Those whose time has not come. They hold nothing up. */
  later: Place[]
  isBusy: boolean
  /** Why what waits is late, until that has left. */
  delay?: Delay
  /** Cancels the timer of its next look. */
  cancel: () => void
  /** Cancels the timer of those whose time has not come, and when it goes off, on the monotonic clock. */
  cancelLater: () => void
  laterAt: number
}

/** How a delivery waits for its turn. */
export interface Waiting {
  /** Aborted when its caller has gone away. */
  signal?: () => AbortSignal
  /** How long its caller waits for its turn, in milliseconds. */
  patience?: number | undefined
  /** Whether it was accepted before, and can go nowhere else: then it finds a place in a full lane as well. */
  isAccepted?: boolean
}

/** The content of so many deliveries of a lane stays in memory; that of the others is read when their turn comes. */
const mostLoaded = 20
/** How many deliveries one digest stands for, at most. */
const mostMembers = 500
/** How often a lane looks again whether it may go on, where no event says so, in milliseconds. */
const lookInterval = 1_000
/** How often it is looked whether an empty lane is still held, in milliseconds. */
const emptyLook = 60_000
/** How often it is looked whose time is over, in milliseconds. */
const expiryInterval = 5_000
/** How often it is looked at least whose time has come, because the machine's clock may be set. */
const dueInterval = 60_000

/**
 * One lane per chat: the line of what goes to one target through one bot, in the order of acceptance, with or without a waiting caller. One
 * loop works it: it waits until its gate opens, drops what expired, sends the head, and tells the gate what came of it.
 *
 * | the lane is | until                                  | a deferred delivery | a caller                         |
 * | ----------- | -------------------------------------- | ------------------- | -------------------------------- |
 * | free        |                                        | leaves              | leaves                           |
 * | busy        | the head has ended                     | waits               | waits                            |
 * | closed      | its gate opens (`gates.ts`)            | waits               | is refused, also when it waits   |
 * | held        | the bot is online, the data store ours | waits               | is refused behind one that waits |
 *
 * What is ordered for later, or must wait for quiet hours or a digest, stands aside until its time has come; then it takes its place in the
 * line. Deferred texts at the head of the line that have a digest, or are late, leave as one (`digest.ts`).
 */
export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private readonly endWatches: (() => void)[]
  private readonly working = new Set<Promise<void>>()
  private isClosed = false
  private isDraining = false

  constructor(private readonly context: SendContext) {
    const { port, clock, gates } = context
    const unwatch = port.onOnline(bot => {
      gates.online(bot)
      for (const lane of this.lanes.values()) this.advance(lane)
    })
    const unwatchChats = port.onChat((bot, target, closure) => this.onChat(this.open({ bot, target }), closure))
    let cancel = (): void => undefined
    const tick = (): void => {
      this.dropExpired()
      cancel = clock.after(expiryInterval, tick)
    }
    cancel = clock.after(expiryInterval, tick)
    this.endWatches = [unwatch, unwatchChats, () => cancel()]
  }

  /**
   * Takes a place at the end of the lane of a delivery. Nothing leaves from it before `saved`, where the delivery must last.
   *
   * @throws RelayError `queue-full`, `paused`, `stopping`
   */
  enter({ delivery, mustLast }: Active, { signal, patience = Infinity, isAccepted }: Waiting = {}): void {
    const { clock, gates, lane: { capacity } } = this.context
    if (this.isClosed) throw new RelayError('stopping')
    const lane = this.open(delivery)
    const refusal = delivery.deferred ? undefined : gates.refusal(lane)
    if (refusal) {
      this.advance(lane)
      throw refusal
    }
    const place: Place = { ...headOf(delivery), since: clock.now(), isSaved: !mustLast }
    const isDue = this.rest(lane, place) === 0
    const isNext = isDue && lane.line.length === 0 && !lane.isBusy && gates.rest(lane) === 0 && this.isOnline(lane)
    if (!isNext && !isAccepted && (isScheduled(place) ? lane.later.length : waitingIn(lane)) >= capacity) {
      throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    }
    lane.cancel()
    this.put(lane, place)
    if (!isNext && !delivery.deferred) this.watch(lane, place, patience, signal?.())
    if (place.isSaved) this.advance(lane)
  }

  /** Why a delivery would have to wait, or waits, although its chat is open; `undefined` where it would not. */
  deferral({ bot, target, flow }: Pick<Delivery, 'bot' | 'target' | 'flow'>): Deferral | undefined {
    const { clock, gates } = this.context
    if (!flow.policy && flow.sendAt === undefined) return
    const wall = clock.wall()
    const due = dueAt(flow, wall)
    if (due !== undefined) return { kind: flow.sendAt !== undefined && flow.sendAt > wall ? 'scheduled' : 'quiet', until: due }
    const rest = gates.digestRest(laneOf({ bot, target }), flow)
    if (rest > 0) return { kind: 'digest', until: wall + rest }
  }

  /** The delivery is on disk: it may leave. */
  saved(active: Active): void {
    const lane = this.open(active.delivery)
    const isIt = ({ id }: Place): boolean => id === active.delivery.id
    const place = lane.line.findLast(isIt) ?? lane.later.findLast(isIt)
    if (!place) return
    place.isSaved = true
    if (this.isClosed) {
      this.turnAway(lane, new RelayError('stopping'))
      return
    }
    if (active.delivery.deferred && (lane.line.length > mostLoaded || lane.later.includes(place))) this.context.deliveries.unload(active)
    this.advance(lane)
  }

  /**
   * Puts a delivery that the journal has at its place in the order.
   *
   * @param isLate whether it waited for this process to begin
   */
  join(head: Head, isLate = false): void {
    const lane = this.open(head)
    if ([...lane.line, ...lane.later].some(({ id }) => id === head.id)) return
    if (head.held) this.context.gates.restore(lane.name, head.held)
    if (isLate) lane.delay ??= 'restarted'
    this.put(lane, { ...head, since: this.context.clock.now(), isSaved: true })
    if (!isLate) {
      this.advance(lane)
      return
    }
    // Those behind it come right after it, and may leave with it.
    lane.cancel()
    lane.cancel = this.context.clock.after(0, () => this.advance(lane))
  }

  /**
   * Takes a delivery out of its line.
   *
   * @returns whether it waited there; what is leaving does not
   */
  leave(delivery: Pick<Delivery, 'id' | 'bot' | 'target'>): boolean {
    const lane = this.open(delivery)
    const [place] = this.takeOut(lane, ({ id }) => id === delivery.id)
    this.advance(lane)
    return place !== undefined
  }

  /** The lanes in which something waits, or that are paused or held. */
  states(): LaneState[] {
    const { clock, gates } = this.context
    return [...this.lanes.values()].flatMap(lane => {
      const { name: queue, bot, target, line: [first], later, isBusy } = lane
      const [waiting, pause, hold, limit] = [waitingIn(lane), gates.pause(queue), gates.hold(queue), gates.limit(lane)]
      if (waiting === 0 && later.length === 0 && pause === 0 && !hold) return []
      const isOnline = this.isOnline(lane)
      const state = hold ? 'held' : pause > 0 ? 'paused' : !isOnline ? 'offline' : limit > 0 ? 'limited' : isBusy ? 'busy' : 'waiting'
      return [{
        queue, bot, target, waiting, state,
        ...first && { oldest: clock.wall() - (clock.now() - first.since) },
        ...limit > 0 && { limitedUntil: clock.wall() + limit, reason: causes['rate-limited'].en },
        ...pause > 0 && { pausedUntil: clock.wall() + pause, reason: gates.reason(queue) },
        ...hold && { hold, reason: causes[hold.cause].en },
        ...later.length > 0 && { later: { count: later.length, kinds: countKinds(lane, clock.wall()), next: this.next(lane) } },
      }]
    })
  }

  /** What waits to be sent later, in all lanes. */
  backlog(): Backlog {
    const backlog: Backlog = { size: 0 }
    for (const { line, later } of this.lanes.values()) {
      for (const place of [...line, ...later]) {
        if (!place.deferred || isScheduled(place)) continue
        backlog.size++
        backlog.oldest = Math.min(backlog.oldest ?? Infinity, timeOf(place.id))
      }
    }
    return backlog
  }

  /** Ends what keeps a lane from sending. A lane whose chat the platform still calls closed is held again. */
  async resume(name: string): Promise<void> {
    const lane = this.lanes.get(name)
    const { gates, port } = this.context
    const wasClosed = gates.isAboutChat(name)
    gates.resume(name)
    if (!lane) return
    // An empty lane is forgotten once it is open.
    if (lane.line.length > 0) this.advance(lane)
    const account = port.find(lane.bot)
    if (wasClosed && account?.isOnline) await gates.ask(lane, account)
    this.turnAway(lane, gates.refusal(lane))
    this.advance(lane)
  }

  /**
   * Ends everything that waits in a lane for this reason.
   *
   * @returns how many there were
   * @throws the error of the database, and then the others wait on
   */
  async drop(name: string, error: RelayError): Promise<number> {
    const lane = this.lanes.get(name)
    const places = lane ? this.takeOut(lane, () => true) : []
    const left = new Set(places)
    try {
      for (const place of places) {
        await this.give(place, error)
        left.delete(place)
      }
    } finally {
      for (const place of left) this.join(place)
    }
    return places.length
  }

  /** Begins nothing more that nobody waits for. */
  drain(): void {
    this.isDraining = true
  }

  /** Refuses the callers that wait, and takes nothing more. What is deferred stays in the journal. */
  close(): void {
    this.isClosed = true
    for (const end of this.endWatches) end()
    for (const lane of this.lanes.values()) {
      lane.cancel()
      lane.cancelLater()
      this.turnAway(lane, new RelayError('stopping'))
      for (const place of lane.line) place.unwatch?.()
    }
  }

  /** Resolves once nothing is leaving any more. */
  async idle(): Promise<void> {
    await Promise.all(this.working)
  }

  private open({ bot, target }: Pick<Delivery, 'bot' | 'target'>): Lane {
    const name = laneOf({ bot, target })
    const known = this.lanes.get(name)
    if (known) return known
    const [line, later, nothing]: [Place[], Place[], () => void] = [[], [], () => undefined]
    const lane: Lane = { name, bot, target, line, later, isBusy: false, cancel: nothing, cancelLater: nothing, laterAt: Infinity }
    this.lanes.set(name, lane)
    return lane
  }

  /** Puts a place into the line, or aside as long as its time has not come. */
  private put(lane: Lane, place: Place): void {
    const rest = this.rest(lane, place)
    if (rest > 0) {
      lane.later.push(place)
      if (this.context.clock.now() + rest < lane.laterAt) this.wake(lane, rest)
      return
    }
    const before = lane.line.findLastIndex(({ seq }, index) => seq <= place.seq || (index === 0 && lane.isBusy))
    lane.line.splice(before + 1, 0, place)
  }

  /** How long until the time of a place comes, in milliseconds. Quiet hours may have begun while it was in the line. */
  private rest(lane: Lane, place: Place): number {
    const { state, deferred, isAlone, flow } = place
    // A caller waits for no such time, and what has begun to leave is brought to its end.
    if (!deferred || state === 'sending') return 0
    const { clock, gates } = this.context
    const wall = clock.wall()
    if (place.due === undefined || place.due <= wall) place.due = dueAt(flow, wall)
    return Math.max((place.due ?? wall) - wall, isAlone ? 0 : gates.digestRest(lane.name, flow))
  }

  /** How long until the time of one of those comes that wait for theirs, in milliseconds. */
  private next(lane: Lane): number {
    return lane.later.reduce((least, place) => Math.min(least, this.rest(lane, place)), Infinity)
  }

  /** Looks after so many milliseconds whose time has come. */
  private wake(lane: Lane, rest: number): void {
    const { clock } = this.context
    if (this.isClosed) return
    lane.cancelLater()
    const time = Math.min(rest, dueInterval)
    lane.laterAt = clock.now() + time
    lane.cancelLater = clock.after(time, () => {
      lane.laterAt = Infinity
      const [due, others] = divide(lane.later, place => this.rest(lane, place) <= 0)
      lane.later = others
      if (others.length > 0) this.wake(lane, this.next(lane))
      // Its waiting begins now.
      for (const place of due) this.put(lane, { ...place, since: clock.now() })
      this.advance(lane)
    })
  }

  /** A caller who waits goes away, or its time is over. */
  private watch(lane: Lane, place: Place, time: number, gone: AbortSignal | undefined): void {
    const end = (error: RelayError): void => {
      for (const taken of this.takeOut(lane, each => each === place)) void this.give(taken, error)
      this.advance(lane)
    }
    const onGone = (): void => end(new RelayError('unsent', 'the caller went away while its message was waiting'))
    const cancel = time < Infinity ? this.context.clock.after(time, () => end(new RelayError('expired'))) : undefined
    gone?.addEventListener('abort', onGone)
    place.unwatch = () => {
      cancel?.()
      gone?.removeEventListener('abort', onGone)
    }
    if (gone?.aborted) queueMicrotask(onGone)
  }

  /** The platform reports that it has closed a chat, or opened it again. */
  private onChat(lane: Lane, closure: Closure | 'open'): void {
    const { gates } = this.context
    if (closure === 'open') {
      gates.open(lane.name)
    } else {
      gates.close(lane.name, closure)
      lane.delay ??= 'closed'
    }
    this.turnAway(lane, gates.refusal(lane))
    this.advance(lane)
  }

  /** Sends the head, as soon as that may be. */
  private advance(lane: Lane): void {
    lane.cancel()
    const { clock } = this.context
    if (this.isClosed || lane.isBusy) return
    // A message that left meanwhile may have begun the time of a digest, and quiet hours may have begun.
    for (let [first] = lane.line; first && this.rest(lane, first) > 0; [first] = lane.line) {
      lane.line.shift()
      this.put(lane, first)
    }
    const [head] = lane.line
    if (!head) {
      delete lane.delay
      if (lane.later.length === 0) this.forget(lane)
      return
    }
    if (!head.isSaved || (this.isDraining && head.deferred)) return
    const rest = this.context.gates.rest(lane)
    if (rest > 0) {
      lane.cancel = clock.after(rest, () => this.advance(lane))
      return
    }
    lane.isBusy = true
    this.context.gates.leaving(lane.bot)
    // A caller who waits is counted by its door.
    const leave = head.deferred ? this.context.enter() : undefined
    const work = this.work(lane, head).then(isDone => {
      this.working.delete(work)
      leave?.()
      lane.isBusy = false
      if (isDone) lane.line.shift()
      if (isDone || this.isClosed) this.advance(lane)
      else lane.cancel = clock.after(lookInterval, () => this.advance(lane))
    })
    this.working.add(work)
  }

  /** @returns whether the head has ended; otherwise it is tried again */
  private async work(lane: Lane, head: Place): Promise<boolean> {
    head.unwatch?.()
    const { context } = this
    const { clock, gates, logger, port } = context
    try {
      const account = await this.accountFor(lane, head)
      if (account instanceof RelayError) {
        const isExpired = account.code === 'expired'
        const isLost = !isExpired && isLoggedOut(port.find(lane.bot))
        if (isLost) this.sendOn(lane, () => true, account)
        if (head.deferred && !isExpired && !(isLost && goesOn(head))) {
          lane.delay ??= gates.hold(lane.name) ? 'closed' : 'offline'
          this.turnAway(lane, account)
          return false
        }
        await this.give(head, account, isExpired)
        return true
      }
      const active = await this.take(lane, head)
      if (!active) return true
      const leftAt = clock.now()
      const end = await send(context, active, account, lane)
      if (end.failure?.causeId === 'swallowed' || end.failure?.causeId === 'vanished') gates.vanished(lane.bot, lane.name, leftAt)
      return await this.conclude(lane, active, account, end)
    } catch (error) {
      // The journal does not answer, or this relay has lost it.
      this.turnAway(lane, new RelayError('store-down'))
      if (!context.stop.aborted) logger.warn('%s', `${head.id} waits: ${error instanceof RelayError ? error.message : nameOfError(error)}`)
      return false
    }
  }

  /** The account through which the head of a lane may leave now, or why it may not. */
  private async accountFor(lane: Lane, head: Place): Promise<Account | RelayError> {
    const { port, clock, deliveries, gates } = this.context
    const account = port.find(lane.bot)
    if (isOverdue(head, clock.wall())) return new RelayError('expired')
    if (!account?.isOnline) return offlineError(account)
    if (head.deferred && !deliveries.mayCall({ mustLast: true })) return new RelayError('store-down')
    return await gates.mayTry(lane, account) ? account : gates.refusal(lane) ?? account
  }

  /** The delivery whose turn has come: a digest, where several can leave as one. */
  private async take(lane: Lane, head: Place): Promise<Active | undefined> {
    const { context, context: { clock, deliveries, digest: { backlog } } } = this
    const single = await deliveries.load(head)
    if (head.isAlone || !joins(head, lane.delay)) return single
    // From here on the line must not change until its members are taken out of it.
    const isFit = (place: Place): boolean => (
      place.state === 'queued' && place.isSaved && !place.isAlone && !isOverdue(place, clock.wall()) && this.rest(lane, place) === 0
    )
    const run = takeWhile(lane.line, place => isFit(place) && joins(place, lane.delay)).slice(0, mostMembers)
    const delay = backlog > 0 && run.length > backlog ? lane.delay : undefined
    const [first, ...others] = delay ? run : takeWhile(run, place => joins(place, undefined))
    // What may have arrived already is looked for by itself.
    if (!first || others.length === 0 || (single?.delivery.open.length ?? 0) > 0) return single
    // What is leaving cannot be withdrawn.
    lane.line.splice(1, others.length)
    try {
      const active = await gather(context, [first, ...others], delay)
      lane.line[0] = { ...headOf(active.delivery), since: head.since, isSaved: true, members: [first, ...others] }
      return active
    } catch (error) {
      for (const place of others) this.put(lane, place)
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
    lane: Lane, { delivery }: Active, members: readonly Place[], isAlone: boolean, reason?: RelayError,
  ): Promise<void> {
    await this.context.deliveries.withdraw(delivery).catch(() => undefined)
    for (const member of members) {
      if (reason) await this.give(member, reason, !goesOn(member)).catch(() => this.join(member))
      else this.put(lane, { ...member, isAlone })
    }
  }

  /** @returns whether the delivery has ended; a deferred one waits on where nothing of it could leave now */
  private async conclude(lane: Lane, active: Active, account: Account, { results, failure }: SendEnd): Promise<boolean> {
    const { deliveries, gates, stop, digest: { backlog } } = this.context
    const { flow, deferred } = active.delivery
    const mayHaveArrived = results.some(result => ['sent', 'unanswered'].includes(outcomeOf(result)))
    if (mayHaveArrived) {
      if (flow.policy) gates.digested(lane.name, flow)
      if (lane.delay && lane.line.filter(place => joins(place, lane.delay)).length <= backlog) delete lane.delay
    }
    if (failure && gates.failed(lane, failure)) {
      lane.delay ??= 'closed'
      this.turnAway(lane, gates.refusal(lane))
      void gates.learn(lane, account).then(() => this.advance(lane))
    }
    const waits = deferred && (stop.aborted ? !results.every(result => result?.success) : results.some(isPassing))
    const members = lane.line[0]?.members
    if (members && !mayHaveArrived && !stop.aborted) {
      const isOfChat = !waits && failure?.last.isAboutTarget === true
      await this.dissolve(lane, active, members, !waits, isOfChat ? failure.toRelayError() : undefined)
      return true
    }
    if (waits) {
      await deliveries.postpone(active, results, gates.hold(lane.name) ?? null)
    } else {
      const left = flow.route && !stop.aborted ? await this.moveOn(active, results) : results
      if (left) await deliveries.end(active, left)
    }
    return !waits
  }

  /**
   * Has those of a lane go on by their next ways, for this reason. What waits for its time stays.
   *
   * @returns how many there were
   */
  private sendOn(lane: Lane, isWanted: (place: Place) => boolean, reason: RelayError): number {
    const places = this.takeOut(lane, place => goesOn(place) && this.rest(lane, place) === 0 && isWanted(place))
    for (const place of places) {
      void this.give(place, reason, false).catch(() => false).then(isGone => {
        if (!isGone) this.join(place)
      })
    }
    return places.length
  }

  /**
   * Has a delivery go on by its next way.
   *
   * @param results what has become of it by the present one
   * @returns how it ends, where there is no further way that takes it
   */
  private async moveOn(active: Active, results: Results): Promise<Results | undefined> {
    const { clock, deliveries, port } = this.context
    const { delivery } = active
    let [moved, end] = [delivery, results]
    for (let change = nextRung(moved, end, clock.wall()); change; change = nextRung(moved, end, clock.wall())) {
      moved = { ...moved, ...change }
      try {
        const { target, deferred, mode, flow: { route } } = moved
        const rung = (route && currentRung(route)) ?? {}
        const account = deferred ? port.chooseLater(rung) : port.choose(rung)
        const wrong = account.check(target, active.items).find(item => item instanceof RelayError)
        if (wrong instanceof RelayError && mode === 'single') throw wrong
        moved.bot = account.sid
        this.enter({ ...active, delivery: moved }, { isAccepted: deferred && !hasNextRung(route) })
        await deliveries.redirect(active, { ...change, bot: moved.bot, flow: moved.flow })
        this.saved(active)
        return
      } catch (error) {
        if (!(error instanceof RelayError) || error.code === 'stopping') throw error
        end = failRest(moved, error)
      }
    }
    const { target, bot, flow } = moved
    if (moved !== delivery) await deliveries.redirect(active, { target, bot, flow, open: [], held: null })
    return end
  }

  /** Refuses the callers that wait in a lane, where there is a reason to. */
  private turnAway(lane: Lane, refusal: RelayError | undefined): void {
    if (!refusal) return
    for (const place of this.takeOut(lane, ({ deferred, isSaved }) => !deferred && isSaved)) void this.give(place, refusal, this.isClosed)
  }

  /** Takes places out of a line. What is leaving stays there. */
  private takeOut(lane: Lane, isWanted: (place: Place) => boolean): Place[] {
    const leaving = lane.isBusy ? lane.line[0] : undefined
    const [taken, line] = divide(lane.line, place => place !== leaving && isWanted(place))
    const [aside, later] = divide(lane.later, isWanted)
    if (taken.length > 0) lane.line = line
    if (aside.length > 0) lane.later = later
    for (const place of [...taken, ...aside]) place.unwatch?.()
    return [...taken, ...aside]
  }

  /**
   * Ends a delivery that has not left.
   *
   * @param isFinal whether it ends although there is a further way
   * @returns whether it is gone from here: not what was accepted and can go nowhere else
   */
  private async give(place: Place, error: RelayError, isFinal = true): Promise<boolean> {
    const { deliveries } = this.context
    const active = await deliveries.load(place)
    if (!active) return true
    const results = failRest(active.delivery, error)
    const left = isFinal ? results : await this.moveOn(active, results)
    // What has arrived in part can go nowhere else.
    if (!isFinal && place.deferred && left === results) return false
    if (left) await deliveries.end(active, left, place.deferred || left !== results ? undefined : error)
    return true
  }

  /** Ends what waited for too long, also where its lane cannot go on. */
  private dropExpired(): void {
    const [wall, now] = [this.context.clock.wall(), this.context.clock.now()]
    for (const lane of this.lanes.values()) {
      const overdue = this.takeOut(lane, place => place.isSaved && isOverdue(place, wall))
      for (const place of overdue) this.give(place, new RelayError('expired')).catch(() => this.join(place))
      const late = this.sendOn(lane, ({ since, flow: { route } }) => now - since >= (route?.after ?? Infinity), this.whyWaiting(lane))
      if (overdue.length + late > 0) this.advance(lane)
    }
  }

  /** Why what is in a lane has waited. */
  private whyWaiting({ name, bot }: Lane): RelayError {
    const account = this.context.port.find(bot)
    const hold = this.context.gates.hold(name)
    if (hold) return new RelayError('unsent', `${causes[hold.cause].en}: nothing was sent`)
    return account?.isOnline ? new RelayError('unsent', 'it waited for too long: nothing was sent') : offlineError(account)
  }

  /** Drops an empty lane once there is nothing left to remember. */
  private forget(lane: Lane): void {
    const { clock, gates } = this.context
    const rest = gates.memorable(lane)
    if (rest === Infinity) {
      lane.cancel = clock.after(Math.max(gates.rest(lane), emptyLook), () => void this.look(lane))
      return
    }
    const drop = (): void => {
      lane.cancelLater()
      this.lanes.delete(lane.name)
      gates.forget(lane.name)
    }
    if (rest > 0) lane.cancel = clock.after(rest, drop)
    else drop()
  }

  /** Ends the hold of an empty lane after a while, unless the platform says that its chat is closed: no try would do so. */
  private async look(lane: Lane): Promise<void> {
    const { port, gates } = this.context
    const account = port.find(lane.bot)
    const isOver = !account || (await gates.mayTry(lane, account) && gates.isOld(lane.name))
    if (lane.line.length > 0 || lane.later.length > 0) return
    if (isOver) gates.open(lane.name)
    this.advance(lane)
  }

  private isOnline({ bot }: Lane): boolean {
    return this.context.port.find(bot)?.isOnline === true
  }
}

/** Whether a place can be given to a further way. */
function goesOn({ isSaved, flow: { route } }: Place): boolean {
  return isSaved && hasNextRung(route)
}

/** Why an account sends nothing until a person changes something. */
const goneCauses = [causes['logged-out'], causes.kicked, causes['token-refused'], causes['bot-removed']]

/** Whether an account is logged out: it will not be back by itself. One that is not there may only not be there yet. */
function isLoggedOut(account: Account | undefined): boolean {
  return account?.isOnline === false && goneCauses.some(({ en }) => account.health.cause?.startsWith(en))
}

/** The name of the lane of what goes to a target through a bot. */
export function laneOf({ bot, target }: Pick<Delivery, 'bot' | 'target'>): string {
  return `${bot}/${writeTarget(target)}`
}

/** The bot and the target of a lane; `undefined` for what is no name of a lane. */
export function readLane(name: string): { bot: string, target: Target } | undefined {
  const [, bot, written = ''] = /^(.*?)\/((?:group|private):.*)$/s.exec(name) ?? []
  const target = readTarget(written)
  return bot === undefined || !target ? undefined : { bot, target }
}

/** The elements before the first one that is not wanted. */
function takeWhile<T>(list: readonly T[], isWanted: (element: T) => boolean): T[] {
  const end = list.findIndex(element => !isWanted(element))
  return list.slice(0, end < 0 ? list.length : end)
}

/** Divides a list into those that are wanted, and the others. */
function divide<T>(list: readonly T[], isWanted: (element: T) => boolean): [T[], T[]] {
  const [wanted, others]: [T[], T[]] = [[], []]
  for (const element of list) (isWanted(element) ? wanted : others).push(element)
  return [wanted, others]
}

/** Why a delivery waits although its chat is open, in plain English. */
export function reasonOf({ kind, until }: Deferral, { policy }: Delivery['flow']): string {
  if (kind === 'scheduled') return 'it was ordered for later'
  return kind === 'digest' ? 'it waits for the next digest' : `quiet hours until ${timeOfDay(until, policy?.quiet?.zone ?? 'UTC')}`
}

/** When a UUIDv7 was made, in milliseconds since the epoch. */
function timeOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Why nothing is sent through an account that is not online. */
function offlineError(account: Account | undefined): RelayError {
  const cause = account?.health.cause
  return new RelayError('unsent', cause && `${cause}: nothing was sent, try again later`)
}

/** What the places of a lane wait for that wait for their time. */
function countKinds({ later }: Lane, wall: number): Record<Deferral['kind'], number> {
  const kinds = { scheduled: 0, quiet: 0, digest: 0 }
  for (const place of later) kinds[isScheduled(place) ? 'scheduled' : (place.due ?? 0) > wall ? 'quiet' : 'digest']++
  return kinds
}

/** How many wait; what is ordered for later does not. */
function waitingIn({ line, later, isBusy }: Lane): number {
  return line.length - (isBusy ? 1 : 0) + later.filter(place => !isScheduled(place)).length
}

/** Whether the time comes that a delivery was ordered for. */
function isScheduled({ due, flow: { sendAt } }: Place): boolean {
  return sendAt !== undefined && due === sendAt
}
