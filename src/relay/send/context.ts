import type { Target } from '../../message/model'
import type { Deliveries } from '../delivery/deliveries'
import type { Limits } from '../limits'
import type { Claims } from '../look-up/claims'
import type { LookUps } from '../look-up/look-up'
import type { RunningOptions } from '../options'

/** The part of a queue that decides when it may send. */
export interface Gated {
  readonly name: string
  /** `platform:selfId`. */
  readonly bot: string
  readonly target: Target
}

/** When a further message of a delivery may leave, and what the queues have to know of it. */
export interface Turns {
  /** Whether the account sends one message at a time. */
  isRestricted(bot: string): boolean
  /** The time until a further message may leave, in milliseconds. */
  spacing(queue: Gated): number
  /** A platform message leaves: the queues of an account take turns. */
  takeTurn(bot: string): void
  /** A platform message has arrived. */
  arrived(queue: Gated): void
  /** A platform message has left, or could not. */
  left(queue: Gated): void
}

/** The parts of the core that a send needs. */
export interface SendContext extends RunningOptions {
  deliveries: Deliveries
  claims: Claims
  lookUps: LookUps
  limits: Limits
  gates: Turns
}
