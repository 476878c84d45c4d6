/** When a trouble is worth an alert, in milliseconds. */
export interface Patience {
  /** How long the trouble has to last. */
  begin: number
  /** How long it has to be over. A trouble that comes back within this time is the same one. */
  end: number
}

/** Something that is in trouble, by its name. */
export interface Trouble {
  readonly name: string
  /** In milliseconds on the clock of the watch. */
  readonly since: number
}

/** The troubles to tell now: each once when it has begun, and once more when it is over. */
export interface News {
  begun: Trouble[]
  over: Trouble[]
}

interface Watched extends Trouble {
  /** When it was there last. */
  last: number
  isTold: boolean
}

/** The least time between two alerts of one kind, in milliseconds: the troubles in between are told together. */
const gap = 60_000
/** The most troubles that are watched; further ones are not told. */
const most = 1_000

/** Watches one kind of trouble, and says which troubles to tell. */
export class Watch {
  private readonly watched = new Map<string, Watched>()
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
      if (known) known.last = now
      else if (this.watched.size < most) this.watched.set(name, { name, since: now, last: now, isTold: false })
    }
    const begun: Watched[] = []
    const over: Watched[] = []
    for (const trouble of this.watched.values()) {
      const { name, since, last, isTold } = trouble
      if (isTold && now - last >= this.patience.end) over.push(trouble)
      else if (!isTold && last - since >= this.patience.begin) begun.push(trouble)
      else if (!isTold && last < now) this.watched.delete(name)
    }
    const news: News = { begun: [], over: [] }
    if (begun.length > 0 && now - this.lastBegin >= gap) {
      this.lastBegin = now
      for (const trouble of begun) trouble.isTold = true
      news.begun = begun
    }
    if (over.length > 0 && now - this.lastEnd >= gap) {
      this.lastEnd = now
      for (const { name } of over) this.watched.delete(name)
      news.over = over
    }
    return news
  }

  /** The alert about the beginning of these did not leave: they are told again. */
  takeBack(begun: readonly Trouble[]): void {
    this.lastBegin = -Infinity
    for (const { name } of begun) {
      const known = this.watched.get(name)
      if (known) known.isTold = false
    }
  }

  /** Forgets troubles whose subject is gone. */
  forget(isGone: (name: string) => boolean): void {
    for (const name of this.watched.keys()) if (isGone(name)) this.watched.delete(name)
  }
}
