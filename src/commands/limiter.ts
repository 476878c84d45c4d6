/** The most running tasks, the most waiting tasks, and the longest wait of a task that is still run, in milliseconds. */
export interface Limits { concurrency: number, capacity: number, patience: number }

/** Work was not started because of too much other work. */
export class OverloadError extends Error {}

/** Runs a limited number of tasks at a time; a limited number of others waits in order. */
export class Limiter {
  private running = 0
  private readonly waiting: (() => void)[] = []

  constructor(private readonly limits: Limits) {}

  /**
   * Runs a task as soon as a place is free.
   *
   * @throws OverloadError if too many tasks wait already, or this one has waited too long; any error of the task
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
      // The next task takes over this place.
      const next = waiting.shift()
      if (next) next()
      else this.running--
    }
  }
}
