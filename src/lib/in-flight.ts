import { EventEmitter, once } from 'node:events'
import { RelayError } from '../errors'
import { inTime } from './async'

/** The work in flight, so that a stop can wait for it. */
export class InFlight {
  private readonly tasks = new Set<() => void>()
  private isClosed = false
  private readonly events = new EventEmitter()

  /**
   * Begins a task.
   *
   * @returns ends the task; further calls do nothing
   * @throws RelayError `stopping` once this is drained
   */
  enter(): () => void {
    if (this.isClosed) throw new RelayError('stopping')
    const leave = (): void => {
      if (this.tasks.delete(leave) && this.tasks.size === 0) this.events.emit('idle')
    }
    this.tasks.add(leave)
    return leave
  }

  /** Lets nothing new begin, and waits until nothing is in flight, at most for a time in milliseconds. */
  async drain(time: number): Promise<void> {
    this.isClosed = true
    if (this.tasks.size > 0) await inTime(() => once(this.events, 'idle'), time)
  }
}
