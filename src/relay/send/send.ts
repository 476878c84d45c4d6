import { RelayError } from '../../errors'
import { SendError, type Account, type LoadedItem, type Message } from '../../platform/port'
import { pause } from '../clock'
import type { Entry } from '../delivery/deliveries'
import { failureOf, isPassing, unanswered, withArrived, type ItemResult, type Open, type Results } from '../delivery/delivery'
import type { MessageKind } from '../look-up/look-up'
import { arrived } from './arrived'
import { Attempt } from './attempt'
import { compose, divide, kindOf, settlingTime } from './compose'
import type { Gated, SendContext } from './context'
import { itemsFor } from './items'
import { prepareItem, type PreparedItem } from './media'
import { joinThread, loosen, messageOf } from './thread'

/** The result of a send. */
export interface SendEnd {
  results: Results
  /** The last failure of a platform message. */
  failure: SendError | undefined
}

/** An item that can be sent, with its place in the request. */
type Ready = PreparedItem & { index: number }

/** The items of one platform message. */
interface Part {
  items: readonly Ready[]
  retries: number
  /** Its open call of an earlier send. */
  earlier?: Open
}

/** Sends the items of a delivery that have no result yet, combined into as few platform messages as possible. */
export async function send(context: SendContext, entry: Entry, account: Account, queue: Gated): Promise<SendEnd> {
  const { delivery: { summary, createdAt } } = entry
  const { clock, deliveries, files } = context
  const items = deliveries.itemsOf(entry)
  const releases = items.flatMap(item => 'link' in item && item.link.kind === 'upload' ? [files.hold(item.link.id)] : [])
  summary.waited ??= Math.max(clock.wall() - createdAt, 0)
  try {
    return await new Send(context, entry, account, queue).run()
  } finally {
    for (const release of releases) release()
  }
}

class Send {
  /** Filled in one by one. */
  private readonly results: (ItemResult | undefined)[]
  /** Whether a first platform message was tried. The queue has waited for that one; the others wait here. */
  private hasLeft = false

  constructor(
    private readonly context: SendContext, private readonly entry: Entry, private readonly account: Account, private readonly queue: Gated,
  ) {
    this.results = [...entry.delivery.results]
  }

  async run(): Promise<SendEnd> {
    const { entry: { delivery }, results } = this
    const left = await this.parts()
    let last: SendError | undefined
    for (let part = left.shift(); part; part = left.shift()) {
      const result = await this.sendPart(part)
      const failure = failureOf(result)
      const instead = failure ? this.instead(part, failure) : []
      left.unshift(...instead)
      if (instead.length > 0) continue
      last = failure ?? last
      for (const { index } of part.items) results[index] = result
      // A closed chat refuses the rest as well, and calls into it get accounts banned. A deferred delivery that cannot leave now is tried
      // again as a whole.
      const rest: ItemResult = failure ? { success: false, error: failure.last.toRelayError() } : result
      const isOver = failure?.last.isAboutTarget === true || (delivery.deferred && isPassing(rest))
      const unsent = isOver ? left.splice(0) : []
      for (const { items, earlier } of unsent) for (const { index } of items) results[index] = earlier ? unanswered() : rest
    }
    return { results: withArrived(delivery, results), failure: last }
  }

  /** The platform messages to send: first those that are open. */
  private async parts(): Promise<Part[]> {
    const { context, entry, account, queue } = this
    // A restricted account makes one call a message.
    const { gates, policy: { retries } } = context
    const most = gates.isRestricted(queue.bot) ? 0 : retries
    const ready = await this.prepareAll()
    const earlier = entry.delivery.open.map((open): Part => ({
      items: ready.filter(({ index }) => open.indices.includes(index)), retries: Math.min(retries, open.calls + most), earlier: open,
    }))
    const fresh = ready.filter(item => !earlier.some(({ items }) => items.includes(item)))
    const messages = compose(fresh, account)
    joinThread(context, entry, account, messages)
    return [...earlier.filter(({ items }) => items.length > 0), ...messages.map((items): Part => ({ items, retries: most }))]
  }

  /** Prepares the items that have no result yet. */
  private async prepareAll(): Promise<Ready[]> {
    const { context: { media }, account, entry: { delivery, items = [] }, results } = this
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

  /** What is sent instead of a message that was refused. */
  private instead({ items, retries }: Part, { outcome, last }: SendError): Part[] {
    if (outcome !== 'refused' || last.isAboutTarget) return []
    if (loosen(this.context.deliveries, this.entry, items.map(({ index }) => index))) return [{ items, retries }]
    const parts = divide(items)
    // So that only the bad items fail, each is sent by itself, once.
    return parts.length > 1 ? parts.map(part => ({ items: part, retries: 0 })) : []
  }

  private async sendPart({ items, retries, earlier }: Part): Promise<ItemResult> {
    const { context, entry, account, queue, results } = this
    const { gates, policy: { settleTime, timeout } } = context
    if (this.hasLeft && !earlier) await this.waitForTurn()
    // The queue has taken a turn before (`Gates.leaving`), so that no other one of the account leaves while this message is prepared. This
    // is the time from which the next one waits.
    gates.takeTurn(queue.bot)
    try {
      const indices = items.map(({ index }) => index)
      const message = messageOf(account, entry.delivery, indices, await load(items))
      const settle = settlingTime(items, Math.max(settleTime, timeout))
      const [chat, kind] = [queue.name, kindOf(items)]
      const receipt = await new Attempt(context, { entry, results, indices, chat, account, message, kind, settle, retries, earlier }).run()
      // A batch may take long: each of its messages counts at once.
      gates.arrived(queue)
      return await arrived(context, entry, account, { indices, likeness: message.likeness }, receipt)
    } catch (error) {
      return { success: false, error: error instanceof SendError ? error.toRelayError() : RelayError.from(error) }
    } finally {
      this.hasLeft = true
      gates.left(queue)
    }
  }

  /** Waits until a further message of a delivery may leave. Another queue may take the turn of the account first. */
  private async waitForTurn(): Promise<void> {
    const { context: { clock, gates, stop }, queue } = this
    for (let rest = gates.spacing(queue); rest > 0 && !stop.aborted; rest = gates.spacing(queue)) await pause(clock, rest, stop)
  }
}

/** Builds an open message of a delivery again, for a look-up. */
export async function openMessage(
  { media, deliveries }: SendContext, entry: Entry, { indices }: Open, account: Account,
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
