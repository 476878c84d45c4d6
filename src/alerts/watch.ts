/** When a trouble is worth an alert, in milliseconds. */
export interface Patience {
  /** How long the trouble has to last. */
  begin: number
  /** How long it has to be over. A trouble that comes back within this time is the same one. */
  end: number
  /** How long after an alert the same trouble is only counted when it comes back; then it is told with the count. */
  again?: number
}

/** Something that is in trouble, by its name. */
export interface Trouble {
  readonly name: string
  /** In milliseconds on the clock of the watch. */
  readonly since: number
  /** How often it came back since it was told. */
  readonly times: number
}

/** The troubles to tell now: each once when it has begun, and once more when it is over. */
export interface News {
  begun: Trouble[]
  over: Trouble[]
}

interface Watched extends Trouble {
  since: number
  times: number
  /** When it was there last. */
  last: number
  /** When it was told last. */
  toldAt: number
  /** Whether its beginning was told, and its end was not. */
  isTold: boolean
}

/** The least time between two alerts of one kind, in milliseconds: the troubles in between are told together. */
const gap = 60_000
/** The most troubles that are watched; further ones are not told. */
const most = 1_000

/** Watches one kind of trouble, and says which troubles to tell. */
export class Watch {
  private readonly watched = new Map<string, Watched>()
  private lastLook = -Infinity
  private lastBegin = -Infinity
  private lastEnd = -Infinity

  constructor(private readonly patience: Patience) {}

  /**
   * To be called every second.
   *
   * @param present the names of what is in trouble now
   * @param now in milliseconds, on a clock that only runs forward
   */
  look(present: Iterable<string>, now: number): News {
    for (const name of present) {
      const known = this.watched.get(name)
      if (known) {
        const isBack = known.last < this.lastLook
        if (isBack) known.times++
        if (isBack && !known.isTold) known.since = now
        known.last = now
      } else if (this.watched.size < most) {
        this.watched.set(name, { name, since: now, times: 0, last: now, toldAt: -Infinity, isTold: false })
      }
    }
    this.lastLook = now
    const { begin, end, again } = this.patience
    const begun: Watched[] = []
    const over: Watched[] = []
    for (const trouble of this.watched.values()) {
      const { name, since, times, last, toldAt, isTold } = trouble
      const isThere = last === now
      // A trouble is told while it lasts. One that lasts for a single look, without a `begin`, is told later too, with others of its kind.
      const mayTell = again === undefined ? !isTold && (isThere || begin === 0) : isThere && now - toldAt >= again
      if (isTold && !isThere && now - last >= end) over.push(trouble)
      else if (mayTell && (times > 0 || (!isTold && last - since >= begin))) begun.push(trouble)
      else if (!isTold && !isThere && now - toldAt >= (again ?? 0)) this.watched.delete(name)
    }
    const news: News = { begun: [], over: [] }
    if (begun.length > 0 && now - this.lastBegin >= gap) {
      this.lastBegin = now
      news.begun = begun.map(trouble => ({ ...trouble }))
      for (const trouble of begun) Object.assign(trouble, { isTold: true, toldAt: now, times: 0 })
    }
    if (over.length > 0 && now - this.lastEnd >= gap) {
      this.lastEnd = now
      news.over = over
      // Where it comes back too soon to be told, it is counted.
      for (const trouble of over) {
        if (again === undefined) this.watched.delete(trouble.name)
        else trouble.isTold = false
      }
    }
    return news
  }

  /**
   * The alert about the beginning of these did not leave: they are told again, as long as they last.
   *
   * @param isAtOnce whether before a minute is over
   */
  takeBack(begun: readonly Trouble[], isAtOnce: boolean): void {
    if (isAtOnce) this.lastBegin = -Infinity
    for (const { name } of begun) {
      const known = this.watched.get(name)
      if (known) Object.assign(known, { isTold: false, toldAt: -Infinity })
    }
  }

  /** Whether the beginning of a trouble was told, and its end was not. */
  hasTold(name: string): boolean {
    return this.watched.get(name)?.isTold === true
  }

  /** Forgets troubles whose subject is gone. */
  forget(isGone: (name: string) => boolean): void {
    for (const name of this.watched.keys()) if (isGone(name)) this.watched.delete(name)
  }
}
