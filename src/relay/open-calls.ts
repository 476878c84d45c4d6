import { createHash } from 'node:crypto'
import { RelayError } from '../errors'
import type { ParsedItem } from '../message/model'
import { writeItems } from '../message/parse'
import { doubtOf, type Delivery, type InDoubt } from './delivery'
import type { PreparedItem } from './media'
import { queueOf } from './store'

/** How fast a platform is reckoned to carry out what it got, in bytes a millisecond: NapCat itself reckons with 256 KiB a second. */
const bytesPerMs = 256 * 1024 / 1000
/** How long anything with a file, a video or a link of unknown size may be under way, in milliseconds. */
const longest = 10 * 60_000
/** How many messages are remembered before those that have settled are forgotten. */
const remembered = 10_000

/** How long a call with these items may still be carried out when it got no clear answer, in milliseconds. */
export function settlingTime(items: readonly Pick<PreparedItem, 'type' | 'bytes'>[], least: number): number {
  let bytes = 0
  for (const item of items) {
    if (item.type === 'file' || item.type === 'video' || item.bytes === undefined) return longest
    bytes += item.bytes
  }
  return Math.min(least + bytes / bytesPerMs, Math.max(longest, least))
}

/**
 * The calls that got no clear answer and may still be carried out: until their settling time is over nobody calls again. Equal
 * messages to one target cannot be told apart, so they share the latest of their times. All of it is by the monotonic clock, and for a call
 * of an earlier process the time counts anew from the start of this one.
 */
export class OpenCalls {
  private readonly until = new Map<string, number>()
  private readonly started: number

  constructor(private readonly now: () => number = () => performance.now()) {
    this.started = now()
  }

  /** A call with these items that left at this time has got no clear answer. */
  note(queue: string, items: readonly ParsedItem[], leftAt: number, settle: number): void {
    const until = leftAt + settle
    if (this.until.size >= remembered) for (const [key, time] of this.until) if (time <= this.now()) this.until.delete(key)
    for (const key of keysOf(queue, items)) this.until.set(key, Math.max(this.until.get(key) ?? 0, until))
  }

  /** What another process has left in doubt of a delivery of these items counts as if its calls had left now. */
  find(delivery: Delivery, items: readonly ParsedItem[]): void {
    const inDoubt = doubtOf(delivery, delivery.results) ?? delivery.inDoubt
    if (!inDoubt) return
    const doubted = items.filter((_, index) => inDoubt.indices.includes(index))
    this.note(queueOf(delivery.bot, delivery.target), doubted, this.now(), inDoubt.settle)
  }

  /** How long the items in doubt may still be carried out, in milliseconds; 0 when they have settled. */
  left(queue: string, items: readonly ParsedItem[], { indices, settle }: Pick<InDoubt, 'indices' | 'settle'>): number {
    const doubted = items.filter((_, index) => indices.includes(index))
    const times = keysOf(queue, doubted).map(key => this.until.get(key) ?? this.started + settle)
    return Math.max(...times.map(time => time - this.now()), 0)
  }

  /** The same for what a delivery of these items has in doubt. */
  leftOf(delivery: Delivery, items: readonly ParsedItem[]): number {
    const inDoubt = doubtOf(delivery, delivery.results)
    return inDoubt ? this.left(queueOf(delivery.bot, delivery.target), items, inDoubt) : 0
  }
}

/** Whether any of these is more than a text or a picture: what would be sent twice is too much to risk it. */
export function isHeavy(items: readonly ParsedItem[]): boolean {
  return items.some(item => !(item instanceof RelayError) && (item.type === 'file' || item.type === 'video'))
}

function keysOf(queue: string, items: readonly ParsedItem[]): string[] {
  return writeItems(items).map(item => createHash('sha256').update(`${queue} ${JSON.stringify(item)}`).digest('base64url'))
}
