/** How many deliveries go on at once in a flood, and how many are accepted for each further one. */
const burst = 8
const share = 32
/** How much of its time a process that keeps up is idle, at least. */
const leastIdle = 0.3
/** How long it is looked at for that, in milliseconds. */
const interval = 20
/** After which time without a new request there is no flood, in milliseconds: deliveries of many lanes at once keep requests waiting. */
const quiet = 250
/** How long a delivery waits at most, in milliseconds. */
const patience = 2_000

/**
 * Lets requests be accepted before those accepted earlier are delivered, while the process cannot do both. Each statement of an
 * embedded database holds it up, and a delivery takes several: in a flood of requests their callers would wait for deliveries
 * that are not in a hurry. Of so many accepted, one is still delivered meanwhile.
 */
export class Precedence {
  private credit = burst
  /** When the last one was accepted, on the clock of `performance.now()`, as all times here. */
  private accepted = -Infinity
  /** When it was last looked how long the process had been idle, how long that was, and whether it could keep up. */
  private looked = 0
  private idle = 0
  private keepsUp = true
  private timer: NodeJS.Timeout | undefined
  private readonly waiting: { since: number, go: () => void }[] = []

  /** To be called for each request that was accepted. */
  accept(): void {
    this.accepted = performance.now()
    this.credit = Math.min(this.credit + 1 / share, burst)
    this.letGo(1)
  }

  /** To be awaited before a delivery: resolves when it may go on. */
  pass(): Promise<void> | undefined {
    if (!this.isFlooded()) return
    if (this.credit >= 1) {
      this.credit--
      return
    }
    this.timer ??= setTimeout(() => this.look(), interval)
    return new Promise(go => this.waiting.push({ since: performance.now(), go }))
  }

  private isFlooded(): boolean {
    const now = performance.now()
    const time = now - this.looked
    if (time >= interval) {
      const { idle } = performance.eventLoopUtilization()
      this.keepsUp = idle - this.idle >= leastIdle * time
      this.idle = idle
      this.looked = now
    }
    return !this.keepsUp && now - this.accepted < quiet
  }

  private look(): void {
    this.timer = undefined
    if (!this.isFlooded()) this.credit = burst
    this.letGo(burst)
    const latest = performance.now() - patience
    while (this.waiting[0] && this.waiting[0].since <= latest) this.waiting.shift()?.go()
    if (this.waiting.length > 0) this.timer = setTimeout(() => this.look(), interval)
  }

  private letGo(most: number): void {
    for (let count = 0; count < most && this.credit >= 1 && this.waiting.length > 0; count++) {
      this.credit--
      this.waiting.shift()?.go()
    }
  }
}
