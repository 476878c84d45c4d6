import type { Target } from '../message/model'
import { readTarget, writeTarget } from '../message/target'
import type { Active } from './deliveries'
import type { Delivery } from './delivery'
import type { Deferral, Gated } from './gates'
import type { Delay } from './options'

/** A delivery in the line of a lane. */
export interface Place {
  readonly active: Active
  /** Until when its caller waits for its turn, on the monotonic clock. */
  readonly until?: number | undefined
  /** Aborted when its caller has gone away. */
  readonly signal?: (() => AbortSignal) | undefined
  /** The same, once it waits. */
  gone?: AbortSignal | undefined
  /** Nothing leaves from here before the delivery is saved. */
  isSaved: boolean
  /** Since when its time has come, on the monotonic clock; absent as long as it has not. */
  since?: number | undefined
  /** What its time is, as long as it has not come. */
  deferral?: Deferral | undefined
  /** Whether it leaves by itself, because a digest with it was refused. */
  isAlone?: boolean
  /** The places of those that leave in it, where it is a digest of this process. */
  members?: readonly Place[]
}

/** The line of what goes to one target through one bot, in the order of acceptance. */
export class Lane implements Gated {
  readonly name: string
  readonly bot: string
  readonly target: Target
  /** Those that wait. One whose time has not come holds nothing up. */
  places: Place[] = []
  /** The one that is on its way. */
  leaving: Place | undefined
  /** Whether something was to be sent here, and not only a notice heard. */
  isWanted = false
  /** Why what waits is late, until that has left. */
  delay: Delay | undefined
  /** Before which time on the monotonic clock its head is not tried again. */
  againAt = -Infinity
  /** Cancels the timer of its next look. */
  cancel: () => void = () => undefined

  constructor({ bot, target }: Pick<Delivery, 'bot' | 'target'>) {
    this.name = laneOf({ bot, target })
    this.bot = bot
    this.target = target
  }

  put(place: Place): void {
    const { seq } = place.active.delivery
    const before = this.places.findLastIndex(({ active }) => active.delivery.seq <= seq)
    this.places.splice(before + 1, 0, place)
  }

  find(id: string): Place | undefined {
    return this.places.findLast(({ active }) => active.delivery.id === id)
  }

  /** Takes those out that are wanted. */
  takeOut(isWanted: (place: Place) => boolean): Place[] {
    const taken = new Set(this.places.filter(isWanted))
    if (taken.size > 0) this.places = this.places.filter(place => !taken.has(place))
    return [...taken]
  }

  /** The one that is on its way, or the next one whose time has come. */
  get first(): Place | undefined {
    return this.leaving ?? this.places.find(({ since }) => since !== undefined)
  }

  /** Those whose time has not come. */
  get later(): Place[] {
    return this.places.filter(({ since }) => since === undefined)
  }
}

/** Whether the time has still to come that a delivery was ordered for. */
export function isScheduled({ deferral }: Place): boolean {
  return deferral?.kind === 'scheduled'
}

/** The name of the lane of what goes to a target through a bot. */
export function laneOf({ bot, target }: Pick<Delivery, 'bot' | 'target'>): string {
  return `${bot}/${writeTarget(target)}`
}

/** The bot and the target of a lane; `undefined` for what is no name of a lane. */
export function readLane(name: string): { bot: string, target: Target } | undefined {
  const [, bot, written = ''] = /^(.*?)\/((?:group|private):.*)$/s.exec(name) ?? []
  const target = readTarget(written)
  return bot === undefined || !target ? undefined : { bot, target }
}
