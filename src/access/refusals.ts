/** For how long the next refusals of an address are not logged, in milliseconds. */
const silence = 60_000
/** How many addresses are remembered. All others together count as one. */
const maxAddresses = 1000

/** Counts what was refused, and says what of it is worth a line in the log: a scan is not to fill the disk. */
export class Refusals {
  private readonly counted = new Map<string, number>()
  private readonly addresses = new Map<string, { logged: number, silent: number }>()

  /** How often something was refused for each reason. */
  get counts(): ReadonlyMap<string, number> {
    return this.counted
  }

  /**
   * Counts a refusal.
   *
   * @param now milliseconds on the monotonic clock
   * @returns `undefined` when it is not to be logged, otherwise how many of the same address were not since the last line
   */
  add(reason: string, address: string, now = performance.now()): number | undefined {
    this.counted.set(reason, (this.counted.get(reason) ?? 0) + 1)
    const place = this.addresses.has(address) || this.hasRoom(now) ? address : 'others'
    const known = this.addresses.get(place)
    if (known && now - known.logged < silence) {
      known.silent++
      return
    }
    // At the end, so that the oldest stay first.
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
