import { RelayError } from '../../errors'
import { every, inTime } from '../clock'
import type { Entry } from '../delivery/deliveries'
import { isOverdue, isUnfinished, postpone, type Change, type Delivery } from '../delivery/delivery'
import { nameOf } from '../look-up/claims'
import { queueOf, type Waiting } from '../queue/queue'
import type { EntryContext } from '../queue/queues'
import { arrived } from '../send/arrived'
import { openMessage } from '../send/send'
import { say } from '../../texts/text'

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
  private readonly due = new WeakMap<Entry, number[]>()
  /** The bots whose platforms are being asked. A silent one does not block the others. */
  private readonly asked = new Set<string>()
  readonly end: () => void

  constructor(private readonly context: EntryContext) {
    this.end = every(context.clock, tickInterval, () => this.lookAtDue())
  }

  /** The time until the open messages of a delivery have settled, in milliseconds. */
  settling(delivery: Delivery): number {
    const queue = queueOf(delivery)
    return Math.max(0, ...delivery.open.map(({ likeness }) => this.context.claims.settling(queue, likeness)))
  }

  /**
   * Looks up the open messages of a delivery once, for no longer than the time of a call. Messages found after that are still recorded.
   *
   * @returns whether the messages that are still open may be sent again
   */
  async look(entry: Entry): Promise<boolean> {
    const { clock, policy: { timeout }, stop } = this.context
    return await inTime(clock, this.ask(entry), timeout, stop) ?? false
  }

  private async ask(entry: Entry): Promise<boolean> {
    const { clock, port, claims, lookUps } = this.context
    const { delivery } = entry
    const account = port.find(delivery.bot)
    // Members of a digest are looked up by the digest.
    if (!account?.isOnline || delivery.flow.digest) return false
    let mayRepeat = true
    for (const open of delivery.open) {
      const call = claims.restore(queueOf(delivery), nameOf(delivery.id, open.indices), open)
      const message = await openMessage(this.context, entry, open, account)
      const finding = await lookUps.look({ account, target: delivery.target, call, ...message })
      if (finding.kind === 'found') await arrived(this.context, entry, account, open, finding)
      else mayRepeat &&= finding.repeatableUntil > clock.now()
    }
    return mayRepeat
  }

  private lookAtDue(): void {
    const { clock, deliveries } = this.context
    for (const entry of deliveries.unanswered.values()) {
      const { bot } = entry.delivery
      const due = this.due.get(entry) ?? this.plan(entry)
      this.due.set(entry, due)
      const [next] = due
      if (next === undefined || next > clock.now() || this.asked.has(bot)) continue
      due.shift()
      this.asked.add(bot)
      void this.lookAgain(entry, due)
        .catch(() => due.unshift(clock.now() + offlineDelay))
        .finally(() => this.asked.delete(bot))
    }
  }

  private plan({ delivery }: Entry): number[] {
    const now = this.context.clock.now()
    return [...looks, this.settling(delivery) + margin].map(time => now + time).sort((a, b) => a - b)
  }

  private async lookAgain(entry: Entry, due: number[]): Promise<void> {
    const { clock, port, deliveries, limits, policy, stop } = this.context
    const { delivery } = entry
    const canAsk = port.find(delivery.bot)?.isOnline && limits.rest(queueOf(delivery)) === 0
    // An unanswered delivery in memory is one whose end is not written yet.
    if (!canAsk || deliveries.get(delivery.id)) throw new RelayError('unsent')
    const mayRepeat = await this.look(entry)
    const calls = Math.max(0, ...delivery.open.map(({ calls }) => calls))
    if (!mayRepeat || delivery.state !== 'unanswered' || stop.aborted) return
    if (!delivery.deferred || calls > policy.retries || isOverdue(delivery, clock.wall())) return
    due.length = 0
    // A deferred delivery joins its queue again, at its old place. What was refused stays so.
    requeue(this.context, entry, postpone(delivery, delivery.results), { isAccepted: true })
  }
}

/**
 * Queues an ended delivery again.
 *
 * @throws RelayError `conflict`, `store-down`, `storage-full`, or the refusal of its queue; the delivery is then unchanged
 */
export function requeue({ deliveries, queues }: EntryContext, ended: Entry, change: Change, waiting: Waiting): Entry {
  if (isUnfinished(ended.delivery.state)) throw new RelayError('conflict', say('under-way-again'))
  queues.demandRoom({ ...ended.delivery, ...change }, waiting)
  const entry = deliveries.revive(ended, change)
  queues.enter(entry, waiting)
  return entry
}
