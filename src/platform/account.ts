import type { Bot, Context, Session } from 'koishi'
import { demand, RelayError } from '../errors'
import { unwrap } from '../lib/koishi'
import { printable, type Log } from '../lib/log'
import { explain } from '../message/causes'
import type { Item, ParsedItem, Target } from '../message/model'
import { writeTarget } from '../message/target'
import type { IncomingSupport } from './incoming'
import { SendError, type Account, type Health, type LoadedItem, type Message, type Port } from './port'
import type { Presence } from './presence'
import { clauses, type Text } from '../texts/text'

/** The particulars of one adapter's bots. */
export interface PlatformSupport {
  /** Whether this is a bot of that adapter: the name of its platform does not tell, as a Satori server may use it as well. */
  owns(bot: Bot): boolean
  /** Makes the account of such a bot. The account must survive a reload of the plugin. */
  account(bot: Bot, presence: Presence): BotAccount
  /** Looks after its bots until the context is disposed. */
  start?(ctx: Context, presence: Presence, logger: Log): void
  /** Observes the requests of an app's bots. The returned function ends that. */
  listen?(app: Context): () => void
  /** Reads the messages to its bots, if the adapter loses parts of them. */
  incoming?: IncomingSupport
  /** The ID of a bot's account, if it is known before the login. */
  selfId?(bot: Bot): string | undefined
}

/** As `Port.onChat` calls it back. */
export type ChatListener = Parameters<Port['onChat']>[0]

/** The common part of all accounts. */
export abstract class BotAccount implements Account {
  readonly platform: string
  /** The events of the app. Read once, because access through the context is slow. */
  readonly lifecycle: Bot['ctx']['lifecycle']

  constructor(readonly bot: Bot, protected readonly presence: Presence) {
    this.platform = bot.platform ?? ''
    this.lifecycle = unwrap(bot.ctx.root.lifecycle)
  }

  get sid(): string {
    return this.bot.sid
  }

  get health(): Health {
    return this.presence.health(this.bot)
  }

  get isOnline(): boolean {
    return this.presence.isOnline(this.bot)
  }

  /** The failure of a message while it is not online. */
  offline(): SendError {
    const { cause, words } = this.health
    return new SendError('unsent', explain(cause, words))
  }

  get selfId(): string {
    return this.bot.selfId
  }

  get name(): string {
    return this.bot.user?.name ?? ''
  }

  /**
   * Whether any plugin listens to sent messages. Most apps have none, and making the session takes a tenth of the time of a send.
   * The listeners are those of `Lifecycle` in @cordisjs/core 3.18.1; `internal/event` receives all events.
   */
  get isHeard(): boolean {
    const { send, 'before-send': before, 'internal/event': all } = this.lifecycle._hooks
    return Boolean(before?.length) || Boolean(send?.length) || Boolean(all?.length)
  }

  /** Whether any plugin listens to messages before they are sent, so that it can change them. */
  get mayBeChanged(): boolean {
    return Boolean(this.lifecycle._hooks['before-send']?.length)
  }

  abstract readonly readsFiles: boolean
  readonly takesFiles: boolean = true
  readonly refusesEmpty?: Text
  abstract readonly longestText: number
  abstract readonly retriesUnanswered: boolean
  /** No limit is known. */
  readonly recallableFor: number = Infinity
  abstract recall(target: Target, messageId: string): Promise<void>
  readonly canUpdate: boolean = false
  abstract message(target: Target, items: readonly LoadedItem[], name: string, changed?: string): Message

  /** Why there can be no such chat on this platform; `undefined` if there can. */
  protected whyNoChat?(target: Target): Text | undefined

  /** Why nothing can be sent to a chat, in the same way. */
  protected whyClosed?(target: Target): Text | undefined

  /** Which users can be mentioned, and that in words. */
  protected abstract readonly mentions: readonly [isFit: (userId: string) => boolean, rule: Text]

  /** Why the platform cannot send an item; `undefined` if it can. */
  protected whyNotSent?(item: Item, target: Target): Text | undefined

  /** The error names the target as a whole, because few callers write its ID in a field of its own. */
  check(target: Target, items: readonly ParsedItem[]): readonly ParsedItem[] {
    const fault = this.whyNoChat?.(target)
    if (fault !== undefined) throw new RelayError('bad-request', clauses(printable(writeTarget(target).slice(0, longestNamed)), fault))
    const closed = this.whyClosed?.(target)
    if (closed !== undefined) throw new RelayError('bad-request', closed)
    const [isFit, rule] = this.mentions
    return items.map(item => {
      if (item instanceof RelayError) return item
      if (item.type === 'at' && item.userId !== null) demand(isFit(item.userId), rule)
      const reason = this.whyNotSent?.(item, target)
      return reason === undefined ? item : new RelayError('bad-request', reason)
    })
  }

  /** Handles the session of a platform's event. During a reload, both relays hand it over. */
  hear?(session: Session, onChat: ChatListener): void
}

/** How much of a malformed target an error tells, in characters. */
const longestNamed = 72

/** Characters that no user's ID has on any platform. In markup, they would end the mention. */
const plainId = /^[^\s<>()[\]{}|&"'`\\!#*]+$/
/** IDs that mention many users on some platform. Not every key may use them. */
const crowd = /^@?(?:all|here|everyone|online|channel|0*)$|@(?:everyone|here)/i

/** Whether an ID mentions a single user, also in the markup of any platform. */
export function isUser(id: string): boolean {
  return plainId.test(id) && !crowd.test(id)
}
