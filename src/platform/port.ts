import { RelayError } from '../errors'
import { causes, type About, type CauseId } from '../message/causes'
import type { BotSelector, MediaItem, MentionItem, ParsedItem, ReplyItem, Target, TextItem } from '../message/model'

/**
 * What the relay knows of chat platforms. The core calls these interfaces; `koishi.ts` implements them for the bots of a Koishi app, and
 * `onebot/` what is particular to OneBot 11. The tests in simulated time implement them with a scripted platform.
 */
export interface Port {
  /**
   * The bot that sends now: the one that was asked for, otherwise a OneBot bot, otherwise the first that is online.
   *
   * @throws RelayError `unsent`, with the cause, when no such bot is online
   */
  choose(selector: BotSelector): Account
  /**
   * The bot for a message that may wait: one that is online, as `choose` has it, otherwise one that may come online.
   *
   * @throws RelayError `unsent` when there is no such bot at all
   */
  chooseLater(selector: BotSelector): Account
  /** The bot with this `sid`, online or not; `undefined` when there is none. */
  find(sid: string): Account | undefined
  /**
   * Calls back with each change of a bot's health; the function returned ends that. The callback must not throw. Other accounts may have
   * changed with it, and a call under way may still be answered where only the account is logged out.
   */
  onHealth(callback: (sid: string, isOnline: boolean) => void): () => void
  /** Calls back when a platform reports that it has closed a chat to an account, or opened it again; the function returned ends that. */
  onChat(callback: (sid: string, target: Target, closure: Closure | 'open') => void): () => void
}

/** One account of a bot on one platform. */
export interface Account {
  /** `platform:selfId`. */
  readonly sid: string
  /** As Koishi names it; empty until the adapter knows it. */
  readonly platform: string
  readonly health: Health
  /** Whether it can send now: its health is `online`. */
  readonly isOnline: boolean
  /** Its ID on the platform. */
  readonly selfId: string
  /** Its display name; empty where it has none. */
  readonly name: string
  /** Whether its adapter reads files itself, in this process: then it gets an uploaded file by its path, whatever `mediaTransport` says. */
  readonly readsFiles: boolean
  /** Whether it can send a file. */
  readonly takesFiles: boolean
  /** The most characters, in UTF-16 units, that a text may have to be one message; `Infinity` where that is unknown. */
  readonly longestText: number
  /**
   * Whether a text is sent again, unless the settings say otherwise, where nobody can tell whether it arrived: true where the platform can
   * usually be asked, or where a repeated call does no harm.
   */
  readonly retriesUnanswered: boolean
  /**
   * Checks what is to be sent before anything leaves.
   *
   * @returns the items, each that the platform cannot take replaced by a `bad-request` that says why
   * @throws RelayError `bad-request` where the target, or a user whom an item mentions, cannot exist on this platform
   */
  check(target: Target, items: readonly ParsedItem[]): readonly ParsedItem[]
  /**
   * One platform message made of these items; nothing is sent yet.
   *
   * @param name what the message is known by: equal for each call for it, also after a restart, and for no other message
   */
  message(target: Target, items: readonly LoadedItem[], name: string): Message
  /**
   * Changes a message that is there into these items, texts and mentions. Further calls do no harm. Absent where the platform has no such
   * call.
   *
   * @param name as for `message`
   */
  update?(target: Target, messageId: string, items: readonly LoadedItem[], name: string): Message
  /** How old its own message may be at most that it recalls, in milliseconds; 0 where it recalls none. */
  readonly recallableFor: number
  /**
   * Recalls a message that was sent to this target.
   *
   * @throws SendError
   */
  recall(target: Target, messageId: string): Promise<void>
  /**
   * Asks whether the platform takes messages to a chat now. Absent where it tells that only by refusing a message.
   *
   * @returns `undefined` where the platform cannot tell
   * @throws SendError
   */
  closure?(target: Target): Promise<Closure | 'open' | undefined>
  /**
   * The groups that it is in, as targets can name them. Absent where the platform has no list of them.
   *
   * @throws SendError
   */
  groups?(): Promise<Contact[]>
  /**
   * The users with whom it has a private chat, as targets can name them. Absent where the platform has no list of them.
   *
   * @throws SendError
   */
  friends?(): Promise<Contact[]>
}

/** Why a chat takes nothing from an account for a while. */
export interface Closure {
  cause: CauseId
  /** When that ends, in milliseconds since the epoch; `null` where the platform does not say. */
  until: number | null
}

/** Whether an account can send. */
export interface Health {
  /** `offline` also where the bot is connected, but its account is logged out or the platform answers nothing. */
  readonly state: 'online' | 'connecting' | 'offline'
  /** When it came online, or went offline, in milliseconds since the epoch. */
  readonly since: number
  /** Why it is not online: in the English words of `causes`, the platform's own after them. */
  readonly cause?: string
}

/** A group that an account is in (a channel, on other platforms), or a friend of it. */
export interface Contact {
  id: string
  /** Empty where it has none. */
  name: string
}

/** One platform message: how it is sent, and how it is looked for when no answer came. It can be sent several times. */
export interface Message {
  /** Equal for messages that look the same in the history of one chat. */
  readonly likeness: string
  /** For how long after its first call a further one cannot make a second message, in milliseconds; absent where it always can. */
  readonly idempotentFor?: number
  /**
   * Makes the call. Its answer counts however late it comes, for as long as the connection lasts.
   *
   * @param begin called right before the call is made: from then on the message may arrive. It throws when the attempt was given up
   *   meanwhile; then no call is made.
   * @throws SendError
   */
  send(begin: () => void): Promise<Receipt>
  /** The equal messages that the platform has reported by itself, the oldest first; absent where a platform never does. */
  reports?(): readonly Report[]
  /**
   * Asks the platform for the last so many messages of the chat. Absent where it has no history.
   *
   * @returns `undefined` where this message cannot be looked for
   * @throws SendError when there is no connection, no answer, or a failure
   */
  history?(count: number): Promise<HistoryPage | undefined>
}

/** What the platform said of a message that it took. */
export interface Receipt {
  /** The IDs that the platform gave, in sending order; none for a file. */
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
  /** When the oldest message of the page was sent, whoever sent it, by the platform's clock; `Infinity` for an empty page. */
  oldest: number
  /** Whether every message of the bot's own account could be read. */
  isReadable: boolean
}

export interface HistoryEntry {
  id: string
  /** Milliseconds since the epoch by the platform's clock, which may show whole seconds only. */
  time: number
  /** Whether it looks like the message that is looked for. */
  isEqual: boolean
  /** Whether the server of the platform has seen it; without that it may exist for the client alone, which is how risk control blocks. */
  isSeen: boolean
}

/** An item in the form in which the platform gets it. */
export type LoadedItem = TextItem | MentionItem | ReplyItem | LoadedMedia

export interface LoadedMedia {
  type: MediaItem['type']
  /** `http(s)://`, `file://` or `data:` with base64. */
  src: string
  /** The absolute path on this machine's disk, where the platform is expected to read it there. */
  path?: string
  /** The name that the platform shows for a file. */
  name: string
}

/** How a send failed: refused by the platform, suppressed by another plugin, never sent, or without an answer. */
export type SendFailure = 'refused' | 'suppressed' | 'unsent' | 'unanswered'

/** A platform wants no further calls for a while, because too many came. */
export interface Limit {
  /** Whether it concerns one chat, or all chats of the account. */
  scope: 'chat' | 'account'
  /** For how long, in milliseconds. */
  after: number
}

/** The longest limit that a waiting caller, or the rest of a divided message, waits for, in milliseconds. */
export const longestLimit = 10_000

/** What more is known of a failure. */
export interface SendErrorOptions extends ErrorOptions {
  causeId?: CauseId | undefined
  /** Where it is `unsent` because of a limit, or the rest of a divided message is. */
  limit?: Limit | undefined
  /** Whether a further call would do harm, or could not succeed. */
  isFinal?: boolean | undefined
}

/** A send that failed. */
export class SendError extends Error {
  override readonly name = 'SendError'
  /** Why it failed, where the platform tells it in a way that the relay knows. */
  readonly causeId: CauseId | undefined
  /** The cause in plain English, then the platform's own words; fit to be shown to the caller. */
  readonly wording: string | undefined
  readonly limit: Limit | undefined
  private readonly isFinal: boolean

  /** @param words the platform's own words, fit to be shown to the caller */
  constructor(readonly outcome: SendFailure, words?: string, { causeId, limit, isFinal = false, ...options }: SendErrorOptions = {}) {
    const plain = causeId && causes[causeId].en
    const wording = plain && words ? `${plain}${causeId === 'unreachable' ? `: ${words}` : ` (platform: "${words}")`}` : plain ?? words
    super(wording ?? outcome, options)
    this.causeId = causeId
    this.wording = wording
    this.limit = limit
    this.isFinal = isFinal
  }

  /** What it is about. */
  get about(): About {
    return this.causeId ? causes[this.causeId].about : 'unknown'
  }

  /** The failure that ended it: a refusal may stand behind one that is unanswered because of an earlier call. */
  get last(): SendError {
    return this.cause instanceof SendError ? this.cause : this
  }

  /** Whether it is about the chat (muted, not a member, no such group), so that further calls into it are no use now. */
  get isAboutTarget(): boolean {
    return this.about === 'chat-closed' || this.about === 'chat-gone'
  }

  /** Whether the same call may succeed the next time. */
  get isRetryable(): boolean {
    return !this.isAboutTarget && this.about !== 'account' && !this.isFinal && this.outcome !== 'suppressed'
  }

  /** The failure as the caller is told; its cause is this one. */
  toRelayError(): RelayError {
    const { outcome, wording, cause, limit } = this
    return new RelayError(outcome, wording && `${texts[outcome]}: ${wording}`, {
      cause: this,
      ...limit && { headers: { 'retry-after': String(Math.ceil(limit.after / 1000)) } },
      // Adapters write all arguments of a call into the texts of what they throw, so only the class of such an error is logged.
      ...wording !== undefined && cause !== undefined && { logText: `the adapter threw ${cause instanceof Error ? cause.name : typeof cause}` },
    })
  }
}

const texts: Readonly<Record<SendFailure, string>> = {
  refused: 'the platform refused the message',
  suppressed: 'another plugin of the bot suppressed the message',
  unsent: 'nothing was sent, try again later',
  unanswered: 'the message may have arrived',
}
