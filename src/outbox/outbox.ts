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
import type { Precedence } from './precedence'
import type { DeliveryRecord, State } from './record'
import { laneNameOf } from './row'
import { Watchers, type Watcher } from './watchers'

/** Says which relay delivers what waits in a lane. */
export interface LaneClaims {
  acquire(lane: string): Promise<boolean>
  /** Whether the lane is surely ours at this moment. */
  holds(lane: string): boolean
  release(lane: string): Promise<void>
  /** Whether there may be other relays. */
  readonly isShared: boolean
}

/** What follows a delivery: the next one at once, the same after a while, or nothing that is to be done here. */
type Step = 'next' | 'again' | 'leave' | 'empty'

export interface OutboxOptions {
  records: DatabaseRecords
  claims: LaneClaims
  lanes: Lanes
  transmitter: Transmitter
  bots: Iterable<Bot>
  logger: Logger
  /** Where the database is embedded: what is accepted goes before what is delivered. */
  precedence?: Precedence
  /** Ends everything when the relay stops; what has not left stays in the database. */
  stop: AbortSignal
}

/** A place in a lane, of everything that was accepted up to a position and is not before it. */
interface Drain {
  upTo: string
  /** How many had come to the lane then, itself included. */
  readonly arrivals: number
}

/** A lane in which something waits. */
interface WaitingState {
  readonly bot: string
  /** Those still to come, the present one included. */
  readonly drains: Drain[]
  /** Whether it waits for its bot. */
  isStalled: boolean
  /** Whether nothing in it was left by a send that was interrupted. */
  isClean: boolean
  /** How many deliveries wait in it at most, as far as this relay knows, and when it last asked (milliseconds since the epoch). */
  count: number
  asked: number
}

/** How long it is believed how many deliveries wait in a lane, to which other relays may add, in milliseconds. */
const countAge = 1_000

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
  /** By the lane's name. */
  private readonly waiting = new Map<string, WaitingState>()
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
      const state = this.stateOf(lane, record.bot)
      try {
        if (!await this.hasRoom(lane, state)) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
        const position = uuid()
        await insert(this.options.records, record, position, body)
        state.count++
        this.options.precedence?.accepted()
        this.drain({ lane, bot: record.bot }, position)
      } finally {
        this.tidy(lane, state)
      }
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
    const state = this.stateOf(lane, bot)
    state.isStalled = !this.findBot(bot)
    if (state.isStalled) return
    const { lanes } = this.options
    const last = state.drains.at(-1)
    if (last?.arrivals === lanes.arrivals(lane)) {
      // Nobody has come since who could be overtaken.
      last.upTo = upTo
      return
    }
    void this.drainInTurn(lane, state, upTo)
      // Only because of the stop: then the next process goes on.
      .catch(() => undefined)
      .then(() => this.tidy(lane, state))
  }

  /** Goes on with what waited for a bot that is online now. */
  wake(bot: string): void {
    for (const [lane, state] of [...this.waiting]) if (state.isStalled && state.bot === bot) this.drain({ lane, bot }, uuid())
  }

  /** Looks for what waits and has nobody to deliver it: what another process left. */
  async scan(): Promise<void> {
    for (const waiting of await this.options.records.waitingLanes()) {
      if (!this.waiting.get(waiting.lane)?.drains.length) this.drain(waiting, uuid())
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

  private async drainInTurn(lane: string, state: WaitingState, upTo: string): Promise<void> {
    const { lanes, claims, precedence, stop, logger } = this.options
    const entering = lanes.enter(lane, { patient: true, signal: () => stop })
    const drain: Drain = { upTo, arrivals: lanes.arrivals(lane) }
    state.drains.push(drain)
    let turn: Turn | undefined
    let step: Step = 'next'
    try {
      turn = await entering
      while (step === 'next' || step === 'again') {
        // Before it is chosen what leaves: meanwhile it may be withdrawn, or expire.
        await turn.pace()
        await precedence?.pass()
        if (isAborted(stop)) return
        try {
          step = await this.deliverNext(turn, lane, state, drain)
        } catch (error) {
          if (isAborted(stop)) return
          logger.warn('%s', `the outbox cannot go on with ${lane}: ${describe(error)}`)
          turn.turnAway(new RelayError('store-down'))
          step = 'again'
        }
        if (step !== 'again') continue
        state.isClean = false
        await sleep(pause, stop)
      }
    } finally {
      state.drains.splice(state.drains.indexOf(drain), 1)
      // Otherwise there is more to come, or the claim is another relay's.
      const isDone = step === 'empty' && state.drains.length === 0
      if (isDone || stop.aborted) await claims.release(lane).catch(() => undefined)
      turn?.end()
    }
  }

  private async deliverNext(turn: Turn, lane: string, state: WaitingState, drain: Drain): Promise<Step> {
    const { claims, records } = this.options
    const { upTo } = drain
    // Where another relay holds the lane, that one delivers.
    if (!await claims.acquire(lane)) return 'leave'
    const interrupted = state.isClean ? undefined : await records.interruptedIn(lane)
    // Another relay may leave something behind at any time.
    state.isClean = !interrupted && !claims.isShared
    const next = interrupted ?? await records.nextInLane(lane, upTo)
    // More may have been accepted while the database was asked.
    if (!next) return drain.upTo === upTo ? 'empty' : 'next'
    const { position, record: { id } } = next
    const bot = this.findBot(state.bot)
    if (!bot) {
      state.isStalled = true
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
      if (isDone) return position === drain.upTo && !interrupted ? 'empty' : 'next'
      turn.turnAway(new RelayError('unsent'))
      return 'again'
    } finally {
      leaving.delete(id)
    }
  }

  private async hasRoom(lane: string, state: WaitingState): Promise<boolean> {
    const { records, lanes, claims } = this.options
    // Where nobody is to wait at all, it has to be one that can leave at once.
    const room = lanes.room(lane) || Number(lanes.isIdle(lane) && this.findBot(state.bot) !== undefined)
    const isKnown = Date.now() - state.asked < (claims.isShared ? countAge : Infinity)
    if (isKnown && state.count < room) return true
    try {
      state.count = await records.countWaiting(lane)
    } catch (cause) {
      throw new RelayError('store-down', undefined, { cause })
    }
    state.asked = Date.now()
    return state.count < room
  }

  private stateOf(lane: string, bot: string): WaitingState {
    const known = this.waiting.get(lane)
    if (known) return known
    const state: WaitingState = { bot, drains: [], isStalled: false, isClean: false, count: 0, asked: -Infinity }
    this.waiting.set(lane, state)
    return state
  }

  /** Forgets a lane in which nothing waits. */
  private tidy(lane: string, { drains, isStalled }: WaitingState): void {
    if (drains.length === 0 && !isStalled) this.waiting.delete(lane)
  }

  private findBot(sid: string): Bot | undefined {
    for (const bot of this.options.bots) if (bot.sid === sid && isOnline(bot)) return bot
  }
}

/** A function, because it may change at every wait. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
