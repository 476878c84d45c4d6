import { RelayError } from './errors'

/** Counts what is under way, so that a stop can wait for it. */
export class Gate {
  private inside = 0
  private closed = false
  private onEmpty: (() => void) | undefined

  /**
   * Lets one in.
   *
   * @returns what is to be called when it has ended
   * @throws RelayError `stopping` once the gate is closed
   */
  enter(): () => void {
    if (this.closed) throw new RelayError('stopping')
    this.inside++
    return () => {
      this.inside--
      if (this.inside === 0) this.onEmpty?.()
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
      const timer = setTimeout(resolve, patience)
      this.onEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
