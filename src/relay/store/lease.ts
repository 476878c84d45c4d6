import type { Context } from 'koishi'
import { uptime } from 'node:os'
import { performance } from 'node:perf_hooks'
import { digest } from '../../lib/crypto'
import { unwrap } from '../../lib/unwrap'

declare module 'koishi' {
  interface Tables {
    message_relay_lease: LeaseRow
  }
}

/** Which relay works a queue, where several share a database; and, under the name of its owner, that a relay is alive. */
export interface LeaseRow {
  /** Digest of the queue's name: MySQL takes names for equal that differ in case, and they may be longer than a key can be. */
  queue: string
  owner: string
  /** Changes whenever the owner renews its lease, and never comes back to a value that it had. */
  beat: number
}

/** A point in time in milliseconds, by a clock that only runs forward and by one that goes on while the machine sleeps as well. */
interface Moment {
  running: number
  awake: number
}

/** The state in which another relay's lease was first seen, and when, by the clock that only runs forward. */
interface Sight {
  owner: string
  beat: number
  since: number
}

const table = 'message_relay_lease'

/** Says which relay works a queue, and which relays are alive. */
export interface Leases {
  /** Whether there may be other relays. */
  readonly isShared: boolean
  /** Takes a queue unless another relay has it, and tells whether this relay has it. Rejects with the error of the database. */
  acquire(queue: string): Promise<boolean>
  /** Whether the queue is surely this relay's at this moment. */
  holds(queue: string): boolean
  /** Lets another relay have the queue. */
  release(queue: string): Promise<void>
  /** Whether the others can surely tell at this moment that this relay is alive. */
  isAlive(): boolean
  /** Makes known that this relay is alive. Rejects with the error of the database. */
  announce(): Promise<void>
  /** Does it again and renews what is held from time to time, until the context is disposed. */
  keep(ctx: Context): void
  /** After which time another relay counts as dead unless it gives a sign of life, in milliseconds; 0 when it is dead. */
  lifeOf(owner: string): Promise<number>
  /** Forgets a relay that is dead. */
  bury(owner: string): Promise<void>
  /** The relays besides this one that were alive and are not forgotten. */
  others(): Promise<string[]>
}

/**
 * Those for a database within the process, which no other relay can use: the others are dead.
 *
 * @param others gives those that have left something
 */
export function createLocalLeases(others: () => Promise<string[]>): Leases {
  return {
    isShared: false,
    acquire: () => Promise.resolve(true),
    holds: () => true,
    release: () => Promise.resolve(),
    isAlive: () => true,
    announce: () => Promise.resolve(),
    keep: () => undefined,
    lifeOf: () => Promise.resolve(0),
    bury: () => Promise.resolve(),
    others,
  }
}

/**
 * How long a lease that is not renewed holds, in milliseconds. A relay that dies is replaced after this time, and the two seconds
 * that it may take the others to look at the queue before and after it.
 */
const defaultDuration = 12_000

/**
 * Leases in the database. A relay leases a queue and not single deliveries, so that their order holds.
 *
 * No relay compares its clock with another's: a lease is over once a relay has itself seen it unchanged for its whole duration,
 * while its owner stops relying on it some time before that, counted from before its last renewal.
 */
export class DatabaseLeases implements Leases {
  readonly isShared = true
  private beat = 0
  /** The queues held, and when each was surely ours. */
  private readonly held = new Map<string, Moment>()
  private readonly seen = new Map<string, Sight>()
  private readonly database: Context['database']

  /**
   * @param ctx a context with the database
   * @param owner this process
   * @param duration in milliseconds, the same for all relays
   */
  constructor(ctx: Context, private readonly owner: string, private readonly duration = defaultDuration) {
    this.database = unwrap(ctx.database)
    ctx.model.extend(table, {
      queue: { type: 'string', length: 64, nullable: false },
      owner: { type: 'string', length: 36, nullable: false },
      beat: { type: 'unsigned', nullable: false },
    }, { primary: 'queue', indexes: ['owner'] })
  }

  keep(ctx: Context): void {
    ctx.setInterval(() => {
      // What fails is tried again soon.
      void this.renew().then(() => this.announce()).catch(() => undefined)
    }, this.duration / 3)
  }

  async announce(): Promise<void> {
    await this.hold(this.owner)
  }

  isAlive(): boolean {
    return this.isHeld(this.owner)
  }

  async lifeOf(owner: string): Promise<number> {
    const start = moment()
    const [row = { queue: owner, owner, beat: -1 }] = await this.database.get(table, { queue: owner })
    return this.lifeLeft(row, start)
  }

  async bury(owner: string): Promise<void> {
    await this.database.remove(table, { queue: owner })
  }

  async others(): Promise<string[]> {
    const rows = await this.database.get(table, { owner: { $ne: this.owner } }, ['queue', 'owner'])
    return rows.flatMap(({ queue, owner }) => queue === owner ? [owner] : [])
  }

  /**
   * Whether this relay may work a queue right now, as far as it can tell without asking. To be looked at before each message:
   * a process that was paused, or cut off from the database, may have lost its lease meanwhile.
   */
  holds(queue: string): boolean {
    return this.isHeld(digest(queue))
  }

  acquire(queue: string): Promise<boolean> {
    return this.hold(digest(queue))
  }

  /** When it rejects, the lease ends by itself, because it is not renewed. */
  async release(queue: string): Promise<void> {
    const key = digest(queue)
    this.held.delete(key)
    await this.database.remove(table, { queue: key, owner: this.owner })
  }

  private isHeld(key: string): boolean {
    const confirmed = this.held.get(key)
    return confirmed !== undefined && elapsed(confirmed) < this.duration * 2 / 3
  }

  private async hold(key: string): Promise<boolean> {
    if (this.isHeld(key)) return true
    const start = moment()
    const [row] = await this.database.get(table, { queue: key })
    if (await this.take(key, row, start)) {
      this.seen.delete(key)
      this.held.set(key, start)
      return true
    }
    this.held.delete(key)
    return false
  }

  /** @param start when the row was asked for */
  private async take(key: string, row: LeaseRow | undefined, start: Moment): Promise<boolean> {
    const renewed = { owner: this.owner, beat: ++this.beat }
    if (!row) return this.insert({ queue: key, ...renewed })
    const { owner, beat } = row
    if (owner !== this.owner && this.lifeLeft(row, start) > 0) return false
    // Of several relays that come here at once, the condition lets one through.
    const { matched } = await this.database.set(table, { queue: key, owner, ...owner !== this.owner && { beat } }, renewed)
    return matched === 1
  }

  private async insert(row: LeaseRow): Promise<boolean> {
    try {
      await this.database.create(table, row)
      return true
    } catch (error) {
      // Another relay was quicker, for the primary key lets one of them through; or only the answer was lost.
      const [winner] = await this.database.get(table, { queue: row.queue })
      if (!winner) throw error
      return winner.owner === this.owner
    }
  }

  /** How long a lease holds unless it is renewed, as far as this relay has seen; at most for the duration. */
  private lifeLeft({ queue, owner, beat }: LeaseRow, start: Moment): number {
    const sight = this.seen.get(queue)
    if (sight?.owner === owner && sight.beat === beat) {
      // It may have been seen for the first time while the database was asked again.
      const unchanged = Math.max(start.running - sight.since, 0)
      return Math.max(this.duration - unchanged, 0)
    }
    this.seen.set(queue, { owner, beat, since: performance.now() })
    return this.duration
  }

  /** Renews the leases held, and drops those that another relay has taken. */
  private async renew(): Promise<void> {
    this.forget()
    const queue = [...this.held.keys()]
    if (queue.length === 0) return
    const start = moment()
    try {
      // Only those held: one whose release failed has to run out.
      await this.database.set(table, { owner: this.owner, queue }, { beat: ++this.beat })
      const rows = await this.database.get(table, { owner: this.owner, queue }, ['queue'])
      const kept = new Set(rows.map(row => row.queue))
      for (const key of queue) {
        const confirmed = this.held.get(key)
        // It may have been released, or taken anew, while the database was asked.
        if (!confirmed || confirmed.running > start.running) continue
        if (kept.has(key)) this.held.set(key, start)
        else this.held.delete(key)
      }
    } catch {
      // The database is away: the leases run out unless the next try succeeds, and nothing is sent without one.
    }
  }

  /** Drops what was seen of queues in which nothing waits any more. */
  private forget(): void {
    const oldest = performance.now() - 4 * this.duration
    for (const [queue, { since }] of this.seen) if (since < oldest) this.seen.delete(queue)
  }
}

function moment(): Moment {
  return { running: performance.now(), awake: uptime() * 1000 }
}

/** How much time has passed at most, in milliseconds. */
function elapsed({ running, awake }: Moment): number {
  return Math.max(performance.now() - running, uptime() * 1000 - awake)
}
