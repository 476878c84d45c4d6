import type { Bot } from 'koishi'
import { RelayError } from '../errors'
import type { BotSelector, ParsedItem, Target } from '../message/model'
import { runAttempts } from './attempts'
import { checkTarget, chooseBot } from './bots'
import { carry } from './carrier'
import { compose } from './compose'
import { maxWeight, prepareMedia, type LoadedItem, type MediaOptions, type PreparedItem } from './media'
import { SendError } from './outcome'

/** What is to be delivered where. */
export interface DeliveryRequest {
  target: Target
  /** The bot itself, or which one to pick. */
  bot: Bot | BotSelector
  items: readonly ParsedItem[]
}

/** What became of one item. */
export type ItemResult = { success: true, messageIds: string[] } | { success: false, error: RelayError }

export interface DeliveryOptions {
  /** The bots of the app. */
  bots: Iterable<Bot>
  /** How long each call to the platform may take, in milliseconds. */
  timeout: number
  /** How many further attempts there are after a failed call. */
  retries: number
  media: MediaOptions
  /** Keeps an uploaded file from being removed until the function returned is called. */
  hold: (id: string) => () => void
  /** Ends what is under way when the relay stops. */
  stop: AbortSignal
}

/** An item that can be sent, with its place in the request. */
type Ready = PreparedItem & { index: number }

/** Brings messages to their targets and tells of each item what became of it. */
export class Delivery {
  constructor(private readonly options: DeliveryOptions) {}

  /**
   * Delivers the items of a request: combined where they can be, each accounted for.
   *
   * @returns a result for each item, in their order
   * @throws RelayError what stops the request as such, before anything is sent: no bot, a bad target
   */
  async deliver({ target, bot: choice, items }: DeliveryRequest): Promise<ItemResult[]> {
    const bot = 'sendMessage' in choice ? choice : chooseBot(this.options.bots, choice)
    checkTarget(bot, target)
    const releases = items.map(item => 'link' in item && item.link.kind === 'upload' ? this.options.hold(item.link.id) : undefined)
    try {
      const results: ItemResult[] = []
      const ready = await this.prepare(items, results)
      await this.sendAll(bot, target, ready, results)
      return results
    } finally {
      for (const release of releases) release?.()
    }
  }

  /** Finds out which items can be sent; the others have their result at once. */
  private async prepare(items: readonly ParsedItem[], results: ItemResult[]): Promise<Ready[]> {
    const ready: Ready[] = []
    for (const [index, item] of items.entries()) {
      if (item instanceof RelayError) results[index] = { success: false, error: item }
      else if (item.type === 'text') ready.push({ ...item, weight: 0, index })
      else {
        try {
          ready.push({ ...await prepareMedia(item, this.options.media), index })
        } catch (error) {
          results[index] = { success: false, error: RelayError.from(error) }
        }
      }
    }
    return ready
  }

  private async sendAll(bot: Bot, target: Target, ready: readonly Ready[], results: ItemResult[]): Promise<void> {
    const queue = compose(ready, maxWeight).map(message => ({ message, retries: this.options.retries }))
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { message, retries } = next
      const outcome = await this.send(bot, target, message, retries)
      for (const { index } of message) results[index] = outcome
      if (outcome.success || !(outcome.error.cause instanceof SendError)) continue
      const { cause } = outcome.error
      if (cause.aboutTarget) {
        // Whatever else there is would be refused as well, and knocking on a closed door gets accounts banned.
        for (const { index } of queue.flatMap(({ message }) => message)) results[index] = outcome
        return
      }
      // Only the bad ones are to fail (contract, "HTTP").
      if (cause.outcome === 'refused' && message.length > 1) queue.unshift(...message.map(item => ({ message: [item], retries: 0 })))
    }
  }

  /** Sends one platform message. */
  private async send(bot: Bot, target: Target, message: readonly Ready[], retries: number): Promise<ItemResult> {
    const { timeout, stop } = this.options
    try {
      const items: LoadedItem[] = []
      for (const item of message) items.push(item.type === 'text' ? item : await item.load())
      const receipt = await runAttempts(attempt => carry(bot, target, items, attempt), { timeout, retries, stop })
      return { success: true, ...receipt }
    } catch (error) {
      return { success: false, error: error instanceof SendError ? error.toRelayError() : RelayError.from(error) }
    }
  }
}
