import { RelayError } from '../errors'
import { causes } from '../message/causes'
import type { Target } from '../message/model'
import { readTarget, writeTarget } from '../message/target'
import type { Account, Closure } from '../platform/port'
import { nameOfError, type Active } from './deliveries'
import { failRest, isOverdue, isPassing, type Delivery, type Hold } from './delivery'
import type { Gated } from './gates'
import { headOf, type Head } from './journal'
import { send, type SendContext, type SendEnd } from './send'

/** A lane in which something waits, or that is paused, as operators see it. */
export interface LaneState {
  queue: string
  /** `platform:selfId`. */
  bot: string
  target: Target
  /** How many deliveries wait in it. */
  waiting: number
  /** What keeps it: failures in a row, a chat that is closed for a while, a bot that is offline, a message on its way, or its interval. */
  state: 'paused' | 'held' | 'offline' | 'busy' | 'waiting'
  /** Since when the first of them waits, in milliseconds since the epoch. */
  oldest?: number
  /** When its pause ends, in milliseconds since the epoch. */
  pausedUntil?: number
  /** Why it is paused or held. */
  reason?: string
  hold?: Hold
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
  /** Ends the watch of its caller and of its time. */
  unwatch?: () => void
}

interface Lane extends Gated {
  line: Place[]
  isBusy: boolean
  /** Cancels the timer of its next look. */
  cancel: () => void
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
/** How often it is looked whether an empty lane is still held, in milliseconds. */
const emptyLook = 60_000
/** How often it is looked whose time is over, in milliseconds. */
const expiryInterval = 5_000

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
  enter({ delivery, mustLast }: Active, { signal, patience = Infinity }: Waiting = {}): void {
    const { clock, gates, lane: { capacity } } = this.context
    if (this.isClosed) throw new RelayError('stopping')
    const lane = this.open(delivery)
    const refusal = delivery.deferred ? undefined : gates.refusal(lane)
    if (refusal) {
      this.advance(lane)
      throw refusal
    }
    const isNext = lane.line.length === 0 && !lane.isBusy && gates.rest(lane) === 0 && this.isOnline(lane)
    if (!isNext && waitingIn(lane) >= capacity) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    const place: Place = { ...headOf(delivery), since: clock.now(), isSaved: !mustLast }
    lane.line.push(place)
    lane.cancel()
    if (!isNext && !delivery.deferred) this.watch(lane, place, patience, signal?.())
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
    if (head.held) this.context.gates.restore(lane.name, head.held)
    const before = lane.line.findLastIndex(({ seq }, index) => seq <= head.seq || (index === 0 && lane.isBusy))
    lane.line.splice(before + 1, 0, { ...head, since: this.context.clock.now(), isSaved: true })
    this.advance(lane)
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
      const { name: queue, bot, target, line: [first], isBusy } = lane
      const [waiting, pause, hold] = [waitingIn(lane), gates.pause(queue), gates.hold(queue)]
      if (waiting === 0 && pause === 0 && !hold) return []
      const state = hold ? 'held' : pause > 0 ? 'paused' : !this.isOnline(lane) ? 'offline' : isBusy ? 'busy' : 'waiting'
      return [{
        queue, bot, target, waiting, state,
        ...first && { oldest: clock.wall() - (clock.now() - first.since) },
        ...pause > 0 && { pausedUntil: clock.wall() + pause, reason: gates.reason(queue) },
        ...hold && { hold, reason: causes[hold.cause].en },
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
   */
  async drop(name: string, error: RelayError): Promise<number> {
    const lane = this.lanes.get(name)
    const places = lane ? this.takeOut(lane, () => true) : []
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
    const lane: Lane = { name, bot, target, line: [], isBusy: false, cancel: () => undefined }
    this.lanes.set(name, lane)
    return lane
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
    if (closure === 'open') gates.open(lane.name)
    else gates.close(lane.name, closure)
    this.turnAway(lane, gates.refusal(lane))
    this.advance(lane)
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
    const { deliveries, clock, gates, logger } = context
    try {
      const account = await this.accountFor(lane, head)
      if (account instanceof RelayError && head.deferred && account.code !== 'expired') {
        this.turnAway(lane, account)
        return false
      }
      const active = await deliveries.load(head)
      if (!active) return true
      if (account instanceof RelayError) {
        await deliveries.end(active, failRest(active.delivery, account), account)
        return true
      }
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

  /** @returns whether the delivery has ended; a deferred one waits on where nothing of it could leave now */
  private async conclude(lane: Lane, active: Active, account: Account, { results, failure }: SendEnd): Promise<boolean> {
    const { deliveries, gates, stop } = this.context
    if (failure && gates.failed(lane, failure)) {
      this.turnAway(lane, gates.refusal(lane))
      void gates.learn(lane, account).then(() => this.advance(lane))
    }
    const waits = active.delivery.deferred && (stop.aborted ? !results.every(result => result?.success) : results.some(isPassing))
    if (waits) await deliveries.postpone(active, results, gates.hold(lane.name) ?? null)
    else await deliveries.end(active, results)
    return !waits
  }

  /** Refuses the callers that wait in a lane, where there is a reason to. */
  private turnAway(lane: Lane, refusal: RelayError | undefined): void {
    if (!refusal) return
    for (const place of this.takeOut(lane, ({ deferred, isSaved }) => !deferred && isSaved)) void this.give(place, refusal)
  }

  /** Takes places out of a line. What is leaving stays there. */
  private takeOut(lane: Lane, isWanted: (place: Place) => boolean): Place[] {
    const taken = new Set(lane.line.filter((place, index) => !(index === 0 && lane.isBusy) && isWanted(place)))
    if (taken.size > 0) lane.line = lane.line.filter(place => !taken.has(place))
    for (const place of taken) place.unwatch?.()
    return [...taken]
  }

  /** Ends a delivery that has not left. */
  private async give(place: Place, error: RelayError): Promise<void> {
    const active = await this.context.deliveries.load(place)
    if (active) await this.context.deliveries.end(active, failRest(active.delivery, error), place.deferred ? undefined : error)
  }

  /** Ends what waited for too long, also where its lane cannot go on. */
  private dropExpired(): void {
    const wall = this.context.clock.wall()
    for (const lane of this.lanes.values()) {
      const overdue = this.takeOut(lane, place => place.isSaved && isOverdue(place, wall))
      for (const place of overdue) this.give(place, new RelayError('expired')).catch(() => this.join(place))
      if (overdue.length > 0) this.advance(lane)
    }
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
    if (lane.line.length > 0) return
    if (isOver) gates.open(lane.name)
    this.advance(lane)
  }

  private isOnline({ bot }: Lane): boolean {
    return this.context.port.find(bot)?.isOnline === true
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

/** Why nothing is sent through an account that is not online. */
function offlineError(account: Account | undefined): RelayError {
  const cause = account?.health.cause
  return new RelayError('unsent', cause && `${cause}: nothing was sent, try again later`)
}

function waitingIn({ line, isBusy }: Lane): number {
  return line.length - (isBusy ? 1 : 0)
}
