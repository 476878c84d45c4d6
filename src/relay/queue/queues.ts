import { RelayError } from '../../errors'
import type { CauseId } from '../../message/causes'
import type { Account, Closure } from '../../platform/port'
import { every } from '../clock'
import type { Entry } from '../delivery/deliveries'
import { digestOf, failRest, isOverdue, type Delivery } from '../delivery/delivery'
import { send } from '../send/send'
import { gather, joins } from './bundle'
import { Ends, type QueuesContext, type Removal } from './conclude'
import { blockOf, refusalOf, restOf, type Obstacle } from './obstacles'
import { backlogOf, isScheduled, Queue, queueOf, readQueue, stateOf, untilDue, waitingIn, type Backlog, type QueueState, type Waiting } from './queue'
import { nextWay } from './ways'
import { say } from '../../texts/text'

/** The parts of the core for work that enters deliveries into queues. */
export interface EntryContext extends QueuesContext {
  queues: Queues
}

/** The state of a queue at one moment: why it refuses callers, and the times of both clocks. */
interface Moment { refusal: RelayError | undefined, now: number, wall: number }

/** How many deliveries of a queue keep their content in memory. The others read it from the file at their turn. */
const mostLoaded = 20
/** The most deliveries in one digest. */
const mostMembers = 500
/** How often each queue checks for expired, due and sendable deliveries, in milliseconds. */
const lookInterval = 1_000
/** How often an empty queue checks its hold, in milliseconds. */
const emptyLook = 60_000

/**
 * The queues: one per bot and target. A queue sends its deliveries one at a time, in the order of acceptance, whether or not their callers
 * wait. Its loop (`run`) removes expired deliveries, sends the head once its gate is open, and reports the result to the gate. An event
 * wakes the loop.
 *
 * | the queue is | until                                   | a deferred delivery | a caller                             |
 * | ------------ | --------------------------------------- | ------------------- | ------------------------------------ |
 * | free         |                                         | leaves              | leaves                               |
 * | busy         | the present send ends                   | waits               | waits                                |
 * | closed       | its gate opens (`gates.ts`)             | waits               | is refused, even if already waiting  |
 * | offline      | the bot is online                       | waits               | is refused, even if already waiting  |
 * | unwritten    | the file takes what has happened        | waits               | is refused behind a deferred one     |
 *
 * The head is the first delivery that is due. Scheduled deliveries, and those waiting for quiet hours or a digest, do not block the others.
 * Deferred texts at the head leave as one message if they have a digest or are late (`bundle.ts`).
 */
export class Queues {
  private readonly queues = new Map<string, Queue>()
  private readonly endWatches: (() => void)[]
  private readonly working = new Set<Promise<void>>()
  private readonly ends: Ends

  constructor(private readonly context: QueuesContext) {
    const { port, clock, gates } = context
    this.ends = new Ends(context, this)
    // Pauses and holds from before a reload still count, show, and end.
    for (const at of gates.names().map(readQueue)) if (at) this.wake(this.queueAt(at, true))
    const unwatch = port.onHealth((bot, isOnline) => {
      for (const queue of isOnline ? this.queues.values() : []) if (queue.bot === bot) void this.onOnline(queue)
    })
    const unwatchChats = port.onChat((bot, target, closure) => this.onChat(this.queueAt({ bot, target }), closure))
    this.endWatches = [unwatch, unwatchChats, every(clock, lookInterval, () => this.tick())]
  }

  /** Checks that a delivery may enter its queue. @throws RelayError `queue-full`, or the reason why the queue refuses callers */
  demandRoom(delivery: Delivery, { isAccepted }: Waiting = {}): void {
    const queue = this.queueAt(delivery, true)
    const obstacles = this.obstacles(queue)
    const refusal = delivery.deferred ? undefined : this.refusal(queue, obstacles)
    if (refusal) throw refusal
    if (isAccepted) return
    const deferral = this.deferralOf(queue, delivery)
    const isNext = !deferral && !queue.first && restOf(obstacles) === 0
    const waiting = isScheduled({ deferral }) ? queue.later.length : waitingIn(queue)
    if (!isNext && waiting >= this.context.queue.capacity) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
  }

  /** Puts a delivery into its queue, at its place in the order of acceptance. */
  enter(entry: Entry, { patience = Infinity, signal, delay }: Waiting = {}): void {
    const { clock, deliveries } = this.context
    const queue = this.queueAt(entry.delivery, true)
    const { first } = queue
    Object.assign(entry, { until: clock.now() + patience, signal, since: undefined, deferral: undefined })
    const isDue = this.isDue(queue, entry)
    queue.delay ??= delay
    queue.put(entry)
    const isNext = isDue && !first && restOf(this.obstacles(queue)) === 0
    if (!isNext) entry.gone = signal?.()
    if (entry.delivery.deferred && !isNext && (!isDue || queue.entries.length > mostLoaded)) deliveries.shed(entry)
    if (!first) this.wake(queue)
  }

  /** Whether an earlier delivery in the queue will start the digest interval that this delivery then has to wait for. */
  awaitsDigest(delivery: Delivery): boolean {
    const digest = digestOf(delivery)
    if (digest === undefined) return false
    const { leaving, entries } = this.queueAt(delivery)
    return [...leaving ? [leaving] : [], ...entries].some(entry => digestOf(entry.delivery) === digest)
  }

  /** Puts a delivery from before a restart into its queue. It leaves only after the present turn, in which others may join it. */
  join(entry: Entry): void {
    const queue = this.queueAt(entry.delivery, true)
    if (queue.entries.length === 0) this.context.clock.after(0, () => this.wake(queue))
    entry.isLeft = true
    queue.put(entry)
    queue.delay ??= 'restarted'
  }

  /** Whether a delivery waits in its queue; one that is being sent does not. */
  holds({ delivery }: Entry): boolean {
    return this.queueAt(delivery).find(delivery.id) !== undefined
  }

  /** Removes a waiting delivery from its queue. */
  giveUp(entry: Entry): void {
    const queue = this.queueAt(entry.delivery)
    queue.takeOut(each => each === entry)
    queue.wake()
  }

  /** The queues that are not empty, or are paused or held. Chats known only from notices of the platform are left out. */
  states(): QueueState[] {
    const { claims, clock, gates } = this.context
    const known = [...this.queues.values()].filter(({ isWanted, name }) => isWanted || claims.knows(name))
    return known.flatMap(queue => stateOf(queue, gates, clock) ?? [])
  }

  /** When a waiting delivery goes on to its next way, in milliseconds since the epoch; `undefined` if it never does. */
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
    queue.wake()
  }

  /**
   * Ends every delivery waiting in a queue with this error.
   *
   * @returns their number
   */
  drop(name: string, error: RelayError): number {
    const entries = this.queues.get(name)?.takeOut(() => true) ?? []
    for (const entry of entries) this.ends.remove(entry, { error, isFinal: true })
    return entries.length
  }

  /** Refuses waiting and new callers. Deferred deliveries stay in the file. */
  close(): void {
    for (const end of this.endWatches) end()
    for (const queue of this.queues.values()) {
      this.sift(queue)
      queue.wake()
    }
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

  /** Has a queue look again, in its loop. */
  private wake(queue: Queue): void {
    if (!queue.isRunning) void this.run(queue)
    // Meanwhile the loop waits for the present send.
    else if (queue.leaving) this.sift(queue)
    else queue.wake()
  }

  /** The loop of a queue, until it is empty. */
  private async run(queue: Queue): Promise<void> {
    const { clock } = this.context
    queue.isRunning = true
    for (;;) {
      const obstacles = this.obstacles(queue)
      this.sift(queue, this.refusal(queue, obstacles))
      // Meanwhile the queue may have been dropped, and made anew.
      if (this.hasStopped || this.queues.get(queue.name) !== queue) break
      // A send may have started a digest interval since, and quiet hours may have begun.
      const head = queue.entries.find(entry => this.isDue(queue, entry))
      const rest = head ? this.untilHead(queue, obstacles) : this.idleFor(queue, obstacles)
      if (rest === undefined) break
      await (head && rest === 0 ? this.leave(queue, head) : queue.woken(clock, rest))
      if (queue.entries.length === 0) await this.look(queue)
    }
    queue.isRunning = false
  }

  /** The time until a head may leave, in milliseconds. What keeps it makes the queue late. */
  private untilHead(queue: Queue, obstacles: readonly Obstacle[]): number {
    const state = blockOf(obstacles)?.state
    if (state !== undefined && state !== 'limited') queue.delay ??= state === 'offline' ? state : 'closed'
    return restOf(obstacles)
  }

  /** How long a queue waits in which nothing is due, in milliseconds; `undefined` if there is nothing to wait for. */
  private idleFor(queue: Queue, obstacles: readonly Obstacle[]): number | undefined {
    const { clock, gates } = this.context
    queue.delay = undefined
    if (queue.entries.length > 0) return untilDue(queue, clock)
    return gates.hold(queue.name) && Math.max(restOf(obstacles), emptyLook)
  }

  /** Why a delivery is not due; nothing defers a message whose caller waits, or of which a part may have arrived. */
  private deferralOf({ name }: Queue, delivery: Delivery, isAlone?: boolean): Entry['deferral'] {
    return delivery.deferred && delivery.open.length === 0 ? this.context.gates.deferral(name, delivery, isAlone) : undefined
  }

  /** Whether a delivery is due: its waiting time counts from then on. Quiet hours may begin while it is in the queue. */
  private isDue(queue: Queue, entry: Entry): boolean {
    const { clock } = this.context
    const { deferral, delivery, isAlone } = entry
    const isKnown = deferral !== undefined && deferral.kind !== 'digest' && deferral.until > clock.wall()
    if (!isKnown) entry.deferral = this.deferralOf(queue, delivery, isAlone)
    entry.since = entry.deferral ? undefined : entry.since ?? clock.now()
    return entry.deferral === undefined
  }

  /** All that keeps a queue from trying its head now. */
  private obstacles(queue: Queue): Obstacle[] {
    const { clock, gates } = this.context
    return [...gates.obstacles(queue), { rest: queue.againAt - clock.now(), block: undefined, turnsAway: false }]
  }

  /** The account of a queue is back. It has not heard what the platform reported meanwhile, so it asks about a closed chat. */
  private async onOnline(queue: Queue): Promise<void> {
    const { gates } = this.context
    gates.online(queue.name, queue.first === undefined)
    this.wake(queue)
    if (gates.isAboutChat(queue.name) && await gates.ask(queue) === 'open') this.onChat(queue, 'open')
  }

  /** The platform reports that a chat is closed, or open again. */
  private onChat(queue: Queue, closure: Closure | 'open'): void {
    const { gates } = this.context
    if (closure === 'open') gates.open(queue.name)
    else gates.close(queue.name, closure)
    this.wake(queue)
  }

  /**
   * Removes the deliveries that are to wait no longer.
   *
   * @param refusal why the queue refuses callers
   */
  sift(queue: Queue, refusal = this.refusal(queue)): void {
    const { entries } = queue
    if (entries.length === 0) return
    const { clock } = this.context
    const moment: Moment = { refusal, now: clock.now(), wall: clock.wall() }
    const removals = new Map(entries.flatMap(entry => {
      const removal = this.removalOf(queue, entry, moment)
      return removal ? [[entry, removal] as const] : []
    }))
    if (removals.size === 0) return
    queue.takeOut(entry => removals.has(entry))
    for (const [entry, removal] of removals) this.ends.remove(entry, removal)
  }

  /** Why a delivery is to wait no longer. */
  private removalOf(queue: Queue, entry: Entry, { refusal, now, wall }: Moment): Removal | undefined {
    // `isDue` notes since when a delivery has been due.
    if (entry.since === undefined) this.isDue(queue, entry)
    const { delivery, since, until = Infinity, gone } = entry
    const { deferred, flow: { route } } = delivery
    // A deferred delivery outlives a stop.
    if (deferred && this.hasStopped) return
    if (isOverdue(delivery, wall) || until <= now) return { error: new RelayError('expired'), isFinal: true }
    if (gone?.aborted) return { error: new RelayError('unsent', say('caller-gone')), isFinal: true }
    if (!deferred) return refusal && { error: refusal, isFinal: this.hasStopped }
    if (!route || since === undefined) return
    // The next way takes over after the time of the route, or at once where the account needs a person.
    if (now - since < route.after && !isLoggedOut(this.context.port.find(queue.bot))) return
    const error = refusal ?? new RelayError('unsent', say('waited-too-long'))
    return nextWay(delivery, failRest(delivery, error), wall) && { error, isFinal: false }
  }

  /** Why a queue refuses callers: its gate is closed, its bot is offline, or the delivery before them cannot be written. */
  private refusal(queue: Queue, obstacles = this.obstacles(queue)): RelayError | undefined {
    const { clock, deliveries } = this.context
    if (this.hasStopped) return new RelayError('stopping')
    return refusalOf(obstacles, clock.wall()) ?? (queue.first?.delivery.deferred ? deliveries.failure : undefined)
  }

  /** Sends the head, or a digest with it. */
  private async leave(queue: Queue, head: Entry): Promise<void> {
    const { clock, enter, gates } = this.context
    // The doors count the requests of waiting callers. A deferred delivery does not start while the relay stops.
    const done = head.delivery.deferred ? enter() : () => undefined
    if (!done) return queue.woken(clock, lookInterval)
    queue.takeOut(entry => entry === head)
    queue.leaving = head
    // Where an account lets one queue send at a time, the one that has waited longest is woken first.
    this.queues.delete(queue.name)
    this.queues.set(queue.name, queue)
    gates.leaving(queue.bot)
    const work = this.work(queue, head).then(left => {
      queue.leaving = undefined
      for (const entry of left) queue.put(entry)
      if (left.length > 0) queue.againAt = clock.now() + lookInterval
    })
    this.working.add(work)
    await work
    this.working.delete(work)
    done()
  }

  /** @returns what the queue has to try again */
  private async work(queue: Queue, head: Entry): Promise<readonly Entry[]> {
    const { context, context: { clock, gates, logger, port } } = this
    let entry = head
    try {
      const account = port.find(queue.bot)
      if (!account || !await gates.mayTry(queue, head.isLeft)) return [head]
      entry = queue.leaving = await this.take(queue, head, account)
      const leftAt = clock.now()
      const end = await send(context, entry, account, queue)
      if (end.failure && gates.failed(queue, end.failure, leftAt)) {
        queue.delay ??= 'closed'
        if (gates.isAboutChat(queue.name)) void gates.ask(queue).then(() => queue.wake())
      }
      return this.ends.conclude(queue, entry, end)
    } catch (thrown) {
      // The file cannot be read or written.
      const error = RelayError.from(thrown)
      this.sift(queue, error)
      if (!context.stop.aborted) logger.warn(say('delivery-waits', { id: head.delivery.id, failure: error.logText }))
      return [entry]
    }
  }

  /** The delivery to send: the head, or a digest of the head and others. */
  private async take(queue: Queue, head: Entry, account: Account): Promise<Entry> {
    const { context, context: { clock, digest: { backlog } } } = this
    const isFit = ({ delivery, isAlone }: Entry): boolean => !isAlone && !isOverdue(delivery, clock.wall()) && joins(delivery, queue.delay)
    if (!isFit(head)) return head
    const run = [head, ...takeWhile(queue.entries.filter(entry => this.isDue(queue, entry)), isFit)].slice(0, mostMembers)
    const delay = backlog > 0 && run.length > backlog ? queue.delay : undefined
    const members = delay ? run : takeWhile(run, ({ delivery }) => joins(delivery, undefined))
    if (members.length < 2) return head
    // Out of the queue, the members cannot be withdrawn any more.
    const taken = new Set(members)
    queue.takeOut(entry => taken.has(entry))
    try {
      const digest = await gather(context, [head, ...members.slice(1)], account, delay)
      digest.since = head.since
      return digest
    } catch (error) {
      for (const entry of members) if (entry !== head) queue.put(entry)
      throw error
    }
  }

  /** Wakes every queue, also those that cannot send, and drops the empty ones. */
  private tick(): void {
    const { gates } = this.context
    for (const queue of this.queues.values()) {
      if (queue.entries.length > 0) {
        this.wake(queue)
      } else if (!queue.leaving && !gates.isMemorable(queue)) {
        this.queues.delete(queue.name)
        gates.forget(queue.name)
      }
    }
  }

  /** Ends the hold of an empty queue after a while, unless the platform still reports its chat as closed: there is no send to end it. */
  private async look(queue: Queue): Promise<void> {
    const { clock, port, gates } = this.context
    const { nextTry = Infinity } = gates.hold(queue.name) ?? {}
    if (nextTry > clock.now()) return
    const account = port.find(queue.bot)
    // Nothing is tried in a hold of the account.
    const mayOpen = account && (!gates.isAboutChat(queue.name) || await gates.mayTry(queue))
    // A question that the stop cut short tells nothing.
    if (this.hasStopped || queue.entries.length > 0) return
    if (!account || (mayOpen && gates.isOld(queue.name))) gates.open(queue.name)
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
