import type { Caller } from '../access/caller'
import { RelayError } from '../errors'
import { platformOf, writeTarget } from '../message/target'
import type { Delivery, State } from '../relay/delivery'
import { readLane, type Block, type LaneState, type Relay, type Wait } from '../relay/relay'
import { route, type Exchange, type Route } from './routes'

/** `GET /queues`, `POST /queues/<queue>/resume` and `DELETE /queues/<queue>`: lists, resumes and empties queues. */
export function queueRoutes(relay: Pick<Relay, 'lanes' | 'resume' | 'drop'>): Route[] {
  return [
    route('GET', '/queues', ['read', 'manage'], ({ caller }) => {
      const queues = relay.lanes()
      return { data: { queues: queues.filter(({ queue }) => maySee(caller, queue)).map(view) } }
    }, { quiet: true }),
    route('POST', '/queues/:queue/resume', ['manage'], async exchange => {
      const queue = find(relay, exchange)
      await relay.resume(queue)
      return { data: { queue, ...viewHold(relay.lanes().find(lane => lane.queue === queue)?.block) } }
    }),
    route('DELETE', '/queues/:queue', ['manage'], async exchange => {
      const queue = find(relay, exchange)
      return { data: { queue, dropped: await relay.drop(queue) } }
    }),
  ]
}

/**
 * Finds the queue of a request, if the caller may see it.
 *
 * @throws RelayError `not-found`
 */
function find(relay: Pick<Relay, 'lanes'>, exchange: Exchange): string {
  const { params: { queue: name = '' }, caller } = exchange
  const found = relay.lanes().find(({ queue }) => queue === name)
  if (!found || !maySee(caller, name)) throw new RelayError('not-found', 'nothing is waiting in a queue of this name')
  exchange.target = writeTarget(found.target)
  return name
}

/** Whether a caller may see a queue: the name of the queue reveals its target. */
export function maySee(caller: Caller, queue: string): boolean {
  const place = readLane(queue)
  return place !== undefined && caller.maySendTo(place.target, platformOf(place.bot))
}

function view({ queue, bot, target, waiting, state, block, later }: LaneState): object {
  return {
    queue, bot, target: writeTarget(target), waiting, state,
    ...block && { reason: block.reason },
    ...later && { later: later.count, later_by: countsOf(later.kinds), next_at: toIso(Date.now() + later.next) },
    ...viewBlock(block),
  }
}

/** The counts without zeros. */
function countsOf(counts: Readonly<Record<string, number>>): object {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}

/** Until when a queue is paused, limited or held, as callers see it. */
export function viewBlock(block: Block | undefined): object {
  const { state, until = null } = block ?? {}
  if (until === null || (state !== 'paused' && state !== 'limited')) return viewHold(block)
  return { [`${state}_until`]: toIso(until) }
}

/** Why and until when a chat is on hold, as callers see it; empty without a hold. */
function viewHold(block: Block | undefined): { held?: object } {
  return block?.state === 'held' ? { held: viewWait(block) } : {}
}

function viewWait({ cause, reason, since, until }: Partial<Wait> & Pick<Wait, 'until'>): object {
  return { cause, reason, ...since !== undefined && { since: toIso(since) }, until: until === null ? null : toIso(until) }
}

/** Tells why a delivery waits. */
export type Waits = Pick<Relay, 'waitOf'>

/** A state of a delivery as callers see it. */
export type ShownState = State | 'scheduled'

/** The state of a delivery as callers see it, and why a queued one waits. */
export function viewState(delivery: Delivery, relay: Waits): { state: ShownState, held?: object, send_at?: string } {
  const wait = relay.waitOf(delivery)
  if (wait?.cause === 'scheduled' && wait.until !== null) return { state: 'scheduled', send_at: toIso(wait.until) }
  return { state: delivery.state, ...wait && { held: viewWait(wait) } }
}

/** A time in milliseconds since the epoch as callers see it. */
export function toIso(time: number): string {
  return new Date(time).toISOString()
}
