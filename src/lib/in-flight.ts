import { EventEmitter, once } from 'node:events'
import { RelayError } from '../errors'
import { inTime } from './async'

/** The work in flight, so that a stop can wait for it. */
export class InFlight {
  private readonly events = new EventEmitter()
  private readonly tasks = new Set<() => void>()
  private isClosed = false

  /** Begins a task. @returns ends it; `undefined` once this is drained */
  tryToEnter(): (() => void) | undefined {
    if (this.isClosed) return
    const leave = (): void => {
      if (this.tasks.delete(leave) && this.tasks.size === 0) this.events.emit('idle')
    }
    this.tasks.add(leave)
    return leave
  }

  /** The same. @throws RelayError `stopping` */
  enter(): () => void {
    const leave = this.tryToEnter()
    if (leave) return leave
    throw new RelayError('stopping')
  }

  /** Lets nothing new begin, and waits until nothing is in flight, at most for a time in milliseconds. */
  async drain(time: number): Promise<void> {
    this.isClosed = true
    if (this.tasks.size > 0) await inTime(() => once(this.events, 'idle'), time)
  }
}
