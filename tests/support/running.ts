import { setTimeout as delay } from 'node:timers/promises'

// Makes the monotonic clock of this process one that can be advanced. Timers do not fire earlier, but intervals of a second are shortened.

const real = performance.now.bind(performance)
let offset = 0

performance.now = () => real() + offset

globalThis.setInterval = new Proxy(globalThis.setInterval, {
  apply: (start, self, [run, time, ...rest]: Parameters<typeof setInterval>): NodeJS.Timeout => (
    Reflect.apply(start, self, [run, time === 1_000 ? 20 : time, ...rest])
  ),
})

/** Waits for a condition, and advances the clock by `step` milliseconds before each check. */
export async function untilPassing(step: number, what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = real() + 10_000
  while (!await condition()) {
    if (real() > end) throw new Error(`waited in vain until ${what}`)
    offset += step
    await delay(5)
  }
}
