import { RelayError } from '../errors'
import type { ThreadMode } from '../message/model'
import type { Account, LoadedItem, Message } from '../platform/port'
import { nameOf } from './chats'
import { inTime } from './clock'
import { isRepeatable, kindOf, type PreparedItem } from './compose'
import type { Active, Deliveries } from './deliveries'
import { messageIdsOf, standsFor, threadDeedOf, type Delivery } from './delivery'
import type { ThreadDeed, ThreadLink } from './flow'
import type { RunningOptions } from './options'

/** For how long what went unanswered may be sent again by itself, in milliseconds. */
const day = 24 * 60 * 60 * 1000
/** For how long messages of a thread belong together, in milliseconds. */
const lifetime = 7 * day

export interface ThreadContext extends RunningOptions {
  deliveries: Deliveries
}

/** What decides how a message goes on with its thread. */
export interface Joining {
  mode: ThreadMode
  /** The other deliveries of the thread to the same chat, the oldest first. */
  past: readonly Delivery[]
  wall: number
  /** How many further calls a message has. */
  retries: number
  canUpdate: boolean
  canAnswer: (messageId: string) => boolean
  /** As of the account. */
  recallableFor: number
}

/**
 * Decides how a message goes on with its thread: it answers the first message that is there, changes it, or takes the place of the last
 * one. A message that stands for several deliveries is only answered.
 */
export function judge(
  { mode, past, wall, retries, canUpdate, canAnswer, recallableFor }: Joining,
): { done: ThreadDeed, ids: readonly string[] } {
  const taken = new Set(past.flatMap(each => threadDeedOf(each) === 'replaced' ? each.flow.thread?.ids ?? [] : []))
  const there = past.filter(each => standsFor(each).some(id => !taken.has(id)))
  const [first] = there
  const last = there.at(-1)
  if (!first || !last) return { done: 'new', ids: [] }
  // What is unanswered may still be carried out, or be called again, and would undo what is done now.
  const isOpen = past.some(({ state, deferred, open, updatedAt }) => (
    state === 'unanswered' && open.some(({ calls, settle }) => wall < updatedAt + (deferred && calls <= retries ? day : settle))
  ))
  const [ids, lastIds] = [messageIdsOf(first), messageIdsOf(last)]
  if (mode === 'update' && !isOpen && canUpdate && isAlone(first) && ids.length === 1) return { done: 'updated', ids }
  if (mode === 'replace' && !isOpen && isAlone(last) && wall - last.updatedAt < recallableFor) return { done: 'replaced', ids: lastIds }
  const [id = ''] = standsFor(first)
  return canAnswer(id) ? { done: 'replied', ids: [id] } : { done: 'new', ids: [] }
}

function isAlone({ mode, flow: { digest, members } }: Delivery): boolean {
  return mode === 'single' && !digest && !members
}

/**
 * Decides how a delivery goes on with its thread, unless that was decided and something of it may have arrived. The decision is on disk
 * before the first call.
 *
 * @param messages the items of the platform messages that are to be sent
 * @throws the error of the database, for what is deferred
 */
export async function joinThread(
  { clock, deliveries, policy: { retries } }: ThreadContext, active: Active, account: Account,
  messages: readonly (readonly (PreparedItem & { index: number })[])[],
): Promise<void> {
  const { delivery: { flow: { thread }, mode, target, open, results }, items = [] } = active
  // What stands alone on many platforms cannot answer anything.
  const lead = messages.find(message => isRepeatable(kindOf(message))) ?? messages[0]
  const hasLeft = open.length > 0 || results.some(result => result?.success)
  if (!thread || !lead?.[0] || (thread.done && hasLeft)) return
  const wall = clock.wall()
  const answersAnother = items.some(item => !(item instanceof RelayError) && item.type === 'reply')
  const isText = mode === 'single' && messages.length === 1 && lead.every(({ type }) => type === 'text' || type === 'at')
  const judged = judge({
    mode: thread.mode, wall, retries, past: await deliveries.inThread(active, thread.name, wall - lifetime),
    canUpdate: account.update !== undefined && isText,
    canAnswer: messageId => !answersAnother && isRepeatable(kindOf(lead)) && takesReply(account, target, messageId),
    recallableFor: account.recallableFor,
  })
  deliveries.link(active, { ...thread, ...judged, index: lead[0].index })
}

function takesReply(account: Account, target: Delivery['target'], messageId: string): boolean {
  try {
    return account.check(target, [{ type: 'reply', messageId }]).every(item => !(item instanceof RelayError))
  } catch {
    return false
  }
}

/** A platform message of a delivery, as it goes on with its thread. */
export function messageOf(
  account: Account, { id, target, flow: { thread, route } }: Delivery, indices: readonly number[], items: readonly LoadedItem[],
): Message {
  // A platform that makes one message of all calls with one name would take the next way for a repeated call.
  const name = route ? `${nameOf(id, indices)} ${route.index}` : nameOf(id, indices)
  const { done, ids: [earlier] = [] } = linkOf(thread, indices) ?? {}
  if (earlier !== undefined && done === 'updated' && account.update) return account.update(target, earlier, items, name)
  const reply: LoadedItem[] = earlier !== undefined && done === 'replied' ? [{ type: 'reply', messageId: earlier }] : []
  return account.message(target, [...reply, ...items], name)
}

/**
 * The platform has refused a message: perhaps only because it answers or changes another one, which is gone or too old.
 *
 * @returns whether it is worth another call, which does less of that
 */
export function loosen(deliveries: Deliveries, active: Active, indices: readonly number[]): boolean {
  const link = linkOf(active.delivery.flow.thread, indices)
  if (link?.done !== 'updated' && link?.done !== 'replied') return false
  deliveries.link(active, link.done === 'updated' ? { ...link, done: 'replied' } : { ...link, done: 'new', ids: [] })
  return true
}

/**
 * Takes the last message of a thread back, after the one that replaces it has arrived. Where that is refused or gets no answer, both stay.
 * A message may be taken back twice, after a restart.
 */
export async function takeBack(
  { clock, deliveries, policy: { timeout }, stop }: ThreadContext, active: Active, account: Account, indices: readonly number[],
): Promise<void> {
  const link = linkOf(active.delivery.flow.thread, indices)
  if (link?.done !== 'replaced') return
  const { ids = [] } = link
  const recalled = Promise.all(ids.map(id => account.recall(active.delivery.target, id))).then(() => true, () => false)
  const isDone = await inTime(clock, recalled, timeout, stop)
  if (!isDone) deliveries.link(active, { ...link, done: 'new', ids: [] })
}

/** How the message of these items goes on with its thread; `undefined` for one that does not stand for its delivery. */
function linkOf(thread: ThreadLink | undefined, indices: readonly number[]): ThreadLink | undefined {
  return thread?.index !== undefined && indices.includes(thread.index) ? thread : undefined
}
