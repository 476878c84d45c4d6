interface Waiter { holds: () => boolean, settle: (error?: Error) => void }

/** Promises for conditions on the simulator. Each change checks them again. */
export class Waiters {
  private readonly waiting = new Set<Waiter>()

  /** @param describe describes the state, for the text of a rejection */
  constructor(private readonly describe: () => string) {}

  /**
   * Resolves as soon as the condition holds; rejects after `timeout` ms, when it throws, or on `close`.
   * @param text the condition as text, for the rejection
   */
  wait(holds: () => boolean, timeout: number, text: string): Promise<void> {
    // Created here, so that its stack shows the caller.
    const late = new Error()
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        holds,
        settle: error => {
          clearTimeout(timer)
          this.waiting.delete(waiter)
          if (error === undefined) resolve()
          else reject(error)
        },
      }
      const timer = setTimeout(() => {
        late.message = `the condition did not hold within ${timeout} ms: ${text}\n${this.describe()}`
        waiter.settle(late)
      }, timeout)
      this.waiting.add(waiter)
      look(waiter)
    })
  }

  /** Checks every condition again. */
  changed(): void {
    if (this.waiting.size === 0) return
    for (const waiter of [...this.waiting]) look(waiter)
  }

  close(): void {
    for (const waiter of [...this.waiting]) waiter.settle(new Error(`the simulator was closed\n${this.describe()}`))
  }
}

function look(waiter: Waiter): void {
  try {
    if (waiter.holds()) waiter.settle()
  } catch (error) {
    waiter.settle(error instanceof Error ? error : new Error(String(error)))
  }
}
