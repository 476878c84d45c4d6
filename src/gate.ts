import { RelayError } from './errors'

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
