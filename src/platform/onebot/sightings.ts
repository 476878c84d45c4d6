import type { Bot, Context } from 'koishi'
import type { Target } from '../../message/model'
import { isObject, type JsonObject } from '../../message/parse'
import type { BotName } from '../bot-name'
import type { LoadedItem } from '../../relay/media'
import { unwrap } from '../../lib/unwrap'
import { Accounts, clockTolerance, type OwnMessage } from './accounts'
import { contentOfItems, type Content } from './content'
import { isOwn, readOwn, toId } from './records'

/** A send that succeeded. */
export interface Sent {
  items: readonly LoadedItem[]
  /** When its call was made, in milliseconds since the epoch. */
  since: number
}

/** What is remembered for an app. It outlives a reload of the plugin, which does not make the messages before it unsent. */
const memories = new WeakMap<object, Accounts>()

/** The bots' own messages that are accounted for, and those that the platforms reported. One for the plugin. */
export class Sightings {
  private readonly accounts: Accounts

  /** Listens to what the bots hear until the context is disposed. */
  constructor(ctx: Context) {
    const app = unwrap(ctx.root)
    this.accounts = memories.get(app) ?? new Accounts()
    memories.set(app, this.accounts)
    // Before the events that the session is turned into, so that no plugin can keep it from being seen.
    ctx.on('internal/session', session => this.look(session), { prepend: true })
  }

  /**
   * Takes down that a send of ours got these IDs, so that no look-up takes its messages for another's.
   *
   * @param sent what was sent; without it, a send that got no ID (an upload) is not accounted for
   */
  account(bot: BotName, target: Target, messageIds: readonly string[], sent?: Sent): void {
    const key = keyOf(bot.selfId, target)
    if (messageIds.length > 0) this.accounts.account(key, messageIds, Date.now())
    else if (sent) this.accounts.accountNameless(key, { content: contentOfItems(sent.items), since: sent.since, until: Date.now() })
  }

  /** Takes that back: the messages are there, but not known to be anybody's. */
  disown(bot: Bot, target: Target, messageIds: readonly string[], content: Content): void {
    this.accounts.disown(keyOf(bot.selfId, target), messageIds, content, Date.now())
  }

  /**
   * The IDs of the messages in a chat that a look-up after a restart, when nothing of this is remembered, could take for one that
   * leaves now: those accounted for within twice the tolerance, because the clocks may differ as much at both ends.
   */
  accounted(bot: Bot, target: Target): string[] {
    const now = Date.now()
    return this.accounts.accounted(keyOf(bot.selfId, target), now - 2 * clockTolerance, now)
  }

  /** Finds a message that was reported since then and is not accounted for, and accounts for it. Gives its ID. */
  claim(bot: Bot, target: Target, content: Content, since: number): string | undefined {
    return this.accounts.claimSeen(keyOf(bot.selfId, target), content, since, Date.now())
  }

  /** The same in a history. */
  claimIn(bot: Bot, target: Target, history: readonly OwnMessage[], content: Content, since: number): string | undefined {
    return this.accounts.claimIn(keyOf(bot.selfId, target), history, content, since, Date.now())
  }

  /** It runs for whatever the bots hear, so it goes past both layers of tracing proxies and stops at the first no. */
  private look(session: object): void {
    const event: unknown = Reflect.get(unwrap(unwrap(session)), 'onebot')
    if (!isObject(event) || (event.post_type !== 'message_sent' && event.post_type !== 'message')) return
    const selfId = toId(event.self_id)
    if (selfId === undefined || !isOwn(event, selfId)) return
    const target = targetOf(event)
    const message = readOwn(event)
    if (target && message) this.accounts.see(keyOf(selfId, target), { ...message, time: Date.now() })
  }
}

/** Where a message of the bot's own went (OneBot guide, "Incoming messages"); `undefined` when it does not say. */
function targetOf(event: JsonObject): Target | undefined {
  const isPrivate = event.message_type === 'private'
  const id = toId(isPrivate ? event.target_id : event.group_id)
  return id === undefined ? undefined : { kind: isPrivate ? 'private' : 'group', id }
}

function keyOf(selfId: string, { kind, id }: Target): string {
  return `${selfId} ${kind} ${id}`
}
