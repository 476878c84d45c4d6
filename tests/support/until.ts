import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until a condition holds.
 *
 * @param timeout in milliseconds
 * @throws when it does not hold in time
 */
export async function until(what: string, condition: () => boolean | Promise<boolean>, timeout = 10_000): Promise<void> {
  const end = performance.now() + timeout
  while (!await condition()) {
    if (performance.now() > end) throw new Error(`waited ${timeout} ms in vain until ${what}`)
    await delay(5)
  }
}
