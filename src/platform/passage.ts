import type { Bot } from 'koishi'
import type { Presence } from './presence'
import type { Target } from '../message/model'
import type { Attempt, Finding, Passage } from '../relay/attempts'
import { isOneBot } from './bot-name'
import { sendByAdapter } from './koishi'
import type { LoadedItem } from '../relay/media'
import { sendByOneBot } from './onebot/calls'
import { contentOfItems, contentOfMessage } from './onebot/content'
import { lookUp, lookUpContent } from './onebot/history'
import type { Sightings } from './onebot/sightings'
import type { Receipt } from './port'

/** Makes the way of one platform message through a bot: how it is sent, and how it is looked up when it goes unanswered. */
export function createPassages(presence: Presence, sightings: Sightings) {
  return (bot: Bot, target: Target, items: readonly LoadedItem[]): Passage =>
    isOneBot(bot) ? new OneBotPassage(bot, target, items, presence, sightings) : new AdapterPassage(bot, target, items, presence)
}

abstract class BotPassage implements Passage {
  constructor(
    protected readonly bot: Bot,
    protected readonly target: Target,
    protected readonly items: readonly LoadedItem[],
    private readonly presence: Presence,
  ) {}

  abstract call(attempt: Attempt): Promise<Receipt>
  abstract lookUp(since: number): Promise<Finding>
  abstract disown(receipt: Receipt): void

  onLost(callback: () => void): () => void {
    return this.presence.onOffline(this.bot, callback)
  }

  onConnected(callback: () => void): () => void {
    return this.presence.onOnline(this.bot, callback)
  }
}

/** Through a bot of any platform: nobody can be asked what became of a message. */
class AdapterPassage extends BotPassage {
  call(attempt: Attempt): Promise<Receipt> {
    return sendByAdapter(this.bot, this.target, this.items, attempt)
  }

  lookUp(): Promise<Finding> {
    return Promise.resolve({ kind: 'no-history' })
  }

  disown(): void {
    // Nothing was accounted for.
  }
}

class OneBotPassage extends BotPassage {
  /** The segments that were sent: other plugins may have changed what the items say. */
  private sent: unknown
  /** Whether the message was found already: then an answer that comes late tells of the same one. */
  private isFound = false

  constructor(bot: Bot, target: Target, items: readonly LoadedItem[], presence: Presence, private readonly sightings: Sightings) {
    super(bot, target, items, presence)
  }

  async call(attempt: Attempt): Promise<Receipt> {
    const { bot, target, items } = this
    const since = Date.now()
    const receipt = await sendByOneBot(bot, target, items, attempt, message => {
      this.sent = message
    })
    if (!this.isFound) this.sightings.account(bot, target, receipt.messageIds, { items, since })
    return receipt
  }

  async lookUp(since: number): Promise<Finding> {
    const { bot, target, items, sent, sightings } = this
    if (sent === null) return { kind: 'no-history' }
    const content = contentOfMessage(sent)
    const finding = content
      ? await lookUpContent(bot, target, content, since, sightings)
      : await lookUp(bot, target, items, since, sightings)
    this.isFound ||= finding.kind === 'found'
    return finding
  }

  disown({ messageIds }: Receipt): void {
    const { bot, target, items, sent } = this
    this.sightings.disown(bot, target, messageIds, contentOfMessage(sent) ?? contentOfItems(items))
  }
}
