import { RelayError } from '../errors'
import { clauses, say, type Text } from '../texts/text'
import type { TextId } from '../texts/table'
import { causes, explain, type About, type CauseId, type Reason } from '../message/causes'
import type { BotSelector, MediaItem, MentionItem, ParsedItem, ReplyItem, Target, TextItem } from '../message/model'

/**
 * The core's view of chat platforms. `koishi.ts` implements the port for the bots of a Koishi app. Each folder has the accounts and the
 * messages of one adapter, and `other/` those of all adapters without a folder. The tests in simulated time implement all of it with a
 * scripted platform.
 */
export interface Port {
  /** The bot that sends now or later: the selected one, or else a OneBot bot, or else any; of several an online one. */
  candidate(selector: BotSelector): Account | undefined
  /**
   * The candidate.
   *
   * @param mayWait whether it need not be online
   * @throws RelayError `unsent`, with the cause, if there is no such bot
   */
  choose(selector: BotSelector, mayWait?: boolean): Account
  /** The bot with this `sid`, online or not; `undefined` if there is none. */
  find(sid: string): Account | undefined
  /**
   * Calls back for each change of a bot's health. The returned function ends that. The callback must not throw. Other accounts may have
   * changed with it. If only the account is logged out, a present call may still be answered.
   */
  onHealth(callback: (sid: string, isOnline: boolean) => void): () => void
  /** Calls back when a platform reports that a chat is closed to an account, or open again. The returned function ends that. */
  onChat(callback: (sid: string, target: Target, closure: Closure | 'open') => void): () => void
}

/** One account of a bot on one platform. */
export interface Account {
  /** `platform:selfId`. */
  readonly sid: string
  /** The platform's name in Koishi; empty until the adapter knows it. */
  readonly platform: string
  readonly health: Health
  /** Whether it can send now: its health is `online`. */
  readonly isOnline: boolean
  /** Its ID on the platform. */
  readonly selfId: string
  /** Its display name; may be empty. */
  readonly name: string
  /** Whether its adapter reads files in this process: it then gets the paths of uploaded files, whatever `mediaTransport` says. */
  readonly readsFiles: boolean
  /** Whether it can send a file. */
  readonly takesFiles: boolean
  /** Why it sends no file without bytes; absent if it may. */
  readonly refusesEmpty?: Text
  /** The longest text of one message, in UTF-16 units; `Infinity` if that is unknown. */
  readonly longestText: number
  /** Whether one platform message can have all these items; absent if it always can, as far as `longestText` allows. */
  fits?(items: readonly Fitting[]): boolean
  /**
   * The default for sending a text again when no look-up can tell whether it arrived. `true` if the platform can usually be asked, or if a
   * repeated call is harmless.
   */
  readonly retriesUnanswered: boolean
  /**
   * Checks items before anything leaves.
   *
   * @returns the items. Those that the platform cannot send are replaced by a `bad-request` that says why.
   * @throws RelayError `bad-request` if the target, or a mentioned user, cannot exist on this platform
   */
  check(target: Target, items: readonly ParsedItem[]): readonly ParsedItem[]
  /**
   * Makes a platform message of items, without sending it.
   *
   * @param name an internal name: the same for each call for this message, also after a restart, and different for every other message
   * @param changed the ID of the message that becomes these texts and mentions, if it `canUpdate`; repeated calls are then harmless
   */
  message(target: Target, items: readonly LoadedItem[], name: string, changed?: string): Message
  /** Whether it can change a message that is there. */
  readonly canUpdate: boolean
  /** The greatest age at which it can recall its own message, in milliseconds; 0 if it cannot. */
  readonly recallableFor: number
  /**
   * Recalls a message that was sent to this target.
   *
   * @throws SendError
   */
  recall(target: Target, messageId: string): Promise<void>
  /**
   * Asks whether a chat is open now. Absent if the platform shows that only by refusing messages.
   *
   * @returns `undefined` if the platform cannot tell
   * @throws SendError
   */
  closure?(target: Target): Promise<Closure | 'open' | undefined>
  /**
   * Its groups, with IDs for targets. Absent if the platform has no such list.
   *
   * @throws SendError
   */
  groups?(): Promise<Contact[]>
  /**
   * The users of its private chats, with IDs for targets. Absent if the platform has no such list.
   *
   * @throws SendError
   */
  friends?(): Promise<Contact[]>
}

/** Why a chat is closed to an account for a while. */
export interface Closure {
  cause: CauseId
  /** The end, in milliseconds since the epoch; `null` if the platform does not say. */
  until: number | null
}

/** The health of an account, and why it is not online. */
export interface Health extends Partial<Reason> {
  /** `offline` also if the bot is connected, but its account is logged out or its platform does not answer. */
  readonly state: 'online' | 'connecting' | 'offline'
  /** When it came online, or went offline, in milliseconds since the epoch. */
  readonly since: number
}

/** A group of an account (on other platforms a channel), or a friend. */
export interface Contact {
  id: string
  /** May be empty. */
  name: string
}

/** A platform message, which can be sent, repeatedly, and looked up. */
export interface Message {
  /** Equal for messages that look the same in the history of one chat. */
  readonly likeness: string
  /** How long after the first call the platform recognizes a repeated one, in milliseconds; absent if it never does. */
  readonly idempotentFor?: number
  /** Whether the platform is being asked for the channel of a private chat, without which nothing can leave. */
  readonly isOpening?: boolean
  /**
   * Makes the call. A late answer counts as well, as long as the connection lasts.
   *
   * @param begin called right before the call: from then on the message may arrive. Throws if the attempt was given up meanwhile; then no
   *   call is made.
   * @throws SendError
   */
  send(begin: () => void): Promise<Receipt>
  /** The equal messages that the platform has reported by itself, the oldest first; absent if a platform never does. */
  reports?(): readonly Report[]
  /**
   * Asks the platform for the last so many messages of the chat. Absent if it has no history.
   *
   * @returns `undefined` if this message cannot be looked up
   * @throws SendError for a missing connection or answer, or a failure
   */
  history?(count: number): Promise<HistoryPage | undefined>
}

/** The answer of a platform that accepted a message. */
export interface Receipt {
  /** The IDs that the platform returned, in sending order; none for a file. */
  messageIds: readonly string[]
}

/** A message of the bot's own account that the platform has reported as sent. */
export interface Report {
  id: string
  /** When the report came, on the monotonic clock. */
  heardAt: number
}

/** A part of the history of a chat. */
export interface HistoryPage {
  /** The messages of the bot's own account, in any order. */
  own: readonly HistoryEntry[]
  /** The time of the oldest message of any sender, by the platform's clock; `Infinity` for an empty page. */
  oldest: number
  /** Whether every message of the bot's own account could be read. */
  isReadable: boolean
}

export interface HistoryEntry {
  id: string
  /** Milliseconds since the epoch by the platform's clock, which may show whole seconds only. */
  time: number
  /** Whether it looks like the message to find. */
  isEqual: boolean
  /** Whether the platform's server has it. If only the client does, risk control may have blocked it. */
  isSeen: boolean
}

/** The part of an item that decides whether it shares a message with others. */
export type Fitting = Pick<LoadedItem, 'type'> & { text?: string }

/** An item in the form for the platform. */
export type LoadedItem = TextItem | MentionItem | ReplyItem | LoadedMedia

export interface LoadedMedia {
  type: MediaItem['type']
  /** `http(s)://`, `file://` or `data:` with base64. */
  src: string
  /** The absolute path on this machine's disk, if the platform is expected to read the file there. */
  path?: string
  /** The name that the platform shows for a file. */
  name: string
}

/** The failures of a send: refused by the platform, suppressed by another plugin, never sent, or without an answer. */
export type SendFailure = 'refused' | 'suppressed' | 'unsent' | 'unanswered'

/** A rate limit of a platform. */
export interface Limit {
  /** Whether the limit is for one chat, or for the whole account. */
  scope: 'chat' | 'account'
  /** Its length, in milliseconds. */
  after: number
}

/** The longest rate limit that a waiting caller, or the rest of a divided message, waits for, in milliseconds. */
export const longestLimit = 10_000

/** The details of a failure. */
export interface SendErrorOptions extends ErrorOptions {
  causeId?: CauseId | undefined
  /** The rate limit that kept the message, or the rest of a divided one, from being sent. */
  limit?: Limit | undefined
  /** Whether a further call would be harmful or in vain. */
  isFinal?: boolean | undefined
}

/** A send that failed. */
export class SendError extends Error {
  override readonly name = 'SendError'
  /** The cause, if the platform gives one that the relay knows. */
  readonly causeId: CauseId | undefined
  /** The platform's own words. */
  readonly words: string | undefined
  /** The cause in plain words, then the platform's own; safe to show to the caller. */
  readonly wording: Text | undefined
  readonly limit: Limit | undefined
  private readonly isFinal: boolean

  /** @param words the platform's own words, or what the relay says in their place; safe to show to the caller */
  constructor(readonly outcome: SendFailure, words?: Text | string, details: SendErrorOptions = {}) {
    const { causeId, limit, isFinal = false, ...options } = details
    const wording = explain(causeId, words)
    super(wording?.toString() ?? outcome, options)
    // The frames of a stack would keep the message, with its pictures, in memory for as long as a record has the error.
    this.stack = `${this.name}: ${this.message}`
    this.causeId = causeId
    this.wording = wording
    this.words = words?.toString()
    this.limit = limit
    this.isFinal = isFinal
  }

  /** The wording, also where no cause is known. */
  get reason(): Text {
    return this.wording ?? this.toRelayError().said
  }

  /** What the failure is about. */
  get about(): About {
    return this.causeId ? causes[this.causeId] : 'unknown'
  }

  /** The failure of the last call. It may be the cause of this one, which is unanswered because of an earlier call. */
  get last(): SendError {
    return this.cause instanceof SendError ? this.cause : this
  }

  /** Whether the failure is about the chat (muted, not a member, no such group): further calls into it are in vain for now. */
  get isAboutTarget(): boolean {
    return this.about === 'chat-closed' || this.about === 'chat-gone'
  }

  /** Whether the same call may succeed next time. */
  get isRetryable(): boolean {
    return !this.isAboutTarget && this.about !== 'account' && !this.isFinal && this.outcome !== 'suppressed'
  }

  /** The error for the caller, with this failure as its cause. */
  toRelayError(): RelayError {
    const { outcome, wording, cause, limit } = this
    const isThrown = cause !== undefined && !(cause instanceof SendError)
    return new RelayError(outcome, wording && clauses(say(texts[outcome]), wording), {
      cause: this,
      ...limit && { headers: { 'retry-after': String(Math.ceil(limit.after / 1000)) } },
      // Adapters put the arguments of a call into the texts of their errors, so only the class of such an error is logged.
      ...wording !== undefined && isThrown && { logText: say('adapter-threw', { name: cause instanceof Error ? cause.name : typeof cause }) },
    })
  }
}

const texts = {
  refused: 'refused',
  suppressed: 'suppressed-by-plugin',
  unsent: 'nothing-sent-try-later',
  unanswered: 'may-have-arrived',
} as const satisfies Readonly<Record<SendFailure, TextId>>
