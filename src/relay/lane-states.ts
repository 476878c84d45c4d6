import { causes } from '../message/causes'
import type { Target } from '../message/model'
import type { Clock } from './clock'
import type { Hold } from './delivery'
import type { Deferral, Gates } from './gates'
import { isScheduled, type Lane, type Place } from './lane'

/** A lane as operators see it. */
export interface LaneState {
  queue: string
  /** `platform:selfId`. */
  bot: string
  target: Target
  /** How many deliveries wait, except scheduled ones. */
  waiting: number
  /** Why it waits: failures in a row, a chat that is closed for a while, an offline bot, a rate limit, a present send, or its interval. */
  state: 'paused' | 'held' | 'offline' | 'limited' | 'busy' | 'waiting'
  /** Since when the first delivery waits, in milliseconds since the epoch. */
  oldest?: number
  /** When the pause ends, in milliseconds since the epoch. */
  pausedUntil?: number
  /** When the platform takes messages again, in milliseconds since the epoch. */
  limitedUntil?: number
  /** Why the lane is paused, held or limited. */
  reason?: string
  hold?: Hold
  /** The deliveries that are not due: their number, also by kind, and the milliseconds until the next one is. */
  later?: { count: number, kinds: Readonly<Record<Deferral['kind'], number>>, next: number }
}

/** The deferred deliveries that wait or are being sent. */
export interface Backlog {
  size: number
  /** Since when the oldest has been due, in milliseconds since the epoch; counted from the last restart. */
  oldest?: number
}

/**
 * Describes a lane.
 *
 * @param next the time until the next deferred delivery is due, in milliseconds
 * @returns `undefined` for an empty lane without pause or hold
 */
export function stateOf(lane: Lane, gates: Gates, clock: Clock, isOnline: boolean, next: number): LaneState | undefined {
  const { name: queue, bot, target, places, leaving, later, first } = lane
  const [waiting, pause, hold, limit] = [waitingIn(lane), gates.pause(queue), gates.hold(queue), gates.limit(lane)]
  if (places.length === 0 && pause === 0 && !hold) return
  const state = hold ? 'held' : pause > 0 ? 'paused' : !isOnline ? 'offline' : limit > 0 ? 'limited' : leaving ? 'busy' : 'waiting'
  const [wall, now] = [clock.wall(), clock.now()]
  return {
    queue, bot, target, waiting, state,
    ...first && { oldest: wall - (now - (first.since ?? now)) },
    ...limit > 0 && { limitedUntil: wall + limit, reason: causes['rate-limited'].en },
    ...pause > 0 && { pausedUntil: wall + pause, reason: gates.reason(queue) },
    ...hold && { hold, reason: causes[hold.cause].en },
    ...later.length > 0 && { later: { count: later.length, kinds: countKinds(later), next } },
  }
}

/** Counts the deferred deliveries of all lanes. Scheduled ones do not count. */
export function backlogOf(lanes: Iterable<Lane>, clock: Clock): Backlog {
  const backlog: Backlog = { size: 0 }
  const offset = clock.wall() - clock.now()
  for (const { leaving, places } of lanes) {
    for (const place of leaving ? [leaving, ...places] : places) {
      const { active: { delivery: { deferred } }, since } = place
      if (!deferred || isScheduled(place)) continue
      backlog.size++
      // A delivery that is not due is not late.
      if (since !== undefined) backlog.oldest = Math.min(backlog.oldest ?? Infinity, offset + since)
    }
  }
  return backlog
}

/** How many deliveries wait in a lane, except scheduled ones. */
export function waitingIn({ places }: Lane): number {
  return places.filter(place => !isScheduled(place)).length
}

/** Counts deliveries that are not due by what they wait for. */
function countKinds(later: readonly Place[]): Record<Deferral['kind'], number> {
  const kinds = { scheduled: 0, quiet: 0, digest: 0 }
  for (const { deferral } of later) if (deferral) kinds[deferral.kind]++
  return kinds
}
