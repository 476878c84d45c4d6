/**
 * A map that keeps what was used last: between `size` and twice as many entries. It forgets half at a time, which costs a
 * use of it next to nothing; keeping the exact order costs several microseconds each time.
 */
export class Recent<V> {
  private young = new Map<string, V>()
  private old = new Map<string, V>()
  private born = 0

  /** @param maxAge how long what is not used is surely kept, in milliseconds; what is kept longer is forgotten at the next use */
  constructor(private readonly size: number, private readonly maxAge = Infinity) {}

  has(key: string): boolean {
    return this.young.has(key) || this.old.has(key)
  }

  /** @param now milliseconds since the epoch */
  get(key: string, now = 0): V | undefined {
    this.age(now)
    const young = this.young.get(key)
    if (young !== undefined) return young
    const old = this.old.get(key)
    if (old !== undefined) this.set(key, old, now)
    return old
  }

  set(key: string, value: V, now = 0): void {
    this.age(now)
    if (this.young.size >= this.size) this.turn(now)
    this.young.set(key, value)
  }

  delete(key: string): void {
    this.young.delete(key)
    this.old.delete(key)
  }

  /** All that is kept, the entries used last at the end. */
  entries(): [string, V][] {
    return [...this.old, ...this.young]
  }

  private age(now: number): void {
    if (now - this.born <= this.maxAge) return
    // Two ages without a use: the young ones are too old as well.
    if (now - this.born > 2 * this.maxAge) this.young = new Map()
    this.turn(now)
  }

  private turn(now: number): void {
    this.old = this.young
    this.young = new Map()
    this.born = now
  }
}
