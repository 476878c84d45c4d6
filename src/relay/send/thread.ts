import { RelayError } from '../../errors'
import { day } from '../../lib/time'
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

/** How a message joins its thread, and the messages that it replies to, updates or replaces. */
interface Deed { done: ThreadDeed, ids: readonly string[] }

const beginsAnew: Deed = { done: 'new', ids: [] }

/**
 * Decides how a message joins its thread: it replies to the first existing message, updates it, or replaces the last one. A message that
 * represents several deliveries is only replied to.
 */
export function decideDeed(joining: Joining): Deed {
  const past = sinceOver(joining.past, joining.phase)
  const present = presentOf(past)
  const [first] = present
  const last = present.at(-1)
  if (!first || !last) return beginsAnew
  // It would undo an update made now.
  const mayChange = !past.some(each => mayStillLeave(each, joining))
  if (mayChange && mayUpdate(first, joining)) return { done: 'updated', ids: messageIdsOf(first) }
  if (mayChange && mayReplace(last, joining)) return { done: 'replaced', ids: messageIdsOf(last) }
  const [id = ''] = standsFor(first)
  return joining.canAnswer(id) ? { done: 'replied', ids: [id] } : beginsAnew
}

/** The deliveries whose messages are still there: a later one may have replaced them. */
function presentOf(past: readonly Delivery[]): readonly Delivery[] {
  const replacing = past.filter(each => threadDeedOf(each) === 'replaced')
  const replaced = new Set(replacing.flatMap(({ flow: { thread } }) => thread?.ids ?? []))
  return past.filter(each => standsFor(each).some(id => !replaced.has(id)))
}

/** Whether an unanswered delivery may still be carried out or sent again. */
function mayStillLeave({ state, deferred, open, updatedAt }: Delivery, { wall, retries }: Joining): boolean {
  if (state !== 'unanswered') return false
  return open.some(({ calls, settle }) => {
    const isSentAgain = deferred && calls <= retries
    return wall < updatedAt + (isSentAgain ? day : settle)
  })
}

function mayUpdate(first: Delivery, { mode, canUpdate }: Joining): boolean {
  return mode === 'update' && canUpdate && isAlone(first) && messageIdsOf(first).length === 1
}

function mayReplace(last: Delivery, { mode, wall, recallableFor }: Joining): boolean {
  return mode === 'replace' && isAlone(last) && wall - last.updatedAt < recallableFor
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
  const { delivery, delivery: { flow: { thread } } } = entry
  // On many platforms files, videos and voice messages cannot be replies.
  const lead = messages.find(message => isRepeatable(kindOf(message))) ?? messages[0] ?? []
  const [first] = lead
  if (!thread || !first || isDecided(delivery)) return
  const wall = clock.wall()
  const decided = decideDeed({
    mode: thread.mode, phase: thread.phase, wall, retries, past: deliveries.inThread(entry, thread.name, wall - lifetime),
    canUpdate: account.canUpdate && isText(delivery, messages),
    canAnswer: messageId => isRepeatable(kindOf(lead)) && !answersAnother(entry) && takesReply(account, delivery.target, messageId),
    recallableFor: account.recallableFor,
  })
  deliveries.link(entry, { ...thread, ...decided, index: first.index })
}

function isDecided({ flow: { thread }, open, results }: Delivery): boolean {
  const hasLeft = open.length > 0 || results.some(result => result?.success)
  return thread?.done !== undefined && hasLeft
}

/** Whether a delivery leaves as one message of text. */
function isText({ mode }: Delivery, [message = [], ...others]: readonly (readonly PreparedItem[])[]): boolean {
  return mode === 'single' && others.length === 0 && message.every(({ type }) => type === 'text' || type === 'at')
}

/** Whether the request itself names a message that it replies to. */
function answersAnother({ items = [] }: Entry): boolean {
  return items.some(item => !(item instanceof RelayError) && item.type === 'reply')
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
