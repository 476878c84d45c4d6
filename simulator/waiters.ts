interface Waiter { holds: () => boolean, settle: (error?: Error) => void }

/** Promises for a condition on the simulator, looked at again on every change. */
export class Waiters {
  private readonly waiting = new Set<Waiter>()

  /** @param describe what the state is, for the text of a rejection */
  constructor(private readonly describe: () => string) {}

  /**
   * Resolves as soon as the condition holds; rejects after `timeout` ms, when it throws, or on `close`.
   * @param text of the condition, for the rejection
   */
  wait(holds: () => boolean, timeout: number, text: string): Promise<void> {
    // Made here, so that its stack shows who waited.
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

  /** Looks at every condition again. */
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
