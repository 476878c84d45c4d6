import type { Bot, Logger } from 'koishi'
import { v7 as uuid } from 'uuid'
import { isOnline } from '../delivery/bots'
import { judge } from '../delivery/delivery'
import type { Lanes, Turn } from '../delivery/lanes'
import type { ItemResult, Transmitter } from '../delivery/transmitter'
import { RelayError } from '../errors'
import { itemsOf, parseRequest } from '../message/parse'
import type { DatabaseRecords, Patch, StoredRequest } from './database'
import { finalState, usesUpKey, type DeliveryRecord } from './record'

/** Says which relay delivers what waits in a lane. */
export interface LaneClaims {
  acquire(lane: string): Promise<boolean>
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

/** How long to wait before trying again what failed here and not at the platform, in milliseconds. */
const pause = 1_000

/** Delivers what was accepted to be delivered later: in the order of its lane, and across restarts. */
export class Outbox {
  /** The lanes that are being drained, and how many drains are still to come. */
  private readonly draining = new Map<string, number>()
  private readonly delivering = new Set<string>()
  private readonly watchers = new Map<string, Set<(record: DeliveryRecord) => void>>()

  constructor(private readonly options: OutboxOptions) {}

  /** Delivers everything in a lane that was accepted up to this delivery, when the lane's turn has come. */
  drain(lane: string, upTo: string): void {
    this.draining.set(lane, (this.draining.get(lane) ?? 0) + 1)
    void this.drainInTurn(lane, upTo).catch((error: unknown) => {
      this.options.logger.warn('%s', `the outbox cannot go on: ${describe(error)}`)
      return true
    }).then(again => {
      const left = (this.draining.get(lane) ?? 1) - 1
      if (left > 0) this.draining.set(lane, left)
      else this.draining.delete(lane)
      if (again && !this.options.stop.aborted) setTimeout(() => this.drain(lane, upTo), pause).unref()
    })
  }

  /** Drains the lanes in which something waits for a bot that is online. */
  async scan(): Promise<void> {
    for (const { lane, bot } of await this.options.records.waitingLanes()) {
      if (!this.draining.has(lane) && this.findBot(bot)) this.drain(lane, uuid())
    }
  }

  /** Drops what was not delivered in its time and waits for a bot or in a paused lane. */
  async expireOverdue(): Promise<void> {
    for (const record of await this.options.records.overdue(Date.now())) {
      if (!this.delivering.has(record.id)) await this.expire(record)
    }
  }

  /** Calls back when this relay has finished a delivery; what it returns ends the watch. */
  watch(id: string, callback: (record: DeliveryRecord) => void): () => void {
    const callbacks = this.watchers.get(id) ?? new Set()
    this.watchers.set(id, callbacks.add(callback))
    return () => {
      callbacks.delete(callback)
      if (callbacks.size === 0) this.watchers.delete(id)
    }
  }

  /** @returns whether to come back to the lane after a while */
  private async drainInTurn(lane: string, upTo: string): Promise<boolean> {
    const { lanes, claims, records, stop } = this.options
    const turn = await lanes.enter(lane, { patient: true })
    try {
      // Where another relay holds the lane, that one delivers.
      if (stop.aborted || !await claims.acquire(lane)) return false
      for (;;) {
        const next = await records.nextInLane(lane, upTo)
        if (!next) {
          if (this.draining.get(lane) === 1) await claims.release(lane)
          return false
        }
        const bot = this.findBot(next.record.bot)
        // The next scan comes back when the bot is online.
        if (!bot) return false
        this.delivering.add(next.record.id)
        try {
          if (await this.deliver(turn, bot, next) === 'wait') return true
        } finally {
          this.delivering.delete(next.record.id)
        }
      }
    } finally {
      turn.end()
    }
  }

  /** @returns `good` when the next delivery may follow at once */
  private async deliver(turn: Turn, bot: Bot, { record, body }: StoredRequest): Promise<'good' | 'wait'> {
    const { transmitter, stop } = this.options
    const items = itemsOf(parseRequest(body))
    const doubtful = record.sending
    if (!doubtful && isOverdue(record)) {
      await this.expire(record)
      return 'good'
    }
    const known = new Map<number, ItemResult>()
    record.results.forEach((result, index) => result && known.set(index, result))
    const results = await transmitter.transmit({
      turn, bot, target: record.target, items, known, ...doubtful && { doubtful },
      journal: {
        sending: indices => this.beginSending(record, indices),
        settled: (indices, result) => {
          for (const index of indices) record.results[index] = result
        },
        attempt: () => {
          record.attempts++
        },
        late: (indices, messageIds) => void this.settleLate(record, indices, messageIds),
      },
    })
    turn.judge(judge(results))
    const mayHaveArrived = results.some(result => !result.success && result.error.outcome === 'unanswered')
    // It is in the database as being sent, and is looked up after the restart.
    if (stop.aborted && mayHaveArrived) return 'wait'
    const unsent = results.filter(result => !result.success && (result.error.code === 'unsent' || result.error.code === 'stopping'))
    if (unsent.length > 0) {
      await this.persist(record, { state: 'queued', sending: null, results: results.map(result => unsent.includes(result) ? undefined : result) })
      return 'wait'
    }
    await this.finish(record, results)
    return judge(results) === 'bad' ? 'wait' : 'good'
  }

  /** @throws RelayError `conflict` when the delivery was withdrawn meanwhile */
  private async beginSending(record: DeliveryRecord, indices: readonly number[]): Promise<void> {
    const sending = { indices: [...indices], since: Date.now() }
    const isThere = await this.persist(record, { state: 'sending', sending, results: record.results })
    if (!isThere) throw new RelayError('conflict')
  }

  private expire(record: DeliveryRecord): Promise<void> {
    return this.finish(record, record.results.map(result => result ?? { success: false, error: new RelayError('expired') }))
  }

  private async finish(record: DeliveryRecord, results: readonly (ItemResult | undefined)[]): Promise<void> {
    await this.persist(record, {
      state: finalState(results), sending: null, results: [...results], ...!usesUpKey(results) && { key: null },
    })
    const { id, state, target, attempts } = record
    this.options.logger.info('%s', `${id} deferred ${target.kind}:${target.id} ${state} after ${attempts} attempts`)
    for (const callback of this.watchers.get(id) ?? []) callback(record)
  }

  private async settleLate(record: DeliveryRecord, indices: readonly number[], messageIds: string[]): Promise<void> {
    for (const index of indices) record.results[index] = { success: true, messageIds }
    await this.persist(record, { state: finalState(record.results), results: record.results })
  }

  /**
   * Writes down a change, however long the database takes to come back: nothing may leave that is not written down.
   *
   * @returns whether the delivery is still there
   * @throws RelayError `stopping`
   */
  private async persist(record: DeliveryRecord, patch: Patch): Promise<boolean> {
    Object.assign(record, patch)
    for (;;) {
      try {
        return await this.options.records.update(record.id, { ...patch, attempts: record.attempts })
      } catch (error) {
        this.options.logger.warn('%s', `${record.id} cannot be written to the database: ${describe(error)}`)
      }
      await new Promise(resolve => setTimeout(resolve, pause))
      if (this.options.stop.aborted) throw new RelayError('stopping')
    }
  }

  private findBot(sid: string): Bot | undefined {
    for (const bot of this.options.bots) if (bot.sid === sid && isOnline(bot)) return bot
  }
}

function isOverdue({ expiresAt }: DeliveryRecord): boolean {
  return expiresAt !== null && expiresAt < Date.now()
}

/** Texts of database errors may hold the values of a statement, message included. */
function describe(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 100) : typeof error
}
