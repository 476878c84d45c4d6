const minute = 60_000

/** Bounds how much happens in a minute: tokens come in steadily, and are kept until there are as many as come in a minute. */
export class TokenBucket {
  private tokens: number

  /**
   * It is full at first.
   *
   * @param perMinute how many tokens come in a minute
   * @param filled milliseconds on the monotonic clock, like all times here
   */
  constructor(private readonly perMinute: number, private filled = performance.now()) {
    this.tokens = perMinute
  }

  /**
   * Takes tokens. More than it can hold are given when it is full, and owed afterwards.
   *
   * @returns 0 when they were taken; otherwise nothing was, and it is the time until they could be, in milliseconds
   */
  take(count: number, now = performance.now()): number {
    this.tokens = Math.min(this.perMinute, this.tokens + (now - this.filled) * this.perMinute / minute)
    this.filled = now
    const missing = Math.min(count, this.perMinute) - this.tokens
    if (missing > 0) return missing * minute / this.perMinute
    this.tokens -= count
    return 0
  }
}
