import type { Logger } from 'koishi'
import { RelayError } from '../errors'
import type { Target } from '../message/model'
import { readTarget, writeTarget } from '../message/target'
import type { Port } from '../platform/port'
import { pause } from './clock'
import { nameOfError, type Active } from './deliveries'
import { failRest, isOverdue, type Delivery } from './delivery'
import type { Head } from './journal'
import { send, type Pace, type SendContext } from './send'
import type { Observer } from './submission'

/** How lanes are worked. Times are in milliseconds. */
export interface LaneOptions {
  /** The least time from one platform message to the next in a lane. */
  interval: number
  /** How many deliveries may wait in a lane. */
  capacity: number
  /** After how many failures in a row that are about its target a lane is paused. */
  pauseAfter: number
  /** For how long. */
  pauseFor: number
}

/** What is known of the target of a lane. It outlives a reload of the plugin. */
export interface LaneFacts {
  /** Failures in a row. */
  failures: number
  /** What the last of them said. */
  reason?: string
  /** On the monotonic clock, like `lastSent`. */
  pausedUntil: number
  lastSent: number
}

/** A lane in which something waits, or that is paused, as operators see it. */
export interface LaneState {
  queue: string
  /** `platform:selfId`. */
  bot: string
  target: Target
  /** How many deliveries wait in it. */
  waiting: number
  /** What holds it: a pause after failures, a bot that is offline, a message on its way, or the interval between two messages. */
  hold: 'paused' | 'offline' | 'busy' | 'waiting'
  /** Since when the first of them waits, in milliseconds since the epoch. */
  oldest?: number
  /** When its pause ends, in milliseconds since the epoch. */
  pausedUntil?: number
  /** Why it is paused. */
  reason?: string
}

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
  /** When a waiting caller's time is over, on the monotonic clock. */
  readonly until: number
  /** Ends the watch of its caller and of its time. */
  unwatch?: () => void
}

interface Lane {
  readonly name: string
  readonly bot: string
  readonly target: Target
  readonly facts: LaneFacts
  readonly line: Place[]
  isBusy: boolean
  /** Cancels the timer of its next look. */
  cancel: () => void
}

/** What lanes need of the rest of the core. */
export interface LanesContext extends SendContext {
  port: Port
  options: LaneOptions
  facts: Map<string, LaneFacts>
  logger: Pick<Logger, 'warn'>
  observer: Pick<Observer, 'paused'>
  /** Counts what a stop gives some time to end; the function returned is called at the end. */
  enter: () => () => void
}

/** How a delivery waits for its turn. */
export interface Waiting {
  /** Aborted when its caller has gone away. */
  signal?: () => AbortSignal
  /** How long its caller waits for its turn, in milliseconds. */
  patience?: number | undefined
}

/** The content of so many deliveries of a lane stays in memory; that of the others is read when their turn comes. */
const mostLoaded = 20
/** How often a lane looks again whether it may go on, where no event says so, in milliseconds. */
const lookInterval = 1_000
/** How often it is looked whose time is over, in milliseconds. */
const expiryInterval = 5_000

/**
 * One lane per chat: the line of what goes to one target through one bot, in the order of acceptance, with or without a waiting caller. One
 * loop works it: it waits for the interval, drops what expired, sends the head, and notes what that says about the target.
 *
 * | the lane is | until                                   | a deferred delivery | a caller                        |
 * | ----------- | --------------------------------------- | ------------------- | ------------------------------- |
 * | free        |                                         | leaves              | leaves                          |
 * | busy        | the head has ended                      | waits               | waits                           |
 * | paused      | `pauseFor` is over, or an operator acts | waits               | is refused, also when it waits  |
 * | held        | the bot is online, the data store ours  | waits               | is refused behind one that waits |
 */
export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private readonly endWatches: (() => void)[]
  private readonly working = new Set<Promise<void>>()
  private isClosed = false
  private isDraining = false

  constructor(private readonly context: LanesContext) {
    const { port, clock } = context
    const unwatch = port.onOnline(() => this.advanceAll())
    let cancel = (): void => undefined
    const tick = (): void => {
      this.dropExpired()
      cancel = clock.after(expiryInterval, tick)
    }
    cancel = clock.after(expiryInterval, tick)
    this.endWatches = [unwatch, () => cancel()]
  }

  /**
   * Takes a place at the end of the lane of a delivery. Nothing leaves from it before `saved`, where the delivery must last.
   *
   * @throws RelayError `queue-full`, `paused`, `stopping`
   */
  enter({ delivery, mustLast }: Active, { signal, patience = Infinity }: Waiting = {}): void {
    const { clock, options } = this.context
    if (this.isClosed) throw new RelayError('stopping')
    const lane = this.open(delivery)
    const pause = this.pauseOf(lane)
    if (pause > 0 && !delivery.deferred) throw pausedError(pause)
    const isNext = lane.line.length === 0 && !lane.isBusy && this.restOf(lane) === 0 && this.isOnline(lane)
    if (!isNext && waitingIn(lane) >= options.capacity) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    const since = clock.now()
    const place: Place = { ...headOf(delivery), since, isSaved: !mustLast, until: since + patience }
    lane.line.push(place)
    lane.cancel()
    if (!isNext && !delivery.deferred) this.watch(lane, place, signal?.())
    if (place.isSaved) this.advance(lane)
  }

  /** The delivery is on disk: it may leave. */
  saved(active: Active): void {
    const lane = this.open(active.delivery)
    const place = lane.line.findLast(({ id }) => id === active.delivery.id)
    if (!place) return
    place.isSaved = true
    if (this.isClosed) {
      this.turnAway(lane, new RelayError('stopping'))
      return
    }
    if (active.delivery.deferred && lane.line.length > mostLoaded) this.context.deliveries.unload(active)
    this.advance(lane)
  }

  /** Puts a delivery that the journal has at its place in the order. */
  join(head: Head): void {
    const lane = this.open(head)
    if (lane.line.some(({ id }) => id === head.id)) return
    const place = { ...head, since: this.context.clock.now(), isSaved: true, until: Infinity }
    const isBusy = lane.isBusy ? 1 : 0
    let index = lane.line.length
    while (index > isBusy && (lane.line[index - 1]?.seq ?? 0) > head.seq) index--
    lane.line.splice(index, 0, place)
    this.advance(lane)
  }

  /**
   * Takes a delivery out of its line.
   *
   * @returns whether it waited there; what is leaving does not
   */
  leave(delivery: Pick<Delivery, 'id' | 'bot' | 'target'>): boolean {
    const lane = this.lanes.get(laneOf(delivery))
    const index = lane?.line.findIndex(({ id }) => id === delivery.id) ?? -1
    if (!lane || index < 0 || (index === 0 && lane.isBusy)) return false
    const [place] = lane.line.splice(index, 1)
    place?.unwatch?.()
    this.advance(lane)
    return true
  }

  /** The lanes in which something waits or that are paused. */
  states(): LaneState[] {
    const { clock } = this.context
    const now = clock.now()
    return [...this.lanes.values()].flatMap(lane => {
      const { name: queue, bot, target, line: [first], facts: { reason }, isBusy } = lane
      const [waiting, pause] = [waitingIn(lane), this.pauseOf(lane)]
      if (waiting === 0 && pause === 0) return []
      const hold = pause > 0 ? 'paused' : !this.isOnline(lane) ? 'offline' : isBusy ? 'busy' : 'waiting'
      return [{
        queue, bot, target, waiting, hold,
        ...first && { oldest: clock.wall() - (now - first.since) },
        ...pause > 0 && { pausedUntil: clock.wall() + pause, reason },
      }]
    })
  }

  /** What waits to be sent later, in all lanes. */
  backlog(): Backlog {
    const backlog: Backlog = { size: 0 }
    for (const { line } of this.lanes.values()) {
      for (const { id, deferred } of line) {
        if (!deferred) continue
        backlog.size++
        backlog.oldest = Math.min(backlog.oldest ?? Infinity, timeOf(id))
      }
    }
    return backlog
  }

  /** The lanes whose targets keep failing: they are paused, or were, and nothing has got through since. */
  failing(): string[] {
    const { facts, options } = this.context
    return [...facts].flatMap(([name, { failures }]) => failures >= options.pauseAfter ? [name] : [])
  }

  /** Ends the pause of a lane before its time. */
  resume(name: string): void {
    const lane = this.lanes.get(name)
    const facts = this.context.facts.get(name)
    if (facts) Object.assign(facts, { failures: 0, reason: undefined, pausedUntil: -Infinity })
    if (lane) this.advance(lane)
  }

  /**
   * Ends everything that waits in a lane for this reason.
   *
   * @returns how many there were
   */
  async drop(name: string, error: RelayError): Promise<number> {
    const lane = this.lanes.get(name)
    const places = lane?.line.splice(lane.isBusy ? 1 : 0) ?? []
    for (const place of places) await this.give(place, error)
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
    const facts = this.context.facts.get(name) ?? { failures: 0, pausedUntil: -Infinity, lastSent: -Infinity }
    const lane: Lane = { name, bot, target, facts, line: [], isBusy: false, cancel: () => undefined }
    this.context.facts.set(name, facts)
    this.lanes.set(name, lane)
    return lane
  }

  /** A caller who waits goes away, or its time is over. */
  private watch(lane: Lane, place: Place, gone: AbortSignal | undefined): void {
    const end = (error: RelayError): void => {
      const index = lane.line.indexOf(place)
      if (index < 0 || (index === 0 && lane.isBusy)) return
      lane.line.splice(index, 1)
      void this.give(place, error)
      this.advance(lane)
    }
    const onGone = (): void => end(new RelayError('unsent', 'the caller went away while its message was waiting'))
    const time = place.until - this.context.clock.now()
    const cancel = time < Infinity ? this.context.clock.after(time, () => end(new RelayError('expired'))) : undefined
    gone?.addEventListener('abort', onGone)
    place.unwatch = () => {
      cancel?.()
      gone?.removeEventListener('abort', onGone)
    }
    if (gone?.aborted) queueMicrotask(onGone)
  }

  private advanceAll(): void {
    for (const lane of this.lanes.values()) this.advance(lane)
  }

  /** Sends the head, as soon as that may be. */
  private advance(lane: Lane): void {
    lane.cancel()
    const { clock } = this.context
    if (this.isClosed || lane.isBusy) return
    const [head] = lane.line
    if (!head) {
      this.forget(lane)
      return
    }
    if (!head.isSaved || (this.isDraining && head.deferred)) return
    const rest = this.restOf(lane)
    if (rest > 0) {
      lane.cancel = clock.after(rest, () => this.advance(lane))
      return
    }
    lane.isBusy = true
    // A caller who waits is counted by its door.
    const leave = head.deferred ? this.context.enter() : undefined
    const work = this.work(lane, head).then(isDone => {
      this.working.delete(work)
      leave?.()
      lane.isBusy = false
      if (isDone) lane.line.splice(lane.line.indexOf(head), 1)
      if (isDone || this.isClosed) this.advance(lane)
      else lane.cancel = clock.after(lookInterval, () => this.advance(lane))
    })
    this.working.add(work)
  }

  /** @returns whether the head has ended; otherwise it is tried again */
  private async work(lane: Lane, head: Place): Promise<boolean> {
    head.unwatch?.()
    const { context } = this
    const { deliveries, clock, logger } = context
    try {
      const account = context.port.find(lane.bot)
      const loaded = deliveries.get(head.id)
      if (head.deferred && !isOverdue(head, clock.wall()) && !(account?.isOnline && (!loaded || deliveries.mayCall(loaded)))) {
        this.turnAway(lane, new RelayError('unsent'))
        return false
      }
      const active = loaded ?? await deliveries.load(head)
      if (!active) return true
      if (isOverdue(head, clock.wall()) || !account) {
        await deliveries.end(active, failRest(active.delivery, new RelayError(account || head.deferred ? 'expired' : 'unsent')))
        return true
      }
      const { isPostponed, verdict, reason } = await send(context, active, account, lane.name, this.paceOf(lane))
      this.note(lane, verdict, reason)
      return !isPostponed
    } catch (error) {
      // The journal does not answer, or this relay has lost it.
      this.turnAway(lane, new RelayError('store-down'))
      if (!context.stop.aborted) logger.warn('%s', `${head.id} waits: ${error instanceof RelayError ? error.message : nameOfError(error)}`)
      return false
    }
  }

  private paceOf(lane: Lane): Pace {
    const { clock, stop } = this.context
    return {
      ready: () => {
        const rest = this.intervalOf(lane)
        return rest > 0 ? pause(clock, rest, stop) : undefined
      },
      sent: () => {
        lane.facts.lastSent = clock.now()
      },
    }
  }

  private note(lane: Lane, verdict: 'good' | 'bad' | 'none', reason: string | undefined): void {
    const { facts } = lane
    const { clock, options: { pauseAfter, pauseFor }, observer } = this.context
    if (verdict === 'good') facts.failures = 0
    if (verdict !== 'bad') return
    facts.reason = reason
    if (++facts.failures < pauseAfter) return
    // From here on each failure, also that of a single probe, prolongs the pause.
    facts.pausedUntil = clock.now() + pauseFor
    this.turnAway(lane, pausedError(pauseFor))
    observer.paused()
  }

  /** Refuses the callers that wait in a lane. */
  private turnAway({ line, isBusy }: Lane, error: RelayError): void {
    const waiting = line.slice(isBusy ? 1 : 0).filter(({ deferred, isSaved }) => !deferred && isSaved)
    for (const place of waiting) {
      line.splice(line.indexOf(place), 1)
      void this.give(place, error)
    }
  }

  /** Ends a delivery that has not left. */
  private async give(place: Place, error: RelayError): Promise<void> {
    place.unwatch?.()
    const active = await this.context.deliveries.load(place)
    if (active) await this.context.deliveries.end(active, failRest(active.delivery, error), place.deferred ? undefined : error)
  }

  /** Ends what waited for too long, also where its lane cannot go on. */
  private dropExpired(): void {
    const wall = this.context.clock.wall()
    for (const lane of this.lanes.values()) {
      const overdue = lane.line.filter((place, index) => place.isSaved && isOverdue(place, wall) && !(index === 0 && lane.isBusy))
      for (const place of overdue) {
        lane.line.splice(lane.line.indexOf(place), 1)
        this.give(place, new RelayError('expired')).catch(() => this.join(place))
      }
      if (overdue.length > 0) this.advance(lane)
    }
  }

  /** Drops an empty lane once there is nothing left to remember. */
  private forget(lane: Lane): void {
    const { name } = lane
    const { clock, facts, options: { pauseFor } } = this.context
    // A target that failed is remembered for one more pause, so that its next failure counts.
    const keep = this.restOf(lane) + (lane.facts.failures > 0 ? pauseFor : 0)
    const drop = (): void => {
      this.lanes.delete(name)
      facts.delete(name)
    }
    if (keep > 0) lane.cancel = clock.after(keep, drop)
    else drop()
  }

  private isOnline({ bot }: Lane): boolean {
    return this.context.port.find(bot)?.isOnline === true
  }

  /** How long nothing may leave from a lane, in milliseconds. */
  private restOf(lane: Lane): number {
    return Math.max(this.intervalOf(lane), this.pauseOf(lane))
  }

  private intervalOf({ facts }: Lane): number {
    return Math.max(facts.lastSent + this.context.options.interval - this.context.clock.now(), 0)
  }

  private pauseOf({ facts }: Lane): number {
    return Math.max(facts.pausedUntil - this.context.clock.now(), 0)
  }
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

/** When a UUIDv7 was made, in milliseconds since the epoch. */
function timeOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

function headOf({ id, seq, state, deferred, bot, target, expiresAt }: Delivery): Head {
  return { id, seq, state, deferred, bot, target, expiresAt }
}

function waitingIn({ line, isBusy }: Lane): number {
  return line.length - (isBusy ? 1 : 0)
}

function pausedError(time: number): RelayError {
  return new RelayError('paused', undefined, { headers: { 'retry-after': String(Math.max(Math.ceil(time / 1000), 1)) } })
}
