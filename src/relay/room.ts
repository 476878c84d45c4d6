import type { Lanes } from './queue'
import { RelayError } from '../errors'
import { Recent } from '../lib/recent'
import type { DatabaseRecords } from './database-store'

/** How many deliveries wait in a lane, as far as this relay knows. */
interface Count {
  waiting: number
  /** When the database was asked, in milliseconds since the epoch. */
  readonly asked: number
}

/** How long a count is believed: other relays may add to the lane. In milliseconds. */
const maxAge = 1_000
const keptLanes = 1_000

/**
 * Says whether a lane has room for one more deferred delivery. The database is asked once a second at most as long as there is:
 * deliveries that leave only make more of it.
 */
export class Room {
  private readonly counts = new Recent<Count>(keptLanes, maxAge)

  constructor(private readonly records: DatabaseRecords, private readonly lanes: Lanes) {}

  /**
   * Takes a place in a lane.
   *
   * @param canLeave whether the bot is there, for a lane in which nobody is to wait at all
   * @throws RelayError `queue-full`, `store-down`
   */
  async take(lane: string, canLeave: boolean): Promise<void> {
    const room = this.lanes.room(lane) || Number(canLeave && this.lanes.isIdle(lane))
    const known = this.counts.get(lane, Date.now())
    const count = known && known.waiting < room && Date.now() - known.asked < maxAge ? known : await this.ask(lane)
    if (count.waiting >= room) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    count.waiting++
  }

  private async ask(lane: string): Promise<Count> {
    const asked = Date.now()
    try {
      const count = { waiting: await this.records.countWaiting(lane), asked }
      this.counts.set(lane, count, asked)
      return count
    } catch (cause) {
      throw new RelayError('store-down', undefined, { cause })
    }
  }
}
