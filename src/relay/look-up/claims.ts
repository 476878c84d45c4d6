import { LRUCache } from 'lru-cache'
import { day } from '../../lib/time'
import type { HistoryPage, Receipt, Report } from '../../platform/port'
import type { Clock } from '../clock'
import type { Delivery, Open, Results } from '../delivery/delivery'
import type { Finding } from '../options'

/** A call for a platform message whose ID is not known yet. */
export interface OpenCall {
  /** The name of its queue. */
  readonly chat: string
  /** The delivery and the item, as `nameOf` writes them. */
  readonly name: string
  readonly likeness: string
  /** When its first call was made, on the monotonic clock. */
  readonly begunAt: number
  /** The difference of the machine's clock and the monotonic one then; absent for a call of an earlier process. */
  readonly offset?: number
  /** When the platform is assumed not to carry out the call any more, on the monotonic clock. */
  settledAt: number
  /** The answer, if it came late or has no ID. */
  receipt?: Receipt
  /** The ID under which a look-up found the message. */
  foundAs?: string
}

interface Claim {
  /** The name of the message that was called for. */
  readonly by: string
  /** Since when the message is known to be in the chat, on the monotonic clock. */
  readonly since: number
}

/** The known messages of a chat, the oldest first. */
interface Chat {
  /** The IDs claimed by deliveries. */
  readonly ids: Map<string, Claim>
  /** The calls for messages without an ID. */
  readonly calls: Map<string, OpenCall>
}

/** The assumed difference between the clocks of the machine and the platform, if no message shows it, in milliseconds. */
const tolerance = 10_000
/** The least change of the machine's clock that counts as a step, in milliseconds. */
const leastStep = 2_000
/** The most chats, IDs per chat, and calls per chat. A page of a history shows at most 500 IDs (`depths`). Calls are kept for a day. */
const most = { chats: 5_000, ids: 500, calls: 1_000 }

/** Which messages of each chat are known, so that a look-up takes none of them for another. It survives a reload of the plugin. */
export class Claims {
  /** By `maxSize`, because a cache with `max` reserves memory for that many entries at once. */
  private readonly chats = new LRUCache<string, Chat>({ maxSize: most.chats, sizeCalculation: () => 1 })

  constructor(private readonly clock: Clock) {}

  /** Starts a call: from now on the message may arrive. */
  begin(chat: string, name: string, likeness: string, settle: number): OpenCall {
    const now = this.clock.now()
    const offset = this.clock.wall() - now
    const call = this.called(chat, name) ?? this.add({ chat, name, likeness, begunAt: now, offset, settledAt: now })
    call.settledAt = now + settle
    return call
  }

  /** Finds a call, or restores one of an earlier process: its settling time counts from now, its age from the machine's clock. */
  restore(chat: string, name: string, { likeness, since, settle }: Pick<Open, 'likeness' | 'since' | 'settle'>): OpenCall {
    const now = this.clock.now()
    const begunAt = now - Math.max(this.clock.wall() - since, 0)
    return this.called(chat, name) ?? this.add({ chat, name, likeness, begunAt, settledAt: now + settle })
  }

  /** Learns from earlier deliveries: claims their IDs, and remembers those of the last day without an ID. */
  learn(chat: string, deliveries: readonly Delivery[]): void {
    const now = this.clock.now()
    const { ids } = this.at(chat)
    const own = [...ids]
    ids.clear()
    // The message of a member belongs to its digest.
    const senders = deliveries.filter(({ flow: { digest } }) => !digest)
    // The oldest first, and this process's own last, because the oldest are dropped first.
    for (const { id, results, updatedAt } of senders.sort((a, b) => a.seq - b.seq)) {
      const age = Math.max(this.clock.wall() - updatedAt, 0)
      for (const [index, result] of results.entries()) {
        if (!result?.success) continue
        const name = nameOf(id, [index])
        for (const messageId of result.messageIds) this.claim(chat, messageId, name)
        if (result.likeness === undefined || age > day || this.called(chat, name)) continue
        this.add({ chat, name, likeness: result.likeness, begunAt: now - age, settledAt: now, receipt: { messageIds: [] } })
      }
    }
    for (const [id, { by, since }] of own) this.claim(chat, id, by, since)
  }

  /**
   * The platform accepted a message. The ID in its answer overrides that of a look-up.
   *
   * @param isKept whether to keep the answer, because the next relay may not find it in the file
   */
  answered(chat: string, name: string, receipt: Receipt, isKept = false): void {
    const { ids, calls } = this.at(chat)
    const call = calls.get(name)
    const { foundAs = '' } = call ?? {}
    const isNamed = receipt.messageIds.length > 0
    if (isNamed && !receipt.messageIds.includes(foundAs)) ids.delete(foundAs)
    for (const id of receipt.messageIds) this.claim(chat, id, name)
    if (call) call.receipt = receipt
    if (isNamed && !isKept) calls.delete(name)
  }

  /** The end of a delivery is in the file: drops its calls with known IDs. */
  written(chat: string, id: string, results: Results): void {
    for (const [index, result] of results.entries()) {
      const call = this.called(chat, nameOf(id, [index]))
      if (result?.success && call?.receipt?.messageIds.length) this.drop(chat, call.name)
    }
  }

  /** Whether a message was sent to a chat. */
  knows(chat: string): boolean {
    return this.chats.has(chat)
  }

  /** Drops a call whose message has not arrived. */
  drop(chat: string, name: string): void {
    this.at(chat).calls.delete(name)
  }

  /** The time until all calls with this likeness have settled, in milliseconds. */
  settling(chat: string, likeness: string): number {
    const open = this.unnamed(chat, likeness).filter(({ receipt }) => !receipt)
    return Math.max(0, ...open.map(({ settledAt }) => settledAt - this.clock.now()))
  }

  /**
   * Looks for a message among the platform's reports and on a page of its history. A message that is found is claimed; its call is kept
   * for a late answer.
   *
   * With n equal messages without an ID, one is found only if there are at least n unclaimed equal entries; with fewer, none is absent.
   * The window begins with the anchor. Without one it begins at the time of the call by the machine's clock, less a tolerance, and an equal
   * entry before the window makes the result inconclusive.
   */
  find(call: OpenCall, reports: readonly Report[] = [], page?: HistoryPage): Finding['kind'] {
    // A look-up that was given up does not claim the message of a later call.
    if (this.called(call.chat, call.name) !== call) return 'inconclusive'
    const { ids } = this.at(call.chat)
    // The end of this delivery may have been lost with the folder, after this process had noted its message.
    const isFree = ({ id }: { id: string }): boolean => (ids.get(id)?.by ?? call.name) === call.name
    const isStepped = this.isStepped(call)
    const anchor = this.anchor(call, page)
    const isAnchored = anchor > -Infinity
    const start = isAnchored ? anchor : this.clock.wall() - (this.clock.now() - call.begunAt) - tolerance
    const own = page && !isStepped ? page.own : []
    const equal = own.filter(entry => entry.isEqual && isFree(entry)).sort((a, b) => a.time - b.time)
    const free = equal.filter(({ isSeen }) => isSeen)
    const heard = reports.filter(report => report.heardAt >= call.begunAt && isFree(report))
    // The oldest first. Reports that are not on the page are newer, or have no place.
    const within = new Set([...free.filter(({ time }) => time >= start), ...heard].map(({ id }) => id))
    const [oldest] = within
    if (oldest !== undefined && within.size >= this.unnamed(call.chat, call.likeness).length) {
      this.claim(call.chat, oldest, call.name)
      call.foundAs = oldest
      return 'found'
    }
    if (!page) return 'no-history'
    if (within.size > 0) return 'inconclusive'
    if (equal.some(({ isSeen, time }) => !isSeen && time >= start)) return 'local'
    if (isStepped || !page.isReadable) return 'inconclusive'
    const isComplete = isAnchored || (page.oldest < start && free.length === 0)
    return isComplete ? 'absent' : 'inconclusive'
  }

  /** The time of the newest message on a page that is known from before a call; `-Infinity` without one. A longer page shows no newer. */
  anchor(call: OpenCall, page: HistoryPage | undefined): number {
    if (!page || this.isStepped(call)) return -Infinity
    const { ids } = this.at(call.chat)
    const before = page.own.filter(({ id }) => (ids.get(id)?.since ?? Infinity) < call.begunAt)
    return Math.max(...before.map(({ time }) => time))
  }

  /** Whether the machine's clock was set, or the machine slept, since a call was made. */
  isStepped({ offset }: OpenCall): boolean {
    return offset !== undefined && Math.abs(this.clock.wall() - this.clock.now() - offset) > leastStep
  }

  /** The calls with this likeness whose messages have no ID yet. */
  private unnamed(chat: string, likeness: string): OpenCall[] {
    const calls = [...this.at(chat).calls.values()]
    return calls.filter(call => call.likeness === likeness && call.foundAs === undefined && !call.receipt?.messageIds.length)
  }

  private called(chat: string, name: string): OpenCall | undefined {
    return this.at(chat).calls.get(name)
  }

  private claim(chat: string, id: string, by: string, since = this.clock.now()): void {
    const { ids } = this.at(chat)
    const earlier = ids.get(id)
    ids.set(id, earlier && earlier.since <= since ? earlier : { by, since })
    const [oldest = ''] = ids.size > most.ids ? ids.keys() : []
    ids.delete(oldest)
  }

  private add(call: OpenCall): OpenCall {
    const { calls } = this.at(call.chat)
    calls.set(call.name, call)
    const old = this.clock.now() - day
    for (const [name, { settledAt }] of calls) {
      if (settledAt >= old && calls.size <= most.calls) break
      calls.delete(name)
    }
    return call
  }

  private at(name: string): Chat {
    const chat = this.chats.get(name) ?? { ids: new Map(), calls: new Map() }
    this.chats.set(name, chat)
    return chat
  }
}

/** The internal name of a platform message of a delivery. */
export function nameOf(id: string, indices: readonly number[]): string {
  return `${id} ${indices[0] ?? 0}`
}
