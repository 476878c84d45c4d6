/** How often a tally tells, in milliseconds. */
const defaultInterval = 60_000

/** Counts what may happen very often. It tells of the first at once, and from then on at most once a minute of those since. */
export class Tally {
  private count = 0
  private timer: NodeJS.Timeout | undefined

  /**
   * @param tell called with how many there were since the last call
   * @param interval in milliseconds
   */
  constructor(private readonly tell: (count: number) => void, private readonly interval = defaultInterval) {}

  add(): void {
    this.count++
    if (!this.timer) this.flush()
  }

  /** Tells of what it has not told yet. */
  end(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    if (this.count > 0) this.tell(this.count)
    this.count = 0
  }

  private flush(): void {
    const isOver = this.count === 0
    this.end()
    if (!isOver) this.timer = setTimeout(() => this.flush(), this.interval)
  }
}
