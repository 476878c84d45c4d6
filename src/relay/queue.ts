import { RelayError } from '../errors'

/** How the lanes are kept (settings `chatSendInterval` and following). */
export interface LaneOptions {
  /** The least time from the end of a send to the next one to the same target, in milliseconds. */
  interval: number
  /** How many requests may wait in a lane. */
  limit: number
  /** After how many failures in a row that say something about the target a lane is paused. */
  pauseAfter: number
  /** For how long, in milliseconds. */
  pauseFor: number
}

/** What a request has shown about its target: `bad` when it is muted, unknown or does not answer. */
export type Verdict = 'good' | 'bad' | 'none'

/** Its turn: nothing else leaves for this target until it is ended. */
export interface Turn {
  /** Resolves when the interval since the last send, and a pause, are over. To be awaited before each platform message. */
  pace(): Promise<void> | undefined
  /** To be called after each platform message. */
  sent(): void
  /** Takes down what a request has shown about the target. To be called once for each request. */
  judge(verdict: Verdict): void
  /** Refuses those who wait behind it, except the patient ones: what cannot leave now would hold them up. */
  turnAway(error: RelayError): void
  /** Ends the turn; the next request gets it. Tells whether another one has it now. */
  end(): boolean
}

/** How a request waits. */
export interface Waiting {
  /** Takes the request out of the lane; a RelayError as its reason says why. It is only asked for where there is a wait. */
  signal?: () => AbortSignal
  /** Whether it waits as long as it takes, however full the lane, and through pauses. */
  patient?: boolean
}

/** What the lanes look like, for operators. */
export interface LaneState {
  lane: string
  waiting: number
  /** When the pause of the lane ends, in milliseconds since the epoch. */
  pausedUntil?: number
}

interface Waiter {
  patient: boolean
  go: () => void
  refuse: (error: RelayError) => void
}

interface Lane {
  readonly waiters: Waiter[]
  /** How many have come so far. */
  arrivals: number
  busy: boolean
  /** Failures in a row. */
  failures: number
  pausedUntil: number
  lastSent: number
  timer: NodeJS.Timeout | undefined
  /** Ends the rest of a turn between two messages. */
  wake: (() => void) | undefined
}

/** What a timer can wait at most, in milliseconds; one for longer goes off at once. */
const longestTimer = 2 ** 31 - 1

/**
 * Keeps the messages to each target in the order in which they were accepted, one at a time and with a distance between
 * them; targets do not wait for one another. A target that keeps failing is left alone for a while.
 */
export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private closed = false

  constructor(private readonly options: LaneOptions) {}

  /** How many lanes are remembered. */
  get size(): number {
    return this.lanes.size
  }

  /**
   * Waits for a turn in a lane. It is there at once when nothing else is under way and the interval is over.
   *
   * @throws RelayError `queue-full`, `paused`, `stopping`, `unsent` when the caller has gone away, or the reason of the signal
   */
  enter(key: string, { signal, patient = false }: Waiting = {}): Turn | Promise<Turn> {
    if (this.closed) throw new RelayError('stopping')
    const lane = this.lanes.get(key) ?? this.open(key)
    if (!patient && this.pauseOf(lane) > 0) throw pausedError(this.pauseOf(lane))
    const isNext = isFree(lane) && this.restOf(lane) === 0
    if (!isNext && lane.waiters.length >= this.options.limit && !patient) {
      throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    }
    lane.arrivals++
    if (isNext) return this.take(key, lane)
    return new Promise((resolve, reject) => {
      const gone = signal?.()
      const leave = (): void => {
        lane.waiters.splice(lane.waiters.indexOf(waiter), 1)
        reject(gone?.reason instanceof RelayError ? gone.reason : new RelayError('unsent', 'the caller went away while its message was waiting'))
      }
      const waiter: Waiter = {
        patient,
        go: () => {
          gone?.removeEventListener('abort', leave)
          resolve(this.take(key, lane))
        },
        refuse: error => {
          gone?.removeEventListener('abort', leave)
          reject(error)
        },
      }
      gone?.addEventListener('abort', leave)
      lane.waiters.push(waiter)
      if (gone?.aborted) leave()
      if (!lane.busy) this.goOn(key, lane)
    })
  }

  /** How many further requests may wait in this lane, those apart that wait patiently: those are counted where they are kept. */
  room(key: string): number {
    const waiting = this.lanes.get(key)?.waiters.filter(({ patient }) => !patient).length ?? 0
    return Math.max(this.options.limit - waiting, 0)
  }

  /** How many have come to this lane so far. As long as that is the same, nobody has come after the last of them. */
  arrivals(key: string): number {
    return this.lanes.get(key)?.arrivals ?? 0
  }

  /** Whether a request would get its turn at once. */
  isIdle(key: string): boolean {
    const lane = this.lanes.get(key)
    return !lane || (isFree(lane) && this.restOf(lane) === 0)
  }

  /** The lanes in which something waits or that are paused. */
  states(): LaneState[] {
    return [...this.lanes]
      .map(([name, lane]) => ({
        lane: name, waiting: lane.waiters.length, ...this.pauseOf(lane) > 0 && { pausedUntil: lane.pausedUntil },
      }))
      .filter(({ waiting, pausedUntil }) => waiting > 0 || pausedUntil !== undefined)
  }

  /** Turns away whatever waits, and whatever comes. */
  close(): void {
    this.closed = true
    for (const lane of this.lanes.values()) {
      clearTimeout(lane.timer)
      lane.wake?.()
      for (const waiter of lane.waiters.splice(0)) waiter.refuse(new RelayError('stopping'))
    }
    this.lanes.clear()
  }

  private open(key: string): Lane {
    const lane: Lane = {
      waiters: [], arrivals: 0, busy: false, failures: 0, pausedUntil: 0, lastSent: -Infinity, timer: undefined, wake: undefined,
    }
    this.lanes.set(key, lane)
    return lane
  }

  private take(key: string, lane: Lane): Turn {
    clearTimeout(lane.timer)
    lane.busy = true
    return {
      pace: () => this.closed || this.restOf(lane) === 0 ? undefined : this.rest(lane),
      sent: () => {
        lane.lastSent = Date.now()
      },
      judge: verdict => this.judge(lane, verdict),
      turnAway: error => turnAway(lane, error),
      end: () => {
        lane.busy = false
        this.goOn(key, lane)
        return lane.busy
      },
    }
  }

  /** Waits during a turn. */
  private rest(lane: Lane): Promise<void> {
    return new Promise(resolve => {
      lane.wake = () => {
        clearTimeout(lane.timer)
        const left = this.closed ? 0 : this.restOf(lane)
        // A timer may go off a little early.
        if (left > 0) lane.timer = setTimeout(() => lane.wake?.(), left)
        else resolve()
      }
      lane.wake()
    })
  }

  private judge(lane: Lane, verdict: Verdict): void {
    if (verdict === 'good') lane.failures = 0
    if (verdict !== 'bad' || ++lane.failures < this.options.pauseAfter) return
    // From here on each failure, also that of the one that probes, pauses the lane again.
    lane.pausedUntil = Date.now() + this.options.pauseFor
    turnAway(lane, pausedError(this.options.pauseFor))
  }

  /** Gives the next one its turn, as soon as that may be. */
  private goOn(key: string, lane: Lane): void {
    clearTimeout(lane.timer)
    if (this.closed) return
    const left = this.restOf(lane)
    if (lane.waiters.length === 0) this.forget(key, lane, left)
    else if (left > 0) lane.timer = setTimeout(() => this.goOn(key, lane), left)
    else lane.waiters.shift()?.go()
  }

  /** Drops an idle lane once it has nothing left to remember. */
  private forget(key: string, lane: Lane, time: number): void {
    // A target that failed is remembered for one more pause, for its next failure to count.
    const keep = lane.failures > 0 ? time + this.options.pauseFor : time
    if (keep > 0) {
      lane.timer = setTimeout(() => this.lanes.delete(key), Math.min(keep, longestTimer))
      lane.timer.unref()
    } else {
      this.lanes.delete(key)
    }
  }

  /** How long nothing may leave from this lane, in milliseconds. */
  private restOf(lane: Lane): number {
    const now = Date.now()
    // The clock may have been set back meanwhile.
    lane.lastSent = Math.min(lane.lastSent, now)
    return Math.max(lane.lastSent + this.options.interval - now, this.pauseOf(lane))
  }

  private pauseOf(lane: Lane): number {
    const now = Date.now()
    lane.pausedUntil = Math.min(lane.pausedUntil, now + this.options.pauseFor)
    return Math.max(lane.pausedUntil - now, 0)
  }
}

/** Whether nobody has the turn and nobody waits for the moment in which it may be taken. */
function isFree({ busy, waiters }: Lane): boolean {
  return !busy && waiters.length === 0
}

function turnAway(lane: Lane, error: RelayError): void {
  const patient = lane.waiters.filter(waiter => waiter.patient)
  for (const waiter of lane.waiters.splice(0, lane.waiters.length, ...patient)) if (!waiter.patient) waiter.refuse(error)
}

function pausedError(time: number): RelayError {
  return new RelayError('paused', undefined, { headers: { 'retry-after': String(Math.max(Math.ceil(time / 1000), 1)) } })
}
