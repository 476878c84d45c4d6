import { RelayError } from '../errors'
import type { Item, ParsedItem } from '../message/model'
import { SendError, type Account, type LoadedItem } from '../platform/port'
import { attempt, toSent, type AttemptContext, type Sending } from './attempt'
import { compose, divide, maxWeight, prepareItem, type MediaOptions, type PreparedItem } from './compose'
import type { Active, Files } from './deliveries'
import { isUnsent, type ItemResult, type Open, type Results } from './delivery'
import { NotOwner } from './journal'

/** How fast a platform is taken to carry out what it got, in bytes a millisecond: NapCat itself reckons with 256 KiB a second. */
const bytesPerMs = 256 * 1024 / 1000
/** The settling time of anything with a file, a video, a voice message or a link of unknown size, in milliseconds. */
const longest = 10 * 60_000

/** Files, videos and voice messages: platforms convert them before they send them. */
const heavyTypes: ReadonlySet<Item['type']> = new Set(['file', 'video', 'audio'])

/** What a send needs of the rest of the core. */
export interface SendContext extends AttemptContext {
  media: MediaOptions
  files: Pick<Files, 'hold'>
}

/** Keeps the least time from one platform message of a lane to the next. */
export interface Pace {
  /** Resolves when the next message may leave; `undefined` when it may at once. */
  ready: () => Promise<void> | undefined
  /** A message has left. */
  sent: () => void
}

/** What a send has shown. */
export interface SendEnd {
  /** Whether something could not leave, so that a deferred delivery stays in its lane. */
  isPostponed: boolean
  /** What it says about the target: `bad` when it is muted, unknown or does not answer. */
  verdict: 'good' | 'bad' | 'none'
  /** What the last failure said. */
  reason?: string
}

/** An item that can be sent, with its place in the request. */
type Ready = PreparedItem & { index: number }

/** A platform message that is to be sent. */
interface Outgoing {
  items: readonly Ready[]
  retries: number
  earlier?: Open
}

/**
 * Sends what is left of a delivery whose turn has come, combined where items can be combined, and ends it. A deferred delivery of which
 * something could not leave is postponed instead.
 *
 * @param chat as the lane is named
 */
export async function send(context: SendContext, active: Active, account: Account, chat: string, pace: Pace): Promise<SendEnd> {
  const { delivery, items } = active
  const { summary, createdAt, deferred } = delivery
  const { deliveries, stop, clock, files } = context
  const releases = items.flatMap(item => 'link' in item && item.link.kind === 'upload' ? [files.hold(item.link.id)] : [])
  summary.waited ??= Math.max(clock.wall() - createdAt, 0)
  const results = [...delivery.results]
  const known = results.map(result => result !== undefined)
  try {
    await sendAll(context, { active, account, chat, pace, results })
  } finally {
    for (const release of releases) release()
  }
  // What was answered late meanwhile is known by the delivery.
  const all = results.map((result, index) => delivery.results[index]?.success ? delivery.results[index] : result)
  const isPostponed = deferred && (stop.aborted ? !all.every(result => result?.success) : all.some(isUnsent))
  if (isPostponed) await deliveries.postpone(active, all)
  else await deliveries.end(active, all)
  return { isPostponed, ...judge(all.filter((_, index) => !known[index])) }
}

/** The work on one delivery; results are filled in as they come. */
interface Work {
  active: Active
  account: Account
  chat: string
  pace: Pace
  results: (ItemResult | undefined)[]
}

async function sendAll(context: SendContext, work: Work): Promise<void> {
  const { policy } = context
  const { active: { delivery }, results } = work
  const ready = await prepareAll(context, work)
  const { retries } = policy
  const isIn = (open: Open) => ({ index }: Ready): boolean => open.indices.includes(index)
  const earlier = delivery.open.map((open): Outgoing => ({ items: ready.filter(isIn(open)), retries, earlier: open }))
  const fresh = ready.filter(item => !delivery.open.some(open => isIn(open)(item)))
  const combined = compose(fresh, maxWeight).map((items): Outgoing => ({ items, retries }))
  const queue = [...earlier, ...combined].filter(({ items }) => items.length > 0)
  for (let next = queue.shift(); next; next = queue.shift()) {
    const result = await sendOne(context, work, next)
    const cause = result.success ? undefined : result.error.cause
    const isRefused = cause instanceof SendError && cause.outcome === 'refused'
    const isClosed = cause instanceof SendError && cause.isAboutTarget
    const parts = isRefused && !isClosed ? divide(next.items) : []
    if (parts.length > 1) {
      // Only the bad items are to fail, so each goes by itself, once.
      queue.unshift(...parts.map(items => ({ items, retries: 0 })))
      continue
    }
    // What is refused because of the target would be refused again, and calls into a closed chat get accounts banned.
    const ended = isClosed ? [next, ...queue.splice(0)] : [next]
    for (const { items } of ended) for (const { index } of items) results[index] = result
    // A deferred delivery tries again later as a whole what could not leave now.
    if (delivery.deferred && isUnsent(result)) {
      for (const { items } of queue.splice(0)) for (const { index } of items) results[index] = result
    }
  }
}

/** Finds out of each item without a result what it takes to send it. */
async function prepareAll({ media }: SendContext, { active: { items, delivery: { summary } }, results }: Work): Promise<Ready[]> {
  const ready: Ready[] = []
  for (const [index, item] of items.entries()) {
    if (results[index]) continue
    try {
      if (item instanceof RelayError) throw item
      const prepared = prepareItem(item, media)
      const known = prepared instanceof Promise ? await prepared : prepared
      const shown = summary.items[index]
      if (shown && 'load' in known && known.bytes !== undefined) shown.size ??= known.bytes
      ready.push(Object.assign(known, { index }))
    } catch (error) {
      results[index] = { success: false, error: RelayError.from(error) }
    }
  }
  return ready
}

async function sendOne(context: SendContext, work: Work, { items, retries, earlier }: Outgoing): Promise<ItemResult> {
  const { policy } = context
  const { active, account, chat, pace, results } = work
  const { delivery: { deferred, target } } = active
  const rest = earlier ? undefined : pace.ready()
  if (rest) await rest
  try {
    const message = account.message(target, await load(items))
    const isText = items.every(({ type }) => type === 'text')
    const sending: Sending = {
      active, results, chat, account, message, retries, earlier,
      indices: items.map(({ index }) => index),
      settle: settlingTime(items, Math.max(policy.settleTime, policy.timeout)),
      isRepeatable: !items.some(({ type }) => heavyTypes.has(type)),
      patience: !deferred ? 'caller' : isText ? 'settled' : 'call',
    }
    return toSent(await attempt(context, sending), message.likeness)
  } catch (error) {
    // Another relay has the data store: it finds out what became of this.
    if (error instanceof NotOwner) throw error
    return { success: false, error: error instanceof SendError ? error.toRelayError() : RelayError.from(error) }
  } finally {
    pace.sent()
  }
}

/** How long a call with these items may still be carried out when it got no clear answer, in milliseconds. */
export function settlingTime(items: readonly Pick<PreparedItem, 'type' | 'bytes'>[], least: number): number {
  const isLong = items.some(({ type, bytes }) => heavyTypes.has(type) || bytes === undefined)
  const bytes = items.reduce((sum, item) => sum + (item.bytes ?? 0), 0)
  return isLong ? Math.max(longest, least) : Math.min(least + bytes / bytesPerMs, Math.max(longest, least))
}

/** The platform messages that a delivery is made of, for a look-up of those that are open. */
export async function loadOpen({ media }: Pick<SendContext, 'media'>, items: readonly ParsedItem[], { indices }: Open): Promise<LoadedItem[]> {
  const prepared: PreparedItem[] = []
  for (const index of indices) {
    const item = items[index]
    if (item && !(item instanceof RelayError)) prepared.push(await prepareItem(item, media))
  }
  return load(prepared)
}

async function load(items: readonly PreparedItem[]): Promise<LoadedItem[]> {
  const loaded: LoadedItem[] = []
  for (const item of items) loaded.push('load' in item ? await item.load() : item)
  return loaded
}

function judge(results: Results): Pick<SendEnd, 'verdict' | 'reason'> {
  if (results.some(result => result?.success)) return { verdict: 'good' }
  const failures = results.flatMap(result => result && !result.success ? [result.error] : [])
  const isBad = failures.some(({ cause }) => cause instanceof SendError && (cause.isAboutTarget || cause.outcome === 'unanswered'))
  return { verdict: isBad ? 'bad' : 'none', reason: failures.at(-1)?.message }
}
