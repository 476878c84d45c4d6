/** The wait before the first further attempt, in milliseconds (contract, "Timeouts and retries"). */
const initialDelay = 200
const maxDelay = 30_000

/**
 * How long to wait after an attempt has failed: twice as long each time, with jitter, so that many requests that failed
 * together do not come back together.
 *
 * @param failures how many attempts have failed so far, from 1
 * @param random a number from 0 (included) to 1
 * @returns milliseconds
 */
export function backoff(failures: number, random: number): number {
  return Math.min(initialDelay * 2 ** (failures - 1), maxDelay) * (1 + random / 2)
}
