import { RelayError } from '../errors'

/** Counts what is under way, so that a stop can wait for it. */
export class Gate {
  private inside = 0
  private closed = false
  private readonly waiting = new Set<() => void>()

  /**
   * Lets one in.
   *
   * @returns what is to be called when it has ended; further calls do nothing
   * @throws RelayError `stopping` once the gate is closed
   */
  enter(): () => void {
    if (this.closed) throw new RelayError('stopping')
    this.inside++
    let entered = true
    return () => {
      if (!entered) return
      entered = false
      this.inside--
      if (this.inside === 0) for (const settle of this.waiting) settle()
    }
  }

  /** Lets nobody in any more. */
  close(): void {
    this.closed = true
  }

  /**
   * Waits until everything has ended, but no longer than this.
   *
   * @param patience in milliseconds
   */
  async drain(patience: number): Promise<void> {
    if (this.inside === 0) return
    await new Promise<void>(resolve => {
      const settle = (): void => {
        clearTimeout(timer)
        this.waiting.delete(settle)
        resolve()
      }
      const timer = setTimeout(settle, patience)
      this.waiting.add(settle)
    })
  }
}

/** How long what is under way may take to end when the relay stops, in milliseconds (contract, "Running it"). */
const grace = 4_000
/** How long the answers to what is then cut off may take to get out. */
const flushTime = 500

/** Stops the relay: nothing new is let in, what is under way may end, and what has not ended is cut off and answered. */
export async function shut(gate: Gate, stop: AbortController): Promise<void> {
  gate.close()
  await gate.drain(grace)
  stop.abort()
  await gate.drain(flushTime)
}
