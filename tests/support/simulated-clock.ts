import type { Clock } from '../../src/relay/clock'
import { Timeline } from '../simulation/clock'

/** A clock that only a test advances. Everything that is due at a time runs before the next timer fires. */
export class SimulatedClock implements Clock {
  private readonly timeline = new Timeline()

  /** @param offset the initial time of the machine's clock, in milliseconds since the epoch */
  constructor(private offset = Date.UTC(2026, 10, 23)) {}

  now(): number {
    return this.timeline.now
  }

  wall(): number {
    return this.offset + this.timeline.now
  }

  after(ms: number, callback: () => void): () => void {
    return this.timeline.at(this.timeline.now + ms, callback)
  }

  /** Sets the machine's clock forward or back, as a sleep of the machine does. */
  step(ms: number): void {
    this.offset += ms
  }

  /** Advances the time by `ms`. */
  async run(ms: number): Promise<void> {
    const end = this.timeline.now + ms
    await this.pass(end)
    this.timeline.now = end
  }

  /**
   * Advances the time until a condition holds.
   *
   * @param limit in milliseconds
   * @throws when the condition does not hold by then
   */
  async runUntil(what: string, condition: () => boolean, limit = 60_000): Promise<void> {
    await this.pass(this.timeline.now + limit, condition)
    if (!condition()) throw new Error(`${limit} ms passed in vain until ${what}`)
  }

  /** @throws the error of a timer */
  private async pass(end: number, isDone?: () => boolean): Promise<void> {
    await this.timeline.run(end, isDone)
    for (const error of this.timeline.thrown) throw error
  }
}
