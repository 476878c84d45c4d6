// The OneBot adapter never clears the timers of its calls (upstream/07). After an app has ended, they are useless: the process would not
// end before the last one, and an unanswered call would fail in the middle of another test.

/** The response timeout of the adapter in tests, in milliseconds. No other timer has this length. */
export const responseTimeout = 2_003
/** The response timeout for tests in which calls stay unanswered, in milliseconds. */
export const shortResponseTimeout = 1_003

const timers = new Set<NodeJS.Timeout>()
let apps = 0

globalThis.setTimeout = new Proxy(globalThis.setTimeout, {
  apply(start, self, args: Parameters<typeof setTimeout>) {
    const timer: NodeJS.Timeout = Reflect.apply(start, self, args)
    if (args[1] === responseTimeout || args[1] === shortResponseTimeout) timers.add(timer)
    return timer
  },
})

/**
 * Registers an app that may have the adapter.
 *
 * @returns a function to call when the app has ended; the last call clears the timers
 */
export function holdAdapterTimers(): () => void {
  apps++
  return () => {
    if (--apps > 0) return
    for (const timer of timers) clearTimeout(timer)
    timers.clear()
  }
}
