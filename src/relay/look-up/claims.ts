import { LRUCache } from 'lru-cache'
import type { Target } from '../../message/model'
import { SendError, type Account, type HistoryPage, type Message, type Receipt, type Report } from '../../platform/port'
import type { Clock } from '../clock'
import { isRepeatable, type MessageKind } from '../send/compose'
import type { Delivery, Open, Results } from '../delivery/delivery'
import type { DeliveriesTable } from '../delivery/deliveries-table'
import type { Limits } from '../queue/limits'
import type { LookUp, RunningOptions } from '../options'

/** A call for a platform message whose ID is not known yet. */
export interface OpenCall {
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

/** The conclusion of a look-up for a message without an answer. */
export type Verdict
  = | { kind: 'found', id: string }
    /** Anchored: shown by an own message on the page from before the call. Otherwise shown by the clocks. */
    | { kind: 'absent', isAnchored: boolean }
    | { kind: 'inconclusive' }
    /** The platform's client has the message, and its server does not. */
    | { kind: 'local' }
    | { kind: 'no-history' }

/** The assumed difference between the clocks of the machine and the platform, if no message shows it, in milliseconds. */
const tolerance = 10_000
/** The least change of the machine's clock that counts as a step, in milliseconds. */
const leastStep = 2_000
/** How long a message without an ID is remembered, in milliseconds. */
const day = 24 * 60 * 60 * 1000
/** The most chats, message IDs per chat, and messages without an ID per chat. A page of a history shows at most 500 IDs (`depths`). */
const most = { chats: 5_000, claims: 500, calls: 1_000 }
/** By `maxSize`, because a cache with `max` reserves memory for that many entries at once. */
const sizeOfCache = { maxSize: most.chats, sizeCalculation: () => 1 }

/**
 * The known messages of each chat: the IDs claimed by deliveries, and the calls for messages without an ID. Chats have the names of
 * their queues. They survive a reload of the plugin.
 */
export class Chats {
  /** IDs of messages, with the time on the monotonic clock since which each is known to be in the chat. */
  private readonly claims = new LRUCache<string, Map<string, number>>(sizeOfCache)
  private readonly calls = new LRUCache<string, Map<string, OpenCall>>(sizeOfCache)

  constructor(private readonly clock: Clock) {}

  /** Starts a call: from now on the message may arrive. */
  begin(chat: string, name: string, likeness: string, settle: number): OpenCall {
    const now = this.clock.now()
    const call = this.find(chat, name) ?? this.add(chat, { name, likeness, begunAt: now, offset: this.clock.wall() - now, settledAt: now })
    call.settledAt = now + settle
    return call
  }

  /** Finds a call, or restores one of an earlier process: its settling time counts from now, its age from the machine's clock. */
  restore(chat: string, name: string, { likeness, since, settle }: Pick<Open, 'likeness' | 'since' | 'settle'>): OpenCall {
    const now = this.clock.now()
    const begunAt = now - Math.max(this.clock.wall() - since, 0)
    return this.find(chat, name) ?? this.add(chat, { name, likeness, begunAt, settledAt: now + settle })
  }

  /** Learns from earlier deliveries: claims their IDs, and remembers those of the last day without an ID. */
  learn(chat: string, deliveries: readonly Delivery[]): void {
    const now = this.clock.now()
    const own = this.claims.get(chat) ?? []
    this.claims.delete(chat)
    // The oldest first, and this process's own last, because the oldest are dropped first.
    for (const { id, results, updatedAt, flow: { digest } } of [...deliveries].sort((a, b) => a.seq - b.seq)) {
      // The message belongs to the digest.
      if (digest) continue
      for (const [index, result] of results.entries()) {
        if (!result?.success) continue
        for (const messageId of result.messageIds) this.claim(chat, messageId)
        const age = Math.max(this.clock.wall() - updatedAt, 0)
        const name = nameOf(id, [index])
        if (result.likeness === undefined || age > day || this.find(chat, name)) continue
        this.add(chat, { name, likeness: result.likeness, begunAt: now - age, settledAt: now, receipt: { messageIds: [] } })
      }
    }
    for (const [id, since] of own) this.claim(chat, id, since)
  }

  /**
   * The platform accepted a message. The ID in its answer overrides that of a look-up.
   *
   * @param isKept whether to keep the answer, because the next relay may not find it in the file
   */
  answered(chat: string, name: string, receipt: Receipt, isKept = false): void {
    const call = this.find(chat, name)
    const { foundAs } = call ?? {}
    const isOther = foundAs !== undefined && receipt.messageIds.length > 0 && !receipt.messageIds.includes(foundAs)
    if (isOther) this.claims.get(chat)?.delete(foundAs)
    for (const id of receipt.messageIds) this.claim(chat, id)
    if (!call) return
    call.receipt = receipt
    if (receipt.messageIds.length > 0 && !isKept) this.drop(chat, name)
  }

  /** The end of a delivery is in the file: drops its calls with known IDs. */
  written(chat: string, id: string, results: Results): void {
    for (const [index, result] of results.entries()) {
      const name = nameOf(id, [index])
      if (result?.success && this.find(chat, name)?.receipt?.messageIds.length) this.drop(chat, name)
    }
  }

  /** Whether any message of a chat is known. */
  knows(chat: string): boolean {
    return this.claims.has(chat) || this.calls.has(chat)
  }

  /** A look-up found a message under this ID. The call is kept for a late answer. */
  found(chat: string, call: OpenCall, id: string): void {
    this.claim(chat, id)
    call.foundAs = id
  }

  /** Drops a call whose message has not arrived. */
  drop(chat: string, name: string): void {
    const calls = this.calls.get(chat)
    if (calls?.delete(name) && calls.size === 0) this.calls.delete(chat)
  }

  /** The time until all calls with this likeness have settled, in milliseconds. */
  openFor(chat: string, likeness: string): number {
    let last = 0
    for (const call of this.open(chat, likeness)) if (!call.receipt) last = Math.max(last, call.settledAt)
    return Math.max(last - this.clock.now(), 0)
  }

  /**
   * Judges whether a message is in the chat, by the platform's reports and a page of its history.
   *
   * With n equal messages without an ID, one is found only if there are at least n unclaimed equal entries; with fewer, none is absent.
   * The window begins with the newest known message from before the call. Without such an anchor it begins at the time of the call by the
   * machine's clock, less a tolerance, and an equal entry before the window makes the result inconclusive.
   */
  judge(chat: string, call: OpenCall, reports: readonly Report[], page?: HistoryPage): Verdict {
    // A look-up that was given up does not claim the message of a later call.
    if (this.find(chat, call.name) !== call) return { kind: 'inconclusive' }
    const now = this.clock.now()
    const wall = this.clock.wall()
    const claims = this.claims.get(chat)
    const isFree = ({ id }: { id: string }): boolean => !claims?.has(id)
    const isStepped = this.isStepped(call)
    const own = isStepped ? [] : page?.own ?? []
    const before = own.filter(({ id }) => (claims?.get(id) ?? Infinity) < call.begunAt)
    const isAnchored = before.length > 0
    const start = isAnchored ? Math.max(...before.map(({ time }) => time)) : wall - (now - call.begunAt) - tolerance
    const equal = own.filter(entry => entry.isEqual && isFree(entry)).sort((a, b) => a.time - b.time)
    const free = equal.filter(({ isSeen }) => isSeen)
    const heard = reports.filter(report => report.heardAt >= call.begunAt && isFree(report))
    // The oldest first. Reports that are not on the page are newer, or have no place.
    const within = new Set([...free.filter(({ time }) => time >= start), ...heard].map(({ id }) => id))
    const [oldest] = within
    if (oldest !== undefined && within.size >= this.open(chat, call.likeness).length) return { kind: 'found', id: oldest }
    if (within.size === 0 && equal.some(({ isSeen, time }) => !isSeen && time >= start)) return { kind: 'local' }
    if (within.size > 0 || !page?.isReadable || isStepped) return { kind: 'inconclusive' }
    const isComplete = isAnchored || (page.oldest < start && free.length === 0)
    return isComplete ? { kind: 'absent', isAnchored } : { kind: 'inconclusive' }
  }

  /** Whether the machine's clock was set, or the machine slept, since a call was made. */
  isStepped({ offset }: OpenCall): boolean {
    return offset !== undefined && Math.abs(this.clock.wall() - this.clock.now() - offset) > leastStep
  }

  /** The calls with this likeness whose messages have no ID yet. */
  private open(chat: string, likeness: string): OpenCall[] {
    const calls = [...this.calls.get(chat)?.values() ?? []]
    return calls.filter(call => call.likeness === likeness && call.foundAs === undefined && !call.receipt?.messageIds.length)
  }

  private find(chat: string, name: string): OpenCall | undefined {
    return this.calls.get(chat)?.get(name)
  }

  private claim(chat: string, id: string, since = this.clock.now()): void {
    let claims = this.claims.get(chat)
    if (!claims) this.claims.set(chat, claims = new Map())
    claims.set(id, Math.min(claims.get(id) ?? Infinity, since))
    const [oldest] = claims.size > most.claims ? claims.keys() : []
    if (oldest !== undefined) claims.delete(oldest)
  }

  private add(chat: string, call: OpenCall): OpenCall {
    const calls = this.calls.get(chat) ?? new Map<string, OpenCall>()
    this.calls.set(chat, calls)
    calls.set(call.name, call)
    const old = this.clock.now() - day
    for (const [name, { settledAt }] of calls) {
      if (settledAt >= old && calls.size <= most.calls) break
      calls.delete(name)
    }
    return call
  }
}

/** The internal name of a platform message of a delivery. */
export function nameOf(id: string, indices: readonly number[]): string {
  return `${id} ${indices[0] ?? 0}`
}

/** How many messages of the history are asked for: first as many as usually suffice, then more if these do not reach back far enough. */
const depths = [50, 500]
/** How many earlier deliveries of a chat are read from the file: as many as the history can show, and as many failures. */
const mostLearned = 1_000

/** A platform message to look for. */
export interface Wanted {
  account: Account
  target: Target
  message: Message
  /** The name of its queue. */
  chat: string
  call: OpenCall
  kind: MessageKind
}

/** The result of a look-up. */
export interface Finding {
  kind: LookUp
  /** The IDs of the message, if it was found; none for a file, whose ID in the history is not the one that callers know. */
  messageIds: readonly string[]
  /** Whether the message is not there, and cannot arrive any more. */
  isAbsent: boolean
  /**
   * Until when the message may be sent again, on the monotonic clock. `Infinity` if it is absent, or if the look-up cannot tell and the
   * settings take that risk. Otherwise as long as the platform recognizes a repeated call.
   */
  repeatableUntil: number
}

/** Asks platforms whether messages without an answer have arrived. */
export class LookUps {
  private readonly learned = new Set<string>()

  constructor(private readonly context: RunningOptions & { chats: Chats, limits: Limits, table: DeliveriesTable }) {}

  /** Checks the platform's reports, then its history, once. A message that is found is claimed. */
  async look(wanted: Wanted): Promise<Finding> {
    const { chats, observer } = this.context
    const { account, chat, call, kind, message: { idempotentFor = 0 } } = wanted
    const known = knownOf(wanted)
    if (known) return known
    const hasSettled = chats.openFor(chat, call.likeness) === 0
    const verdict: Verdict | { kind: 'silent' } = await this.search(wanted).catch(() => ({ kind: 'silent' }))
    // The answer may have come meanwhile, or another look-up may have found the message.
    if (verdict.kind === 'found' && !knownOf(wanted)) chats.found(chat, call, verdict.id)
    const found = knownOf(wanted)
    observer.lookedUp(found ? 'found' : verdict.kind)
    if (found) return found
    const isRisked = this.isRisked(account) && isRepeatable(kind)
    const isAbsent = verdict.kind === 'absent' && hasSettled
    const isGuess = isRisked && (verdict.kind === 'no-history' || (verdict.kind === 'inconclusive' && hasSettled))
    const harmlessUntil = chats.isStepped(call) ? -Infinity : call.begunAt + idempotentFor
    return { kind: verdict.kind, messageIds: [], isAbsent, repeatableUntil: isAbsent || isGuess ? Infinity : harmlessUntil }
  }

  private async search(wanted: Wanted): Promise<Verdict> {
    const { chats } = this.context
    const { account, target, message, chat, call } = wanted
    this.learn(account, target, chat)
    let last = chats.judge(chat, call, message.reports?.() ?? [])
    for (const depth of depths) {
      if (last.kind === 'found' || (last.kind === 'absent' && last.isAnchored)) break
      const page = await this.page(wanted, depth)
      last = chats.judge(chat, call, message.reports?.() ?? [], page)
      if (!page && last.kind !== 'found') return { kind: 'no-history' }
    }
    return last
  }

  /** A page of the history. Fails without a call during a rate limit. @throws SendError */
  private async page({ chat, message }: Wanted, depth: number): Promise<HistoryPage | undefined> {
    const { limits } = this.context
    if (limits.rest(chat) > 0) throw new SendError('unsent', undefined, { causeId: 'rate-limited' })
    try {
      return await message.history?.(depth)
    } catch (error) {
      if (error instanceof SendError && error.limit) limits.note(chat, error.limit)
      throw error
    }
  }

  /** Whether the settings have an account send a text again when no look-up can tell whether it arrived. */
  private isRisked({ platform, retriesUnanswered: usual }: Account): boolean {
    const { retryUnanswered: asked } = this.context.policy
    return typeof asked === 'boolean' ? asked : asked[platform] ?? usual
  }

  /** Reads once what earlier processes have sent into a chat. @throws RelayError */
  private learn({ sid }: Account, target: Target, chat: string): void {
    const { chats, store, table } = this.context
    // Without a store, only what this process has sent is known.
    if (this.learned.has(chat) || store.failure) return
    chats.learn(chat, table.lastTo(sid, target, mostLearned))
    this.learned.add(chat)
  }
}

/** The result of a look-up that needs no question to the platform. */
function knownOf({ call: { receipt, foundAs }, kind }: Wanted): Finding | undefined {
  const ids = receipt?.messageIds ?? (foundAs === undefined ? undefined : kind === 'file' ? [] : [foundAs])
  if (ids) return { kind: 'found', messageIds: ids, isAbsent: false, repeatableUntil: -Infinity }
}
