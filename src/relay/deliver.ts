import type { Bot } from 'koishi'
import { flushed } from '../lib/gather'
import type { BotSelector, ParsedItem, Target } from '../message/model'
import { checkTarget, chooseBot, laneOf } from '../platform/bots'
import type { Lanes, Verdict } from './queue'
import { SendError } from '../platform/port'
import type { ItemResult, Journal, Transmitter } from './transmitter'
import { unwrap } from '../lib/unwrap'

/** What is to be delivered where. */
export interface DeliveryRequest {
  target: Target
  /** The bot itself, or which one to pick. */
  bot: Bot | BotSelector
  items: readonly ParsedItem[]
  /** Aborted when nobody waits for the result any more; only asked for where there is a wait. */
  signal?: () => AbortSignal
  /** Who keeps an account of it while it is under way. */
  journal?: Journal
}

export interface DeliveryOptions {
  /** The bots of the app. */
  bots: Iterable<Bot>
  lanes: Lanes
  transmitter: Transmitter
  /** Keeps an uploaded file from being removed until the function returned is called. */
  hold: (id: string) => () => void
}

/** Brings messages to their targets while the caller waits. */
export class Delivery {
  constructor(private readonly options: DeliveryOptions) {}

  /**
   * Delivers the items of a request when their turn has come.
   *
   * @returns a result for each item, in their order
   * @throws RelayError what stops the request as such, before anything is sent: no bot, a bad target, a full or paused lane
   */
  async deliver({ target, bot: choice, items, signal, journal }: DeliveryRequest): Promise<ItemResult[]> {
    const bot = 'sendMessage' in choice ? unwrap(choice) : chooseBot(this.options.bots, choice)
    checkTarget(bot, target)
    const releases = holdUploads(items, this.options.hold)
    try {
      const turn = await this.options.lanes.enter(laneOf(bot.sid, target), signal && { signal })
      let isAwaited = false
      let results: ItemResult[]
      try {
        results = await this.options.transmitter.transmit({ turn, bot, target, items, ...journal && { journal } })
        turn.judge(judge(results))
      } finally {
        isAwaited = turn.end()
      }
      // The next message is to leave first: its answer takes a while, and that is the time to write this one's.
      if (isAwaited) await flushed()
      return results
    } finally {
      for (const release of releases) release()
    }
  }
}

/**
 * Keeps the uploaded files among the items from being removed.
 *
 * @returns what ends that
 */
export function holdUploads(items: readonly ParsedItem[], hold: (id: string) => () => void): (() => void)[] {
  const releases: (() => void)[] = []
  for (const item of items) if ('link' in item && item.link.kind === 'upload') releases.push(hold(item.link.id))
  return releases
}

/** What the results say about the target. */
export function judge(results: readonly ItemResult[]): Verdict {
  if (results.some(result => result.success)) return 'good'
  const isBad = results.some(result => !result.success && result.error.cause instanceof SendError
    && (result.error.cause.isAboutTarget || result.error.cause.outcome === 'unanswered'))
  return isBad ? 'bad' : 'none'
}
