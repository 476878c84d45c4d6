import { RelayError } from '../../errors'
import { longestTimer } from '../../lib/async'

/** How queues are kept. */
export interface QueueOptions {
  /** The least time from the end of a send to the next one to the same target, in milliseconds. */
  interval: number
  /** How many requests may wait in a queue. */
  capacity: number
  /** After how many failures in a row that say something about the target its queue is paused. */
  pauseAfter: number
  /** For how long, in milliseconds. */
  pauseFor: number
}

/** What a request has shown about its target: `bad` when it is muted, unknown or does not answer. */
export type Verdict = 'good' | 'bad' | 'none'

/** The slot of a queue: whoever has it sends, and nothing else leaves for this target until it is released. */
export interface Slot {
  /** Resolves when the interval since the last send, and a pause, are over. To be awaited before each platform message. */
  pace(): Promise<void> | undefined
  /** To be called after each platform message. */
  sent(): void
  /**
   * Counts what a request has shown about the target. To be called once for each request.
   *
   * @param reason why it is bad, for operators
   */
  judge(verdict: Verdict, reason?: string): void
  /** Refuses those who wait behind it, except the patient ones: what cannot leave now would hold them up. */
  turnAway(error: RelayError): void
  /** Gives the slot to the next one. */
  release(): void
}

/** How somebody waits for the slot. */
export interface Waiting {
  /** Takes the request out of the queue; a RelayError as its reason says why. It is only asked for where there is a wait. */
  signal?: () => AbortSignal | undefined
  /** Whether it waits as long as it takes, however full the queue, and through pauses. */
  isPatient?: boolean
}

/** What a queue looks like, for operators. */
export interface QueueState {
  queue: string
  waiting: number
  /** How many of those are callers that wait for the result; the others fetch what is stored. */
  callers: number
  /** Whether a message is on its way. */
  isBusy: boolean
  /** Since when the first of those waits, in milliseconds since the epoch. */
  oldest?: number
  /** When its pause ends, in milliseconds since the epoch. */
  pausedUntil?: number
  /** Why it is paused: what the last failure said. */
  reason?: string
}

interface Waiter {
  isPatient: boolean
  /** When it came, on the clock of the queues. */
  readonly since: number
  go: () => void
  refuse: (error: RelayError) => void
}

interface Queue {
  readonly waiters: Waiter[]
  /** How many have come so far. */
  arrivals: number
  isBusy: boolean
  /** Failures in a row. */
  failures: number
  /** What the last of them said. */
  reason: string | undefined
  /** On the clock of the queues, like `lastSent`. */
  pausedUntil: number
  lastSent: number
  timer: NodeJS.Timeout | undefined
  /** Ends the rest between two messages of one request. */
  wake: (() => void) | undefined
}

/**
 * The queues of all targets: each keeps its messages in the order in which they were accepted, one at a time and with a distance between
 * them; targets do not wait for one another. A target that keeps failing is left alone for a while, as by a circuit breaker.
 */
export class Queues {
  private readonly queues = new Map<string, Queue>()
  /** Those that take nobody but the patient any more, by their names. */
  private readonly shut = new Set<string>()
  private isClosed = false

  /**
   * @param onPause told whenever a queue is paused
   * @param now a clock that only runs forward, in milliseconds
   */
  constructor(
    private options: QueueOptions,
    private readonly onPause: () => void = () => undefined,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** How many queues are remembered. */
  get size(): number {
    return this.queues.size
  }

  /** Goes on by other rules; also after `close`. */
  open(options: QueueOptions): void {
    this.options = options
    this.isClosed = false
    this.shut.clear()
    // Whoever waits for the interval to be over waits for the new one.
    for (const [name, queue] of this.queues) {
      if (queue.isBusy) queue.wake?.()
      else this.goOn(name, queue)
    }
  }

  /**
   * Waits for the slot of a queue. It is there at once when nothing else is under way and the interval is over.
   *
   * @throws RelayError `queue-full`, `paused`, `stopping`, `unsent` when the caller has gone away, or the reason of the signal
   */
  enter(name: string, { signal, isPatient = false }: Waiting = {}): Slot | Promise<Slot> {
    if (this.isClosed || (!isPatient && this.shut.has(name))) throw new RelayError('stopping')
    const queue = this.queues.get(name) ?? this.create(name)
    if (!isPatient && this.pauseOf(queue) > 0) throw pausedError(this.pauseOf(queue))
    const isNext = isFree(queue) && this.restOf(queue) === 0
    if (!isNext && queue.waiters.length >= this.options.capacity && !isPatient) {
      throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    }
    queue.arrivals++
    if (isNext) return this.take(name, queue)
    return new Promise((resolve, reject) => {
      const gone = signal?.()
      const leave = (): void => {
        queue.waiters.splice(queue.waiters.indexOf(waiter), 1)
        reject(gone?.reason instanceof RelayError ? gone.reason : new RelayError('unsent', 'the caller went away while its message was waiting'))
      }
      const waiter: Waiter = {
        isPatient,
        since: this.now(),
        go: () => {
          gone?.removeEventListener('abort', leave)
          resolve(this.take(name, queue))
        },
        refuse: error => {
          gone?.removeEventListener('abort', leave)
          reject(error)
        },
      }
      gone?.addEventListener('abort', leave)
      queue.waiters.push(waiter)
      if (gone?.aborted) leave()
      if (!queue.isBusy) this.goOn(name, queue)
    })
  }

  /** Does work while having the slot of a queue. Rejects as `enter` does, or as the work does. */
  async use<T>(name: string, waiting: Waiting, work: (slot: Slot) => Promise<T>): Promise<T> {
    const entered = this.enter(name, waiting)
    const slot = entered instanceof Promise ? await entered : entered
    try {
      return await work(slot)
    } finally {
      slot.release()
    }
  }

  /** How many further requests may wait in this queue, not counting those that wait patiently: those are counted where they are kept. */
  capacityLeft(name: string): number {
    const waiting = this.queues.get(name)?.waiters.filter(({ isPatient }) => !isPatient).length ?? 0
    return Math.max(this.options.capacity - waiting, 0)
  }

  /** How many have come to this queue so far. As long as that is the same, nobody has come after the last of them. */
  arrivals(name: string): number {
    return this.queues.get(name)?.arrivals ?? 0
  }

  /** Whether a request would get the slot at once. */
  isIdle(name: string): boolean {
    const queue = this.queues.get(name)
    return !queue || (isFree(queue) && this.restOf(queue) === 0)
  }

  /** The queues in which something waits or that are paused. */
  states(): QueueState[] {
    return [...this.queues]
      .map(([name, queue]) => {
        const { waiters, isBusy, reason } = queue
        const callers = waiters.filter(({ isPatient }) => !isPatient).length
        const pause = this.pauseOf(queue)
        const [first] = waiters
        return {
          queue: name, waiting: waiters.length, callers, isBusy,
          ...first && { oldest: Date.now() - (this.now() - first.since) },
          ...pause > 0 && { pausedUntil: Date.now() + pause, reason },
        }
      })
      .filter(({ waiting, pausedUntil }) => waiting > 0 || pausedUntil !== undefined)
  }

  /** Ends the pause of a queue before its time. */
  resume(name: string): void {
    const queue = this.queues.get(name)
    if (!queue) return
    Object.assign(queue, { pausedUntil: -Infinity, failures: 0, reason: undefined })
    if (queue.isBusy) queue.wake?.()
    else this.goOn(name, queue)
  }

  /** Refuses the callers that wait in a queue, and tells how many there were. */
  drop(name: string, error: RelayError): number {
    const queue = this.queues.get(name)
    if (!queue) return 0
    const before = queue.waiters.length
    turnAway(queue, error)
    return before - queue.waiters.length
  }

  /** The queues whose targets keep failing: they are paused, or were, and nothing has got through since. */
  failing(): string[] {
    return [...this.queues].flatMap(([name, { failures }]) => failures >= this.options.pauseAfter ? [name] : [])
  }

  /**
   * Turns away whoever waits in a queue or comes to it, except the patient ones, until `open`: what they would overtake does not leave any
   * more.
   */
  shutOut(name: string): void {
    this.shut.add(name)
    this.drop(name, new RelayError('stopping'))
  }

  /** Turns away whatever waits, and whatever comes. */
  close(): void {
    this.isClosed = true
    for (const queue of this.queues.values()) {
      clearTimeout(queue.timer)
      queue.wake?.()
      for (const waiter of queue.waiters.splice(0)) waiter.refuse(new RelayError('stopping'))
    }
  }

  private create(name: string): Queue {
    const queue: Queue = {
      waiters: [], arrivals: 0, isBusy: false, failures: 0, reason: undefined, pausedUntil: -Infinity, lastSent: -Infinity,
      timer: undefined, wake: undefined,
    }
    this.queues.set(name, queue)
    return queue
  }

  /** The one place where a slot is taken. */
  private take(name: string, queue: Queue): Slot {
    clearTimeout(queue.timer)
    queue.isBusy = true
    return {
      pace: () => this.isClosed || this.restOf(queue) === 0 ? undefined : this.rest(queue),
      sent: () => {
        queue.lastSent = this.now()
      },
      judge: (verdict, reason) => this.judge(queue, verdict, reason),
      turnAway: error => turnAway(queue, error),
      release: () => {
        queue.isBusy = false
        this.goOn(name, queue)
      },
    }
  }

  /** Waits between two messages of one request. */
  private rest(queue: Queue): Promise<void> {
    return new Promise(resolve => {
      queue.wake = () => {
        clearTimeout(queue.timer)
        const left = this.isClosed ? 0 : this.restOf(queue)
        // A timer may go off a little early.
        if (left > 0) {
          queue.timer = setTimeout(() => queue.wake?.(), Math.ceil(left))
          return
        }
        queue.wake = undefined
        resolve()
      }
      queue.wake()
    })
  }

  private judge(queue: Queue, verdict: Verdict, reason: string | undefined): void {
    if (verdict === 'good') queue.failures = 0
    if (verdict === 'bad') queue.reason = reason
    if (verdict !== 'bad' || ++queue.failures < this.options.pauseAfter) return
    // From here on each failure, also that of the one that probes, pauses the queue again.
    queue.pausedUntil = this.now() + this.options.pauseFor
    turnAway(queue, pausedError(this.options.pauseFor))
    this.onPause()
  }

  /** Gives the slot to the next one, as soon as that may be. */
  private goOn(name: string, queue: Queue): void {
    clearTimeout(queue.timer)
    const left = this.restOf(queue)
    if (queue.waiters.length === 0) this.forget(name, queue, left)
    else if (left > 0) queue.timer = setTimeout(() => this.goOn(name, queue), Math.ceil(left))
    else queue.waiters.shift()?.go()
  }

  /** Drops an idle queue once it has nothing left to remember. */
  private forget(name: string, queue: Queue, time: number): void {
    // A target that failed is remembered for one more pause, for its next failure to count.
    const keep = queue.failures > 0 ? time + this.options.pauseFor : time
    if (keep > 0) {
      queue.timer = setTimeout(() => this.queues.delete(name), Math.min(Math.ceil(keep), longestTimer))
      queue.timer.unref()
    } else {
      this.queues.delete(name)
    }
  }

  /** How long nothing may leave from this queue, in milliseconds. */
  private restOf(queue: Queue): number {
    return Math.max(queue.lastSent + this.options.interval - this.now(), this.pauseOf(queue))
  }

  private pauseOf({ pausedUntil }: Queue): number {
    return Math.max(pausedUntil - this.now(), 0)
  }
}

/** Whether nobody has the slot and nobody waits for the moment in which it may be taken. */
function isFree({ isBusy, waiters }: Queue): boolean {
  return !isBusy && waiters.length === 0
}

function turnAway(queue: Queue, error: RelayError): void {
  const patient = queue.waiters.filter(waiter => waiter.isPatient)
  for (const waiter of queue.waiters.splice(0, queue.waiters.length, ...patient)) if (!waiter.isPatient) waiter.refuse(error)
}

function pausedError(time: number): RelayError {
  return new RelayError('paused', undefined, { headers: { 'retry-after': String(Math.max(Math.ceil(time / 1000), 1)) } })
}
