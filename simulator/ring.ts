/** The newest items of a stream, bounded in number and, when weights are given, in total weight. */
export class Ring<T> {
  readonly items: T[] = []
  private readonly weights: number[] = []
  private weight = 0

  /**
   * @param keep how many items to keep; 0 for all, without a limit of weight
   * @param budget largest total weight
   * @param drop called with every dropped item
   */
  constructor(private readonly keep: number, private readonly budget = Infinity, private readonly drop?: (item: T) => void) {}

  /** Appends an item and drops the oldest ones that no longer fit; the newest always stays. */
  push(item: T, weight = 0): void {
    this.items.push(item)
    if (this.keep === 0) return
    this.weights.push(weight)
    this.weight += weight
    while (this.items.length > 1 && (this.items.length > this.keep || this.weight > this.budget)) {
      this.weight -= this.weights.shift() ?? 0
      const oldest = this.items.shift()
      if (oldest !== undefined) this.drop?.(oldest)
    }
  }

  clear(): void {
    this.items.length = 0
    this.weights.length = 0
    this.weight = 0
  }
}
