import { RelayError, type Outcome } from '../../errors'
import type { MessageRequest, Target } from '../../message/model'
import type { Receipt } from '../../platform/port'
import { aboutOf, type About } from './about'

/**
 * A delivery is one request on its way to one target. Its states, and how it gets from one to the next:
 *
 * | state      | meaning                                          | next, and when                                             |
 * | ---------- | ------------------------------------------------ | ---------------------------------------------------------- |
 * | queued     | waits for its turn in the queue of its target    | sending: its turn has come (`leave`)                       |
 * |            |                                                  | expired, failed: nothing may be sent any more (`settle`)   |
 * |            |                                                  | gone: withdrawn by its owner                               |
 * | sending    | its turn has come, something may have arrived    | sent, failed, expired, unanswered: it ended (`settle`)     |
 * |            |                                                  | queued: nothing can be sent right now (`postpone`)         |
 * | sent       | every item has arrived                           |                                                            |
 * | failed     | an item was refused or not sent                  | queued: its owner has it sent again (`retry`)              |
 * | expired    | its time was over before it could be sent        | queued: likewise                                           |
 * | unanswered | an item may have arrived or not                  | queued: likewise                                           |
 * |            |                                                  | sent, failed, unanswered: it was found, or its answer came |
 *
 * The functions below are pure: each gives what changes, and the caller has it written down before anything else happens.
 */
export const states = ['queued', 'sending', 'sent', 'failed', 'unanswered', 'expired'] as const
export type State = typeof states[number]

/** The states of a delivery that has not ended. */
export const unfinished = ['queued', 'sending'] as const satisfies State[]

/** Whether a delivery in this state has not ended. */
export function isUnfinished(state: State): boolean {
  return unfinished.some(name => name === state)
}

/** The states from which a delivery can be sent again. */
export const retryable = ['failed', 'unanswered', 'expired'] as const satisfies State[]

/** What is known of one request: where it goes, how far it is, and what became of each item. */
export interface Delivery {
  /** A UUIDv7, so that the order of IDs is the order of acceptance. It is the request's ID in the log as well. */
  readonly id: string
  state: State
  readonly mode: 'single' | 'batch'
  /** Whether it was accepted to be delivered later, without a caller who waits. */
  deferred: boolean
  readonly target: Target
  /** The name of the key of its caller; `null` for the master key, and for what nobody asked for over HTTP. */
  readonly caller: string | null
  /** What it came through, such as `webhook` or `hooks/github`; empty where an earlier release took it. */
  readonly door: string
  /** `platform:selfId` of the bot; empty until there is one. */
  bot: string
  /** Milliseconds since the epoch by the relay's clock, like all times here. */
  readonly createdAt: number
  updatedAt: number
  /** When a deferred one is dropped. */
  expiresAt: number | null
  /** Calls made to the platform so far. */
  attempts: number
  results: Results
  inDoubt: InDoubt | null
  /** Digest of its Idempotency-Key, as long as that is used up by it. */
  key: string | null
  /** Digest of what the request means, to tell a repeated request from another one with the same key. */
  readonly fingerprint: string | null
  readonly about: About
}

/** What became of one item. */
export type ItemResult = Sent | { success: false, error: RelayError }

interface Sent extends Receipt {
  success: true
}

/** The results of a delivery by the places of its items; `undefined` where nothing is known yet. */
export type Results = readonly (ItemResult | undefined)[]

/** Items of which nobody knows whether they arrived: they are leaving, or went unanswered. */
export interface InDoubt {
  /** Their places in the request. */
  indices: readonly number[]
  /** When the first of them left. */
  since: number
  /** The messages that were in the chat before and are not these, by their IDs. */
  before: readonly string[]
  /** How long after a call they may still be carried out, in milliseconds. */
  settle: number
  /** How many calls were made since somebody asked for it, the one that is under way among them; of several messages, of one of them. */
  calls: number
}

/** What changes of a delivery. */
export type Change = Partial<Pick<Delivery, 'state' | 'deferred' | 'attempts' | 'results' | 'inDoubt' | 'key' | 'expiresAt'>>

/** What identifies a request that may be repeated. */
export interface Idempotency {
  /** Digest of the key: databases differ in which texts they take for equal. */
  key: string
  fingerprint: string
}

/** Where a request came from. */
export interface Origin {
  caller?: string | null
  door?: string
  /** What its record is to tell; absent: how what was to be sent begins. */
  about?: About
}

/** A new delivery, which waits for its turn. */
export function createDelivery(
  id: string, now: number, { mode, target, items }: MessageRequest, idempotency?: Idempotency, origin: Origin = {},
): Delivery {
  const { caller = null, door = '', about = aboutOf(items, 'preview') } = origin
  return {
    id, state: 'queued', mode, deferred: false, target, caller, door, about, bot: '', createdAt: now, updatedAt: now, expiresAt: null, attempts: 0,
    results: items.map(() => undefined), inDoubt: null, key: idempotency?.key ?? null, fingerprint: idempotency?.fingerprint ?? null,
  }
}

/** Items of a delivery are about to leave. Items that went unanswered before are looked for from when they left. */
export function leave({ results, inDoubt, createdAt }: Delivery, leaving: InDoubt): Change {
  const earlier = doubtOf({ inDoubt, createdAt }, results)
  const { indices, settle, calls } = leaving
  return { state: 'sending', results, inDoubt: earlier ? { ...earlier, indices, settle: Math.max(earlier.settle, settle), calls } : leaving }
}

/** It is known what became of all items, as far as it can be. */
export function settle(delivery: Pick<Delivery, 'inDoubt' | 'createdAt'>, results: Results): Change {
  return {
    state: finalState(results),
    results,
    inDoubt: doubtOf(delivery, results),
    ...!usesUpKey(results) && { key: null },
  }
}

/**
 * Nothing of what is left can be sent right now.
 *
 * @param inDoubt what went unanswered and is not looked for again yet
 */
export function postpone(results: Results, inDoubt: InDoubt | null): Change {
  return { state: 'queued', inDoubt, results: results.map(result => isUnsent(result) ? undefined : result) }
}

/** It has ended before everything was tried: what left without an answer stays unanswered, the rest fails for this reason. */
export function abandon(delivery: Delivery, error: RelayError): Results {
  const doubted = delivery.inDoubt?.indices ?? []
  return delivery.results.map((result, index) => result ?? { success: false, error: doubted.includes(index) ? new RelayError('unanswered') : error })
}

/**
 * Its owner has it sent again, as far as it has not arrived.
 *
 * @param expiresAt when it is dropped
 */
export function retry(delivery: Delivery, expiresAt: number): Change {
  const { results } = delivery
  const inDoubt = doubtOf(delivery, results)
  return {
    state: 'queued', deferred: true, expiresAt,
    inDoubt: inDoubt && { ...inDoubt, calls: 0 },
    results: results.map(result => result?.success ? result : undefined),
  }
}

/** The results together with answers that came late, by the places of the items. */
export function withLate(results: Results, late: ReadonlyMap<number, ItemResult>): Results {
  return late.size === 0 ? results : results.map((result, index) => result?.success ? result : late.get(index) ?? result)
}

/** The result of an item of which only that is known. */
export function unanswered(): ItemResult {
  return { success: false, error: new RelayError('unanswered') }
}

/** How an item ended; what was never tried is unsent. */
export function outcomeOf(result: ItemResult | undefined): Outcome {
  if (result?.success) return 'sent'
  return result?.error.outcome ?? 'unsent'
}

/** Whether an item failed in a way that will pass: no bot is online, or the relay is stopping. */
export function isUnsent(result: ItemResult | undefined): boolean {
  return result !== undefined && !result.success && (result.error.code === 'unsent' || result.error.code === 'stopping')
}

/** Whether these results use up the request's Idempotency-Key: once anything arrived or may have arrived. */
export function usesUpKey(results: Results): boolean {
  return results.some(result => ['sent', 'unanswered'].includes(outcomeOf(result)))
}

/** The items of which, with these results, nobody knows whether they arrived. */
export function doubtOf({ inDoubt, createdAt }: Pick<Delivery, 'inDoubt' | 'createdAt'>, results: Results): InDoubt | null {
  if (results.every(result => result?.success)) return null
  const indices = results.flatMap((result, index) => outcomeOf(result) === 'unanswered' ? [index] : [])
  const { since = createdAt, before = [], settle = 0, calls = 0 } = inDoubt ?? {}
  return indices.length > 0 ? { indices, since, before, settle, calls } : null
}

/** The platform messages that a delivery is known to have become. */
export function messageIdsOf({ results }: Pick<Delivery, 'results'>): string[] {
  return results.flatMap(result => result?.success ? result.messageIds : [])
}

/** Whether the time of a deferred delivery is over. */
export function isOverdue({ expiresAt }: Delivery, now: number): boolean {
  return expiresAt !== null && expiresAt < now
}

function finalState(results: Results): State {
  if (results.every(result => result?.success)) return 'sent'
  if (results.some(result => outcomeOf(result) === 'unanswered')) return 'unanswered'
  return results.some(result => result && !result.success && result.error.code === 'expired') ? 'expired' : 'failed'
}
