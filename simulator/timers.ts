/** Timers that all end with the simulator. */
export class Timers {
  private readonly running = new Set<NodeJS.Timeout>()

  /** Runs a task after `ms`, unless the timers are cleared before. */
  after(ms: number, task: () => void): void {
    const timer = setTimeout(() => {
      this.running.delete(timer)
      task()
    }, ms)
    this.running.add(timer)
  }

  clear(): void {
    for (const timer of this.running) clearTimeout(timer)
    this.running.clear()
  }
}
