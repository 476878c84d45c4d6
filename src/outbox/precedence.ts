/** How many deliveries go on at once after a while without a new one, and how many are accepted for each further one. */
const burst = 8
const share = 32
/** After which time without a new one nobody is in the way any more, in milliseconds. */
const quiet = 20

/**
 * Lets requests be accepted before those accepted earlier are delivered. Each statement of an embedded database holds up the
 * whole process, and a delivery takes several: in a flood of requests their callers would wait for deliveries that are not in a
 * hurry. Of so many accepted, one is still delivered meanwhile.
 */
export class Precedence {
  private credit = burst
  /** When the last one was accepted, on the clock of `performance.now()`. */
  private last = -Infinity
  private timer: NodeJS.Timeout | undefined
  private readonly waiting: (() => void)[] = []

  /** To be called for each request that was accepted. */
  accepted(): void {
    this.credit = Math.min(this.credit + 1 / share, burst)
    if (this.credit >= 1) this.letOneGo()
    this.last = performance.now()
    this.timer ??= setTimeout(() => this.check(), quiet)
  }

  /** To be awaited before a delivery: resolves when it may go on. */
  pass(): Promise<void> | undefined {
    if (!this.timer) return
    if (this.credit >= 1) {
      this.credit--
      return
    }
    return new Promise(resolve => this.waiting.push(resolve))
  }

  private letOneGo(): void {
    const go = this.waiting.shift()
    if (!go) return
    this.credit--
    go()
  }

  /** Looks whether it is quiet. The statements of the database may have held this up, and the requests that came meanwhile. */
  private check(): void {
    const left = this.last + quiet - performance.now()
    this.timer = left > 0 ? setTimeout(() => this.check(), left) : undefined
    if (this.timer) return
    this.credit = burst
    for (const go of this.waiting.splice(0)) go()
  }
}
