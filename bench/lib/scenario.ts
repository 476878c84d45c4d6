import type { Stage } from './stage'

/** How much to measure: everything, or just enough to see that the scenarios work. */
export interface Extent {
  readonly isQuick: boolean
  /** How often both sides are measured, alternately. */
  readonly rounds: number
  /** The measured time of a window of load, and the warm-up before it, in seconds. */
  readonly window: { seconds: number, warmUp: number }
}

/** The environment of a scenario. */
export interface Bench {
  readonly stage: Stage
  readonly extent: Extent
  /** Reports progress to the operator. */
  readonly log: (text: string) => void
}

/** One figure of both sides, from the same round. */
export interface Pair {
  relay: number
  rival: number
}

/** When a goal is met, and how it compares the two sides. */
export interface Goal {
  text: string
  /** The result of one round: a ratio or a difference. */
  compare: (pair: Pair) => number
  /** Formats a comparison for the table. */
  show: (comparison: number) => string
  /** @param pairs the figures of all rounds */
  isMet: (median: number, pairs: readonly Pair[]) => boolean
}

/** One line of the table. */
export interface Row {
  what: string
  /** The name of the rival. */
  rival: string
  unit: string
  /** How many digits of a figure are significant. */
  digits?: number
  goal: Goal
  pairs: readonly Pair[]
  /** An explanation for below the table. */
  note?: string
}

/** One measurement. */
export interface Scenario {
  /** For `--only`. */
  name: string
  /** @throws any error: then there are no figures */
  run(bench: Bench): Promise<Row[]>
}
