import { onAbort } from '../lib/async'

/**
 * Time as the core sees it. Waits, deadlines and settling run on the monotonic clock; the machine's clock is for what people see, for
 * expiry across a restart, and for where a look-up begins. Nothing in `relay/` reads a global clock or timer, so that tests simulate time.
 */
export interface Clock {
  /** Milliseconds on a clock that only runs forward. */
  now(): number
  /** Milliseconds since the epoch by the machine's clock, which may be set at any time. */
  wall(): number
  /** Calls back after so many milliseconds; what it returns cancels that. */
  after(ms: number, callback: () => void): () => void
}

/** The longest time that a timer of Node.js can wait, in milliseconds; one for longer goes off at once. */
const longestTimer = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, callback) {
    // It may go off a little early: then what waits for a limit would find it still in force.
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

/** Calls back again and again, each time after so many milliseconds. @returns ends that */
export function every(clock: Clock, ms: number, callback: () => void): () => void {
  const tick = (): void => {
    cancel = clock.after(ms, tick)
    callback()
  }
  let cancel = clock.after(ms, tick)
  return () => cancel()
}

/** The result of some work; `undefined` where it takes longer than so many milliseconds, or one of these signals is aborted. */
export async function inTime<T>(clock: Clock, work: Promise<T>, ms: number, ...signals: AbortSignal[]): Promise<T | undefined> {
  const end = new AbortController()
  try {
    return await Promise.race([work, pause(clock, ms, end.signal, ...signals).then(() => undefined)])
  } finally {
    end.abort()
  }
}
