import { onAbort } from './abort'
import { longestTimer } from './async'

/** How much is done at once. */
export interface Limits {
  /** How much is under way at a time. */
  concurrency: number
  /** How much waits at a time. */
  capacity: number
  /** How long each waits at most, in milliseconds. */
  patience: number
}

/** What was not begun, because too much was under way. */
export class OverloadError extends Error {
  override readonly name = 'OverloadError'
}

/** Lets a limited amount of work be under way at once. A limited amount of what comes meanwhile waits, first come, first served. */
export class Limiter {
  private running = 0
  private readonly waiting: (() => void)[] = []

  /** @param signal when it is aborted, whatever waits is turned away, and nothing begins any more */
  constructor(private readonly limits: Limits, private readonly signal: AbortSignal) {}

  /**
   * Does some work as soon as that may be.
   *
   * @throws OverloadError when too much waits already, or its own wait took too long
   * @throws what the work throws, or any error once the signal is aborted
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.signal.throwIfAborted()
    if (this.running < this.limits.concurrency) this.running++
    else await this.wait()
    try {
      return await work()
    } finally {
      // The next one takes this place over.
      const next = this.waiting.shift()
      if (next) next()
      else this.running--
    }
  }

  private wait(): Promise<void> {
    const { waiting, signal, limits: { capacity, patience } } = this
    if (waiting.length >= capacity) return Promise.reject(new OverloadError('too much waits already'))
    return new Promise((resolve, reject) => {
      const go = (): void => {
        clearTimeout(timer)
        unwatch()
        resolve()
      }
      const turnAway = (error: Error): void => {
        waiting.splice(waiting.indexOf(go), 1)
        clearTimeout(timer)
        unwatch()
        reject(error)
      }
      const stop = (): void => turnAway(new Error('the relay is stopping', { cause: signal.reason }))
      const timer = setTimeout(() => turnAway(new OverloadError('waited too long')), Math.min(patience, longestTimer))
      const unwatch = onAbort(signal, stop)
      waiting.push(go)
    })
  }
}
