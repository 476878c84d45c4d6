import { causes } from '../message/causes'
import type { Target } from '../message/model'
import type { Clock } from './clock'
import type { Hold } from './delivery'
import type { Deferral, Gates } from './gates'
import { isScheduled, type Lane, type Place } from './lane'

/** A lane in which something waits, or that is paused, as operators see it. */
export interface LaneState {
  queue: string
  /** `platform:selfId`. */
  bot: string
  target: Target
  /** How many deliveries wait in it. */
  waiting: number
  /**
   * What keeps it: failures in a row, a chat that is closed for a while, a bot that is offline, a limit of the platform, a message on its
   * way, or its interval.
   */
  state: 'paused' | 'held' | 'offline' | 'limited' | 'busy' | 'waiting'
  /** Since when the first of them waits, in milliseconds since the epoch. */
  oldest?: number
  /** When its pause ends, in milliseconds since the epoch. */
  pausedUntil?: number
  /** When the platform takes messages again, in milliseconds since the epoch. */
  limitedUntil?: number
  /** Why it is paused, held or limited. */
  reason?: string
  hold?: Hold
  /** How many wait for their time, also by what gives it, and for how long the next one does. */
  later?: { count: number, kinds: Readonly<Record<Deferral['kind'], number>>, next: number }
}

/** What waits to be sent later. */
export interface Backlog {
  size: number
  /** Since when the first of it could have been sent, in milliseconds since the epoch; after a restart, since then. */
  oldest?: number
}

/**
 * The state of a lane.
 *
 * @param next how long until the time of the next one comes that waits for its time, in milliseconds
 * @returns `undefined` where nothing waits in it and nothing keeps it
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

/** What waits to be sent later, in all lanes. */
export function backlogOf(lanes: Iterable<Lane>, clock: Clock): Backlog {
  const backlog: Backlog = { size: 0 }
  const offset = clock.wall() - clock.now()
  for (const { leaving, places } of lanes) {
    for (const place of leaving ? [leaving, ...places] : places) {
      const { active: { delivery: { deferred } }, since } = place
      if (!deferred || isScheduled(place)) continue
      backlog.size++
      // What waits for its time is not late.
      if (since !== undefined) backlog.oldest = Math.min(backlog.oldest ?? Infinity, offset + since)
    }
  }
  return backlog
}

/** How many wait in a lane; what is ordered for later does not. */
export function waitingIn({ places }: Lane): number {
  return places.filter(place => !isScheduled(place)).length
}

/** What those wait for that wait for their time. */
function countKinds(later: readonly Place[]): Record<Deferral['kind'], number> {
  const kinds = { scheduled: 0, quiet: 0, digest: 0 }
  for (const { deferral } of later) if (deferral) kinds[deferral.kind]++
  return kinds
}
