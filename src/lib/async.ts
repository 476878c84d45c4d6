import { setTimeout } from 'node:timers/promises'

const callbacks = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back when a signal is aborted; not where it is already. Every message under way watches the signal of the stop, so they share one
 * listener: V8 links the listeners of a signal to one another, and one that was removed keeps those that were added after it.
 *
 * @param callback must not throw
 * @returns ends the watch
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const all = callbacks.get(signal) ?? new Set()
  if (!callbacks.has(signal)) {
    callbacks.set(signal, all)
    signal.addEventListener('abort', () => all.forEach(each => each()), { once: true })
  }
  all.add(callback)
  return () => void all.delete(callback)
}

/** The result of some work; `undefined` where it fails or takes longer than a time in milliseconds. */
export async function inTime<T>(work: () => Promise<T>, time: number): Promise<T | undefined> {
  const end = new AbortController()
  const late = setTimeout(time, undefined, { signal: end.signal })
  return Promise.race([work(), late]).catch(() => undefined).finally(() => end.abort())
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
