/** Pseudo-random numbers that depend only on the seed (mulberry32). */
export class Random {
  private state: number

  constructor(seed: number) {
    // Mixes the seed, so that neighbouring seeds give unrelated numbers.
    this.state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b)
    this.next()
  }

  /** From 0 (included) to 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number between two, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** Picks from a list that must not be empty. */
  pick<T>(list: readonly T[]): T {
    const picked = list[this.between(0, list.length - 1)]
    if (picked === undefined) throw new Error('there is nothing to pick from')
    return picked
  }

  /** Picks from a list of pairs, each with a probability in proportion to its weight. */
  weighted<T>(list: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.next() * list.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, value] of list) {
      left -= weight
      if (left < 0) return value
    }
    return this.pick(list)[1]
  }
}
