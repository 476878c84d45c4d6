import type { Context } from 'koishi'
import { v4 as uuid } from 'uuid'

declare module 'koishi' {
  interface Tables {
    message_relay_lane: LaneRow
  }
}

/** Which relay delivers what waits in a lane, where several share a database. */
export interface LaneRow {
  lane: string
  owner: string
  /** When the claim ends unless it is renewed, in milliseconds since the epoch. */
  until: number
}

const table = 'message_relay_lane'

/** How long a claim holds, in milliseconds: as long the lanes of a relay that died stand still. */
const lease = 15_000

/**
 * Claims lanes for this relay. A relay claims a lane and not single deliveries, so that their order holds. The clocks of the
 * relays must agree to within a few seconds.
 */
export class Claims {
  private readonly owner = uuid()
  private readonly held = new Set<string>()
  private readonly database: Context['database']
  /** Until when all claims held were last confirmed. */
  private until = 0

  /** @param ctx a context with the database */
  constructor(ctx: Context) {
    this.database = ctx.database
    ctx.model.extend(table, {
      lane: { type: 'string', length: 255, nullable: false },
      owner: { type: 'string', length: 36, nullable: false },
      until: { type: 'double', nullable: false },
    }, { primary: 'lane', indexes: ['owner'] })
    ctx.setInterval(() => void this.renew(), lease / 3)
  }

  /** Claims a lane, unless another relay holds it. */
  async acquire(lane: string): Promise<boolean> {
    const now = Date.now()
    if (this.held.has(lane) && this.until > now + lease / 3) return true
    const claim = { owner: this.owner, until: now + lease }
    await this.database.set(table, { lane, $or: [{ owner: this.owner }, { until: { $lt: now } }] }, claim)
    let [row] = await this.database.get(table, { lane })
    if (!row) {
      // Two relays may come here at once: the primary key lets one of them through.
      await this.database.create(table, { lane, ...claim }).catch(() => undefined);
      [row] = await this.database.get(table, { lane })
    }
    if (row?.owner !== this.owner) {
      this.held.delete(lane)
      return false
    }
    this.until = this.held.size === 0 ? claim.until : Math.min(this.until, claim.until)
    this.held.add(lane)
    return true
  }

  /** Lets another relay have the lane. */
  async release(lane: string): Promise<void> {
    this.held.delete(lane)
    await this.database.remove(table, { lane, owner: this.owner })
  }

  private async renew(): Promise<void> {
    if (this.held.size === 0) return
    const until = Date.now() + lease
    try {
      await this.database.set(table, { owner: this.owner }, { until })
      this.until = until
    } catch {
      // The database is away; the claims run out unless the next try succeeds, and nothing is sent without one.
    }
  }
}
