// The OneBot adapter never clears the timers of its calls. Where the app has ended, nobody needs them any more: the process would not end
// before the last of them, and a call that was not answered would fail in the middle of another test.

/** How long the adapter waits for an answer in tests, in milliseconds. No other timer takes just as long. */
export const responseTimeout = 2_003
/** The same for tests in which calls stay unanswered. */
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
 * Says that an app has begun that may have the adapter.
 *
 * @returns says that it has ended; the last one ends the timers
 */
export function holdAdapterTimers(): () => void {
  apps++
  return () => {
    if (--apps > 0) return
    for (const timer of timers) clearTimeout(timer)
    timers.clear()
  }
}
