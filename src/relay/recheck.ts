import { RelayError } from '../errors'
import { toSent, type AttemptContext } from './attempt'
import { nameOf } from './chats'
import { every, inTime } from './clock'
import type { Active } from './deliveries'
import { again, isOverdue, type Change, type Delivery } from './delivery'
import { laneOf } from './lane'
import type { Lanes, Waiting } from './lanes'
import { openMessage } from './send'
import { recallReplaced } from './thread'

/** When a delivery without an answer is looked for again, in milliseconds after its end; and once more when it has settled. */
const looks = [60_000, 5 * 60_000]
/** How long after its settling time, and how long after a look for which the bot was offline or limited, in milliseconds. */
const margin = 1_000
const offlineDelay = 60_000
/** How often it is looked what is due, and a bot is asked at most, in milliseconds. */
const tickInterval = 1_000

export interface RecheckContext extends AttemptContext {
  lanes: Lanes
}

/** Looks again for what ended unanswered, also when nobody waits for it: after one and five minutes, and once it has settled. */
export class Recheck {
  /** When each is due, on the monotonic clock. */
  private readonly due = new WeakMap<Active, number[]>()
  /** Bots whose platforms have still to answer: one that never does holds no other one up. */
  private readonly asked = new Set<string>()
  readonly end: () => void

  constructor(private readonly context: RecheckContext) {
    this.end = every(context.clock, tickInterval, () => this.lookAtDue())
  }

  /** How long what is open of a delivery may still be carried out, in milliseconds. */
  settling(delivery: Delivery): number {
    const lane = laneOf(delivery)
    return Math.max(0, ...delivery.open.map(({ likeness }) => this.context.chats.openFor(lane, likeness)))
  }

  /**
   * Asks the platform once for all that is open of a delivery, no longer than a call may take. What is found is recorded, also after that.
   *
   * @returns whether what is still open may be sent again
   */
  async look(active: Active): Promise<boolean> {
    const { clock, policy: { timeout }, stop } = this.context
    return await inTime(clock, this.ask(active), timeout, stop) ?? false
  }

  private async ask(active: Active): Promise<boolean> {
    const { clock, port, chats, lookUps, deliveries } = this.context
    const { delivery } = active
    const account = port.find(delivery.bot)
    // What left in a digest is looked for by the digest.
    if (!account?.isOnline || delivery.flow.digest) return false
    const chat = laneOf(delivery)
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
    const canAsk = port.find(delivery.bot)?.isOnline && limits.rest(delivery.bot, laneOf(delivery)) === 0
    // As long as it is in memory its end is still being written.
    if (!canAsk || deliveries.get(delivery.id)) throw new RelayError('unsent')
    const mayRepeat = await this.look(active)
    const calls = Math.max(0, ...delivery.open.map(({ calls }) => calls))
    if (!mayRepeat || delivery.state !== 'unanswered' || stop.aborted) return
    if (!delivery.deferred || calls > policy.retries || isOverdue(delivery, clock.wall())) return
    due.length = 0
    // It was accepted for later: it joins its lane again, at its old place.
    await requeue(this.context, active, again(delivery, delivery.seq, false), { isAccepted: true })
  }
}

/** What is written of a delivery is not what it is. */
export function isChanging(): RelayError {
  return new RelayError('conflict', 'this delivery is changing: try again later')
}

/**
 * Has a delivery sent again that has ended: it takes a place in its lane, and leaves from there once that is written.
 *
 * @throws RelayError `conflict`, `store-down`, or why its lane does not take it; then it is as it was before
 */
export async function requeue(
  { deliveries, lanes }: Pick<RecheckContext, 'deliveries' | 'lanes'>, ended: Active, change: Change, waiting: Waiting,
): Promise<Active> {
  const before = { ...ended.delivery }
  // Until its end is written, its lane and the journal are not done with it.
  if (deliveries.get(before.id)) throw isChanging()
  const active = deliveries.revive(ended, change)
  try {
    lanes.enter(active, waiting)
    await deliveries.saveOnce(active)
  } catch (error) {
    lanes.leave(active.delivery)
    deliveries.undo(active, before)
    throw error
  }
  lanes.saved(active)
  return active
}
