const minute = 60_000

/** A rate limit: tokens come in steadily, up to as many as come in a minute. All times are milliseconds on the monotonic clock. */
export class TokenBucket {
  private tokens: number

  /** The bucket is full at first. */
  constructor(private readonly perMinute: number, private filled = performance.now()) {
    this.tokens = perMinute
  }

  /**
   * Takes tokens. A full bucket also gives more than it holds, and owes them afterwards.
   *
   * @returns 0 when they were taken; otherwise the time until they could be, and none was
   */
  take(count: number, now = performance.now()): number {
    this.tokens = Math.min(this.perMinute, this.tokens + (now - this.filled) * this.perMinute / minute)
    this.filled = now
    const missing = Math.min(count, this.perMinute) - this.tokens
    if (missing > 0) return missing * minute / this.perMinute
    this.tokens -= count
    return 0
  }

  /** Takes tokens that may not be there. */
  owe(count: number): void {
    this.tokens -= count
  }
}
