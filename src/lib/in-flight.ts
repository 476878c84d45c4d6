import { RelayError } from '../errors'

/** How long what is under way may take to end by itself when the relay stops, in milliseconds. */
const grace = 4_000
/** How long the answers to what was then cut off may take to leave, in milliseconds. */
const answerTime = 500

/** Counts what is under way, so that a stop can wait for it. */
export class InFlight {
  private count = 0
  private isClosed = false
  private readonly waiting = new Set<() => void>()

  /**
   * Counts one more.
   *
   * @returns to be called when it has ended; further calls do nothing
   * @throws RelayError `stopping` once this is closed
   */
  enter(): () => void {
    if (this.isClosed) throw new RelayError('stopping')
    this.count++
    let hasEnded = false
    return () => {
      if (hasEnded) return
      hasEnded = true
      this.count--
      if (this.count === 0) for (const settle of this.waiting) settle()
    }
  }

  /** From now on nothing new may begin. */
  close(): void {
    this.isClosed = true
  }

  /**
   * Waits until nothing is under way any more.
   *
   * @param timeout the longest wait, in milliseconds
   */
  async drain(timeout: number): Promise<void> {
    if (this.count === 0) return
    await new Promise<void>(resolve => {
      const settle = (): void => {
        clearTimeout(timer)
        this.waiting.delete(settle)
        resolve()
      }
      const timer = setTimeout(settle, timeout)
      this.waiting.add(settle)
    })
  }
}

/**
 * Stops the relay within five seconds: nothing new begins, what is under way may end by itself for four of them, and what has not
 * ended by then is cut off and answered.
 *
 * @param stop aborted to cut off what is left
 */
export async function shutDown(inFlight: InFlight, stop: AbortController): Promise<void> {
  inFlight.close()
  await inFlight.drain(grace)
  stop.abort()
  await inFlight.drain(answerTime)
}
