import { onAbort } from '../lib/async'

/**
 * The time of the core. Waits, deadlines and settling use the monotonic clock. The machine's clock serves for display, for expiry across a
 * restart, and for the start of a look-up's window. Nothing in `relay/` reads a global clock or timer, so that tests can simulate time.
 */
export interface Clock {
  /** Milliseconds on the monotonic clock. */
  now(): number
  /** Milliseconds since the epoch by the machine's clock, which may be set at any time. */
  wall(): number
  /** Calls back after so many milliseconds. The returned function cancels that. */
  after(ms: number, callback: () => void): () => void
}

/** The longest time of a Node.js timer, in milliseconds; a longer one fires at once. */
const longestTimer = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, callback) {
    // Timers may fire a little early, and a limit would then still be in force.
    const timer = setTimeout(callback, ms > 0 ? Math.min(Math.ceil(ms) + 1, longestTimer) : 0)
    return () => clearTimeout(timer)
  },
}

/** Waits for so many milliseconds, or until one of these signals is aborted. */
export async function pause(clock: Clock, ms: number, ...signals: AbortSignal[]): Promise<void> {
  if (signals.some(({ aborted }) => aborted)) return
  await new Promise<void>(resolve => {
    const end = (): void => {
      cancel()
      for (const unwatch of watches) unwatch()
      resolve()
    }
    const cancel = clock.after(ms, end)
    const watches = signals.map(signal => onAbort(signal, end))
  })
}

/** Calls back repeatedly, each time after so many milliseconds. The returned function ends that. */
export function every(clock: Clock, ms: number, callback: () => void): () => void {
  const tick = (): void => {
    cancel = clock.after(ms, tick)
    callback()
  }
  let cancel = clock.after(ms, tick)
  return () => cancel()
}

/** The result of some work; `undefined` if it takes longer than so many milliseconds, or one of these signals is aborted. */
export async function inTime<T>(clock: Clock, work: Promise<T>, ms: number, ...signals: AbortSignal[]): Promise<T | undefined> {
  const end = new AbortController()
  try {
    return await Promise.race([work, pause(clock, ms, end.signal, ...signals).then(() => undefined)])
  } finally {
    end.abort()
  }
}
