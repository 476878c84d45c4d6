import { LRUCache } from 'lru-cache'
import { hash } from '../lib/crypto'
import type { BotSelector, Target } from './model'

/** How long the first account that received a message is remembered, in milliseconds, and for how many messages. */
const hearerCache = { ttl: 10_000, max: 1_000 }
/** The same for the identities of messages. */
const identityCache = { ttl: 3_600_000, max: 10_000 }

/** The sender of a message, the chat, and its IDs. */
interface Origin { bot: BotSelector, userId: string, target: Target, messageId: string, sequence?: string }

/** Tells the first report of a message by members from what is no news. */
export class Hearings {
  /** The first account of this Koishi that received each message, by its text, sender and target. */
  private readonly hearers = new LRUCache<string, string>(hearerCache)
  private readonly known = new LRUCache<string, true>(identityCache)

  /** @param bots those of this Koishi */
  constructor(private readonly bots: () => readonly BotSelector[]) {}

  /**
   * Whether a message is from a bot of this Koishi, another of its accounts in the same group has received it first, or it is reported
   * again, for example over a second connection.
   */
  isOwnOrDuplicate({ bot: { platform, selfId = '' }, userId, target }: Origin, text: string, identities: readonly string[]): boolean {
    if (this.bots().some(bot => bot.platform === platform && bot.selfId === userId)) return true
    const said = JSON.stringify([platform, target, userId, text])
    const first = this.hearers.get(said) ?? selfId
    this.hearers.set(said, first)
    const isKnown = identities.some(identity => this.known.has(identity))
    for (const identity of identities) this.known.set(identity, true)
    return isKnown || first !== selfId
  }
}

/** What is equal in all reports of a message, also after a restart: its ID, and its number on the server. */
export function identitiesOf({ bot, userId, target: { kind, id }, messageId, sequence = '' }: Origin): string[] {
  const names = [...messageId ? [messageId] : [], ...sequence ? [`#${sequence}`] : []]
  return names.map(name => hash(JSON.stringify([bot.platform, bot.selfId, kind, id, userId, name])))
}
