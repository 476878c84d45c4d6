import type { Bot, Logger } from 'koishi'
import { setMaxListeners } from 'node:events'
import { v7 as uuid } from 'uuid'
import { isOnline } from '../delivery/bots'
import type { Lanes, Turn } from '../delivery/lanes'
import type { Transmitter } from '../delivery/transmitter'
import { RelayError } from '../errors'
import type { DatabaseRecords, Patch, WaitingLane } from './database'
import { Dispatcher } from './dispatcher'
import { insert } from './ledger'
import { Mutex } from './mutex'
import { breathe, describe, pause, sleep } from './patience'
import type { DeliveryRecord, State } from './record'
import { laneNameOf } from './row'
import { Watchers, type Watcher } from './watchers'

/** Says which relay delivers what waits in a lane. */
export interface LaneClaims {
  acquire(lane: string): Promise<boolean>
  /** Whether the lane is surely ours at this moment. */
  holds(lane: string): boolean
  release(lane: string): Promise<void>
}

export interface OutboxOptions {
  records: DatabaseRecords
  claims: LaneClaims
  lanes: Lanes
  transmitter: Transmitter
  bots: Iterable<Bot>
  logger: Logger
  /** Ends everything when the relay stops; what has not left stays in the database. */
  stop: AbortSignal
}

/** Deliveries that are leaving from this process. When the plugin is reloaded, the one before may not be done with its last. */
const leaving = new Set<string>()

/** How long others wait for the outbox to be opened, in milliseconds. */
const openingTime = 2_000

/** How long after its time was over a delivery of which a relay has died is given up, in milliseconds. */
const abandonment = 60 * 60 * 1000

/**
 * Delivers what was accepted to be delivered later: in the order of its lane, and across restarts. Whatever waits in a lane
 * whose bot is online has somebody queueing for it in the lane, and so its place before all that comes later.
 */
export class Outbox {
  /** Resolves once what an earlier process left has its place in the lanes. */
  readonly opened: Promise<void>
  isOpen = false
  private readonly dispatcher: Dispatcher
  /** The lanes that are being drained, and how many drains are still to come. */
  private readonly draining = new Map<string, number>()
  /** The lanes in which something waits for a bot. */
  private readonly stalled = new Map<string, string>()
  private readonly watchers: Watchers
  private readonly adding = new Mutex()

  /** @param prepare what has to be done before */
  constructor(private readonly options: OutboxOptions, prepare: () => Promise<void> = () => Promise.resolve()) {
    const { stop, logger } = options
    setMaxListeners(0, stop)
    this.watchers = new Watchers(stop)
    this.dispatcher = new Dispatcher(options, record => this.watchers.tell(record.id, record))
    const opening = prepare().then(() => this.scan()).catch((error: unknown) => {
      logger.warn('%s', `the outbox cannot be opened yet: ${describe(error)}`)
    })
    this.opened = Promise.race([opening, sleep(openingTime, stop)]).then(() => {
      this.isOpen = true
    })
  }

  /**
   * Stores a new delivery, and gives it its place in its lane.
   *
   * @throws RelayError `queue-full`, `in-progress`, `key-reused`, `store-down`
   */
  async add(record: DeliveryRecord, body: unknown): Promise<void> {
    const lane = laneNameOf(record)
    // One at a time, so that no more are let in than there is room for, and they leave in the order of their positions.
    await this.adding.run(lane, async () => {
      if (!await this.hasRoom(lane, record.bot)) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
      const position = uuid()
      await insert(this.options.records, record, position, body)
      this.drain({ lane, bot: record.bot }, position)
    })
  }

  /**
   * Gives a finished delivery a new place in its lane.
   *
   * @returns whether it was in one of these states
   */
  async requeue(record: DeliveryRecord, from: readonly State[], patch: Patch): Promise<boolean> {
    const lane = laneNameOf(record)
    const position = uuid()
    const isQueued = await this.options.records.requeue(record, from, position, patch)
    if (isQueued) this.drain({ lane, bot: record.bot }, position)
    return isQueued
  }

  /**
   * Takes a delivery back that has not begun to leave.
   *
   * @returns whether it did
   */
  async withdraw(record: DeliveryRecord): Promise<boolean> {
    const isWithdrawn = await this.options.records.withdraw(record.id)
    if (isWithdrawn) this.watchers.tell(record.id)
    return isWithdrawn
  }

  /** Delivers everything in a lane that was accepted up to this position, when the lane's turn has come and the bot is online. */
  drain({ lane, bot }: WaitingLane, upTo: string): void {
    if (this.options.stop.aborted) return
    if (!this.findBot(bot)) {
      this.stalled.set(lane, bot)
      return
    }
    this.draining.set(lane, (this.draining.get(lane) ?? 0) + 1)
    void this.drainInTurn({ lane, bot }, upTo)
      // Only because of the stop: then the next process goes on.
      .catch(() => undefined)
      .then(() => {
        const left = (this.draining.get(lane) ?? 1) - 1
        if (left > 0) this.draining.set(lane, left)
        else this.draining.delete(lane)
      })
  }

  /** Goes on with what waited for a bot that is online now. */
  wake(bot: string): void {
    for (const [lane, needed] of [...this.stalled]) {
      if (needed === bot && this.stalled.delete(lane)) this.drain({ lane, bot }, uuid())
    }
  }

  /** Looks for what waits and has nobody to deliver it: what another process left. */
  async scan(): Promise<void> {
    for (const waiting of await this.options.records.waitingLanes()) {
      if (!this.draining.has(waiting.lane)) this.drain(waiting, uuid())
    }
  }

  /** Drops what was not delivered in its time and waits for a bot or in a paused lane. */
  async expireOverdue(): Promise<void> {
    const { records } = this.options
    const now = Date.now()
    for (const [state, then] of [['queued', now], ['sending', now - abandonment]] as const) {
      for (let changed = true; changed;) {
        changed = false
        for (const record of await records.overdue(state, then)) {
          if (!leaving.has(record.id) && await this.dispatcher.expire(record)) changed = true
          await breathe()
        }
      }
    }
  }

  /** Calls back when this relay has finished a delivery, or ends; what it returns ends the watch. */
  watch(id: string, callback: Watcher): () => void {
    return this.watchers.watch(id, callback)
  }

  private async drainInTurn(waiting: WaitingLane, upTo: string): Promise<void> {
    const { lanes, claims, stop, logger } = this.options
    const { lane } = waiting
    const turn = await lanes.enter(lane, { patient: true, signal: () => stop })
    let step: 'next' | 'again' | 'leave' | 'empty' = 'next'
    try {
      while (step === 'next' || step === 'again') {
        // Before it is chosen what leaves: meanwhile it may be withdrawn, or expire.
        await turn.pace()
        if (isAborted(stop)) return
        try {
          step = await this.deliverNext(turn, waiting, upTo)
        } catch (error) {
          if (isAborted(stop)) return
          logger.warn('%s', `the outbox cannot go on with ${lane}: ${describe(error)}`)
          turn.turnAway(new RelayError('store-down'))
          step = 'again'
        }
        if (step === 'again') await sleep(pause, stop)
      }
    } finally {
      // Otherwise there is more to come, or the claim is another relay's.
      const isDone = step === 'empty' && this.draining.get(lane) === 1
      if (isDone || stop.aborted) await claims.release(lane).catch(() => undefined)
      turn.end()
    }
  }

  /** @returns `next` when the next one may follow at once, `again` after a while, otherwise why there is nothing to do here */
  private async deliverNext(turn: Turn, { lane, bot: sid }: WaitingLane, upTo: string): Promise<'next' | 'again' | 'leave' | 'empty'> {
    const { claims, records } = this.options
    // Where another relay holds the lane, that one delivers.
    if (!await claims.acquire(lane)) return 'leave'
    const next = await records.nextInLane(lane, upTo)
    if (!next) return 'empty'
    const { record: { id } } = next
    const bot = this.findBot(sid)
    if (!bot) {
      this.stalled.set(lane, sid)
      // For a relay whose bot is online.
      await claims.release(lane).catch(() => undefined)
      // They would overtake what waits.
      turn.turnAway(new RelayError('unsent'))
      return 'leave'
    }
    if (leaving.has(id)) return 'again'
    leaving.add(id)
    try {
      const isDone = await this.dispatcher.deliver(turn, bot, next, () => claims.holds(lane))
      if (!isDone) turn.turnAway(new RelayError('unsent'))
      return isDone ? 'next' : 'again'
    } finally {
      leaving.delete(id)
    }
  }

  private async hasRoom(lane: string, bot: string): Promise<boolean> {
    const { records, lanes } = this.options
    try {
      const room = lanes.room(lane)
      if (room > 0) return !await records.hasWaiting(lane, room)
      return lanes.isIdle(lane) && this.findBot(bot) !== undefined && !await records.hasWaiting(lane, 1)
    } catch (cause) {
      throw new RelayError('store-down', undefined, { cause })
    }
  }

  private findBot(sid: string): Bot | undefined {
    for (const bot of this.options.bots) if (bot.sid === sid && isOnline(bot)) return bot
  }
}

/** A function, because it may change at every wait. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
