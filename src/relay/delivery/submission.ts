import { RelayError } from '../../errors'
import type { MessageRequest } from '../../message/model'
import type { Delivery } from './delivery'

/** What a caller wants to be sent, and how it wants to be told. */
export interface Submission {
  /** A UUIDv7: the ID of the delivery, and of its request in the log. */
  id: string
  request: MessageRequest
  /** What it came through, as its record tells: `webhook`, `send`, `hooks/<source>`, `onebot`, `commands` or `alert`. */
  door: string
  /** The name of the key of its caller; absent where that is the master key, or there is none. */
  caller?: string | null
  /**
   * Told the platform of the bot that is to send, as Koishi names it, before anything is stored or sent.
   *
   * @throws RelayError where the caller may not send to its target there
   */
  admit?: (platform: string) => void
  /** Its Idempotency-Key, which is one of its caller's own. */
  key?: string
  /**
   * Whether the key names an event that the caller may tell of several times: then what is to be sent is not compared, a repeat while the
   * first is under way is no conflict, and the key may be good for a shorter time, in milliseconds.
   */
  event?: { lifetime?: number }
  /**
   * Whether to answer before it is delivered, and how long to wait for the result first, in milliseconds. Without a database it is
   * refused, or where `inMemory` says how long to wait in that case, it is lost with the process.
   */
  deferred?: { wait: number, inMemory?: number }
  /** Aborted when the caller has gone away; only asked for where there is a wait. */
  signal?: () => AbortSignal
}

/** What the caller is told. */
export interface Submitted {
  delivery: Delivery
  /** Whether it tells of an earlier request with the same key, and nothing was sent now. */
  isReplay: boolean
  /** For a request with a key whose message may still arrive: after how many seconds it may be asked again. */
  retryAfter?: number
}

/**
 * The failure of a request whose key belongs to another one that is under way, or that meant something else.
 *
 * @param until after which time it may be over, in milliseconds
 */
export function keyConflict(isSame: boolean, until = 0): RelayError {
  if (!isSame) return new RelayError('key-reused')
  return new RelayError('in-progress', undefined, { headers: { 'retry-after': String(Math.max(Math.ceil(until / 1000), 1)) } })
}
