import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until a condition holds. After a second it is checked less often, because a check may be a request.
 *
 * @param timeout in milliseconds
 * @throws when the condition does not hold in time
 */
export async function until(what: string, condition: () => boolean | Promise<boolean>, timeout = 10_000): Promise<void> {
  const start = performance.now()
  while (!await condition()) {
    const time = performance.now() - start
    if (time > timeout) throw new Error(`waited ${timeout} ms in vain until ${what}`)
    await delay(time < 1_000 ? 5 : 50)
  }
}
