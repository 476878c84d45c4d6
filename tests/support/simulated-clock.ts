import type { Clock } from '../../src/relay/clock'

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** A clock that goes on only when a test lets it. Everything that is due at a time runs before the next timer does. */
export class SimulatedClock implements Clock {
  private time = 0
  private timers: Timer[] = []

  /** @param start what the machine's clock shows at first, in milliseconds since the epoch */
  constructor(private offset = Date.UTC(2026, 10, 23)) {}

  now(): number {
    return this.time
  }

  wall(): number {
    return this.offset + this.time
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.time + Math.max(ms, 0), callback }
    // Those for one time go off in the order in which they were set.
    const place = this.timers.findIndex(({ at }) => at > timer.at)
    this.timers.splice(place < 0 ? this.timers.length : place, 0, timer)
    return () => {
      this.timers = this.timers.filter(each => each !== timer)
    }
  }

  /** Sets the machine's clock forward, or back; so does a sleep of the machine. */
  step(ms: number): void {
    this.offset += ms
  }

  /** Lets so many milliseconds pass. */
  async run(ms: number): Promise<void> {
    const end = this.time + ms
    await settle()
    for (let next = this.timers[0]; next && next.at <= end; next = this.timers[0]) {
      this.timers.shift()
      this.time = next.at
      next.callback()
      await settle()
    }
    this.time = end
  }

  /**
   * Lets time pass until a condition holds.
   *
   * @param limit in milliseconds
   * @throws when it does not hold by then
   */
  async runUntil(what: string, condition: () => boolean, limit = 60_000): Promise<void> {
    const end = this.time + limit
    await settle()
    while (!condition()) {
      const next = this.timers[0]
      if (!next || next.at > end) throw new Error(`${limit} ms passed in vain until ${what}`)
      await this.run(next.at - this.time)
    }
  }
}

/** Lets all promises go on that wait for nothing but their turn: an immediate runs once none of them can. */
function settle(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
