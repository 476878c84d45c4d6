import type { Target } from '../../message/model'
import { readTarget, writeTarget } from '../../message/target'
import type { Clock } from '../clock'
import type { Entry } from '../delivery/deliveries'
import type { Delivery } from '../delivery/delivery'
import type { Deferral } from '../delivery/flow'
import type { Delay } from '../options'
import type { Gated } from '../send/context'
import type { Gates } from './gates'
import { blockOf, reasonOf, type Block } from './obstacles'

/** The terms on which a delivery waits in its queue. */
export interface Waiting {
  /** Aborted when the caller disconnects. */
  signal?: (() => AbortSignal) | undefined
  /** How long the caller waits for the turn of its message, in milliseconds. */
  patience?: number | undefined
  /** An accepted delivery with no other way: it may enter a full queue. */
  isAccepted?: boolean
  /** Why the delivery is late. Late deliveries may leave together, in a digest. */
  delay?: Delay | undefined
}

/** The deliveries to one target through one bot, in the order of acceptance. */
export class Queue implements Gated {
  readonly name: string
  readonly bot: string
  readonly target: Target
  /** The waiting deliveries. One that is not due does not block those behind it. */
  entries: Entry[] = []
  /** The delivery that is being sent. */
  leaving: Entry | undefined
  /** Whether a delivery ever entered the queue; a notice of the platform makes a queue as well. */
  isWanted = false
  /** Whether its loop runs. An empty queue has none. */
  isRunning = false
  /** Why the waiting deliveries are late, until they have left. */
  delay: Delay | undefined
  /** When the head may be tried again, on the monotonic clock. */
  againAt = -Infinity
  /** Ends the present wait of its loop. */
  wake: () => void = () => undefined

  constructor({ bot, target }: Pick<Delivery, 'bot' | 'target'>) {
    this.name = queueOf({ bot, target })
    this.bot = bot
    this.target = target
  }

  /** Waits for so many milliseconds, or for the next `wake`. */
  woken(clock: Clock, ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = clock.after(ms, () => this.wake())
      this.wake = () => {
        cancel()
        this.wake = () => undefined
        resolve()
      }
    })
  }

  put(entry: Entry): void {
    const { seq } = entry.delivery
    const before = this.entries.findLastIndex(({ delivery }) => delivery.seq <= seq)
    this.entries.splice(before + 1, 0, entry)
  }

  find(id: string): Entry | undefined {
    return this.entries.findLast(({ delivery }) => delivery.id === id)
  }

  /** Removes and returns the matching entries. */
  takeOut(isWanted: (entry: Entry) => boolean): Entry[] {
    const taken = new Set(this.entries.filter(isWanted))
    if (taken.size > 0) this.entries = this.entries.filter(entry => !taken.has(entry))
    return [...taken]
  }

  /** The delivery that is being sent, or else the first due one. */
  get first(): Entry | undefined {
    return this.leaving ?? this.entries.find(({ since }) => since !== undefined)
  }

  /** The deliveries that are not due. */
  get later(): Entry[] {
    return this.entries.filter(({ since }) => since === undefined)
  }
}

/** Whether a delivery waits for the time given by its request. */
export function isScheduled({ deferral }: Pick<Entry, 'deferral'>): boolean {
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
  const block = blockOf(gates.obstacles({ name, bot }))
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
export function stateOf(queue: Queue, gates: Gates, clock: Clock): QueueState | undefined {
  const { name, bot, target, entries, leaving, later, first } = queue
  const block = blockOf(gates.obstacles(queue))
  if (entries.length === 0 && block?.state !== 'paused' && block?.state !== 'held') return
  const now = clock.now()
  return {
    queue: name, bot, target, waiting: waitingIn(queue), state: block?.state ?? (leaving ? 'busy' : 'waiting'),
    ...first && { oldest: clock.wall() - (now - (first.since ?? now)) },
    ...block && { block },
    ...later.length > 0 && { later: { count: later.length, kinds: countKinds(later), next: untilDue(queue, clock) } },
  }
}

/** Counts the deferred deliveries of all queues. Scheduled ones do not count. */
export function backlogOf(queues: Iterable<Queue>, clock: Clock): Backlog {
  const backlog: Backlog = { size: 0 }
  const offset = clock.wall() - clock.now()
  for (const { leaving, entries } of queues) {
    for (const entry of leaving ? [leaving, ...entries] : entries) {
      const { delivery: { deferred }, since } = entry
      if (!deferred || isScheduled(entry)) continue
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
export function waitingIn({ entries }: Queue): number {
  return entries.filter(entry => !isScheduled(entry)).length
}

/** Counts deliveries that are not due by what they wait for. */
function countKinds(later: readonly Entry[]): Record<Deferral['kind'], number> {
  const kinds = { scheduled: 0, quiet: 0, digest: 0 }
  for (const { deferral } of later) if (deferral) kinds[deferral.kind]++
  return kinds
}
