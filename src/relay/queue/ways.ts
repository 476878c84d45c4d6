import { RelayError } from '../../errors'
import type { Address } from '../../message/model'
import { writeAddress } from '../../message/target'
import type { Clock } from '../clock'
import { failRest, mayHaveArrived, outcomeOf, type Change, type Delivery, type Results } from '../delivery/delivery'
import type { RouteState, WayEnd } from '../delivery/flow'
import { say } from '../../texts/text'

/** The present way of a route; `undefined` without a route. */
export function currentWay(route: RouteState | undefined): Address | undefined {
  return route?.ways[route.index]
}

/** Whether a route has a further way. */
export function hasNextWay(route: RouteState | undefined): boolean {
  return route !== undefined && route.index + 1 < route.ways.length
}

/**
 * The change by which a delivery falls back to its next way. `undefined` if it ends here: at the last way, after an item has arrived, or
 * after one that may have, unless the route says to go on. A batch never falls back once an item may have arrived.
 *
 * @param results the results of the present way
 * @param at when that ended, in milliseconds since the epoch
 */
export function nextWay({ flow, mode }: Delivery, results: Results, at: number): Change | undefined {
  const { route } = flow
  const present = currentWay(route)
  const next = route?.ways[route.index + 1]
  if (!present || !next) return
  const goesOnUnknown = route.whenUnknown === 'next' && mode === 'single'
  if (results.some(result => goesOnUnknown ? result?.success : mayHaveArrived(result))) return
  return {
    state: 'queued', target: next.target, bot: '', results: results.map(() => undefined), open: [],
    flow: { ...flow, route: { ...route, index: route.index + 1, past: [...route.past, endOf(present, results, at)] } },
  }
}

/**
 * Tries the present way of a delivery, then each further one, until one takes it.
 *
 * @param apply changes the delivery to its next way
 * @param attempt throws a RelayError if the present way does not take the delivery
 * @throws RelayError why the last way does not
 */
export function tryWays<T>(delivery: Delivery, clock: Clock, apply: (change: Change) => void, attempt: () => T): T {
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      const next = nextWay(delivery, failRest(delivery, RelayError.from(error)), clock.wall())
      if (!next) throw error
      apply(next)
    }
  }
}

function endOf(way: Address, results: Results, at: number): WayEnd {
  const failed = results.find(result => result?.success === false)
  const reason = failed?.success === false ? failed.error.said : say('nothing-sent')
  return { target: writeAddress(way), outcome: outcomeOf(failed), reason, at }
}

/** The change by which a retried delivery starts at its first way with a bot. The record keeps the end of a later way. */
export function firstWay({ flow, results, updatedAt }: Delivery, hasBot: (way: Address) => boolean): Change {
  const { route } = flow
  const present = currentWay(route)
  const index = Math.max(route?.ways.findIndex(hasBot) ?? 0, 0)
  const first = route?.ways[index]
  if (!route || !first || results.some(result => result?.success)) return {}
  const past = present && index < route.index ? [...route.past, endOf(present, results, updatedAt)] : route.past
  return { target: first.target, bot: '', flow: { ...flow, route: { ...route, index, past } } }
}
