import { RelayError } from '../errors'
import { digest } from '../lib/crypto'
import { writeLink } from '../message/link'
import type { MessageRequest, ParsedItem } from '../message/model'
import { writeTarget } from '../message/target'
import type { Delivery } from './delivery'
import type { CallOutcome } from './summary'

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
   * Told the platform of the bot that is to send, as Koishi names it, before anything is stored or sent.
   *
   * @throws RelayError where the caller may not send to its target there
   */
  admit?: (platform: string) => void
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

/** Checks whether the caller may send these items again through a bot of this platform. @throws RelayError */
export type AdmitRetry = (platform: string, items: readonly ParsedItem[]) => void

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

/**
 * What a request means, as a digest: the order of its fields does not count. An uploaded file counts by its content, because a job that is
 * run again uploads its file again and gets another ID; one that is not there counts by its ID.
 *
 * @param digestUpload gives a digest of the content of an uploaded file, `undefined` when there is no file with this ID
 */
export async function fingerprintOf({ mode, target, bot, items, expiresIn }: MessageRequest, digestUpload: DigestUpload): Promise<string> {
  const meanings: string[] = []
  for (const item of items) meanings.push(await digestItem(item, digestUpload))
  return digest(JSON.stringify([mode, writeTarget(target), bot.platform ?? null, bot.selfId ?? null, expiresIn ?? null, meanings]))
}

type DigestUpload = (id: string) => Promise<string | undefined>

async function digestItem(item: ParsedItem, digestUpload: DigestUpload): Promise<string> {
  if (item instanceof RelayError) return digest(`error ${item.code}\n`, item.message)
  if (item.type === 'text') return digest('text\n', item.text)
  if (item.type === 'at') return digest('at\n', item.userId ?? '')
  if (item.type === 'reply') return digest('reply\n', item.messageId)
  const { type, link } = item
  const written = writeLink(link)
  const content = link.kind === 'upload' ? await digestUpload(link.id) : undefined
  if (content === undefined) return digest(`${type}\n`, item.name === undefined ? '' : `${item.name}\n`, written)
  // Only a file is shown with its name, which ends its ID unless it has another one.
  const { name = written.slice(written.indexOf('/') + 1) } = item
  return digest(`${type}\n`, type === 'file' ? `/${name}` : '', `\n${content}`)
}
