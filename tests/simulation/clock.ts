import type { Clock } from '../../src/relay/clock'

interface Event {
  readonly time: number
  /** Events of the same time run in the order in which they were scheduled. */
  readonly order: number
  callback: (() => void) | undefined
}

/** The start of every schedule, in milliseconds since the epoch. */
const epoch = Date.UTC(2026, 10, 20)

/** How many events share a turn of the event loop. */
const eventsOfTurn = 100

/** Simulated time, in milliseconds since the start of a schedule, and all future events. */
export class Timeline {
  now = 0
  /** The errors that callbacks threw. A real process would not have caught them. */
  readonly thrown: unknown[] = []
  private readonly heap: Event[] = []
  private count = 0

  /** The correct time of day. */
  get wall(): number {
    return epoch + this.now
  }

  /** Schedules an event; returns a function that cancels it. */
  at(time: number, callback: () => void): () => void {
    const event = this.add(time, callback)
    return () => {
      event.callback = undefined
    }
  }

  /** Schedules an event, which is cancelled by taking its callback away. */
  add(time: number, callback: () => void): Event {
    const event: Event = { time: Math.max(time, this.now), order: this.count++, callback }
    this.heap.push(event)
    this.rise(this.heap.length - 1)
    return event
  }

  /**
   * Runs all events up to a time. Between two events all ready promises continue, because each event has its own immediate. One turn of the
   * event loop contains many events, because each turn polls the system, which takes longer than most events.
   *
   * @param isDone whether to stop earlier
   */
  run(until: number, isDone: () => boolean = () => false): Promise<void> {
    return new Promise(resolve => {
      let isOver = false
      const step = (): void => {
        if (isOver) return
        const event = isDone() ? undefined : this.next(until)
        if (!event) {
          isOver = true
          resolve()
          return
        }
        this.now = event.time
        try {
          event.callback?.()
        } catch (error) {
          this.thrown.push(error)
        }
      }
      const turn = (): void => {
        if (isOver) return
        for (let count = 0; count < eventsOfTurn; count++) setImmediate(step)
        setImmediate(turn)
      }
      turn()
    })
  }

  private next(until: number): Event | undefined {
    for (;;) {
      const [first] = this.heap
      if (!first || first.time > until) return
      const last = this.heap.pop()
      if (last && last !== first) {
        this.heap[0] = last
        this.sink()
      }
      if (first.callback) return first
    }
  }

  private rise(from: number): void {
    for (let place = from; place > 0;) {
      const parent = (place - 1) >> 1
      if (!this.swapIfBefore(place, parent)) return
      place = parent
    }
  }

  private sink(): void {
    for (let place = 0; ;) {
      const left = 2 * place + 1
      const child = this.isBefore(left + 1, left) ? left + 1 : left
      if (!this.swapIfBefore(child, place)) return
      place = child
    }
  }

  private isBefore(one: number, other: number): boolean {
    const [a, b] = [this.heap[one], this.heap[other]]
    return a !== undefined && b !== undefined && (a.time < b.time || (a.time === b.time && a.order < b.order))
  }

  private swapIfBefore(one: number, other: number): boolean {
    const [a, b] = [this.heap[one], this.heap[other]]
    if (!a || !b || !this.isBefore(one, other)) return false
    this.heap[one] = b
    this.heap[other] = a
    return true
  }
}

/** A machine, whose clock can be set and which can sleep. As on Linux, the monotonic clock stops while the machine sleeps. */
export class Machine {
  /** How far the machine's clock is ahead, in milliseconds. */
  offset = 0
  /** Until when the machine runs nothing. */
  wakesAt = 0
  private slept = 0
  private asleepSince: number | undefined

  constructor(private readonly timeline: Timeline) {}

  get monotonic(): number {
    return (this.asleepSince ?? this.timeline.now) - this.slept
  }

  /** Stops everything for a while. The machine sleeps, or only the process is stopped; then the monotonic clock continues. */
  freeze(ms: number, isAsleep: boolean): void {
    if (this.wakesAt > this.timeline.now) return
    this.wakesAt = this.timeline.now + ms
    if (!isAsleep) return
    this.asleepSince = this.timeline.now
    this.timeline.at(this.wakesAt, () => {
      this.asleepSince = undefined
      this.slept += ms
    })
  }
}

/** The time of one process. A killed process receives nothing any more. */
export class ProcessClock implements Clock {
  isAlive = true
  private readonly start: number

  constructor(readonly timeline: Timeline, readonly machine: Machine) {
    this.start = machine.monotonic
  }

  now(): number {
    return this.machine.monotonic - this.start
  }

  wall(): number {
    return this.timeline.wall + this.machine.offset
  }

  after(ms: number, callback: () => void): () => void {
    // A rest of a wait passes as well, however short it is.
    const wait = ms > 0 ? Math.max(ms, 1e-5) : 0
    return this.schedule(this.timeline.now + wait, this.now() + wait, callback)
  }

  /** Delivers something from outside to the process: at this time of the timeline, or when the process runs again. */
  deliver(time: number, callback: () => void): () => void {
    return this.schedule(time, -Infinity, callback)
  }

  /** @param due the earliest time on the monotonic clock, which stops while the machine sleeps */
  private schedule(time: number, due: number, callback: () => void): () => void {
    const { timeline, machine } = this
    const arrive = (): void => {
      if (!this.isAlive) return
      const left = due - this.now()
      if (machine.wakesAt > timeline.now) event = timeline.add(machine.wakesAt, arrive)
      // Sums of fractions may be slightly above the time of the scheduled event.
      else if (left > 1e-6) event = timeline.add(timeline.now + left, arrive)
      else callback()
    }
    let event = timeline.add(time, arrive)
    return () => {
      event.callback = undefined
    }
  }
}

/** The clock of one relay of a process. It keeps the timers that the relay has not cancelled. */
export class RelayClock implements Clock {
  readonly pending = new Set<{ due: number }>()

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now()
  }

  wall(): number {
    return this.clock.wall()
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.now() + ms }
    this.pending.add(timer)
    const cancel = this.clock.after(ms, () => {
      this.pending.delete(timer)
      callback()
    })
    return () => {
      this.pending.delete(timer)
      cancel()
    }
  }
}
