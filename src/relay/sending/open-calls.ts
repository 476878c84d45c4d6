import { RelayError } from '../../errors'
import type { Item, ParsedItem } from '../../message/model'
import { doubtOf, type Delivery, type InDoubt } from '../delivery/delivery'
import { digestItem } from '../delivery/fingerprint'
import { queueOf } from '../store/store'
import type { PreparedItem } from './media'

/** How fast a platform is reckoned to carry out what it got, in bytes a millisecond: NapCat itself reckons with 256 KiB a second. */
const bytesPerMs = 256 * 1024 / 1000
/** How long anything with a file, a video or a link of unknown size may be under way at least, in milliseconds. */
const longest = 10 * 60_000
/** How many messages are remembered before those that have settled are forgotten. */
const remembered = 10_000

/** Files, videos and voice messages, which a platform converts before it sends them. */
const heavyTypes: ReadonlySet<Item['type']> = new Set(['file', 'video', 'audio'])

/** How long a call with these items may still be carried out when it got no clear answer, in milliseconds. */
export function settlingTime(items: readonly Pick<PreparedItem, 'type' | 'bytes'>[], least: number): number {
  let bytes = 0
  for (const item of items) {
    if (heavyTypes.has(item.type) || item.bytes === undefined) return Math.max(longest, least)
    bytes += item.bytes
  }
  return Math.min(least + bytes / bytesPerMs, Math.max(longest, least))
}

/** A delivery, as far as its open calls go by it. */
type Called = Pick<Delivery, 'id' | 'bot' | 'target'>

/**
 * The calls that got no clear answer and may still be carried out: until their settling time is over nobody calls again. Each is known by
 * its delivery, because what is sent again under a key may name an equal file by another ID. Equal messages to one target cannot be told
 * apart, so they share the latest of their times. All of it is by the monotonic clock, and for a call of an earlier process the time
 * counts anew from the start of this one.
 */
export class OpenCalls {
  private readonly until = new Map<string, number>()
  private readonly started: number

  constructor(private readonly now: () => number = () => performance.now()) {
    this.started = now()
  }

  /** A call with some of the items of a delivery that left at this time has got no clear answer. */
  note(delivery: Called, items: readonly ParsedItem[], { indices, settle }: Pick<InDoubt, 'indices' | 'settle'>, leftAt: number): void {
    const until = leftAt + settle
    if (this.until.size >= remembered) for (const [key, time] of this.until) if (time <= this.now()) this.until.delete(key)
    for (const index of indices) {
      const { own, equal } = keysOf(delivery, items, index)
      for (const key of [own, equal]) this.until.set(key, Math.max(this.until.get(key) ?? 0, until))
    }
  }

  /** What another process has left in doubt of a delivery of these items counts as if its calls had left now. */
  find(delivery: Delivery, items: readonly ParsedItem[]): void {
    const inDoubt = doubtOf(delivery, delivery.results) ?? delivery.inDoubt
    if (inDoubt) this.note(delivery, items, inDoubt, this.now())
  }

  /**
   * What another relay has left in doubt, as far as nothing is known of it here, counts from when it was recorded.
   *
   * @param age how long ago that was, in milliseconds
   */
  learn(delivery: Delivery, items: readonly ParsedItem[], age: number): void {
    const inDoubt = doubtOf(delivery, delivery.results)
    if (!inDoubt) return
    const indices = inDoubt.indices.filter(index => !this.until.has(keysOf(delivery, items, index).own))
    this.note(delivery, items, { ...inDoubt, indices }, Math.max(this.now() - age, this.started))
  }

  /** How long the items in doubt may still be carried out, in milliseconds; 0 when they have settled. */
  left(delivery: Called, items: readonly ParsedItem[], { indices, settle }: Pick<InDoubt, 'indices' | 'settle'>): number {
    const times = indices.map(index => {
      const { own, equal } = keysOf(delivery, items, index)
      return Math.max(this.until.get(own) ?? this.started + settle, this.until.get(equal) ?? 0)
    })
    return Math.max(...times.map(time => time - this.now()), 0)
  }

  /** The same for what a delivery of these items has in doubt. */
  leftOf(delivery: Delivery, items: readonly ParsedItem[]): number {
    const inDoubt = doubtOf(delivery, delivery.results)
    return inDoubt ? this.left(delivery, items, inDoubt) : 0
  }
}

/** Whether this is more than words or a picture: what would be sent twice is too much to risk it. */
export function isHeavy(item: RelayError | Pick<Item, 'type'>): boolean {
  return !(item instanceof RelayError) && heavyTypes.has(item.type)
}

/** What a call with one of the items is known by: its delivery, and what is said to whom. */
function keysOf({ id, bot, target }: Called, items: readonly ParsedItem[], index: number): { own: string, equal: string } {
  const item = items[index]
  return { own: `${id} ${index}`, equal: `${queueOf(bot, target)} ${item ? digestItem(item) : ''}` }
}
