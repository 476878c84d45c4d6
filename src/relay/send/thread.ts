import { RelayError } from '../../errors'
import type { ThreadMode, ThreadPhase } from '../../message/model'
import type { Account, LoadedItem, Message } from '../../platform/port'
import { nameOf } from '../look-up/claims'
import { inTime } from '../clock'
import { isRepeatable } from '../look-up/look-up'
import { kindOf } from './compose'
import type { PreparedItem } from './media'
import type { Deliveries, Entry } from '../delivery/deliveries'
import { messageIdsOf, standsFor, threadDeedOf, type Delivery } from '../delivery/delivery'
import type { ThreadDeed, ThreadLink } from '../delivery/flow'
import type { SendContext } from './context'

/** How long an unanswered delivery may be sent again by itself, in milliseconds. */
const day = 24 * 60 * 60 * 1000
/** How long a thread goes on after a message, in milliseconds. */
const lifetime = 7 * day

/** The facts that decide how a message joins its thread. */
export interface Joining {
  mode: ThreadMode
  phase?: ThreadPhase | undefined
  /** The other deliveries of the thread to the same chat, the oldest first. */
  past: readonly Delivery[]
  wall: number
  /** How many further calls a message may have. */
  retries: number
  canUpdate: boolean
  canAnswer: (messageId: string) => boolean
  /** As of the account. */
  recallableFor: number
}

/**
 * Decides how a message joins its thread: it replies to the first existing message, updates it, or replaces the last one. A message that
 * represents several deliveries is only replied to.
 */
export function judge(
  { mode, phase, past: all, wall, retries, canUpdate, canAnswer, recallableFor }: Joining,
): { done: ThreadDeed, ids: readonly string[] } {
  const past = sinceOver(all, phase)
  const taken = new Set(past.flatMap(each => threadDeedOf(each) === 'replaced' ? each.flow.thread?.ids ?? [] : []))
  const there = past.filter(each => standsFor(each).some(id => !taken.has(id)))
  const [first] = there
  const last = there.at(-1)
  if (!first || !last) return { done: 'new', ids: [] }
  // An unanswered delivery may still be carried out or sent again, and would then undo an update made now.
  const isOpen = past.some(({ state, deferred, open, updatedAt }) => (
    state === 'unanswered' && open.some(({ calls, settle }) => wall < updatedAt + (deferred && calls <= retries ? day : settle))
  ))
  const [ids, lastIds] = [messageIdsOf(first), messageIdsOf(last)]
  if (mode === 'update' && !isOpen && canUpdate && isAlone(first) && ids.length === 1) return { done: 'updated', ids }
  if (mode === 'replace' && !isOpen && isAlone(last) && wall - last.updatedAt < recallableFor) return { done: 'replaced', ids: lastIds }
  const [id = ''] = standsFor(first)
  return canAnswer(id) ? { done: 'replied', ids: [id] } : { done: 'new', ids: [] }
}

/** The deliveries since the thread last started anew. @param phase of the delivery that follows them */
function sinceOver(past: readonly Delivery[], phase: ThreadPhase | undefined): readonly Delivery[] {
  let start = 0
  let last: ThreadPhase | undefined
  for (const [index, next] of [...past.map(({ flow: { thread } }) => thread?.phase), phase].entries()) {
    if (last === 'over' && next === 'on') start = index
    last = next ?? last
  }
  return past.slice(start)
}

function isAlone({ mode, flow: { digest, members } }: Delivery): boolean {
  return mode === 'single' && !digest && !members
}

/**
 * Decides how a delivery joins its thread. A decision is final once a message of the delivery may have arrived. The file has it before the
 * first call.
 *
 * @param messages the items of the platform messages to send
 * @throws RelayError for a deferred delivery, if the file cannot be read
 */
export function joinThread(
  { clock, deliveries, policy: { retries } }: SendContext, entry: Entry, account: Account,
  messages: readonly (readonly (PreparedItem & { index: number })[])[],
): void {
  const { delivery: { flow: { thread }, mode, target, open, results }, items = [] } = entry
  if (!thread) return
  // On many platforms files, videos and voice messages cannot be replies.
  const lead = messages.find(message => isRepeatable(kindOf(message))) ?? messages[0]
  const hasLeft = open.length > 0 || results.some(result => result?.success)
  if (!lead?.[0] || (thread.done && hasLeft)) return
  const wall = clock.wall()
  const answersAnother = items.some(item => !(item instanceof RelayError) && item.type === 'reply')
  const isText = mode === 'single' && messages.length === 1 && lead.every(({ type }) => type === 'text' || type === 'at')
  const judged = judge({
    mode: thread.mode, phase: thread.phase, wall, retries, past: deliveries.inThread(entry, thread.name, wall - lifetime),
    canUpdate: account.canUpdate && isText,
    canAnswer: messageId => !answersAnother && isRepeatable(kindOf(lead)) && takesReply(account, target, messageId),
    recallableFor: account.recallableFor,
  })
  deliveries.link(entry, { ...thread, ...judged, index: lead[0].index })
}

function takesReply(account: Account, target: Delivery['target'], messageId: string): boolean {
  try {
    return account.check(target, [{ type: 'reply', messageId }]).every(item => !(item instanceof RelayError))
  } catch {
    return false
  }
}

/** Builds a platform message of a delivery, as a reply or an update if its thread asks for one. */
export function messageOf(
  account: Account, { id, target, flow: { thread, route } }: Delivery, indices: readonly number[], items: readonly LoadedItem[],
): Message {
  // A platform that deduplicates calls by name must not take the call of a fallback for a repeated one.
  const name = route ? `${nameOf(id, indices)} ${route.index}` : nameOf(id, indices)
  const { done, ids: [earlier] = [] } = linkOf(thread, indices) ?? {}
  if (done === 'updated' && account.canUpdate) return account.message(target, items, name, earlier)
  const reply: LoadedItem[] = earlier !== undefined && done === 'replied' ? [{ type: 'reply', messageId: earlier }] : []
  return account.message(target, [...reply, ...items], name)
}

/**
 * Weakens the tie of a refused message to its thread: from an update to a reply, then to a new message. The earlier message may be gone or
 * too old.
 *
 * @returns whether to call again
 */
export function loosen(deliveries: Deliveries, entry: Entry, indices: readonly number[]): boolean {
  const link = linkOf(entry.delivery.flow.thread, indices)
  if (link?.done !== 'updated' && link?.done !== 'replied') return false
  deliveries.link(entry, link.done === 'updated' ? { ...link, done: 'replied' } : { ...link, done: 'new', ids: [] })
  return true
}

/**
 * Recalls the last message of a thread after its replacement has arrived. If the platform refuses or does not answer, both messages stay.
 * After a restart, a message may be recalled twice.
 */
export async function recallReplaced(
  { clock, deliveries, policy: { timeout }, stop }: SendContext, entry: Entry, account: Account, indices: readonly number[],
): Promise<void> {
  const link = linkOf(entry.delivery.flow.thread, indices)
  if (link?.done !== 'replaced') return
  const { ids = [] } = link
  const recalled = Promise.all(ids.map(id => account.recall(entry.delivery.target, id))).then(() => true, () => false)
  const isDone = await inTime(clock, recalled, timeout, stop)
  if (!isDone) deliveries.link(entry, { ...link, done: 'new', ids: [] })
}

/** The thread link of a platform message; `undefined` if another message represents the delivery in its thread. */
function linkOf(thread: ThreadLink | undefined, indices: readonly number[]): ThreadLink | undefined {
  return thread?.index !== undefined && indices.includes(thread.index) ? thread : undefined
}
