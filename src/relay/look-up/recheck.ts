import { RelayError } from '../../errors'
import { toSent } from '../send/attempt'
import { nameOf } from './claims'
import { every, inTime } from '../clock'
import type { Active } from '../delivery/deliveries'
import { again, isOverdue, type Change, type Delivery } from '../delivery/delivery'
import { queueOf } from '../queue/queue'
import type { EntryContext, Waiting } from '../queue/queues'
import { openMessage } from '../send/send'
import { recallReplaced } from '../send/thread'

/** When an unanswered delivery is looked up again, in milliseconds after its end. It is looked up once more when it has settled. */
const looks = [60_000, 5 * 60_000]
/** The wait after the settling time, and after a look-up for which the bot was offline or limited, in milliseconds. */
const margin = 1_000
const offlineDelay = 60_000
/** How often due look-ups are started, and a bot is asked at most, in milliseconds. */
const tickInterval = 1_000

/** Looks up unanswered deliveries again, also without a waiting caller: after one and five minutes, and once they have settled. */
export class Recheck {
  /** When look-ups are due, on the monotonic clock. */
  private readonly due = new WeakMap<Active, number[]>()
  /** The bots whose platforms are being asked. A silent one does not block the others. */
  private readonly asked = new Set<string>()
  readonly end: () => void

  constructor(private readonly context: EntryContext) {
    this.end = every(context.clock, tickInterval, () => this.lookAtDue())
  }

  /** The time until the open messages of a delivery have settled, in milliseconds. */
  settling(delivery: Delivery): number {
    const queue = queueOf(delivery)
    return Math.max(0, ...delivery.open.map(({ likeness }) => this.context.chats.openFor(queue, likeness)))
  }

  /**
   * Looks up the open messages of a delivery once, for no longer than the time of a call. Messages found after that are still recorded.
   *
   * @returns whether the messages that are still open may be sent again
   */
  async look(active: Active): Promise<boolean> {
    const { clock, policy: { timeout }, stop } = this.context
    return await inTime(clock, this.ask(active), timeout, stop) ?? false
  }

  private async ask(active: Active): Promise<boolean> {
    const { clock, port, chats, lookUps, deliveries } = this.context
    const { delivery } = active
    const account = port.find(delivery.bot)
    // Members of a digest are looked up by the digest.
    if (!account?.isOnline || delivery.flow.digest) return false
    const chat = queueOf(delivery)
    let mayRepeat = true
    for (const open of delivery.open) {
      const name = nameOf(delivery.id, open.indices)
      const call = chats.restore(chat, name, open)
      const wanted = { account, target: delivery.target, chat, call, ...await openMessage(this.context, active, open, account) }
      const finding = await lookUps.look(wanted)
      if (finding.kind === 'found') {
        await recallReplaced(this.context, active, account, open.indices)
        await deliveries.correct(active, open.indices, toSent(finding, open.likeness))
      } else mayRepeat &&= finding.repeatableUntil > clock.now()
    }
    return mayRepeat
  }

  private lookAtDue(): void {
    const { clock, deliveries } = this.context
    for (const active of deliveries.unanswered.values()) {
      const { bot } = active.delivery
      const due = this.due.get(active) ?? this.plan(active)
      this.due.set(active, due)
      const [next] = due
      if (next === undefined || next > clock.now() || this.asked.has(bot)) continue
      due.shift()
      this.asked.add(bot)
      void this.lookAgain(active, due)
        .catch(() => due.unshift(clock.now() + offlineDelay))
        .finally(() => this.asked.delete(bot))
    }
  }

  private plan({ delivery }: Active): number[] {
    const now = this.context.clock.now()
    return [...looks, this.settling(delivery) + margin].map(time => now + time).sort((a, b) => a - b)
  }

  private async lookAgain(active: Active, due: number[]): Promise<void> {
    const { clock, port, deliveries, limits, policy, stop } = this.context
    const { delivery } = active
    const canAsk = port.find(delivery.bot)?.isOnline && limits.rest(queueOf(delivery)) === 0
    // An unanswered delivery in memory is one whose end is still being written.
    if (!canAsk || deliveries.get(delivery.id)) throw new RelayError('unsent')
    const mayRepeat = await this.look(active)
    const calls = Math.max(0, ...delivery.open.map(({ calls }) => calls))
    if (!mayRepeat || delivery.state !== 'unanswered' || stop.aborted) return
    if (!delivery.deferred || calls > policy.retries || isOverdue(delivery, clock.wall())) return
    due.length = 0
    // A deferred delivery joins its queue again, at its old place.
    await requeue(this.context, active, again(delivery, delivery.seq, false), { isAccepted: true })
  }
}

/** The error for a delivery whose row is out of date. */
export function isChanging(): RelayError {
  return new RelayError('conflict', 'this delivery is changing: try again later')
}

/**
 * Queues an ended delivery again. It leaves from its queue once the change is in the journal.
 *
 * @throws RelayError `conflict`, `store-down`, or the refusal of its queue; the delivery is then unchanged
 */
export async function requeue(
  { deliveries, queues }: EntryContext, ended: Active, change: Change, waiting: Waiting,
): Promise<Active> {
  const before = { ...ended.delivery }
  // Until its end is in the journal, it cannot start anew.
  if (deliveries.get(before.id)) throw isChanging()
  const active = deliveries.revive(ended, change)
  try {
    queues.enter(active, waiting)
    await deliveries.saveOnce(active)
  } catch (error) {
    queues.giveUp(active.delivery)
    deliveries.undo(active, before)
    throw error
  }
  queues.saved(active)
  return active
}
