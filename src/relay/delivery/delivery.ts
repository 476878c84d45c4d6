import { RelayError, type ErrorCode, type Outcome } from '../../errors'
import type { CauseId } from '../../message/causes'
import type { MessageRequest, Target } from '../../message/model'
import { SendError } from '../../platform/port'
import { hash } from '../../lib/crypto'
import type { Flow, ThreadDeed } from './flow'
import { summarize, type RecordContent, type Summary } from './summary'
import { say } from '../../texts/text'

/**
 * A delivery is one submission on its way to one target. Its states and transitions:
 *
 * | state      | meaning                                             | next state                                                  |
 * | ---------- | --------------------------------------------------- | ----------------------------------------------------------- |
 * | queued     | waits in its queue                                   | sending: its turn comes (`leave`)                           |
 * |            |                                                     | failed, expired, unanswered: it ends without a call (`end`) |
 * |            |                                                     | removed: a caller withdraws it                              |
 * | sending    | is being sent; a part may have arrived              | sent, failed, expired, unanswered: it ends (`end`)          |
 * |            |                                                     | queued: it cannot be sent for now (`postpone`)              |
 * | sent       | every item has arrived                              |                                                             |
 * | failed     | an item was refused or not sent                     | queued: it is sent again (`again`)                          |
 * | expired    | its time was over before it could be sent           | queued: likewise                                            |
 * | unanswered | an item may have arrived                            | queued: likewise                                            |
 *
 * Whatever has not arrived may still turn out to have: it ends again (`end`) when an answer comes late, or a look-up finds it.
 *
 * The functions below are pure: they return the change. `Deliveries` applies it by `transition`, which enforces this table.
 */
export const states = ['queued', 'sending', 'sent', 'failed', 'unanswered', 'expired'] as const
export type State = typeof states[number]

/** The states of a delivery that has not ended. */
export const unfinished = ['queued', 'sending'] as const satisfies State[]

/** Whether a delivery in this state has not ended. */
export function isUnfinished(state: State): boolean {
  return state === 'queued' || state === 'sending'
}

/** Whether a delivery waits for the time that it is scheduled for. @param wall the present time */
export function isScheduled({ state, deferred, flow: { sendAt = 0 } }: Pick<Delivery, 'state' | 'deferred' | 'flow'>, wall: number): boolean {
  return state === 'queued' && deferred && sendAt > wall
}

/** Whether a delivery in this state can be sent again. */
export function isRetryable(state: State): boolean {
  return state === 'failed' || state === 'unanswered' || state === 'expired'
}

const ends = ['sent', 'failed', 'unanswered', 'expired'] as const satisfies State[]
const next: Readonly<Record<State, readonly State[]>> = {
  queued: ['queued', 'sending', ...ends], sending: ['queued', 'sending', ...ends], sent: ['sent'],
  failed: ['queued', ...ends], unanswered: ['queued', ...ends], expired: ['queued', ...ends],
}

/**
 * Applies a change to a delivery, in place.
 *
 * @param at in milliseconds since the epoch
 * @throws Error for a transition that is not in the table above
 */
export function transition(delivery: Delivery, change: Change, at: number): void {
  const { state = delivery.state } = change
  if (state !== delivery.state && !next[delivery.state].includes(state)) throw new Error(`a delivery that is ${delivery.state} cannot become ${state}`)
  Object.assign(delivery, change, { updatedAt: at })
}

/** One submission to one target: its progress, and the result of each item. */
export interface Delivery {
  /** A UUIDv7, which is the ID of its request in the log as well. */
  readonly id: string
  /** Its place in the order of acceptance; a higher one was accepted later. */
  seq: number
  state: State
  readonly mode: 'single' | 'batch'
  /** Whether it is sent later, without a waiting caller. */
  deferred: boolean
  target: Target
  /** The name of its caller's key; `null` for the master key, and for submissions that did not come over HTTP. */
  readonly caller: string | null
  /** The door of the submission, such as `webhook` or `hooks/github`. */
  readonly door: string
  /** `platform:selfId` of the bot; empty until there is one. */
  bot: string
  /** Milliseconds since the epoch by the machine's clock, like all times here. */
  readonly createdAt: number
  updatedAt: number
  /** When a deferred delivery is dropped. */
  expiresAt: number | null
  /** The number of calls to the platform. */
  attempts: number
  results: Results
  /** The platform messages whose fate is unknown: being sent, or unanswered. */
  open: readonly Open[]
  /** Hash of its Idempotency-Key, for as long as the delivery uses it up. */
  key: string | null
  /** The same hash, kept after the Idempotency-Key became free. */
  readonly requestKey?: string | undefined
  /** Hash of the request's content, which tells a repeat from another request with the same Idempotency-Key. */
  readonly fingerprint: string | null
  flow: Flow
  /** The part of its record that outlives the content. */
  readonly summary: Summary
}

/** A platform message without a clear answer. */
export interface Open {
  /** The places of its items in the request. */
  readonly indices: readonly number[]
  /** As `Message.likeness`. */
  readonly likeness: string
  /** When its first call was made, in milliseconds since the epoch by the machine's clock. */
  readonly since: number
  /** How long the platform may still carry out a call without an answer, in milliseconds. */
  readonly settle: number
  /** The number of calls. */
  readonly calls: number
}

/** The result of one item. */
export type ItemResult = Sent | Failed

export interface Sent {
  success: true
  /** As the platform returned them; none for a file. */
  messageIds: readonly string[]
  /** The likeness of a platform message whose ID is not known. */
  likeness?: string
}

export interface Failed {
  success: false
  error: RelayError
}

/** The results of a delivery by the places of its items; `undefined` for an item without a result yet. */
export type Results = readonly (ItemResult | undefined)[]

/** A change of a delivery. */
export type Change = Partial<Pick<Delivery, 'state' | 'seq' | 'deferred' | 'bot' | 'expiresAt' | 'results' | 'open' | 'key' | 'target' | 'flow'>>

/** Identifies a request that its caller may repeat. */
export interface Idempotency {
  /** A hash of the caller and the key. */
  key: string
  fingerprint: string
}

/** Makes a queued delivery of a request. The parts that depend on its items come from `partsFor`, once these fit a platform. */
export function createDelivery(
  { id, caller, door }: Pick<Delivery, 'id' | 'caller' | 'door'>, seq: number, now: number, request: MessageRequest, idempotency?: Idempotency,
): Delivery {
  return {
    id, seq, state: 'queued', deferred: false, target: request.target, caller, door, bot: '', createdAt: now, updatedAt: now,
    expiresAt: null, attempts: 0, open: [], key: idempotency?.key ?? null, requestKey: idempotency?.key,
    fingerprint: idempotency?.fingerprint ?? null, flow: flowOf(request, caller), ...partsFor({ mode: request.mode, items: [] }, 'none'),
  }
}

/** The parts of a delivery that depend on the items of its request. */
export function partsFor(
  { mode, items }: Pick<MessageRequest, 'mode' | 'items'>, recordContent: RecordContent,
): Pick<Delivery, 'mode' | 'results' | 'summary'> {
  return { mode, results: items.map(() => undefined), summary: summarize(items, recordContent) }
}

function flowOf({ urgent, sendAt, policy, thread, threadMode = 'reply', threadPhase: phase, route }: MessageRequest, caller: string | null): Flow {
  return {
    ...urgent && { urgent },
    ...sendAt && { sendAt: sendAt.at },
    ...policy && { policy },
    ...thread !== undefined && { thread: { name: threadName(caller, thread), mode: threadMode, ...phase && { phase } } },
    ...route && { route: { ...route, index: 0, past: [] } },
  }
}

/** The name of a thread in the file: each caller has threads of its own. */
export function threadName(caller: string | null, thread: string): string {
  return hash(JSON.stringify([caller, thread]))
}

/** The results of a send, with successes that were answered late. */
export function withArrived({ results: known }: Delivery, results: Results): Results {
  return results.map((result, index) => known[index]?.success ? known[index] : result)
}

/** A platform message leaves. It replaces open messages with the same items. */
export function leave(delivery: Delivery, results: Results, leaving: Open): Change {
  const { open } = delivery
  return { state: 'sending', results: withArrived(delivery, results), open: [...open.filter(each => !overlaps(each, leaving.indices)), leaving] }
}

/** The delivery ends. An item that was never tried has no result. The key becomes free if nothing can have arrived. */
export function end(delivery: Delivery, ended: Results): Change {
  const { open, key } = delivery
  const results = withArrived(delivery, ended)
  const isUsedUp = results.some(mayHaveArrived)
  return { state: finalState(results), results, open: open.filter(each => isOpen(each, results)), key: isUsedUp ? key : null }
}

/**
 * The rest of the delivery cannot be sent for now: its bot is offline, its chat is held, or the relay stops. Open messages are looked up
 * first when it leaves again.
 */
export function postpone({ open }: Delivery, results: Results): Change {
  const known = results.map(result => isPassing(result) || outcomeOf(result) === 'unanswered' ? undefined : result)
  return { state: 'queued', open: open.filter(each => isOpen(each, results)), results: known }
}

/**
 * Queues the items that have not arrived again, because a caller or an operator asked for it: the count of calls starts anew.
 *
 * @param seq the new place in the order
 */
export function again({ open, results }: Delivery, seq: number): Change {
  return { state: 'queued', seq, open: open.map(each => ({ ...each, calls: 0 })), results: results.map(result => result?.success ? result : undefined) }
}

/** The results of a delivery that ends with this error: open items stay unanswered, the others fail. */
export function failRest({ results, open }: Delivery, error: RelayError): Results {
  const isOpen = (index: number): boolean => open.some(({ indices }) => indices.includes(index))
  return results.map((result, index) => result ?? (isOpen(index) ? unanswered() : { success: false, error }))
}

/** The results after a platform message was found or answered late. */
export function withSent(results: Results, indices: readonly number[], sent: Sent): Results {
  return results.map((result, index) => indices.includes(index) ? sent : result)
}

/** The result of an item that may have arrived. */
export function unanswered(): Failed {
  return { success: false, error: new RelayError('unanswered') }
}

/** The outcome of an item; `unsent` for one that was never tried. */
export function outcomeOf(result: ItemResult | undefined): Outcome {
  if (result?.success) return 'sent'
  return result?.error.outcome ?? 'unsent'
}

/**
 * The result of a delivery as a whole; `undefined` while it has not ended. Unanswered items outweigh failed ones, which outweigh sent ones.
 */
export function resultOf({ results }: Pick<Delivery, 'results'>): ItemResult | undefined {
  if (results.length === 1) return results[0]
  const failed = results.filter(result => result?.success === false)
  const [worst] = [...failed.filter(result => outcomeOf(result) === 'unanswered'), ...failed]
  if (!worst) return results.every(result => result) ? { success: true, messageIds: messageIdsOf({ results }) } : undefined
  if (failed.length === results.length) return worst
  return { success: false, error: worst.error.with({ said: say('other-parts-sent', { failure: worst.error.said }) }) }
}

const passing: ReadonlySet<ErrorCode> = new Set(['unsent', 'stopping', 'store-down', 'storage-full'])

/** Whether an item failed for a reason that passes: the bot is offline, the chat is closed for a while, the relay stops or cannot write. */
export function isPassing(result: ItemResult | undefined): boolean {
  if (result === undefined || result.success) return false
  const { code } = result.error
  return passing.has(code) || failureOf(result)?.about === 'chat-closed'
}

/** The failure of the platform that a result has; `undefined` for any other result. */
export function failureOf(result: ItemResult | undefined): SendError | undefined {
  const cause = result?.success === false ? result.error.cause : undefined
  return cause instanceof SendError ? cause : undefined
}

/** The cause that a person has to remove before the chat can be reached again; `undefined` if no item failed because of one. */
export function goneBecause({ results }: Pick<Delivery, 'results'>): CauseId | undefined {
  return results.map(failureOf).find(failure => failure?.about === 'chat-gone')?.causeId
}

/** Whether an item has arrived, or may have. Such an item uses up the Idempotency-Key of its request. */
export function mayHaveArrived(result: ItemResult | undefined): boolean {
  return ['sent', 'unanswered'].includes(outcomeOf(result))
}

/** The known IDs of a delivery's platform messages. */
export function messageIdsOf({ results }: Pick<Delivery, 'results'>): string[] {
  return [...new Set(results.flatMap(result => result?.success ? result.messageIds : []))]
}

/** The IDs of the platform message that represents a delivery in its thread; empty if it is not known to have arrived. */
export function standsFor({ results, flow: { thread } }: Pick<Delivery, 'results' | 'flow'>): readonly string[] {
  const result = results[thread?.index ?? 0]
  return result?.success ? result.messageIds : []
}

/** How a delivery joined its thread; `undefined` without a thread, or if the delivery is not known to have arrived. */
export function threadDeedOf({ results, flow: { thread } }: Pick<Delivery, 'results' | 'flow'>): ThreadDeed | undefined {
  return results[thread?.index ?? 0]?.success ? thread?.done : undefined
}

/** Whether a delivery is a single text, with or without mentions: only such a delivery can leave in a digest. */
export function isText({ mode, summary: { items } }: Pick<Delivery, 'mode' | 'summary'>): boolean {
  const others = items.filter(({ type }) => type !== 'at')
  return mode === 'single' && others.length < 2 && others.every(({ type }) => type === 'text')
}

/** The interval of its digest, in milliseconds; `undefined` without one. Urgent messages and anything but text leave at once. */
export function digestOf(delivery: Pick<Delivery, 'flow' | 'mode' | 'summary'>): number | undefined {
  const { urgent, policy } = delivery.flow
  return policy?.digest && !urgent && isText(delivery) ? policy.digest : undefined
}

/** Whether each step of a delivery must be in the file before the next one: it has an Idempotency-Key, or no caller waits for it. */
export function isDurable({ key, deferred }: Pick<Delivery, 'key' | 'deferred'>): boolean {
  return key !== null || deferred
}

/** Whether a deferred delivery has expired. */
export function isOverdue({ expiresAt }: Pick<Delivery, 'expiresAt'>, wall: number): boolean {
  return expiresAt !== null && expiresAt < wall
}

function overlaps({ indices }: Open, others: readonly number[]): boolean {
  return indices.some(index => others.includes(index))
}

function isOpen({ indices }: Open, results: Results): boolean {
  return indices.some(index => outcomeOf(results[index]) === 'unanswered')
}

function finalState(results: Results): State {
  const outcomes = results.map(outcomeOf)
  if (outcomes.every(outcome => outcome === 'sent')) return 'sent'
  if (outcomes.includes('unanswered')) return 'unanswered'
  return results.some(result => result?.success === false && result.error.code === 'expired') ? 'expired' : 'failed'
}
