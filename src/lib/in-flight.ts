import { EventEmitter, once } from 'node:events'
import { RelayError } from '../errors'
import { inTime } from './async'

/** Counts the work in flight, so that a stop can wait for it. */
export class InFlight {
  private count = 0
  private isClosed = false
  private readonly events = new EventEmitter()

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
      if (--this.count === 0) this.events.emit('idle')
    }
  }

  /** Lets nothing new begin. */
  close(): void {
    this.isClosed = true
  }

  /** Waits until nothing is in flight, at most for a time in milliseconds. */
  async drain(time: number): Promise<void> {
    if (this.count > 0) await inTime(() => once(this.events, 'idle'), time)
  }
}

/**
 * Stops the relay within five seconds: nothing new begins, work in flight has four seconds to end by itself, and the rest is cut off and
 * answered.
 *
 * @param stop aborted to cut off the rest
 */
export async function shutDown(inFlight: InFlight, stop: AbortController): Promise<void> {
  inFlight.close()
  await inFlight.drain(4_000)
  stop.abort()
  // For the answers.
  await inFlight.drain(500)
}
