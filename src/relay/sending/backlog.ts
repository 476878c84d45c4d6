import { RelayError } from '../../errors'
import { Mutex, sleep, yieldToOthers } from '../../lib/async'
import type { ParsedItem, Target } from '../../message/model'
import type { Account } from '../../platform/port'
import type { Change, Delivery, State } from '../delivery/delivery'
import type { Leases } from '../store/lease'
import { queueOf, type Store, type WaitingQueue } from '../store/store'
import type { Queues, Slot } from './queue'
import { nameOf, persist, retryDelay, type Runtime } from './runtime'
import type { Worker } from './worker'

export interface BacklogOptions {
  store: Store
  leases: Leases
  queues: Queues
  worker: Worker
  runtime: Runtime
}

/** A place in a queue, of everything in the store that was accepted up to a position and is not before it. */
interface Place {
  upTo: number
  /** How many had come to the queue then, itself included. */
  readonly arrivals: number
  /** Whether it is decided that it ends, so that it takes nothing more. */
  isClosed: boolean
}

/** A queue for which something waits in the store. */
interface WaitingState {
  readonly bot: string
  /** Those still to come, the present one included. */
  readonly places: Place[]
  /** Whether it waits for its bot. */
  isStalled: boolean
  /** Whether nothing in it was left by a send that was interrupted. */
  isClean: boolean
}

/** What follows a delivery: the next one at once, the same after a while, or nothing that is to be done here. */
type Step = 'next' | 'again' | 'leave' | 'empty'

/** How many that wait are read at once. */
const pageSize = 100

/** How many deliveries wait in a queue, as far as this relay knows. */
interface Count {
  waiting: number
  /** When the store was asked, on the monotonic clock. */
  readonly asked: number
}

/** How long a count is believed, in milliseconds: other relays may add to the queue. */
const maxCountAge = 1_000
/** How long others wait for what an earlier process left to have its place in the queues, in milliseconds. */
const openingTime = 2_000
/** How long a delivery waits at most for requests that are being accepted, in milliseconds. */
const longestYield = 2_000
/** How long after its time was over a delivery is given up of which a relay has died, in milliseconds. */
const abandonment = 60 * 60 * 1000

/**
 * What waits in the store to be sent: in the order of its queues, and across restarts. For each queue in which something waits and
 * whose bot is online, somebody waits for the slot; it then fetches one delivery after another. So the memory needed does not grow
 * with what waits.
 */
export class Backlog {
  /** Resolves once what an earlier process left has its place in the queues. */
  opened: Promise<void> = Promise.resolve()
  isOpen = false
  /** By the queue's name. */
  private readonly waiting = new Map<string, WaitingState>()
  private readonly counts = new Map<string, Count>()
  private readonly adding = new Mutex()
  /** The highest position known. */
  private position = 0
  /** How many were accepted so far. */
  private accepted = 0
  /** What is under way here. A scan, or another relay's death, may bring it up once more. */
  private readonly inFlight = new Set<string>()

  constructor(private readonly options: BacklogOptions) {}

  /**
   * Takes up what waits.
   *
   * @param prepare what has to be done before
   */
  open(prepare: () => Promise<void>): void {
    const { runtime } = this.options
    const isDone = new AbortController()
    const end = (): void => isDone.abort()
    // It only fails because of the stop.
    void prepare().then(() => persist(runtime, () => this.scan())).then(end, end)
    this.opened = sleep(openingTime, isDone.signal).then(() => {
      this.isOpen = true
    })
  }

  /**
   * Stores a new delivery, and gives it its place in its queue.
   *
   * @throws RelayError `queue-full`, or the error of the store
   */
  async add(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    const { bot, target } = delivery
    const queue = queueOf(bot, target)
    // One at a time, so that no more are let in than there is room for, and they leave in the order of their positions.
    await this.adding.run(queue, async () => {
      await this.takeRoom(queue, bot)
      const position = ++this.position
      await this.options.store.insert(delivery, position, items)
      this.accepted++
      this.queueUp({ queue, bot }, position)
    })
  }

  /** Gives a delivery that has ended a new place in its queue. Tells whether it was in one of these states. */
  async requeue(delivery: Delivery, from: readonly State[], change: Change): Promise<boolean> {
    const { bot, target } = delivery
    const queue = queueOf(bot, target)
    await this.ask(queue)
    const position = ++this.position
    const wasThere = await this.options.store.requeue(delivery, from, change, position)
    if (wasThere) this.queueUp({ queue, bot }, position)
    return wasThere
  }

  /** Takes over a delivery that was kept elsewhere and has ended, to send it again. */
  async adopt(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    const { bot, target } = delivery
    const queue = queueOf(bot, target)
    await this.ask(queue)
    const position = ++this.position
    await this.options.store.insert(delivery, position, items)
    this.queueUp({ queue, bot }, position)
  }

  /** Goes on with what waited for a bot that is online now. */
  wake(bot: string): void {
    for (const [queue, state] of [...this.waiting]) if (state.isStalled && state.bot === bot) this.queueUp({ queue, bot }, this.position)
  }

  /** Looks for what waits and has nobody to fetch it: what another process left. */
  async scan(): Promise<void> {
    for (const [queue, { asked }] of this.counts) if (performance.now() - asked > maxCountAge) this.counts.delete(queue)
    for (const waiting of await this.options.store.queues()) {
      if (this.waiting.get(waiting.queue)?.places.length) continue
      await this.ask(waiting.queue)
      this.queueUp(waiting, this.position)
    }
  }

  /** Drops what was not delivered in its time and waits for a bot or in a paused queue. */
  async expireOverdue(): Promise<void> {
    const { store, worker, runtime } = this.options
    const now = runtime.clock.now()
    for (const [state, then] of [['queued', now], ['sending', now - abandonment]] as const) {
      for (let hasChanged = true; hasChanged;) {
        hasChanged = false
        for (const delivery of await store.overdue(state, then)) {
          if (!this.inFlight.has(delivery.id) && await worker.abandon(delivery, store, new RelayError('expired'))) hasChanged = true
          await yieldToOthers()
        }
      }
    }
  }

  /**
   * Gives up what waits in a queue and is not about to leave. Rejects with the error of the store.
   *
   * @returns how many there were
   */
  async drop({ queue, target }: { queue: string, target: Target }, error: RelayError): Promise<number> {
    const { store, worker } = this.options
    let dropped = 0
    for (let before: string | undefined; ;) {
      // From the last one on, so that none takes the place of one that is given up.
      const found = await store.list({ states: ['queued'], targets: [target], before, limit: pageSize })
      for (const delivery of found) {
        const isIdle = delivery.deferred && queueOf(delivery.bot, delivery.target) === queue && !this.inFlight.has(delivery.id)
        if (isIdle && await worker.abandon(delivery, store, error)) dropped++
        await yieldToOthers()
      }
      if (found.length < pageSize) return dropped
      before = found.at(-1)?.id
    }
  }

  /** Sees to it that everything in a queue that was accepted up to this position is delivered, as soon as the bot is online. */
  private queueUp({ queue, bot }: WaitingQueue, upTo: number): void {
    const { queues, runtime } = this.options
    if (runtime.isPaused) {
      queues.shutOut(queue)
      return
    }
    const state = this.stateOf(queue, bot)
    state.isStalled = !this.findBot(bot)
    if (state.isStalled) return
    const last = state.places.at(-1)
    if (last && !last.isClosed && last.arrivals === queues.arrivals(queue)) {
      // Nobody has come since who could be overtaken.
      if (upTo > last.upTo) last.upTo = upTo
      return
    }
    void this.deliverInTurn(queue, state, upTo)
  }

  private async deliverInTurn(queue: string, state: WaitingState, upTo: number): Promise<void> {
    const { queues } = this.options
    const place: Place = { upTo, arrivals: queues.arrivals(queue) + 1, isClosed: false }
    state.places.push(place)
    // It only fails because of the stop: then the next process goes on.
    await queues.use(queue, { isPatient: true }, slot => this.deliverAll(slot, queue, state, place)).catch(() => undefined)
    remove(state.places, place)
    if (state.places.length === 0 && !state.isStalled) this.waiting.delete(queue)
  }

  private async deliverAll(slot: Slot, queue: string, state: WaitingState, place: Place): Promise<void> {
    const { leases, runtime } = this.options
    let step: Step = 'next'
    try {
      while (step === 'next' || step === 'again') step = await this.step(slot, queue, state, place)
    } finally {
      remove(state.places, place)
      // Otherwise there is more to come, or the lease is another relay's.
      const isDone = step === 'empty' && state.places.length === 0
      if (isDone || runtime.isPaused) await leases.release(queue).catch(() => undefined)
    }
  }

  private async step(slot: Slot, queue: string, state: WaitingState, place: Place): Promise<Step> {
    const { queues, runtime, leases } = this.options
    // Before it is chosen what leaves: meanwhile it may be withdrawn, or expire.
    await slot.pace()
    if (!leases.isShared) await this.yieldToAccepting()
    if (runtime.isPaused) {
      if (await this.isLeft(queue, place)) queues.shutOut(queue)
      return 'leave'
    }
    let step: Step
    try {
      step = await this.deliverNext(slot, queue, state, place)
    } catch (error) {
      if (runtime.stop.aborted || (error instanceof RelayError && error.code === 'stopping')) return 'leave'
      runtime.logger.warn('%s', `the queue ${queue} cannot go on: ${nameOf(error)}`)
      slot.turnAway(new RelayError('store-down'))
      step = 'again'
    }
    if (step === 'again') {
      state.isClean = false
      await sleep(retryDelay, runtime.stop)
    }
    return step
  }

  /** Whether anything is left in a queue for the next process, as far as is known. */
  private async isLeft(queue: string, { upTo }: Place): Promise<boolean> {
    const { store } = this.options
    try {
      return await store.interrupted(queue) !== undefined || await store.next(queue, upTo) !== undefined
    } catch {
      return true
    }
  }

  private async deliverNext(slot: Slot, queue: string, state: WaitingState, place: Place): Promise<Step> {
    const { leases, store, worker, runtime } = this.options
    const { upTo } = place
    // Where another relay holds the queue, that one delivers.
    if (!await leases.acquire(queue)) return close(place, 'leave')
    const interrupted = state.isClean ? undefined : await store.interrupted(queue)
    // Another relay may leave something behind at any time.
    state.isClean = !interrupted && !leases.isShared
    if (interrupted && leases.isShared && !interrupted.isOurs) runtime.openCalls.find(interrupted.delivery, interrupted.items)
    const next = interrupted ?? await store.next(queue, upTo)
    // More may have been accepted while the store was asked.
    if (!next) return place.upTo === upTo ? close(place, 'empty') : 'next'
    const { position, delivery, items } = next
    const account = this.findBot(state.bot)
    if (!account) {
      state.isStalled = true
      close(place, 'leave')
      // For a relay whose bot is online.
      await leases.release(queue).catch(() => undefined)
      // They would overtake what waits.
      slot.turnAway(new RelayError('unsent'))
      return 'leave'
    }
    if (this.inFlight.has(delivery.id)) return 'again'
    const leave = runtime.inFlight.enter()
    this.inFlight.add(delivery.id)
    try {
      const end = await worker.deliver(slot, { delivery, items, store, account, isOurs: () => leases.holds(queue) })
      if (end === 'done' && position === place.upTo && !interrupted) return close(place, 'empty')
      if (end !== 'again') return 'next'
      slot.turnAway(new RelayError('unsent'))
      return 'again'
    } finally {
      this.inFlight.delete(delivery.id)
      leave()
    }
  }

  /**
   * Lets requests be accepted before those accepted earlier are delivered: each statement of an embedded database holds up the
   * process, and a delivery takes several. Resolves after a turn of the event loop in which nothing was accepted.
   */
  private async yieldToAccepting(): Promise<void> {
    const end = performance.now() + longestYield
    for (let before = -1; before !== this.accepted && performance.now() < end;) {
      before = this.accepted
      await yieldToOthers()
    }
  }

  /** @throws RelayError `queue-full`, or the error of the store */
  private async takeRoom(queue: string, bot: string): Promise<void> {
    const { queues, leases } = this.options
    // Where nobody is to wait at all, one may still leave at once.
    const room = queues.capacityLeft(queue) || Number(this.findBot(bot) !== undefined && queues.isIdle(queue))
    let count = this.counts.get(queue)
    // What another relay has accepted just now is to come first.
    if (!count || leases.isShared || count.waiting >= room || performance.now() - count.asked >= maxCountAge) count = await this.ask(queue)
    if (count.waiting >= room) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    count.waiting++
  }

  /** Asks the store what waits in a queue; from then on the highest position known is no lower. */
  private async ask(queue: string): Promise<Count> {
    const asked = performance.now()
    const { count, last } = await this.options.store.waiting(queue)
    this.position = Math.max(this.position, last)
    const known: Count = { asked, waiting: count }
    this.counts.set(queue, known)
    return known
  }

  private findBot(sid: string): Account | undefined {
    const account = this.options.runtime.port.find(sid)
    return account?.isOnline ? account : undefined
  }

  private stateOf(queue: string, bot: string): WaitingState {
    const known = this.waiting.get(queue)
    if (known) return known
    const state: WaitingState = { bot, places: [], isStalled: false, isClean: false }
    this.waiting.set(queue, state)
    return state
  }
}

/** Ends a place: whatever is accepted from here on gets another one. */
function close(place: Place, step: 'leave' | 'empty'): Step {
  place.isClosed = true
  return step
}

function remove<T>(list: T[], entry: T): void {
  const index = list.indexOf(entry)
  if (index >= 0) list.splice(index, 1)
}
