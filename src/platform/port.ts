import { RelayError } from '../errors'
import type { BotSelector, MediaItem, MentionItem, ParsedItem, ReplyItem, Target, TextItem } from '../message/model'

/**
 * What the relay knows of chat platforms. The core calls these interfaces; `koishi.ts` implements them for the bots of a Koishi app, and
 * `onebot/` what is particular to OneBot 11.
 */
export interface Port {
  /**
   * The bot that sends now: the one that was asked for, otherwise a OneBot bot, otherwise the first that is online.
   *
   * @throws RelayError `unsent` when no such bot is online
   */
  choose(selector: BotSelector): Account
  /**
   * The bot that is to send in time: one that is online, as `choose` has it, otherwise one that may come online.
   *
   * @throws RelayError `unsent` when there is no such bot at all
   */
  chooseLater(selector: BotSelector): Account
  /** The bot of this `sid`, online or not; `undefined` when there is none. */
  find(sid: string): Account | undefined
  /** Calls back with the `sid` of each bot that comes online; what it returns ends that. */
  onOnline(callback: (sid: string) => void): () => void
}

/** One account of the bot's on one platform. */
export interface Account {
  /** `platform:selfId`. */
  readonly sid: string
  /** As Koishi names it; empty where an adapter does not know yet. */
  readonly platform: string
  readonly isOnline: boolean
  /** Its ID on the platform. */
  readonly selfId: string
  /** What it is called there; empty where that is not known. */
  readonly name: string
  /**
   * Checks that a target, and those whom items mention, can exist on this platform, as far as that is known here.
   *
   * @throws RelayError `bad-request`
   */
  checkIds(target: Target, items: readonly ParsedItem[]): void
  /** One platform message made of these items; nothing is sent yet. */
  message(target: Target, items: readonly LoadedItem[]): Message
  /**
   * Takes a message back that was sent to this target.
   *
   * @throws SendError
   */
  recall(target: Target, messageId: string): Promise<void>
  /**
   * The groups that it is in, as targets can name them.
   *
   * @throws SendError
   */
  groups(): Promise<Contact[]>
  /**
   * Those with whom it has a private chat, as targets can name them.
   *
   * @throws SendError
   */
  friends(): Promise<Contact[]>
  /** The messages in a chat that a search after a restart could take for one that leaves now, by their IDs. */
  recent(target: Target): string[]
  /**
   * Calls back once when the bot is not online any more, at once if it is not; what it returns ends the watch. The callback must not
   * throw.
   */
  onOffline(callback: () => void): () => void
  /** Calls back once when the bot is online, at once if it is; what it returns ends the watch. The callback must not throw. */
  onOnline(callback: () => void): () => void
}

/** A group that an account is in (a channel, on other platforms), or a friend of it. */
export interface Contact {
  id: string
  /** Empty where it has none. */
  name: string
}

/** One platform message: how it is sent, and how it is found again when its answer did not come. It can be sent several times. */
export interface Message {
  /**
   * Makes the call. There need not be an end to it while the connection lasts: an answer counts however late it comes.
   *
   * @throws SendError
   */
  send(attempt: Attempt): Promise<Receipt>
  /**
   * Asks the platform once whether the message is there. A message that is found belongs to this one from then on.
   *
   * @param since when the first call was made, in milliseconds since the epoch
   * @param sends gives what is known to have been sent into the chat since then; only asked where the platform shows an equal message
   * @throws SendError when there is no connection, or no answer; whatever `sends` is rejected with
   */
  find(since: number, sends: SendsSince): Promise<Finding>
  /** Gives up a message that came as an answer, or was found, but that nobody recorded, so that a search may find it. */
  release(receipt: Receipt): void
}

/** What a call tells its caller. */
export interface Attempt {
  /**
   * To be called right before the call to the platform is made: from here on something may arrive.
   *
   * @throws when the attempt has been given up meanwhile, so that nothing is sent that nobody waits for
   */
  begin(): void
}

/** What the platform said of a message that it took. */
export interface Receipt {
  /** The IDs that the platform gave, in sending order; none for a file. */
  messageIds: string[]
  /** By what a message is known whose ID nobody is told: the ID that a search has found, otherwise how it was sent. */
  trace?: UnnamedSend | string
}

/** A send that succeeded without an ID: an upload, or a message whose answer had none. */
export interface UnnamedSend {
  /** A digest of what was sent, which only the platform reads. */
  content: string
  /** When the call was made and when it was answered, in milliseconds since the epoch, by the local clock. */
  since: number
  until: number
  /** How long it took by the monotonic clock, in milliseconds: the other may have been set meanwhile. Earlier releases did not note it. */
  took?: number
}

/** What is known to have been sent into a chat, by this process and by earlier ones. */
export interface KnownSends {
  /** Since when nothing is missing, in milliseconds since the epoch; `Infinity` where that is not known. */
  since: number
  messageIds: ReadonlySet<string>
  unnamed: readonly UnnamedSend[]
}

/** Gives what is known to have been sent into a chat since then, in milliseconds since the epoch. */
export type SendsSince = (since: number) => Promise<KnownSends>

/** What the platform's own records say of a message without an answer. */
export type Finding
  = | { kind: 'found' } & Receipt
  /** The records reach back far enough, and it is not in them. */
    | { kind: 'absent' }
  /** It is not in the records, but they may not reach back far enough; or what is there may as well be another one. */
    | { kind: 'inconclusive' }
  /** The platform has no records. */
    | { kind: 'no-history' }

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

/** How a send that did not succeed ended: refused by the platform, held back by another plugin, never sent, or without an answer. */
export type SendFailure = 'refused' | 'suppressed' | 'unsent' | 'unanswered'

/** What more is known of a failure. */
export interface SendErrorOptions extends ErrorOptions {
  /** Whether it says something about the target (muted, not a member, no such group), so that trying on is no use. */
  isAboutTarget?: boolean
  /** Whether to try again would do harm. */
  isFinal?: boolean
  /** Whether it had left before, without an answer, and was taken for lost. */
  hasLeft?: boolean
}

/** A send that failed, with what is known about whether anything arrived. */
export class SendError extends Error {
  override readonly name = 'SendError'
  readonly isAboutTarget: boolean
  /** Whether the same call may fare better the next time. */
  readonly isRetryable: boolean
  /** Whether the message had left before, without an answer, and was taken for lost. */
  readonly hasLeft: boolean

  /** @param wording the platform's own words, fit to be shown to the caller */
  constructor(readonly outcome: SendFailure, readonly wording?: string, options: SendErrorOptions = {}) {
    super(wording ?? outcome, options)
    this.isAboutTarget = options.isAboutTarget ?? false
    this.hasLeft = options.hasLeft ?? false
    this.isRetryable = !this.isAboutTarget && !options.isFinal && outcome !== 'suppressed'
  }

  /** The failure as the caller is told; its cause is this one. */
  toRelayError(): RelayError {
    const { outcome, wording, cause } = this
    return new RelayError(outcome, wording && `${texts[outcome]}: ${wording}`, {
      cause: this,
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
