import type { Stage } from './stage'

/** How much is measured: all of it, or so much that one sees that it works. */
export interface Extent {
  readonly isQuick: boolean
  /** How often both sides are measured, in turns. */
  readonly rounds: number
  /** How long a window of load is measured, in seconds, and how long it runs before. */
  readonly window: { seconds: number, warmUp: number }
}

/** What a scenario is given. */
export interface Bench {
  readonly stage: Stage
  readonly extent: Extent
  /** Tells whoever watches how it goes on. */
  readonly log: (text: string) => void
}

/** One figure of both sides, from the same round. */
export interface Pair {
  relay: number
  rival: number
}

/** When a goal is met, and how the two sides are compared for it. */
export interface Goal {
  text: string
  /** What one round says: a ratio, or a difference. */
  compare: (pair: Pair) => number
  /** What a comparison looks like in the table. */
  show: (comparison: number) => string
  /** @param comparisons those of all rounds */
  isMet: (median: number, pairs: readonly Pair[]) => boolean
}

/** One line of the table. */
export interface Row {
  what: string
  /** What it is measured beside. */
  rival: string
  unit: string
  /** How many digits of a figure mean something. */
  digits?: number
  goal: Goal
  pairs: readonly Pair[]
  /** What helps to read it, for below the table. */
  note?: string
}

/** One thing to measure. */
export interface Scenario {
  /** For `--only`. */
  name: string
  /** @throws whatever goes wrong: then there are no figures */
  run(bench: Bench): Promise<Row[]>
}
