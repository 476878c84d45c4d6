/** How many tasks run at a time, how many others wait, and how long a task may have waited when its turn comes, in milliseconds. */
export interface Limits { concurrency: number, capacity: number, patience: number }

/** Work that was not begun because too much was under way. */
export class OverloadError extends Error {}

/** Runs a bounded number of tasks at a time, and lets a bounded number of others wait in order. */
export class Limiter {
  private running = 0
  private readonly waiting: (() => void)[] = []

  constructor(private readonly limits: Limits) {}

  /**
   * Does some work as soon as there is a place.
   *
   * @throws OverloadError when too many wait already, or it has waited too long; what the work throws
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const { waiting, limits: { concurrency, capacity, patience } } = this
    const since = performance.now()
    if (this.running < concurrency) this.running++
    else if (waiting.length < capacity) await new Promise<void>(resolve => waiting.push(resolve))
    else throw new OverloadError('too many wait already')
    try {
      if (performance.now() - since > patience) throw new OverloadError('waited too long')
      return await work()
    } finally {
      // The next one takes over this place.
      const next = waiting.shift()
      if (next) next()
      else this.running--
    }
  }
}
