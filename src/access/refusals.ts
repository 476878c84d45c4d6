import { LRUCache } from 'lru-cache'
import type { Text } from '../texts/text'

/** How long the log omits further refusals of an address, in milliseconds. */
const silence = 60_000
/** The most addresses that are counted separately. All others together count as one. */
const maxAddresses = 1000
/** The most doors, and the longest name of one: the name may contain text of the caller. */
const most = { doors: 100, letters: 100 }

/** The last request of a door, if it made no message. */
interface LastRequest {
  /** In milliseconds since the epoch. */
  at: number
  reason: Text
  /** Whether it was accepted, and there was nothing to tell. */
  isSkipped: boolean
}

/** Counts refused requests, and limits their lines in the log, so that a scan cannot fill the disk. */
export class Refusals {
  private readonly counted = new Map<string, number>()
  private readonly lastOf = new LRUCache<string, LastRequest>({ max: most.doors })
  /** The addresses in the order of their last log line, oldest first. */
  private readonly addresses = new Map<string, { logged: number, silent: number }>()

  /** The number of refusals per reason. */
  get counts(): ReadonlyMap<string, number> {
    return this.counted
  }

  /** The last request of each door that made no message, which tells why those of a new caller do not arrive. */
  get last(): Iterable<[door: string, request: LastRequest]> {
    return this.lastOf.entries()
  }

  /**
   * Notes why a door refused a request.
   *
   * @param door its name as in deliveries, such as `hooks/github`
   * @param reason the text for the log
   */
  note(door: string, reason: Text): void {
    if (door.length <= most.letters) this.lastOf.set(door, { at: Date.now(), reason, isSkipped: false })
  }

  /** Notes that a door accepted a request, which ends an earlier refusal. @param skipped why it made no message; absent if it made one */
  accept(door: string, skipped: Text | undefined): void {
    this.lastOf.delete(door)
    if (skipped !== undefined && door.length <= most.letters) this.lastOf.set(door, { at: Date.now(), reason: skipped, isSkipped: true })
  }

  /**
   * Counts a refusal.
   *
   * @param now milliseconds on the monotonic clock
   * @returns the number of refusals of the address omitted since its last log line; `undefined` if this one is omitted, too
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
