import { onAbort } from './abort'

/** Waits a while, in milliseconds, but not past the stop. */
export function sleep(time: number, stop: AbortSignal): Promise<void> {
  return waitFor(new Promise(() => undefined), time, stop)
}

/** Waits for some work, but no longer than this, in milliseconds, and not past the stop. Rejects as the work does. */
export function waitFor(work: Promise<unknown>, time: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      unwatch()
      resolve()
    }
    const timer = setTimeout(end, time)
    const unwatch = onAbort(stop, end)
    work.then(end, (error: unknown) => {
      reject(error instanceof Error ? error : new Error('it failed', { cause: error }))
      end()
    })
    if (stop.aborted) end()
  })
}

/** What the work brings within this time, in milliseconds; `undefined` where it fails or takes longer. */
export async function inTime<T>(work: () => Promise<T>, time: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(() => resolve(undefined), time)
  })
  try {
    return await Promise.race([work(), late])
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** Gives the event loop a turn: the statements of an embedded database do not. */
export function yieldToOthers(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** What a timer can wait at most, in milliseconds; one for longer goes off at once. */
export const longestTimer = 2 ** 31 - 1

/** Lets work with the same key happen one after the other. */
export class Mutex {
  private readonly tails = new Map<string, Promise<unknown>>()

  /** Does the work once all earlier work with this key is done, whether that succeeded or not. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key)
    const mine = before ? before.then(work, work) : work()
    this.tails.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.tails.get(key) === mine) this.tails.delete(key)
    }
  }
}
