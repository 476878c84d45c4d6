import type { Doubt, ItemResult } from './transmitter'
import { isErrorCode, RelayError, type Outcome } from '../errors'
import type { Target } from '../message/model'
import { isObject } from '../message/parse'
import { writeTarget } from '../message/target'

/** The states of a delivery that callers see. */
export const states = ['queued', 'sending', 'sent', 'failed', 'unanswered', 'expired'] as const
export type State = typeof states[number]

/** What is known of one request: where it goes, how far it is and what became of each item. */
export interface DeliveryRecord {
  /** A UUIDv7, so that the order of IDs is the order of acceptance. It is the request's ID in the log as well. */
  readonly id: string
  state: State
  readonly mode: 'single' | 'batch'
  /** Whether it was accepted to be delivered later, without a caller who waits. */
  deferred: boolean
  readonly target: Target
  /** `platform:selfId` of the bot; empty until there is one. */
  bot: string
  /** Milliseconds since the epoch, like all times here. */
  readonly createdAt: number
  updatedAt: number
  /** When a deferred one is dropped. */
  expiresAt: number | null
  /** Calls made to the platform so far. */
  attempts: number
  /** By the place of the item; a hole where nothing is known yet. */
  results: (ItemResult | undefined)[]
  /** The items that are leaving together, or those that went unanswered, and when the first of them left. */
  sending: Doubt | null
  /** Digest of its Idempotency-Key, as long as that is used up by it. */
  key: string | null
  /** Digest of the body, to tell a repeated request from another one with the same key. */
  readonly fingerprint: string | null
}

/** What the results of all items make of the delivery as a whole. */
function finalState(results: readonly (ItemResult | undefined)[]): State {
  if (results.every(result => result?.success)) return 'sent'
  if (results.some(result => outcomeOf(result) === 'unanswered')) return 'unanswered'
  return results.some(result => result && !result.success && result.error.code === 'expired') ? 'expired' : 'failed'
}

/** How an item ended; what was never tried is unsent. */
export function outcomeOf(result: ItemResult | undefined): Outcome {
  if (result?.success) return 'sent'
  return result?.error.outcome ?? 'unsent'
}

/** Whether these results use up the request's Idempotency-Key: once anything arrived or may have arrived. */
export function usesUpKey(results: readonly (ItemResult | undefined)[]): boolean {
  return results.some(result => ['sent', 'unanswered'].includes(outcomeOf(result)))
}

/** The items of which, with these results, nobody knows whether they arrived. */
export function doubtOf({ sending, createdAt }: DeliveryRecord, results: readonly (ItemResult | undefined)[]): Doubt | null {
  const indices = results.flatMap((result, index) => outcomeOf(result) === 'unanswered' ? [index] : [])
  return indices.length > 0 ? { indices, since: sending?.since ?? createdAt, others: sending?.others ?? [] } : null
}

/** What changes of a delivery when it is known what became of its items. */
export function settlement(record: DeliveryRecord, results: (ItemResult | undefined)[]) {
  return {
    state: finalState(results),
    results,
    sending: doubtOf(record, results),
    ...!usesUpKey(results) && { key: null },
  }
}

/** The results together with what answers told that came too late for them, by the places of the items. */
export function withLate(results: readonly (ItemResult | undefined)[], late: ReadonlyMap<number, ItemResult>): (ItemResult | undefined)[] {
  return results.map((result, index) => result?.success ? result : late.get(index) ?? result)
}

/** The platform messages that a delivery is known to have become. */
export function messageIdsOf({ results }: Pick<DeliveryRecord, 'results'>): string[] {
  return results.flatMap(result => result?.success ? result.messageIds : [])
}

/** The results of a batch as callers see them (document, 2.4; contract, "HTTP"). */
export function viewResults(results: readonly (ItemResult | undefined)[]): object[] {
  return results.flatMap((result, index) => result ? [viewResult(result, index)] : [])
}

function viewResult(result: ItemResult, index: number): object {
  if (result.success) return { index, success: true, message_ids: result.messageIds }
  return { index, success: false, code: result.error.status, msg: result.error.message, outcome: outcomeOf(result) }
}

/** A delivery as callers see it. */
export function view({ id, state, target, bot, createdAt, updatedAt, expiresAt, attempts, results }: DeliveryRecord): object {
  return {
    id,
    state,
    target: writeTarget(target),
    [target.kind === 'group' ? 'group_id' : 'user_id']: target.id,
    bot,
    created_at: new Date(createdAt).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
    ...expiresAt !== null && { expires_at: new Date(expiresAt).toISOString() },
    attempts,
    results: viewResults(results),
  }
}

/** The results as they are stored. */
export function writeResults(results: readonly (ItemResult | undefined)[]): string {
  return JSON.stringify(Array.from(results, result => {
    if (!result) return null
    return result.success ? { ids: result.messageIds } : { error: result.error.code, msg: result.error.message }
  }))
}

/** Reads what `writeResults` wrote. What is not readable counts as not known. */
export function readResults(text: string): (ItemResult | undefined)[] {
  const stored: unknown = JSON.parse(text)
  return Array.isArray(stored) ? stored.map(readResult) : []
}

function readResult(stored: unknown): ItemResult | undefined {
  if (!isObject(stored)) return
  const { ids, error, msg } = stored
  if (Array.isArray(ids)) return { success: true, messageIds: ids.map(String) }
  if (isErrorCode(error) && typeof msg === 'string') return { success: false, error: new RelayError(error, msg) }
}
