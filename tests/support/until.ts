import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until a condition holds. After a second it is checked less often, because a check may be a request.
 *
 * @param what what is waited for; a function is asked when the wait is over, for what is known only then
 * @param timeout in milliseconds
 * @throws when the condition does not hold in time
 */
export async function until(what: string | (() => string), condition: () => boolean | Promise<boolean>, timeout = 10_000): Promise<void> {
  const start = performance.now()
  while (!await condition()) {
    const time = performance.now() - start
    if (time > timeout) throw new Error(`waited ${timeout} ms in vain until ${typeof what === 'string' ? what : what()}`)
    await delay(time < 1_000 ? 5 : 50)
  }
}
