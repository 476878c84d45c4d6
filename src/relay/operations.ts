import { RelayError } from '../errors'
import type { Target } from '../message/model'
import type { Queues, QueueState } from './sending/queue'
import type { Runtime } from './sending/runtime'
import { guard, readQueue, type Backlog } from './store/store'
import type { Stores } from './stores'

/** A queue in which something waits or that is paused. */
export interface HeldQueue {
  queue: string
  /** `platform:selfId`. */
  bot: string
  target: Target
  /** How many deliveries wait in it. */
  waiting: number
  /** What holds it: a pause after failures, a bot that is offline, a message on its way, or the interval between two messages. */
  hold: 'paused' | 'offline' | 'busy' | 'waiting'
  /** When its pause ends, in milliseconds since the epoch. */
  pausedUntil?: number
  /** Why it is paused: what the last failure said. */
  reason?: string
}

/** What operators see of what waits, and what they can do about it. */
export class Operations {
  constructor(
    private readonly queues: Queues, private readonly runtime: Pick<Runtime, 'port' | 'clock'>, private readonly stores: Pick<Stores, 'storage'>,
  ) {}

  /** The queues in which something waits or that are paused. */
  states(): QueueState[] {
    return this.queues.states()
  }

  /**
   * The same with what waits in the database, and what holds each of them.
   *
   * @throws RelayError `store-down`
   */
  async held(): Promise<HeldQueue[]> {
    const { storage } = this.stores
    const { port } = this.runtime
    const present = new Map(this.queues.states().map(state => [state.queue, state]))
    const stored = new Set((await guard(storage?.store.queues()) ?? []).map(({ queue }) => queue))
    const held: HeldQueue[] = []
    for (const queue of new Set([...present.keys(), ...stored])) {
      const place = readQueue(queue)
      if (!place) continue
      const { callers = 0, isBusy = false, pausedUntil, reason } = present.get(queue) ?? {}
      const { count } = stored.has(queue) ? await guard(storage?.store.waiting(queue)) ?? { count: 0 } : { count: 0 }
      const isOnline = port.find(place.bot)?.isOnline === true
      const hold = pausedUntil !== undefined ? 'paused' : !isOnline ? 'offline' : isBusy ? 'busy' : 'waiting'
      held.push({ queue, ...place, waiting: callers + count, hold, pausedUntil, reason })
    }
    return held
  }

  /** Ends the pause of a queue before its time. */
  resume(queue: string): void {
    this.queues.resume(queue)
  }

  /**
   * Gives up what waits in a queue: nothing of it is sent, and each of its callers is told so. What was stored can be sent again.
   *
   * @returns how many deliveries there were
   * @throws RelayError `not-found` where that names no queue, `store-down`
   */
  async drop(queue: string): Promise<number> {
    const place = readQueue(queue)
    if (!place) throw new RelayError('not-found')
    const error = new RelayError('unsent', 'dropped by an operator while it was waiting: nothing was sent')
    const callers = this.queues.drop(queue, error)
    return callers + (await guard(this.stores.storage?.backlog.drop({ queue, target: place.target }, error)) ?? 0)
  }

  /** The queues that are paused, or were, and nothing has got through since, by their names. */
  failing(): string[] {
    return this.queues.failing()
  }

  /** What waits in the database, `undefined` where there is none. Rejects when it does not answer. */
  async backlog(): Promise<Backlog | undefined> {
    const backlog = await this.stores.storage?.store.backlog()
    return backlog?.oldest === undefined ? backlog : { ...backlog, oldest: this.runtime.clock.toWall(backlog.oldest) }
  }

  /** Rejects when there is a database that does not answer. */
  async ping(): Promise<void> {
    await this.stores.storage?.store.ping()
  }
}
