import type { Bot } from 'koishi'
import { RelayError } from '../errors'
import type { ParsedItem, Target } from '../message/model'
import { runAttempts, type AttemptPolicy, type Finding, type Passage } from './attempts'
import type { BotName } from '../platform/bot-name'
import { compose } from './compose'
import type { Turn } from './queue'
import { maxWeight, prepareMedia, type LoadedItem, type MediaOptions, type PreparedItem } from './media'
import { SendError } from '../platform/port'

/** What became of one item. */
export type ItemResult = { success: true, messageIds: string[] } | { success: false, error: RelayError }

/** Takes down how a transmission goes on. Items are named by their places in the request. */
export interface Journal {
  /** Told, and awaited, right before items leave together: from here on nobody knows. */
  sending?(doubt: Doubt): Promise<void>
  /** Told when it is known what became of items that left together. */
  settled?(indices: readonly number[], result: ItemResult): void
  /** Told of each call to the platform. */
  attempt?(): void
  /** Told when the answer came after the items had been given up as unanswered; says whether that was taken down. */
  late?(indices: readonly number[], messageIds: string[]): Promise<boolean>
}

/** Items of which nobody knows whether they arrived. */
export interface Doubt {
  indices: readonly number[]
  /** When the first of them left, in milliseconds since the epoch. */
  since: number
  /** The messages that were in the chat before and are not these, by their IDs. */
  others: readonly string[]
}

/** A request that went unanswered. */
export interface Inquiry {
  bot: Bot
  target: Target
  items: readonly ParsedItem[]
  doubtful: Doubt
}

/** A request whose turn has come. */
export interface Transmission {
  turn: Turn
  bot: Bot
  target: Target
  items: readonly ParsedItem[]
  journal?: Journal
  /** The items whose fate is known from before. */
  known?: ReadonlyMap<number, ItemResult>
  /** The items that were leaving together when the process ended: they are looked up before they are repeated. */
  doubtful?: Doubt
}

export interface TransmitterOptions {
  /** The way of one platform message through one bot. */
  passage: (bot: Bot, target: Target, items: readonly LoadedItem[]) => Passage
  /** Takes down that these messages in a chat are accounted for, so that no look-up takes one of them for another. */
  account: (bot: BotName, target: Target, messageIds: readonly string[]) => void
  /** The messages in a chat that were accounted for lately. */
  accounted: (bot: Bot, target: Target) => string[]
  attempts: AttemptPolicy
  /** How many further attempts a platform message has after the first. */
  retries: number
  media: MediaOptions
}

/** An item that can be sent, with its place in the request. */
type Ready = PreparedItem & { index: number }

/** A platform message that is still to be sent. */
interface Outgoing {
  items: readonly Ready[]
  /** Their places in the request. */
  indices: readonly number[]
  retries: number
  doubtfulSince: number | undefined
}

/** Sends the items of a request whose turn has come: combined where they can be, each accounted for. */
export class Transmitter {
  constructor(private readonly options: TransmitterOptions) {}

  /** @returns a result for each item, in their order */
  async transmit(transmission: Transmission): Promise<ItemResult[]> {
    const { bot, target, items, journal, known, doubtful } = transmission
    if (doubtful) this.account(bot, target, doubtful.others)
    const results: ItemResult[] = []
    const ready: Ready[] = []
    for (const [index, item] of items.entries()) {
      const result = known?.get(index)
      if (result) {
        results[index] = result
        continue
      }
      const prepared = await this.prepare(item, index)
      if (prepared instanceof RelayError) {
        results[index] = { success: false, error: prepared }
        journal?.settled?.([index], results[index])
      } else {
        ready.push(prepared)
      }
    }
    await this.sendAll(transmission, this.compose(ready, doubtful), results)
    return results
  }

  /** Takes down messages that an earlier process, or another one, has sent. */
  account(bot: BotName, target: Target, messageIds: readonly string[]): void {
    this.options.account(bot, target, messageIds)
  }

  /** What there is to say of items that leave now, in case nobody hears of them again. */
  doubt(bot: Bot, target: Target, indices: readonly number[]): Doubt {
    return { indices, since: Date.now(), others: this.options.accounted(bot, target) }
  }

  /**
   * Asks the platform once which of the doubtful items have arrived, and sends nothing. Nothing else may leave for the target
   * meanwhile: an equal message could be taken for one of these.
   *
   * @returns what was found
   */
  async lookUp({ bot, target, items, doubtful }: Inquiry): Promise<Map<number, ItemResult>> {
    const found = new Map<number, ItemResult>()
    const ready: Ready[] = []
    this.account(bot, target, doubtful.others)
    for (const [index, item] of items.entries()) {
      const prepared = await this.prepare(item, index)
      if (!(prepared instanceof RelayError)) ready.push(prepared)
    }
    for (const group of compose(ready, maxWeight)) {
      const asked = group.filter(({ index }) => doubtful.indices.includes(index))
      // Only a part is in doubt where the group was refused and its items were sent one by one.
      for (const message of asked.length === group.length ? [group] : asked.map(item => [item])) {
        const passage = this.options.passage(bot, target, await load(message))
        const finding = await this.ask(passage, doubtful.since)
        if (!finding) return found
        if (finding.kind !== 'found') continue
        for (const { index } of message) found.set(index, { success: true, messageIds: finding.messageIds })
      }
    }
    return found
  }

  /** @returns `undefined` when the question was not answered within the time of a call */
  private ask(passage: Passage, since: number): Promise<Finding | undefined> {
    const { timeout, stop } = this.options.attempts
    return new Promise(resolve => {
      const end = (finding?: Finding): void => {
        clearTimeout(timer)
        stop.removeEventListener('abort', onStop)
        resolve(finding)
      }
      const onStop = (): void => end()
      const timer = setTimeout(end, timeout)
      stop.addEventListener('abort', onStop)
      passage.lookUp(since).then(end, onStop)
    })
  }

  private prepare(item: ParsedItem, index: number): Ready | RelayError | Promise<Ready | RelayError> {
    if (item instanceof RelayError) return item
    if (item.type === 'text') return { type: 'text', text: item.text, weight: 0, index }
    return prepareMedia(item, this.options.media).then(prepared => ({ ...prepared, index }), (error: unknown) => RelayError.from(error))
  }

  private compose(ready: readonly Ready[], doubtful: Doubt | undefined): Outgoing[] {
    const { retries } = this.options
    const composeAll = (items: readonly Ready[]): Outgoing[] => compose(items, maxWeight).map(message => toOutgoing(message, retries))
    if (!doubtful) return composeAll(ready)
    const doubted = ready.filter(({ index }) => doubtful.indices.includes(index))
    const rest = composeAll(ready.filter(item => !doubted.includes(item)))
    return doubted.length > 0 ? [toOutgoing(doubted, retries, doubtful.since), ...rest] : rest
  }

  private async sendAll(transmission: Transmission, queue: Outgoing[], results: ItemResult[]): Promise<void> {
    const { journal } = transmission
    for (let next = queue.shift(); next; next = queue.shift()) {
      const result = await this.send(transmission, next)
      const cause = result.success ? undefined : result.error.cause
      if (cause instanceof SendError && cause.outcome === 'refused' && !cause.isAboutTarget && next.items.length > 1) {
        // Only the bad ones are to fail, so each goes by itself, once (contract, "HTTP").
        queue.unshift(...next.items.map(item => toOutgoing([item], 0)))
        continue
      }
      // What is refused because of the target would be refused again, and knocking on a closed door gets accounts banned.
      const isClosed = cause instanceof SendError && cause.isAboutTarget
      const indices = isClosed ? [next, ...queue.splice(0)].flatMap(({ indices }) => indices) : next.indices
      for (const index of indices) results[index] = result
      journal?.settled?.(indices, result)
    }
  }

  /** Sends one platform message. What the journal throws ends the transmission; every other failure is a result. */
  private async send({ turn, bot, target, journal }: Transmission, outgoing: Outgoing): Promise<ItemResult> {
    const { items, indices, retries, doubtfulSince } = outgoing
    await turn.pace()
    if (doubtfulSince === undefined && journal?.sending) await journal.sending(this.doubt(bot, target, indices))
    try {
      const receipt = await runAttempts(this.options.passage(bot, target, await load(items)), {
        retries,
        doubtfulSince,
        onAttempt: () => journal?.attempt?.(),
        // Where nobody keeps an account nobody is going to ask.
        onLate: ({ messageIds }) => journal?.late?.(indices, messageIds) ?? Promise.resolve(true),
      }, this.options.attempts)
      return { success: true, messageIds: receipt.messageIds }
    } catch (error) {
      return { success: false, error: error instanceof SendError ? error.toRelayError() : RelayError.from(error) }
    } finally {
      turn.sent()
    }
  }
}

function toOutgoing(items: readonly Ready[], retries: number, doubtfulSince?: number): Outgoing {
  return { items, indices: items.map(({ index }) => index), retries, doubtfulSince }
}

async function load(items: readonly Ready[]): Promise<LoadedItem[]> {
  const loaded: LoadedItem[] = []
  for (const item of items) loaded.push(item.type === 'text' ? item : await item.load())
  return loaded
}
