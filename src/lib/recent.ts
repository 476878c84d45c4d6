/** A map that keeps the entries used last, and forgets the others. */
export class Recent<V> {
  /** The entry used least recently comes first. */
  private readonly entriesByUse = new Map<string, { value: V, used: number }>()

  /**
   * @param size how many entries are kept
   * @param maxAge how long an entry that is not used is kept, in milliseconds
   * @param onForget told of each entry that is not kept any more, and when it was used last
   */
  constructor(
    private readonly size: number,
    private readonly maxAge = Infinity,
    private readonly onForget: (value: V, used: number) => void = () => undefined,
  ) {}

  has(key: string): boolean {
    return this.entriesByUse.has(key)
  }

  /** @param now milliseconds since the epoch */
  get(key: string, now = 0): V | undefined {
    this.forget(now)
    const entry = this.entriesByUse.get(key)
    if (entry) this.set(key, entry.value, now)
    return entry?.value
  }

  /** @param now milliseconds since the epoch */
  set(key: string, value: V, now = 0): void {
    // A map keeps the order in which its entries were added.
    this.entriesByUse.delete(key)
    this.entriesByUse.set(key, { value, used: now })
    this.forget(now)
  }

  delete(key: string): void {
    this.entriesByUse.delete(key)
  }

  /** All that is kept, the entry used last at the end. */
  entries(): [string, V][] {
    return Array.from(this.entriesByUse, ([key, { value }]) => [key, value])
  }

  private forget(now: number): void {
    for (const [key, { value, used }] of this.entriesByUse) {
      if (this.entriesByUse.size <= this.size && now - used <= this.maxAge) return
      this.entriesByUse.delete(key)
      this.onForget(value, used)
    }
  }
}
