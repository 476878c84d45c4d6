import type { Config } from '../../src'
import type { ProfileName } from '../../simulator'
import { Random } from './random'

/** A platform and the settings of its relay, which many schedules can share. */
export interface Kind {
  profile: ProfileName
  history: boolean
  reportSelf: boolean
  retryUnanswered: boolean
  /** In milliseconds. */
  timeout: number
  /** The settling time: how long the relay waits after an unanswered call before it calls again, in milliseconds. */
  settle: number
  retries: number
  /** After how many failures in a row a target is paused, and for how long, in milliseconds. */
  pauseAfter: number
  pauseFor: number
}

/** The number of kinds, and the number of kinds whose relays are killed. These take long to start. */
const kinds = 24
const killedKinds = 8

/** The kind of world that the schedule of a seed needs. */
export function kindNumberOf(seed: number, kills: boolean): number {
  return new Random(seed).between(0, (kills ? killedKinds : kinds) - 1)
}

export function createKind(number: number): Kind {
  const random = new Random(1_000_003 + number)
  const timeout = random.between(20, 40) * 10
  return {
    profile: random.weighted<ProfileName>([[5, 'napcat'], [2, 'llbot'], [1, 'lagrange'], [2, 'gocqhttp']]),
    history: random.chance(0.75),
    reportSelf: random.chance(0.5),
    retryUnanswered: random.chance(0.6),
    timeout,
    settle: timeout * random.pick([3, 7]),
    retries: random.between(0, 2),
    pauseAfter: random.chance(0.2) ? 3 : 1000,
    pauseFor: 500,
  }
}

export function configOf(kind: Kind): Config {
  return {
    chatApiTimeout: kind.timeout / 1000,
    chatSettleTime: kind.settle / 1000,
    chatApiMaxRetries: kind.retries,
    chatRetryUnanswered: kind.retryUnanswered,
    chatSendInterval: 0,
    chatPauseAfter: kind.pauseAfter,
    chatPauseTime: kind.pauseFor / 1000,
  }
}

/** Whether the relay can look up messages to this kind of target. */
export function hasRecords(kind: Kind, targetKind: 'group' | 'private'): boolean {
  if (!kind.history || kind.profile === 'lagrange') return false
  return kind.profile !== 'gocqhttp' || targetKind === 'group'
}
