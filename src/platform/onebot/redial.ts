/** How long a dial may take, in milliseconds. Without a limit one that is never answered keeps a bot "connecting" for good. */
export const dialTimeout = 5_000

/** The longest wait before the first try, and the longest at all, in milliseconds: sends are to work again within ten seconds. */
const initialDelay = 500
const maxDelay = 5_000

/**
 * How long to wait before a bot is started again: twice as long each time, shortened by up to a half at random so that many
 * bots do not dial together.
 *
 * @param tries how many tries have failed so far, from 0
 * @param random a number from 0 (included) to 1
 * @returns milliseconds
 */
export function redialDelay(tries: number, random: number): number {
  return Math.min(initialDelay * 2 ** tries, maxDelay) * (1 - random / 2)
}
