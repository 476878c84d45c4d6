import type { Bot, Logger } from 'koishi'
import { setMaxListeners } from 'node:events'
import { v7 as uuid } from 'uuid'
import { laneOf } from '../platform/bots'
import type { Lanes } from './queue'
import type { Transmitter } from './transmitter'
import type { DatabaseRecords, Patch } from './database-store'
import { Dispatcher } from './worker'
import { Drains, isLeaving, type LaneClaims } from './backlog'
import { insert } from './ledger'
import { Mutex } from '../lib/mutex'
import { breathe, describe, sleep } from './patience'
import type { Precedence } from './precedence'
import type { DeliveryRecord, State } from './delivery'
import { Room } from './room'
import { Watchers, type Watcher } from './watchers'

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

/** How long others wait for the outbox to be opened, in milliseconds. */
const openingTime = 2_000

/** How long after its time was over a delivery of which a relay has died is given up, in milliseconds. */
const abandonment = 60 * 60 * 1000

/** Keeps what was accepted to be delivered later, and sees to it that it is: in the order of its lane, and across restarts. */
export class Outbox {
  /** Resolves once what an earlier process left has its place in the lanes. */
  readonly opened: Promise<void>
  isOpen = false
  private readonly dispatcher: Dispatcher
  private readonly drains: Drains
  private readonly room: Room
  private readonly watchers: Watchers
  private readonly adding = new Mutex()

  /** @param prepare what has to be done before */
  constructor(private readonly options: OutboxOptions, prepare: () => Promise<void> = () => Promise.resolve()) {
    const { records, claims, lanes, bots, logger, precedence, stop } = options
    setMaxListeners(0, stop)
    this.watchers = new Watchers(stop)
    this.dispatcher = new Dispatcher(options, record => this.watchers.tell(record.id, record))
    this.drains = new Drains({ records, claims, lanes, bots, logger, precedence, stop, dispatcher: this.dispatcher })
    this.room = new Room(records, lanes)
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
    const { bot, target } = record
    const lane = laneOf(bot, target)
    // One at a time, so that no more are let in than there is room for, and they leave in the order of their positions.
    await this.adding.run(lane, async () => {
      await this.room.take(lane, this.drains.findBot(bot) !== undefined)
      const position = uuid()
      await insert(this.options.records, record, position, body)
      this.options.precedence?.accept()
      this.drains.drain({ lane, bot }, position)
    })
  }

  /**
   * Gives a finished delivery a new place in its lane.
   *
   * @returns whether it was in one of these states
   */
  async requeue(record: DeliveryRecord, from: readonly State[], patch: Patch): Promise<boolean> {
    const { bot, target } = record
    const lane = laneOf(bot, target)
    const position = uuid()
    const isQueued = await this.options.records.requeue(record, from, position, patch)
    if (isQueued) this.drains.drain({ lane, bot }, position)
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

  /** Goes on with what waited for a bot that is online now. */
  wake(bot: string): void {
    this.drains.wake(bot)
  }

  /** Looks for what waits and has nobody to deliver it: what another process left. */
  async scan(): Promise<void> {
    for (const waiting of await this.options.records.waitingLanes()) {
      if (!this.drains.isDraining(waiting.lane)) this.drains.drain(waiting, uuid())
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
          if (!isLeaving(record.id) && await this.dispatcher.expire(record)) changed = true
          await breathe()
        }
      }
    }
  }

  /** Calls back when this relay has finished a delivery, or ends; what it returns ends the watch. */
  watch(id: string, callback: Watcher): () => void {
    return this.watchers.watch(id, callback)
  }
}
