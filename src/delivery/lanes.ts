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
  /** Resolves when the interval since the last send is over. To be awaited before each platform message. */
  pace(): Promise<void> | undefined
  /** To be called after each platform message. */
  sent(): void
  /** Takes down what a request has shown about the target. To be called once for each request. */
  judge(verdict: Verdict): void
  /** Ends the turn; the next request gets it. */
  end(): void
}

/** How a request waits. */
export interface Waiting {
  /** Takes the request out of the lane. It is only asked for where there is something to wait for. */
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
  busy: boolean
  /** Failures in a row. */
  failures: number
  pausedUntil: number
  lastSent: number
  timer: NodeJS.Timeout | undefined
}

/**
 * Keeps the messages to each target in the order in which they were accepted, one at a time and with a distance between
 * them; targets do not wait for one another. A target that keeps failing is left alone for a while.
 */
export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private closed = false

  constructor(private readonly options: LaneOptions) {}

  /**
   * Waits for a turn in a lane. It is there at once when nothing else is under way.
   *
   * @throws RelayError `queue-full`, `paused`, `stopping`, or `unsent` when the caller has gone away
   */
  enter(key: string, { signal, patient = false }: Waiting = {}): Turn | Promise<Turn> {
    if (this.closed) throw new RelayError('stopping')
    const lane = this.lanes.get(key) ?? this.open(key)
    const isPaused = lane.pausedUntil > Date.now()
    if (isPaused && !patient) throw pausedError(lane.pausedUntil)
    if (!lane.busy && !isPaused) return this.take(key, lane)
    if (lane.waiters.length >= this.options.limit && !patient) {
      throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    }
    return new Promise((resolve, reject) => {
      const gone = signal?.()
      const leave = (): void => {
        lane.waiters.splice(lane.waiters.indexOf(waiter), 1)
        reject(new RelayError('unsent', 'the caller went away while its message was waiting'))
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
      else if (!lane.busy) this.goOn(key, lane)
    })
  }

  /** Whether another request may be put in this lane to wait. */
  hasRoom(key: string): boolean {
    return (this.lanes.get(key)?.waiters.length ?? 0) < this.options.limit
  }

  /** The lanes in which something waits or that are paused. */
  states(): LaneState[] {
    const now = Date.now()
    return [...this.lanes]
      .map(([lane, { waiters, pausedUntil }]) => ({ lane, waiting: waiters.length, ...pausedUntil > now && { pausedUntil } }))
      .filter(({ waiting, pausedUntil }) => waiting > 0 || pausedUntil !== undefined)
  }

  /** Turns away whatever waits, and whatever comes. */
  close(): void {
    this.closed = true
    for (const lane of this.lanes.values()) {
      clearTimeout(lane.timer)
      for (const waiter of lane.waiters.splice(0)) waiter.refuse(new RelayError('stopping'))
    }
    this.lanes.clear()
  }

  private open(key: string): Lane {
    const lane: Lane = { waiters: [], busy: false, failures: 0, pausedUntil: 0, lastSent: 0, timer: undefined }
    this.lanes.set(key, lane)
    return lane
  }

  private take(key: string, lane: Lane): Turn {
    clearTimeout(lane.timer)
    lane.busy = true
    const { interval } = this.options
    return {
      pace: () => {
        const left = interval && lane.lastSent + interval - Date.now()
        return left > 0 ? new Promise(resolve => setTimeout(resolve, left)) : undefined
      },
      sent: () => {
        lane.lastSent = Date.now()
      },
      judge: verdict => this.judge(lane, verdict),
      end: () => {
        lane.busy = false
        this.goOn(key, lane)
      },
    }
  }

  private judge(lane: Lane, verdict: Verdict): void {
    if (verdict === 'good') lane.failures = 0
    if (verdict !== 'bad' || ++lane.failures < this.options.pauseAfter) return
    // From here on each failure, also that of the one that probes, pauses the lane again.
    lane.pausedUntil = Date.now() + this.options.pauseFor
    for (const waiter of lane.waiters.filter(({ patient }) => !patient)) {
      lane.waiters.splice(lane.waiters.indexOf(waiter), 1)
      waiter.refuse(pausedError(lane.pausedUntil))
    }
  }

  private goOn(key: string, lane: Lane): void {
    clearTimeout(lane.timer)
    if (this.closed) return
    const pause = lane.pausedUntil - Date.now()
    if (pause > 0) {
      if (lane.waiters.length > 0) lane.timer = setTimeout(() => this.goOn(key, lane), pause)
      else this.forget(key, lane, pause)
      return
    }
    const next = lane.waiters.shift()
    if (next) next.go()
    else this.forget(key, lane, this.options.interval)
  }

  /** Drops an idle lane once it has nothing left to remember. */
  private forget(key: string, lane: Lane, time: number): void {
    // A target that failed is remembered for one more pause, for its next failure to count.
    const keep = lane.failures > 0 ? Math.max(time, 0) + this.options.pauseFor : time
    if (keep > 0) {
      lane.timer = setTimeout(() => this.lanes.delete(key), keep)
      lane.timer.unref()
    } else {
      this.lanes.delete(key)
    }
  }
}

function pausedError(until: number): RelayError {
  const seconds = Math.max(Math.ceil((until - Date.now()) / 1000), 1)
  return new RelayError('paused', undefined, { headers: { 'retry-after': String(seconds) } })
}
