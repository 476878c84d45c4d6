import { apiKey } from './apps'
import type { Child } from './child'
import type { Extent } from './scenario'
import { numberOf, textsOf } from './values'

/** The requests of a load, and their destination. */
export interface Load {
  url: string
  /** Distributed over the connections in turn. */
  bodies: readonly string[]
  /** Replaces the path of the URL; also distributed in turn. */
  paths?: readonly string[]
  connections: number
  /** The expected status of each answer; 200 by default. */
  status?: number
  /** Sends exactly this many requests and measures all of them, instead of a window of time. */
  amount?: number
  headers?: Readonly<Record<string, string>>
  /** Whether each request has an Idempotency-Key of its own. */
  isKeyed?: boolean
}

/** The result of a load. Times are in milliseconds. */
export interface LoadResult {
  /** Answers a second. */
  rate: number
  median: number
  p99: number
}

/** How long a window with a fixed number of requests may take, in milliseconds. */
const patience = 600_000

/**
 * Puts an app under load from the generator, a process of its own.
 *
 * @throws Error when a request has no answer or another status, because the figures would mean nothing
 */
export async function runLoad(generator: Child, { amount = 0, status = 200, headers, ...load }: Load, extent: Extent): Promise<LoadResult> {
  const window = amount > 0 ? { seconds: 0, warmUp: 0 } : extent.window
  const result = await generator.ask('load', {
    ...load,
    ...window,
    amount,
    status,
    headers: { 'content-type': 'application/json', 'x-api-key': apiKey, ...headers },
  }, patience)
  const failures = textsOf(result, 'failures')
  if (failures.length > 0) throw new Error(`of ${numberOf(result, 'total')} requests to ${load.url} failed: ${failures.join(', ')}`)
  return { rate: numberOf(result, 'rate'), median: numberOf(result, 'median'), p99: numberOf(result, 'p99') }
}

/** Bodies of single text messages, one per group. */
export function textsTo(groups: number): string[] {
  return Array.from({ length: groups }, (_, index) => JSON.stringify({
    group_id: String(200_001 + index), msg: `build #4711 of main passed in 2 min 13 s (${index})`,
  }))
}
