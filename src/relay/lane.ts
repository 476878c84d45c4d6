import type { Target } from '../message/model'
import { readTarget, writeTarget } from '../message/target'
import type { Active } from './deliveries'
import type { Delivery } from './delivery'
import type { Deferral, Gated } from './gates'
import type { Delay } from './options'

/** A place in the line of a lane. */
export interface Place {
  readonly active: Active
  /** Until when the caller waits for its turn, on the monotonic clock. */
  readonly until?: number | undefined
  /** Gives a signal that is aborted when the caller disconnects. Only asked for if the delivery has to wait. */
  readonly signal?: (() => AbortSignal) | undefined
  /** That signal, once the delivery waits. */
  gone?: AbortSignal | undefined
  /** Whether the journal has the delivery. It does not leave before. */
  isSaved: boolean
  /** Since when the delivery is due, on the monotonic clock; absent while it is not. */
  since?: number | undefined
  /** Why the delivery is not due yet, and when it will be. */
  deferral?: Deferral | undefined
  /** Whether it leaves by itself, after a digest with it was refused. */
  isAlone?: boolean
  /** The places of the members, if the delivery is a digest made by this process. */
  members?: readonly Place[]
}

/** The deliveries to one target through one bot, in the order of acceptance. */
export class Lane implements Gated {
  readonly name: string
  readonly bot: string
  readonly target: Target
  /** The waiting deliveries. One that is not due does not block those behind it. */
  places: Place[] = []
  /** The delivery that is being sent. */
  leaving: Place | undefined
  /** Whether a delivery ever entered the lane; a notice of the platform makes a lane as well. */
  isWanted = false
  /** Why the waiting deliveries are late, until they have left. */
  delay: Delay | undefined
  /** When the head may be tried again, on the monotonic clock. */
  againAt = -Infinity
  /** Cancels the timer of the next advance. */
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

  /** Removes and returns the matching places. */
  takeOut(isWanted: (place: Place) => boolean): Place[] {
    const taken = new Set(this.places.filter(isWanted))
    if (taken.size > 0) this.places = this.places.filter(place => !taken.has(place))
    return [...taken]
  }

  /** The delivery that is being sent, or else the first due one. */
  get first(): Place | undefined {
    return this.leaving ?? this.places.find(({ since }) => since !== undefined)
  }

  /** The deliveries that are not due. */
  get later(): Place[] {
    return this.places.filter(({ since }) => since === undefined)
  }
}

/** Whether a delivery waits for the time given by its request. */
export function isScheduled({ deferral }: Place): boolean {
  return deferral?.kind === 'scheduled'
}

/** The name of the lane to a target through a bot. */
export function laneOf({ bot, target }: Pick<Delivery, 'bot' | 'target'>): string {
  return `${bot}/${writeTarget(target)}`
}

/** Parses the name of a lane; `undefined` for any other text. */
export function readLane(name: string): { bot: string, target: Target } | undefined {
  const [, bot, written = ''] = /^(.*?)\/((?:group|private):.*)$/s.exec(name) ?? []
  const target = readTarget(written)
  return bot === undefined || !target ? undefined : { bot, target }
}
