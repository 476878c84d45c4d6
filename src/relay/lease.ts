import type { Context } from 'koishi'
import { createHash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { v4 as uuid } from 'uuid'

declare module 'koishi' {
  interface Tables {
    message_relay_lane: LaneRow
  }
}

/** Which relay delivers what waits in a lane, where several share a database. */
export interface LaneRow {
  /** Digest of the lane's name: MySQL takes names for equal that differ in case, and they may be longer than a key can be. */
  lane: string
  owner: string
  /** Changes whenever the owner renews its claim, and never comes back to a value that it had. */
  beat: number
}

/** A point in time, by the clock that only runs forward and by the one that goes on while the machine sleeps. */
interface Moment {
  running: number
  wall: number
}

/** The state in which another relay's claim was first seen, and when, by the clock that only runs forward. */
interface Sight {
  owner: string
  beat: number
  since: number
}

const table = 'message_relay_lane'

/**
 * How long a claim that is not renewed holds, in milliseconds. A relay that dies is replaced after this time, and the two seconds
 * that it may take the others to look at the lane before and after it.
 */
const defaultLease = 12_000

/**
 * Claims lanes for this relay. A relay claims a lane and not single deliveries, so that their order holds.
 *
 * No relay compares its clock with another's: a claim is abandoned once a relay has itself seen it unchanged for a whole lease,
 * while its owner stops relying on it some time before that, counted from before its last renewal.
 */
export class Claims {
  readonly isShared = true
  private readonly owner = uuid()
  private beat = 0
  /** The lanes claimed, and when each claim was surely ours. */
  private readonly held = new Map<string, Moment>()
  private readonly seen = new Map<string, Sight>()
  private readonly database: Context['database']

  /**
   * @param ctx a context with the database
   * @param lease in milliseconds, the same for all relays
   */
  constructor(ctx: Context, private readonly lease = defaultLease) {
    this.database = ctx.database
    ctx.model.extend(table, {
      lane: { type: 'string', length: 64, nullable: false },
      owner: { type: 'string', length: 36, nullable: false },
      beat: { type: 'unsigned', nullable: false },
    }, { primary: 'lane', indexes: ['owner'] })
    ctx.setInterval(() => void this.renew(), lease / 3)
  }

  /**
   * Whether this relay may send to a lane right now, as far as it can tell without asking. To be looked at before each message:
   * a process that was paused, or cut off from the database, may have lost its claim meanwhile.
   */
  holds(lane: string): boolean {
    const confirmed = this.held.get(toKey(lane))
    return confirmed !== undefined && elapsed(confirmed) < this.lease * 2 / 3
  }

  /**
   * Claims a lane, unless another relay holds it.
   *
   * @returns whether this relay holds it
   * @throws the error of the database
   */
  async acquire(lane: string): Promise<boolean> {
    if (this.holds(lane)) return true
    const key = toKey(lane)
    const start = moment()
    const [row] = await this.database.get(table, { lane: key })
    if (await this.take(key, row, start)) {
      this.seen.delete(key)
      this.held.set(key, start)
      return true
    }
    this.held.delete(key)
    return false
  }

  /**
   * Lets another relay have the lane.
   *
   * @throws the error of the database; the claim then ends by itself, because it is not renewed
   */
  async release(lane: string): Promise<void> {
    const key = toKey(lane)
    this.held.delete(key)
    await this.database.remove(table, { lane: key, owner: this.owner })
  }

  /** @param start when the row was asked for */
  private async take(lane: string, row: LaneRow | undefined, start: Moment): Promise<boolean> {
    const claim = { owner: this.owner, beat: ++this.beat }
    if (!row) return this.insert({ lane, ...claim })
    const { owner, beat } = row
    if (owner !== this.owner && !this.isAbandoned(row, start)) return false
    // Of several relays that come here at once, the condition lets one through.
    const { matched } = await this.database.set(table, { lane, owner, ...owner !== this.owner && { beat } }, claim)
    return matched === 1
  }

  private async insert(row: LaneRow): Promise<boolean> {
    try {
      await this.database.create(table, row)
      return true
    } catch (error) {
      // Another relay was quicker, for the primary key lets one of them through; or only the answer was lost.
      const [winner] = await this.database.get(table, { lane: row.lane })
      if (!winner) throw error
      return winner.owner === this.owner
    }
  }

  private isAbandoned({ lane, owner, beat }: LaneRow, start: Moment): boolean {
    const sight = this.seen.get(lane)
    if (sight?.owner === owner && sight.beat === beat) return start.running - sight.since >= this.lease
    this.seen.set(lane, { owner, beat, since: performance.now() })
    return false
  }

  /** Renews the claims held, and drops those that another relay has taken. */
  private async renew(): Promise<void> {
    this.forget()
    const lane = [...this.held.keys()]
    if (lane.length === 0) return
    const start = moment()
    try {
      // Only those held: one whose release failed has to run out.
      await this.database.set(table, { owner: this.owner, lane }, { beat: ++this.beat })
      const rows = await this.database.get(table, { owner: this.owner, lane }, ['lane'])
      const kept = new Set(rows.map(row => row.lane))
      for (const key of lane) {
        const confirmed = this.held.get(key)
        // It may have been released, or claimed anew, while the database was asked.
        if (!confirmed || confirmed.running > start.running) continue
        if (kept.has(key)) this.held.set(key, start)
        else this.held.delete(key)
      }
    } catch {
      // The database is away: the claims run out unless the next try succeeds, and nothing is sent without one.
    }
  }

  /** Drops what was seen of lanes in which nothing waits any more. */
  private forget(): void {
    const oldest = performance.now() - 4 * this.lease
    for (const [lane, { since }] of this.seen) if (since < oldest) this.seen.delete(lane)
  }
}

function toKey(lane: string): string {
  return createHash('sha256').update(lane).digest('hex')
}

function moment(): Moment {
  return { running: performance.now(), wall: Date.now() }
}

/** How much time has passed at most, in milliseconds. */
function elapsed({ running, wall }: Moment): number {
  return Math.max(performance.now() - running, Date.now() - wall)
}
