import type { Target } from '../../message/model'
import { readTarget, writeTarget } from '../../message/target'
import type { Clock } from '../clock'
import type { Active } from '../delivery/deliveries'
import type { Delivery } from '../delivery/delivery'
import { reasonOf, type Block, type Deferral, type Gated, type Gates } from './gates'
import type { Delay } from '../options'

/** A place in the line of a queue. */
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
export class Queue implements Gated {
  readonly name: string
  readonly bot: string
  readonly target: Target
  /** The waiting deliveries. One that is not due does not block those behind it. */
  places: Place[] = []
  /** The delivery that is being sent. */
  leaving: Place | undefined
  /** Whether a delivery ever entered the queue; a notice of the platform makes a queue as well. */
  isWanted = false
  /** Why the waiting deliveries are late, until they have left. */
  delay: Delay | undefined
  /** When the head may be tried again, on the monotonic clock. */
  againAt = -Infinity
  /** Cancels the timer of the next advance. */
  cancel: () => void = () => undefined

  constructor({ bot, target }: Pick<Delivery, 'bot' | 'target'>) {
    this.name = queueOf({ bot, target })
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

/** The name of the queue to a target through a bot. */
export function queueOf({ bot, target }: Pick<Delivery, 'bot' | 'target'>): string {
  return `${bot}/${writeTarget(target)}`
}

/** Parses the name of a queue; `undefined` for any other text. */
export function readQueue(name: string): { bot: string, target: Target } | undefined {
  const [, bot, written = ''] = /^(.*?)\/((?:group|private):.*)$/s.exec(name) ?? []
  const target = readTarget(written)
  return bot === undefined || !target ? undefined : { bot, target }
}

/** A queue as operators see it. */
export interface QueueState {
  queue: string
  /** `platform:selfId`. */
  bot: string
  target: Target
  /** How many deliveries wait, except scheduled ones. */
  waiting: number
  /** Why it waits: as `block` has it, for the present send, or for its interval or the time of its deliveries. */
  state: Block['state'] | 'busy' | 'waiting'
  /** Since when the first delivery waits, in milliseconds since the epoch. */
  oldest?: number
  block?: Block
  /** The deliveries that are not due: their number, also by kind, and the milliseconds until the next one is. */
  later?: { count: number, kinds: Readonly<Record<Deferral['kind'], number>>, next: number }
}

/** Why a queued delivery waits. */
export interface Wait extends Pick<Block, 'reason' | 'until'> {
  cause: Block['cause'] | Deferral['kind']
  /** In milliseconds since the epoch. */
  since: number
}

/**
 * Why a queued delivery waits, and until when something happens; `undefined` if it waits only for the deliveries before it.
 *
 * @param nextWayAt as `Queues.nextWayAt`
 */
export function waitOf(delivery: Delivery, gates: Gates, nextWayAt = Infinity): Wait | undefined {
  const { state, bot, deferred, createdAt, flow } = delivery
  if (state !== 'queued') return
  const name = queueOf(delivery)
  const block = gates.block({ name, bot })
  const deferral = deferred ? gates.deferral(name, delivery) : undefined
  if (deferral && (block?.state !== 'held' || deferral.kind === 'scheduled')) {
    return { cause: deferral.kind, reason: reasonOf(deferral, flow), since: createdAt, until: deferral.until }
  }
  const until = Math.min(block?.until ?? Infinity, nextWayAt)
  return block && { since: createdAt, ...block, until: until === Infinity ? null : until }
}

/** The deferred deliveries that wait or are being sent. */
export interface Backlog {
  size: number
  /** Since when the oldest has been due, in milliseconds since the epoch; counted from the last restart. */
  oldest?: number
}

/** Describes a queue; `undefined` for an empty one without pause or hold. */
export function stateOf(line: Queue, gates: Gates, clock: Clock): QueueState | undefined {
  const { name: queue, bot, target, places, leaving, later, first } = line
  const block = gates.block(line)
  if (places.length === 0 && block?.state !== 'paused' && block?.state !== 'held') return
  const now = clock.now()
  return {
    queue, bot, target, waiting: waitingIn(line), state: block?.state ?? (leaving ? 'busy' : 'waiting'),
    ...first && { oldest: clock.wall() - (now - (first.since ?? now)) },
    ...block && { block },
    ...later.length > 0 && { later: { count: later.length, kinds: countKinds(later), next: untilDue(line, clock) } },
  }
}

/** Counts the deferred deliveries of all queues. Scheduled ones do not count. */
export function backlogOf(queues: Iterable<Queue>, clock: Clock): Backlog {
  const backlog: Backlog = { size: 0 }
  const offset = clock.wall() - clock.now()
  for (const { leaving, places } of queues) {
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

/** The time until the next of the deliveries that are not due will be, in milliseconds; `Infinity` without one. */
export function untilDue({ later }: Queue, clock: Clock): number {
  const wall = clock.wall()
  return later.reduce((least, { deferral }) => Math.min(least, Math.max((deferral?.until ?? 0) - wall, 0)), Infinity)
}

/** How many deliveries wait in a queue, except scheduled ones. */
export function waitingIn({ places }: Queue): number {
  return places.filter(place => !isScheduled(place)).length
}

/** Counts deliveries that are not due by what they wait for. */
function countKinds(later: readonly Place[]): Record<Deferral['kind'], number> {
  const kinds = { scheduled: 0, quiet: 0, digest: 0 }
  for (const { deferral } of later) if (deferral) kinds[deferral.kind]++
  return kinds
}
