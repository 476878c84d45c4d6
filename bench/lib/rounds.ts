import type { Pair } from './scenario'

/** Measures both sides in turns, A B A B, so that other load on the machine affects both. */
export async function alternate<T>(rounds: number, relay: () => Promise<T>, rival: () => Promise<T>): Promise<{ relay: T, rival: T }[]> {
  const results: { relay: T, rival: T }[] = []
  for (let round = 0; round < rounds; round++) {
    const ours = await relay()
    results.push({ relay: ours, rival: await rival() })
  }
  return results
}

/** Picks one figure of each round. */
export function pick<T>(results: readonly { relay: T, rival: T }[], read: (result: T) => number): Pair[] {
  return results.map(({ relay, rival }) => ({ relay: read(relay), rival: read(rival) }))
}
