import { setTimeout } from 'node:timers/promises'

/** The result of some work; `undefined` where it fails or takes longer than a time in milliseconds. */
export async function inTime<T>(work: () => Promise<T>, time: number): Promise<T | undefined> {
  const end = new AbortController()
  try {
    return await Promise.race([work(), setTimeout(time, undefined, { signal: end.signal })])
  } catch {
    return undefined
  } finally {
    end.abort()
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
