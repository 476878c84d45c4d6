// What deliveries, queues and times look like in the answers.
import { toIso } from '../lib/time'
import { writeTarget } from '../message/target'
import { outcomeOf, threadDeedOf, type Delivery, type Results, type State } from '../relay/delivery/delivery'
import type { Block } from '../relay/queue/obstacles'
import type { QueueState, Wait } from '../relay/queue/queue'
import type { Relay } from '../relay/relay'

/** Tells why a delivery waits. */
export type Waits = Pick<Relay, 'waitOf'>

/** A state of a delivery as callers see it. */
export type ShownState = State | 'scheduled'

interface Waiting {
  state: ShownState
  held?: object
  send_at?: string
}

/** The state of a delivery as callers see it, and why a queued one waits. */
export function viewState(delivery: Delivery, relay: Waits): Waiting {
  return viewWaiting(delivery.state, relay.waitOf(delivery))
}

/** A state, and why what has it waits, as callers see them. */
export function viewWaiting(state: State, wait: Wait | undefined): Waiting {
  if (wait?.cause === 'scheduled' && wait.until !== null) return { state: 'scheduled', send_at: toIso(wait.until) }
  return { state, ...wait && { held: viewWait(wait) } }
}

/**
 * A delivery as callers see it.
 *
 * @param kept the IDs of deliveries whose content is retained
 */
export function viewDelivery(delivery: Delivery, kept: ReadonlySet<string>, relay: Waits): { state: ShownState, [field: string]: unknown } {
  const { id, target, bot, caller, door, createdAt, updatedAt, expiresAt, attempts, results, flow, summary } = delivery
  return {
    id,
    ...viewState(delivery, relay),
    target: writeTarget(target),
    [target.kind === 'group' ? 'group_id' : 'user_id']: target.id,
    bot,
    ...caller !== null && { key_name: caller },
    ...door !== '' && { door },
    created_at: toIso(createdAt),
    updated_at: toIso(updatedAt),
    ...flow.urgent && { urgent: true },
    ...flow.policy && { name: flow.policy.name },
    ...flow.digest && { digest: flow.digest },
    ...flow.members && { members: flow.members },
    ...expiresAt !== null && { expires_at: toIso(expiresAt) },
    attempts,
    results: viewResults(results),
    ...viewFlow(delivery),
    items: summary.items,
    history: summary.calls.map(({ at, took, outcome, reason }) => ({
      at: toIso(at), took_ms: took, outcome, ...reason !== undefined && { reason },
    })),
    ...summary.waited !== null && { waited_ms: Math.round(summary.waited) },
    platform_ms: summary.platformTime,
    ...kept.has(id) && { content: true },
  }
}

/** The known results of items, as callers see them. */
export function viewResults(results: Results): object[] {
  return results.flatMap((result, index) => {
    if (!result) return []
    if (result.success) return { index, success: true, message_ids: result.messageIds }
    return { index, success: false, code: result.error.status, msg: result.error.said, outcome: outcomeOf(result) }
  })
}

/** How a delivery continued its thread, and which ways were tried before the present one. */
export function viewFlow(delivery: Delivery): { thread?: string, route?: object[] } {
  const thread = threadDeedOf(delivery)
  const { past = [] } = delivery.flow.route ?? {}
  return { ...thread && { thread }, ...past.length > 0 && { route: past.map(({ at, ...end }) => ({ ...end, at: toIso(at) })) } }
}

/** A queue as callers see it. */
export function viewQueue({ queue, bot, target, waiting, state, block, later }: QueueState): object {
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
export function viewHold(block: Block | undefined): { held?: object } {
  return block?.state === 'held' ? { held: viewWait(block) } : {}
}

function viewWait({ cause, reason, since, until }: Block | Wait): object {
  return { cause, reason, ...since !== undefined && { since: toIso(since) }, until: until === null ? null : toIso(until) }
}
