import { longestTimer, waitFor } from './async'

/** How many tasks run at a time, how many others wait, and how long each waits at most, in milliseconds. */
export interface Limits { concurrency: number, capacity: number, patience: number }

/** Work that was not begun because too much was under way. */
export class OverloadError extends Error {
  override readonly name = 'OverloadError'
}

/** Runs a bounded number of tasks at a time, and lets a bounded number of others wait in order. */
export class Limiter {
  private running = 0
  private readonly waiting: (() => void)[] = []

  /** @param signal when it is aborted, those that wait are turned away, and nothing begins any more */
  constructor(private readonly limits: Limits, private readonly signal: AbortSignal) {}

  /**
   * Does some work as soon as there is a place.
   *
   * @throws OverloadError when too many wait already, or it has waited too long
   * @throws what the work throws, or the reason of the signal
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.signal.throwIfAborted()
    if (this.running < this.limits.concurrency) this.running++
    else await this.wait()
    try {
      return await work()
    } finally {
      // The next one takes over this place.
      const next = this.waiting.shift()
      if (next) next()
      else this.running--
    }
  }

  private async wait(): Promise<void> {
    const { waiting, signal, limits: { capacity, patience } } = this
    if (waiting.length >= capacity) throw new OverloadError('too many wait already')
    let begin = (): void => undefined
    const turn = new Promise<void>(resolve => {
      begin = resolve
    })
    waiting.push(begin)
    await waitFor(turn, Math.min(patience, longestTimer), signal)
    const place = waiting.indexOf(begin)
    if (place < 0) return
    waiting.splice(place, 1)
    signal.throwIfAborted()
    throw new OverloadError('waited too long')
  }
}
