import { onAbort } from './abort'

/** Gives the event loop a turn: the statements of an embedded database do not. */
export { setImmediate as yieldToOthers } from 'node:timers/promises'

/** The longest wait of a Node.js timer, in milliseconds; a longer one ends at once. */
export const longestTimer = 2 ** 31 - 1

/** Waits for a time in milliseconds; the stop ends the wait. */
export function sleep(time: number, stop: AbortSignal): Promise<void> {
  return waitFor(new Promise(() => undefined), time, stop)
}

/** Waits for some work, at most for a time in milliseconds; the stop ends the wait. Rejects as the work does. */
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

/** The result of some work; `undefined` where it fails or takes longer than a time in milliseconds. */
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

/** Runs work with the same key one after the other. */
export class Mutex {
  private readonly tails = new Map<string, Promise<unknown>>()

  /** Does the work once all earlier work with this key has ended, well or not. */
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
