/** The times after which a trouble causes alerts, in milliseconds. */
export interface Patience {
  /** How long the trouble must last. */
  begin: number
  /** How long the trouble must be over. If it comes back within this time, it is the same trouble. */
  end: number
  /** How long after an alert the same trouble is only counted when it comes back. The next alert then includes the count. */
  again?: number
}

/** The trouble of one subject. */
export interface Trouble {
  readonly name: string
  /** In milliseconds on the clock of the watch. */
  readonly since: number
  /** How often the trouble came back since the last alert. */
  readonly times: number
}

/** The troubles to report now: each once at its beginning, and once at its end. */
export interface News {
  begun: Trouble[]
  over: Trouble[]
}

interface Watched extends Trouble {
  since: number
  times: number
  /** When the trouble was last present. */
  last: number
  /** When the trouble was last reported. */
  reportedAt: number
  /** Whether its beginning was reported, and its end was not. */
  isReported: boolean
}

/** The least time between two alerts of one kind, in milliseconds. The troubles in between share an alert. */
const gap = 60_000
/** The most troubles at a time. Further ones are not reported. */
const most = 1_000

/** Watches one kind of trouble, and decides which troubles to report. */
export class Watch {
  private readonly watched = new Map<string, Watched>()
  private lastLook = -Infinity
  private lastBegin = -Infinity
  private lastEnd = -Infinity

  constructor(private readonly patience: Patience) {}

  /**
   * Updates the troubles, and returns those to report. To be called every second.
   *
   * @param present the names of the subjects in trouble
   * @param now the time of a monotonic clock, in milliseconds
   */
  look(present: Iterable<string>, now: number): News {
    for (const name of present) {
      const known = this.watched.get(name)
      if (known) {
        const isBack = known.last < this.lastLook
        if (isBack) known.times++
        if (isBack && !known.isReported) known.since = now
        known.last = now
      } else if (this.watched.size < most) {
        this.watched.set(name, { name, since: now, times: 0, last: now, reportedAt: -Infinity, isReported: false })
      }
    }
    this.lastLook = now
    const { begin, end, again } = this.patience
    const begun: Watched[] = []
    const over: Watched[] = []
    for (const trouble of this.watched.values()) {
      const { name, since, times, last, reportedAt, isReported } = trouble
      const isThere = last === now
      // A trouble is reported only while present, except momentary ones (`begin` 0, no `again`), which may wait for the next alert.
      const mayReport = again === undefined ? !isReported && (isThere || begin === 0) : isThere && now - reportedAt >= again
      if (isReported && !isThere && now - last >= end) over.push(trouble)
      else if (mayReport && (times > 0 || (!isReported && last - since >= begin))) begun.push(trouble)
      else if (!isReported && !isThere && now - reportedAt >= (again ?? 0)) this.watched.delete(name)
    }
    const news: News = { begun: [], over: [] }
    if (begun.length > 0 && now - this.lastBegin >= gap) {
      this.lastBegin = now
      news.begun = begun.map(trouble => ({ ...trouble }))
      for (const trouble of begun) Object.assign(trouble, { isReported: true, reportedAt: now, times: 0 })
    }
    if (over.length > 0 && now - this.lastEnd >= gap) {
      this.lastEnd = now
      news.over = over
      // With `again` the trouble is kept, to count when it comes back too early for an alert.
      for (const trouble of over) {
        if (again === undefined) this.watched.delete(trouble.name)
        else trouble.isReported = false
      }
    }
    return news
  }

  /**
   * Marks troubles as not reported, because their alert was not sent. They are reported again if they last.
   *
   * @param isAtOnce whether the next alert may come before a minute is over
   */
  markUnreported(begun: readonly Trouble[], isAtOnce: boolean): void {
    if (isAtOnce) this.lastBegin = -Infinity
    for (const { name } of begun) {
      const known = this.watched.get(name)
      if (known) Object.assign(known, { isReported: false, reportedAt: -Infinity })
    }
  }

  /** Whether the beginning of a trouble was reported, and its end was not. */
  isReported(name: string): boolean {
    return this.watched.get(name)?.isReported === true
  }

  /** Forgets troubles whose subject is gone. */
  forget(isGone: (name: string) => boolean): void {
    for (const name of this.watched.keys()) if (isGone(name)) this.watched.delete(name)
  }
}
