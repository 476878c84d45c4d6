import type { Bot, Logger } from 'koishi'
import { v7 as uuid } from 'uuid'
import { isOnline } from '../platform/bots'
import type { Lanes, Turn } from './queue'
import { RelayError } from '../errors'
import type { DatabaseRecords, WaitingLane } from './database-store'
import type { Dispatcher } from './worker'
import { describe, pause, sleep } from './patience'
import type { Precedence } from './precedence'

/** Says which relay delivers what waits in a lane. */
export interface LaneClaims {
  acquire(lane: string): Promise<boolean>
  /** Whether the lane is surely ours at this moment. */
  holds(lane: string): boolean
  release(lane: string): Promise<void>
  /** Whether there may be other relays. */
  readonly isShared: boolean
}

export interface DrainsOptions {
  records: DatabaseRecords
  claims: LaneClaims
  lanes: Lanes
  dispatcher: Dispatcher
  bots: Iterable<Bot>
  logger: Logger
  /** Where the database is embedded: what is accepted goes before what is delivered. */
  precedence: Precedence | undefined
  stop: AbortSignal
}

/** A place in a lane, of everything that was accepted up to a position and is not before it. */
interface Drain {
  upTo: string
  /** How many had come to the lane then, itself included. */
  readonly arrivals: number
  /** Whether it is decided that it ends, so that it takes nothing more. */
  isClosed: boolean
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
}

/** What follows a delivery: the next one at once, the same after a while, or nothing that is to be done here. */
type Step = 'next' | 'again' | 'leave' | 'empty'

/** Deliveries that are leaving from this process. When the plugin is reloaded, the one before may not be done with its last. */
const leaving = new Set<string>()

/** Whether a delivery is leaving from this process at this moment. */
export function isLeaving(id: string): boolean {
  return leaving.has(id)
}

/**
 * Delivers what waits in the lanes. Whatever waits in a lane whose bot is online has somebody queueing for it in the lane, and
 * so its place before all that comes later.
 */
export class Drains {
  /** By the lane's name. */
  private readonly waiting = new Map<string, WaitingState>()

  constructor(private readonly options: DrainsOptions) {}

  /** Delivers everything in a lane that was accepted up to this position, when the lane's turn has come and the bot is online. */
  drain({ lane, bot }: WaitingLane, upTo: string): void {
    const { lanes, stop } = this.options
    if (stop.aborted) return
    const state = this.stateOf(lane, bot)
    state.isStalled = !this.findBot(bot)
    if (state.isStalled) return
    const last = state.drains.at(-1)
    if (last && !last.isClosed && last.arrivals === lanes.arrivals(lane)) {
      // Nobody has come since who could be overtaken.
      if (upTo > last.upTo) last.upTo = upTo
      return
    }
    void this.drainInTurn(lane, state, upTo)
      // Only because of the stop: then the next process goes on.
      .catch(() => undefined)
      .then(() => {
        if (state.drains.length === 0 && !state.isStalled) this.waiting.delete(lane)
      })
  }

  /** Whether somebody is queueing for what waits in a lane. */
  isDraining(lane: string): boolean {
    return (this.waiting.get(lane)?.drains.length ?? 0) > 0
  }

  /** Goes on with what waited for a bot that is online now. */
  wake(bot: string): void {
    for (const [lane, state] of [...this.waiting]) if (state.isStalled && state.bot === bot) this.drain({ lane, bot }, uuid())
  }

  /** The bot of this name, if it is online. */
  findBot(sid: string): Bot | undefined {
    for (const bot of this.options.bots) if (bot.sid === sid && isOnline(bot)) return bot
  }

  private async drainInTurn(lane: string, state: WaitingState, upTo: string): Promise<void> {
    const { lanes, claims, stop } = this.options
    const entering = lanes.enter(lane, { patient: true, signal: () => stop })
    const drain: Drain = { upTo, arrivals: lanes.arrivals(lane), isClosed: false }
    state.drains.push(drain)
    let turn: Turn | undefined
    let step: Step = 'next'
    try {
      turn = await entering
      while (step === 'next' || step === 'again') step = await this.step(turn, lane, state, drain)
    } finally {
      state.drains.splice(state.drains.indexOf(drain), 1)
      // Otherwise there is more to come, or the claim is another relay's.
      const isDone = step === 'empty' && state.drains.length === 0
      if (isDone || stop.aborted) await claims.release(lane).catch(() => undefined)
      turn?.end()
    }
  }

  private async step(turn: Turn, lane: string, state: WaitingState, drain: Drain): Promise<Step> {
    const { precedence, stop, logger } = this.options
    // Before it is chosen what leaves: meanwhile it may be withdrawn, or expire.
    await turn.pace()
    await precedence?.pass()
    if (stop.aborted) return 'leave'
    let step: Step
    try {
      step = await this.deliverNext(turn, lane, state, drain)
    } catch (error) {
      if (isAborted(stop)) return 'leave'
      logger.warn('%s', `the outbox cannot go on with ${lane}: ${describe(error)}`)
      turn.turnAway(new RelayError('store-down'))
      step = 'again'
    }
    if (step === 'again') {
      state.isClean = false
      await sleep(pause, stop)
    }
    return step
  }

  private async deliverNext(turn: Turn, lane: string, state: WaitingState, drain: Drain): Promise<Step> {
    const { claims, records, dispatcher } = this.options
    const { upTo } = drain
    // Where another relay holds the lane, that one delivers.
    if (!await claims.acquire(lane)) return close(drain, 'leave')
    const interrupted = state.isClean ? undefined : await records.interruptedIn(lane)
    // Another relay may leave something behind at any time.
    state.isClean = !interrupted && !claims.isShared
    const next = interrupted ?? await records.nextInLane(lane, upTo)
    // More may have been accepted while the database was asked.
    if (!next) return drain.upTo === upTo ? close(drain, 'empty') : 'next'
    const { position, record: { id } } = next
    const bot = this.findBot(state.bot)
    if (!bot) {
      state.isStalled = true
      close(drain, 'leave')
      // For a relay whose bot is online.
      await claims.release(lane).catch(() => undefined)
      // They would overtake what waits.
      turn.turnAway(new RelayError('unsent'))
      return 'leave'
    }
    if (leaving.has(id)) return 'again'
    leaving.add(id)
    try {
      const end = await dispatcher.deliver(turn, bot, next, () => claims.holds(lane))
      if (end === 'done' && position === drain.upTo && !interrupted) return close(drain, 'empty')
      if (end !== 'again') return 'next'
      turn.turnAway(new RelayError('unsent'))
      return 'again'
    } finally {
      leaving.delete(id)
    }
  }

  private stateOf(lane: string, bot: string): WaitingState {
    const known = this.waiting.get(lane)
    if (known) return known
    const state: WaitingState = { bot, drains: [], isStalled: false, isClean: false }
    this.waiting.set(lane, state)
    return state
  }
}

/** Ends a drain: whatever is accepted from here on gets another one. */
function close(drain: Drain, step: 'leave' | 'empty'): Step {
  drain.isClosed = true
  return step
}

/** A function, because it may change at every wait. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
