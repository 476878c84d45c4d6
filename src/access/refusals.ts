import { LRUCache } from 'lru-cache'

/** How long further refusals of an address are not logged, in milliseconds. */
const silence = 60_000
/** The most addresses that are told apart. All others together count as one. */
const maxAddresses = 1000
/** How many doors are remembered, and how long a name they may have: what callers write may stand in it. */
const most = { doors: 100, letters: 100 }

/** The last refused request of a door. */
interface LastRefusal {
  /** In milliseconds since the epoch. */
  at: number
  reason: string
}

/** Counts refused requests, and limits their lines in the log, so that a scan cannot fill the disk. */
export class Refusals {
  private readonly counted = new Map<string, number>()
  private readonly lastOf = new LRUCache<string, LastRefusal>({ max: most.doors })
  /** The address that was logged first comes first. */
  private readonly addresses = new Map<string, { logged: number, silent: number }>()

  /** The number of refusals for each reason. */
  get counts(): ReadonlyMap<string, number> {
    return this.counted
  }

  /** The last refusal of each door, so that somebody who sets up a caller sees why its calls do nothing. */
  get last(): Iterable<[door: string, refusal: LastRefusal]> {
    return this.lastOf.entries()
  }

  /**
   * Notes why a door refused a request.
   *
   * @param door as records have it, such as `hooks/github`
   * @param reason fit for the log
   */
  note(door: string, reason: string): void {
    if (door.length <= most.letters) this.lastOf.set(door, { at: Date.now(), reason })
  }

  /**
   * Counts a refusal.
   *
   * @param now milliseconds on the monotonic clock
   * @returns how many refusals of the address had no line since its last one; `undefined` when this one has none either
   */
  add(reason: string, address: string, now = performance.now()): number | undefined {
    this.counted.set(reason, (this.counted.get(reason) ?? 0) + 1)
    const place = this.addresses.has(address) || this.hasRoom(now) ? address : 'others'
    const known = this.addresses.get(place)
    if (known && now - known.logged < silence) {
      known.silent++
      return
    }
    this.addresses.delete(place)
    this.addresses.set(place, { logged: now, silent: 0 })
    return known?.silent ?? 0
  }

  private hasRoom(now: number): boolean {
    for (const [address, { logged }] of this.addresses) {
      if (now - logged < silence) break
      this.addresses.delete(address)
    }
    return this.addresses.size < maxAddresses
  }
}
