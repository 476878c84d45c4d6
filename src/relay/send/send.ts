import { RelayError } from '../../errors'
import type { ParsedItem } from '../../message/model'
import { SendError, type Account, type LoadedItem, type Message } from '../../platform/port'
import { attempt, toSent, type AttemptContext } from './attempt'
import { pause } from '../clock'
import type { MessageKind } from '../look-up/look-up'
import { compose, divide, kindOf, settlingTime } from './compose'
import { prepareItem, type PreparedItem } from './media'
import type { Entry } from '../delivery/deliveries'
import { failureOf, isPassing, unanswered, withArrived, type Delivery, type ItemResult, type Open, type Results } from '../delivery/delivery'
import type { Gated, Gates } from '../queue/gates'
import { itemsForWay } from '../queue/ways'
import { joinThread, loosen, messageOf, recallReplaced } from './thread'

/** The parts of the core that a send needs. */
export interface SendContext extends AttemptContext {
  gates: Gates
}

/** The result of a send. */
export interface SendEnd {
  results: Results
  /** The last failure of a platform message. */
  failure: SendError | undefined
}

/** An item that can be sent, with its place in the request. */
type Ready = PreparedItem & { index: number }

/** A platform message in the left of a send. */
interface Outgoing {
  items: readonly Ready[]
  retries: number
  earlier?: Open
}

/** Sends the items of a delivery that have no result yet, combined into as few platform messages as possible. */
export async function send(context: SendContext, entry: Entry, account: Account, queue: Gated): Promise<SendEnd> {
  const { delivery } = entry
  const { summary, createdAt } = delivery
  const { clock, deliveries, files } = context
  const items = deliveries.itemsOf(entry)
  const releases = items.flatMap(item => 'link' in item && item.link.kind === 'upload' ? [files.hold(item.link.id)] : [])
  summary.waited ??= Math.max(clock.wall() - createdAt, 0)
  const results = [...delivery.results]
  const work: Work = { entry, account, queue, results, hasLeft: false, failure: undefined }
  try {
    await sendAll(context, work)
  } finally {
    for (const release of releases) release()
  }
  return { results: withArrived(delivery, results), failure: work.failure }
}

/** The state of a send. Results are filled in one by one. */
interface Work {
  entry: Entry
  account: Account
  queue: Gated
  results: (ItemResult | undefined)[]
  /** Whether a first platform message was tried. The queue has waited for that one; the others wait here. */
  hasLeft: boolean
  /** The last failure of a platform message. */
  failure: SendError | undefined
}

async function sendAll(context: SendContext, work: Work): Promise<void> {
  const { entry, account, queue, results } = work
  const { delivery: { deferred, open } } = entry
  const { gates, deliveries, policy: { retries } } = context
  const mostCalls = gates.isRestricted(queue.bot) ? 1 : Infinity
  const ready = await prepareAll(context, work)
  const earlier = open.map((each): Outgoing => ({
    items: ready.filter(({ index }) => each.indices.includes(index)), retries: Math.min(retries, each.calls + mostCalls - 1), earlier: each,
  }))
  const fresh = ready.filter(item => !earlier.some(({ items }) => items.includes(item)))
  const messages = compose(fresh, account)
  joinThread(context, entry, account, messages)
  const combined = messages.map((items): Outgoing => ({ items, retries: Math.min(retries, mostCalls - 1) }))
  const left = [...earlier.filter(({ items }) => items.length > 0), ...combined]
  for (let next = left.shift(); next; next = left.shift()) {
    const result = await sendOne(context, work, next)
    const failure = failureOf(result)
    const isClosed = failure?.last.isAboutTarget === true
    const isRefused = failure?.outcome === 'refused' && !isClosed
    if (isRefused && loosen(deliveries, entry, next.items.map(({ index }) => index))) {
      left.unshift({ items: next.items, retries: next.retries })
      continue
    }
    const parts = isRefused ? divide(next.items) : []
    if (parts.length > 1) {
      // So that only the bad items fail, each is sent by itself, once.
      left.unshift(...parts.map(items => ({ items, retries: 0 })))
      continue
    }
    work.failure = failure ?? work.failure
    for (const { index } of next.items) results[index] = result
    // A closed chat refuses the rest as well, and calls into it get accounts banned. A deferred delivery that cannot leave now is tried
    // again as a whole.
    const rest: ItemResult = failure && failure.last !== failure ? { success: false, error: failure.last.toRelayError() } : result
    if (!isClosed && !(deferred && isPassing(rest))) continue
    for (const { items, earlier } of left.splice(0)) for (const { index } of items) results[index] = earlier ? unanswered() : rest
  }
}

/** Prepares the items that have no result yet. */
async function prepareAll({ media }: AttemptContext, { account, entry: { delivery, items = [] }, results }: Work): Promise<Ready[]> {
  const { summary } = delivery
  const ready: Ready[] = []
  for (const [index, item] of itemsFor(account, delivery, items).entries()) {
    if (results[index]) continue
    try {
      if (item instanceof RelayError) throw item
      const prepared = await prepareItem(item, media, account)
      const shown = summary.items[index]
      if (shown && 'load' in prepared && prepared.bytes !== undefined) shown.size ??= prepared.bytes
      ready.push({ ...prepared, index })
    } catch (error) {
      results[index] = { success: false, error: RelayError.from(error) }
    }
  }
  return ready
}

async function sendOne(context: SendContext, work: Work, { items, retries, earlier }: Outgoing): Promise<ItemResult> {
  const { gates, policy: { settleTime, timeout } } = context
  const { entry, account, queue, results } = work
  if (work.hasLeft && !earlier) await waitForTurn(context, queue)
  gates.takeTurn(queue.bot)
  let hasArrived = false
  try {
    const indices = items.map(({ index }) => index)
    const message = messageOf(account, entry.delivery, indices, await load(items))
    const settle = settlingTime(items, Math.max(settleTime, timeout))
    const sending = { entry, results, indices, chat: queue.name, account, message, kind: kindOf(items), settle, retries, earlier }
    const receipt = await attempt(context, sending)
    hasArrived = true
    await recallReplaced(context, entry, account, indices)
    return toSent(receipt, message.likeness)
  } catch (error) {
    return { success: false, error: error instanceof SendError ? error.toRelayError() : RelayError.from(error) }
  } finally {
    work.hasLeft = true
    // A batch may take long: each of its messages counts at once.
    if (hasArrived) gates.arrived(queue)
    gates.left(queue)
  }
}

/** Waits until a further message of a delivery may leave. Another queue may take the turn of the account first. */
async function waitForTurn({ clock, gates, stop }: SendContext, queue: Gated): Promise<void> {
  for (let rest = gates.spacing(queue); rest > 0 && !stop.aborted; rest = gates.spacing(queue)) await pause(clock, rest, stop)
}

/** The items as this account sends them. Without a route they were checked at acceptance. */
function itemsFor(account: Account, delivery: Delivery, items: readonly ParsedItem[]): readonly ParsedItem[] {
  if (!delivery.flow.route) return items
  try {
    return account.check(delivery.target, itemsForWay(delivery, items))
  } catch (error) {
    // The account may no longer accept this target.
    const wrong = RelayError.from(error)
    return items.map(() => wrong)
  }
}

/** Builds an open message of a delivery again, for a look-up. */
export async function openMessage(
  { media, deliveries }: Pick<AttemptContext, 'media' | 'deliveries'>, entry: Entry, { indices }: Open, account: Account,
): Promise<{ message: Message, kind: MessageKind }> {
  const { delivery } = entry
  const prepared: PreparedItem[] = []
  const present = itemsFor(account, delivery, deliveries.itemsOf(entry))
  for (const index of indices) {
    const item = present[index]
    if (item instanceof RelayError) throw item
    if (item) prepared.push(await prepareItem(item, media, account))
  }
  return { message: messageOf(account, delivery, indices, await load(prepared)), kind: kindOf(prepared) }
}

async function load(items: readonly PreparedItem[]): Promise<LoadedItem[]> {
  const loaded: LoadedItem[] = []
  for (const item of items) loaded.push('load' in item ? await item.load() : item)
  return loaded
}
