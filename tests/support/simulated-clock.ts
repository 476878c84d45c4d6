import type { Clock } from '../../src/relay/clock'
import { Timeline } from '../simulation/clock'

/** A clock that goes on only when a test lets it. Everything that is due at a time runs before the next timer does. */
export class SimulatedClock implements Clock {
  private readonly timeline = new Timeline()

  /** @param offset what the machine's clock shows at first, in milliseconds since the epoch */
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

  /** Sets the machine's clock forward, or back; so does a sleep of the machine. */
  step(ms: number): void {
    this.offset += ms
  }

  /** Lets so many milliseconds pass. */
  async run(ms: number): Promise<void> {
    const end = this.timeline.now + ms
    await this.pass(end)
    this.timeline.now = end
  }

  /**
   * Lets time pass until a condition holds.
   *
   * @param limit in milliseconds
   * @throws when it does not hold by then
   */
  async runUntil(what: string, condition: () => boolean, limit = 60_000): Promise<void> {
    await this.pass(this.timeline.now + limit, condition)
    if (!condition()) throw new Error(`${limit} ms passed in vain until ${what}`)
  }

  /** @throws what a timer threw */
  private async pass(end: number, isDone?: () => boolean): Promise<void> {
    await this.timeline.run(end, isDone)
    for (const error of this.timeline.thrown) throw error
  }
}
