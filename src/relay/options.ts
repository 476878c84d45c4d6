import type { Logger } from 'koishi'
import type { Language } from '../lib/language'
import type { LongText, MessageRequest, ParsedItem, Target } from '../message/model'
import type { Port } from '../platform/port'
import type { Clock } from './clock'
import type { Delivery } from './delivery'
import type { CallOutcome, RecordContent } from './summary'

/** What a caller wants sent, and how it wants to be told. */
export interface Submission {
  /** A UUIDv7: the ID of the delivery, and of its request in the log. */
  id: string
  request: MessageRequest
  /** What it came through: `webhook`, `send`, `hooks/<source>`, `onebot`, `commands` or `alert`. */
  door: string
  /** The name of the caller's key; absent for the master key, and for what did not come over HTTP. */
  caller?: string | null
  /**
   * Told where the message is to go, and how many items long texts add, before anything is stored or sent.
   *
   * @throws RelayError where the caller may not send there
   */
  admit?: (way: Way, added: number) => void
  /** Its Idempotency-Key. It belongs to the caller. */
  key?: string
  /**
   * The key names an event that its source may report several times: the content is not compared, a repeat under way is no conflict, and
   * the key may live for a shorter time, in milliseconds.
   */
  event?: { lifetime?: number }
  /**
   * Answer before it is delivered, after waiting so many milliseconds for the result. Without a database it is refused, or where
   * `inMemory` says how long to wait in that case, it is lost with the process.
   */
  deferred?: { wait: number, inMemory?: number }
  /** Aborted when the caller has gone away; only called where there is a wait. */
  signal?: () => AbortSignal
}

/** What the caller is told. */
export interface Submitted {
  delivery: Delivery
  /** Whether it is about an earlier request with the same key, and nothing was sent now. */
  isReplay: boolean
  /** After how many seconds the key may be asked again, where its message may still arrive. */
  retryAfter?: number
}

/** A target, and the platform of the bot that is to send, as Koishi names it. */
export interface Way { target: Target, platform: string }

/** Checks whether the caller may send these items again there. @throws RelayError */
export type AdmitRetry = (way: Way, items: readonly ParsedItem[]) => void

/** What a look-up brought; `local` when only the client of the platform has the message, `silent` when the platform did not answer it. */
export type LookUp = 'found' | 'local' | 'absent' | 'inconclusive' | 'no-history' | 'silent'

/** Is told what happens in the relay, as it happens. What it does is quick, and does not throw. */
export interface Observer {
  /** A delivery has ended, this many milliseconds after it was accepted. One that is sent again ends again. */
  ended: (delivery: Delivery, time: number) => void
  /** A call to the platform has ended, or was given up, after this many milliseconds. */
  called: (outcome: CallOutcome, time: number) => void
  /** The platform was asked whether a message without an answer has arrived. */
  lookedUp: (finding: LookUp) => void
  /** A lane was paused, or its pause was prolonged because its target failed again. */
  paused: () => void
}

/** Tells each of these observers what it wants to know. */
export function tellAll(observers: readonly Partial<Observer>[]): Observer {
  return {
    ended: (delivery, time) => observers.forEach(observer => observer.ended?.(delivery, time)),
    called: (outcome, time) => observers.forEach(observer => observer.called?.(outcome, time)),
    lookedUp: finding => observers.forEach(observer => observer.lookedUp?.(finding)),
    paused: () => observers.forEach(observer => observer.paused?.()),
  }
}

/** How calls are made and repeated. Times are in milliseconds. */
export interface Policy {
  /** How long each call may take. */
  timeout: number
  /** How many further calls a message has after the first. */
  retries: number
  /** Whether to call again where nobody can tell whether the message arrived: for all, or by platforms, and else as accounts do. */
  retryUnanswered: boolean | Readonly<Record<string, boolean>>
  /** How long the platform may still carry out a call without an answer, at least. */
  settleTime: number
}

/** How lanes are worked. Times are in milliseconds. */
export interface LaneOptions {
  /** The least time from the end of a call to the next one in the same lane. */
  interval: number
  /** How many deliveries may wait in a lane. */
  capacity: number
  /** After how many failures in a row that are about its target a lane is paused. */
  pauseAfter: number
  /** For how long. */
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

/** What the preparation of media needs from elsewhere. */
export interface MediaOptions {
  /** How an uploaded file reaches the platform: it sees the same disk, or gets the bytes, or fetches them by a link. */
  transport: 'path' | 'base64' | 'url'
  /** @throws RelayError `file-not-found` */
  resolve: (id: string) => Promise<StoredFile>
  /** A signed link to an uploaded file. */
  link: (file: StoredFile) => string
}

/** The upload folder, as far as the core uses it. */
export interface Files {
  /** Keeps a file from being removed until the function returned is called. */
  hold: (id: string) => () => void
  /** Keeps a file at least until then, in milliseconds since the epoch. @throws RelayError `file-not-found` */
  keepUntil: (id: string, until: number) => Promise<void>
  /** A digest of its content; `undefined` when there is no such file. */
  digest: (id: string) => Promise<string | undefined>
}

/** What the text of a digest is made of. */
export interface DigestView {
  /** How many deliveries leave as one message. */
  count: number
  /** When the first of them was accepted, in milliseconds since the epoch. */
  since: number
  /** Why they are late, where they are. */
  delay?: Delay | undefined
  /** A line for each thread, and for each text without one, the newest last: how it begins, and how many there were. */
  lines: { text: string, count: number }[]
  /** How many are not shown. */
  more: number
}

/** The door of what the relay itself has to say. */
export const alertDoor = 'alert'

/** Why what waits in a lane is late. */
export type Delay = 'offline' | 'closed' | 'restarted' | 'failed'

/** What digests go by. */
export interface DigestOptions {
  /** More texts than this that came through hooks and are late leave as one; 0 for never. */
  backlog: number
  /** Makes the text, in the language of the bot unless another one is given. It must not fail. */
  write: (view: DigestView, language: Language | undefined) => Promise<string>
}

/** What the relay works by, and each part of it. */
export interface RelayOptions {
  clock: Clock
  port: Port
  policy: Policy
  lane: LaneOptions
  digest: DigestOptions
  media: MediaOptions
  files: Files
  logger: Pick<Logger, 'info' | 'warn'>
  observer: Observer
  /** How texts leave that are longer than their platform takes; as the door has it where empty. */
  longText: LongText | ''
  recordContent: RecordContent
  /** How long records are kept, in milliseconds. */
  retention: number
  /** Counts what a stop gives some time to end; what is returned is called at the end. `undefined` once nothing more may begin. */
  enter: () => (() => void) | undefined
}

/** The same while the relay runs. */
export interface RunningOptions extends RelayOptions {
  /** Aborted when everything ends at once. */
  stop: AbortSignal
}
