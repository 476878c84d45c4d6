import type { Goal, Pair } from './scenario'
import { summarise } from './statistics'

const ratio = ({ relay, rival }: Pair): number => relay / rival
const difference = ({ relay, rival }: Pair): number => relay - rival
const showRatio = (value: number): string => `${value.toFixed(2)} ×`

function showDifference(unit: string): (value: number) => string {
  return value => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)} ${unit}`
}

/** At least so many times the rival's figure. */
export function atLeast(times: number): Goal {
  return { text: `≥ ${times} ×`, compare: ratio, show: showRatio, isMet: median => median >= times }
}

/** At most so many times the rival's figure. */
export function atMost(times: number): Goal {
  return { text: `≤ ${times} ×`, compare: ratio, show: showRatio, isMet: median => median <= times }
}

/** Lower than the rival's figure. */
export function lower(): Goal {
  return { text: 'lower', compare: ratio, show: showRatio, isMet: median => median < 1 }
}

/** At most so much more than the rival's figure. */
export function atMostMore(more: number, unit: string): Goal {
  return { text: more === 0 ? 'no more' : `≤ +${more} ${unit}`, compare: difference, show: showDifference(unit), isMet: median => median <= more }
}

/** No worse than the rival, within the spread of one side's figures. */
export function withinSpread(better: 'higher' | 'lower'): Goal {
  return {
    text: 'no difference beyond the spread',
    compare: ratio,
    show: showRatio,
    isMet: (_median, pairs) => {
      const relay = summarise(pairs.map(pair => pair.relay))
      const rival = summarise(pairs.map(pair => pair.rival))
      return better === 'higher' ? relay.median >= rival.min : relay.median <= rival.max
    },
  }
}
