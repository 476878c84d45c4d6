import type { Finding } from '../../platform/port'
import type { CallOutcome } from './about'
import type { Delivery } from './delivery'

/** What a look-up brought; `silent` where the platform did not answer it. */
export type LookUp = Finding['kind'] | 'silent'

/** Is told what happens in the relay, as it happens. What it does must be quick, and it must not throw. */
export interface Observer {
  /** A delivery has ended, this many milliseconds after it was accepted. One that is sent again ends again. */
  ended: (delivery: Delivery, time: number) => void
  /** A call to the platform has ended, or was given up, after this many milliseconds. */
  called: (outcome: CallOutcome, time: number) => void
  /** The platform was asked whether a message without an answer has arrived. */
  lookedUp: (finding: LookUp) => void
  /** A queue was paused, or its pause went on because its target has failed again. */
  paused: () => void
}

/** Tells each of these what it wants to know. */
export function tellAll(observers: readonly Partial<Observer>[]): Observer {
  return {
    ended: (delivery, time) => {
      for (const observer of observers) observer.ended?.(delivery, time)
    },
    called: (outcome, time) => {
      for (const observer of observers) observer.called?.(outcome, time)
    },
    lookedUp: finding => {
      for (const observer of observers) observer.lookedUp?.(finding)
    },
    paused: () => {
      for (const observer of observers) observer.paused?.()
    },
  }
}
