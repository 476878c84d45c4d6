import type { Log } from '../lib/log'
import type { Language } from '../texts/language'
import type { LongText, MessageRequest, ParsedItem, Target } from '../message/model'
import type { Port } from '../platform/port'
import type { Clock } from './clock'
import type { Store, Writer } from './store/store'
import type { Delivery } from './delivery/delivery'
import type { CallOutcome, RecordContent } from './delivery/summary'

/** The request of a caller to the core. */
export interface Submission {
  /** A UUIDv7: the ID of the delivery, and of its request in the log. */
  id: string
  request: MessageRequest
  /** Its door, such as `webhook`, `send`, `hooks/<source>`, `onebot`, `commands` or `alert`. */
  door: string
  /** The name of the caller's key; absent for the master key, and for submissions that did not come over HTTP. */
  caller?: string | null
  /**
   * Called with the target, and the number of items that long texts add, before anything is stored or sent.
   *
   * @throws RelayError if the caller may not send there
   */
  admit?: (reach: Reach, added: number) => void
  /**
   * Completes the request in the tick in which it is accepted. It is not called for a repeat of an Idempotency-Key, which is compared with
   * the request as its caller gave it.
   *
   * @throws RelayError to refuse it
   */
  complete?: (request: MessageRequest) => MessageRequest
  /** The Idempotency-Key. Each caller has keys of its own. */
  key?: string
  /**
   * Marks the key as that of an event, which its source may report repeatedly: the content is not compared, a repeat during the first
   * request is no conflict, and the key may have a shorter lifetime, in milliseconds.
   */
  event?: { lifetime?: number }
  /** Answers after at most `wait` milliseconds, delivered or not. */
  deferred?: { wait: number }
  /** Gives a signal that is aborted when the caller disconnects. Only called if the submission has to wait. */
  signal?: () => AbortSignal
}

/** The answer to a submission. */
export interface Submitted {
  delivery: Delivery
  /** Whether the answer comes from an earlier request with the same key, so that nothing was sent now. */
  isReplay: boolean
  /** After how many seconds the caller may repeat the key, if the message may still arrive. */
  retryAfter?: number
}

/** A target, and the platform of the sending bot, as Koishi names it. */
export interface Reach { target: Target, platform: string }

/** Checks that the caller may send these items to this target again. @throws RelayError */
export type AdmitRetry = (reach: Reach, items: readonly ParsedItem[]) => void

/** What a look-up shows. */
export interface Finding {
  /** `local`: only the platform's client has the message. `silent`: the platform did not answer, or could not be asked. */
  kind: 'found' | 'local' | 'absent' | 'inconclusive' | 'no-history' | 'silent'
  /** The IDs of a message that was found; none for a file, whose ID in the history is not the one that callers know. */
  messageIds: readonly string[]
  /**
   * Until when the message may be sent again, on the monotonic clock. `Infinity` if it is absent and cannot arrive any more, or if the
   * look-up cannot tell and the settings take that risk. Otherwise as long as the platform recognizes a repeated call.
   */
  repeatableUntil: number
}

/** Observes the events of the core. Its methods return fast and do not throw. */
export interface Observer {
  /** A delivery that is kept in the file is being accepted. Called inside that commit: what this writes counts if the delivery does. */
  accepted: (writer: Writer, delivery: Delivery, request: MessageRequest) => void
  /** A delivery is new, also one that was refused and has a record, or has changed. @param before how it was; absent for a new one */
  changed: (delivery: Delivery, before?: Pick<Delivery, 'mode' | 'state' | 'results'>) => void
  /** The end of a delivery is being written, likewise inside the commit. A correction, or an end after a retry, is written again. */
  recorded: (writer: Writer, delivery: Delivery) => void
  /** A delivery has ended, so many milliseconds after its acceptance. After a retry, it ends again. */
  ended: (delivery: Delivery, time: number) => void
  /** A call to the platform has ended, or was given up, after so many milliseconds. */
  called: (outcome: CallOutcome, time: number) => void
  /** A look-up for a message has ended. */
  lookedUp: (finding: Finding['kind']) => void
  /** A queue was paused, or its pause started anew after a further failure. */
  paused: () => void
}

/** Combines observers. */
export function tellAll(observers: readonly Partial<Observer>[]): Observer {
  return {
    accepted: (writer, delivery, request) => observers.forEach(observer => observer.accepted?.(writer, delivery, request)),
    changed: (delivery, before) => observers.forEach(observer => observer.changed?.(delivery, before)),
    recorded: (writer, delivery) => observers.forEach(observer => observer.recorded?.(writer, delivery)),
    ended: (delivery, time) => observers.forEach(observer => observer.ended?.(delivery, time)),
    called: (outcome, time) => observers.forEach(observer => observer.called?.(outcome, time)),
    lookedUp: finding => observers.forEach(observer => observer.lookedUp?.(finding)),
    paused: () => observers.forEach(observer => observer.paused?.()),
  }
}

/** The rules for calls and their repetition. Times are in milliseconds. */
export interface Policy {
  /** The time-out of a call. */
  timeout: number
  /** How many further calls a message may have after the first. */
  retries: number
  /** Whether to call again when no look-up can tell whether a message arrived: for all, or by platform. The account has the default. */
  retryUnanswered: boolean | Readonly<Record<string, boolean>>
  /** The least time in which the platform may still carry out a call without an answer. */
  settleTime: number
}

/** The rules for queues. Times are in milliseconds. */
export interface QueueOptions {
  /** The least time from the end of a call to the next one in the same queue. */
  interval: number
  /** The least time between the platform messages of an account, in all its queues. */
  accountInterval: number
  /** The most waiting deliveries of a queue. */
  capacity: number
  /** After how many failures in a row that are about its target a queue pauses. */
  pauseAfter: number
  /** The length of a pause. */
  pauseFor: number
}

/** An uploaded file, as a send needs it. */
export interface StoredFile {
  id: string
  /** Absolute. */
  path: string
  name: string
  /** In bytes. */
  size: number
}

/** How media are prepared. */
export interface MediaOptions {
  /** How an uploaded file reaches the platform: it shares the disk, receives the bytes, or downloads them from a link. */
  transport: 'path' | 'base64' | 'url'
  /** @throws RelayError `file-not-found` */
  resolve: (id: string) => Promise<StoredFile>
  /** A signed link to an uploaded file. */
  link: (file: StoredFile) => string
}

/** The part of the upload folder that the core uses. */
export interface Files {
  /** Keeps a file from being removed until the returned function is called. */
  hold: (id: string) => () => void
  /** Keeps a file at least until a time in milliseconds since the epoch. @throws RelayError `file-not-found` */
  keepUntil: (id: string, until: number) => Promise<void>
  /** A hash of its content; `undefined` if there is no such file. */
  hash: (id: string) => Promise<string | undefined>
}

/** The data for the text of a digest. */
export interface DigestView {
  /** The number of its members. */
  count: number
  /** When the first of them was accepted or scheduled, in milliseconds since the epoch. */
  since: number
  /** Why they are late; absent if they are not. */
  delay?: Delay | undefined
  /**
   * A line per thread, and per text without one, the newest last: what it shows of the newest text, that text as a whole, and the number of
   * texts.
   */
  lines: { text: string, message: string, count: number }[]
  /** The number of members that are not shown. */
  more: number
}

/** The door of the relay's own alerts. */
export const alertDoor = 'alert'

/** Why the deliveries of a queue are late. */
export type Delay = 'offline' | 'closed' | 'restarted' | 'failed'

/** The rules for digests. */
export interface DigestOptions {
  /** The most late texts of hooks that leave by themselves; more leave in a digest. 0 turns this off. */
  backlog: number
  /** Makes the text, in this language or else in that of the bot. Must not fail. */
  write: (view: DigestView, language: Language | undefined) => Promise<string>
}

/** The options of the relay, shared by all its parts. */
export interface RelayOptions {
  clock: Clock
  port: Port
  policy: Policy
  queue: QueueOptions
  digest: DigestOptions
  media: MediaOptions
  files: Files
  logger: Pick<Log, 'info' | 'warn'>
  observer: Observer
  /** The form of texts that are too long for their platform. If empty, the door decides. */
  longText: LongText | ''
  recordContent: RecordContent
  /** How long records are kept, in milliseconds, and how many of them. */
  retention: number
  recordLimit: number
  /** Counts work that a stop waits for. The returned function ends it. Returns `undefined` once no more work may start. */
  enter: () => (() => void) | undefined
}

/** The same while the relay runs, with its store. */
export interface RunningOptions extends RelayOptions {
  store: Store
  /** Aborted when all work stops. */
  stop: AbortSignal
}
