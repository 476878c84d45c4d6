import type { Logger } from 'koishi'
import { RelayError } from '../../errors'
import { sleep } from '../../lib/async'
import type { InFlight } from '../../lib/in-flight'
import type { KnownSends, Port } from '../../platform/port'
import type { RecordContent } from '../delivery/about'
import type { Delivery } from '../delivery/delivery'
import type { DigestUpload } from '../delivery/fingerprint'
import type { Observer } from '../delivery/observer'
import type { Clock } from '../store/clock'
import type { SentLog } from '../store/sent-log'
import type { AttemptPolicy } from './attempts'
import type { MediaOptions } from './media'
import type { OpenCalls } from './open-calls'

/**
 * What the parts of the relay share. It is one object for as long as the app runs: a reload of the plugin changes its fields, and what is
 * under way goes on by them.
 */
export interface Runtime {
  port: Port
  clock: Clock
  policy: AttemptPolicy
  media: MediaOptions
  sentLog: SentLog
  openCalls: OpenCalls
  /**
   * What is known to have been sent to the target of a delivery, through its bot, since then, in milliseconds since the epoch by the
   * machine's clock. Rejects with the error of the database.
   */
  knownSends: (delivery: Delivery, since: number) => Promise<KnownSends>
  logger: Logger
  /** What a stop gives some time to end. */
  inFlight: InFlight
  /** Keeps an uploaded file from being removed until the function returned is called. */
  holdUpload: (id: string) => () => void
  /** Keeps an uploaded file at least until then, in milliseconds since the epoch. */
  keepUpload: (id: string, until: number) => Promise<void>
  digestUpload: DigestUpload
  /** How long records are kept in a database, in milliseconds. */
  retention: number
  /** How much the records keep of what was to be sent. */
  recordContent: RecordContent
  observer: Observer
  /** Aborted when everything has to end at once. */
  stop: AbortSignal
  /** Whether nothing more is to be begun that nobody waits for. */
  isPaused: boolean
}

/** How long to wait before trying again what failed here and not at the platform, in milliseconds. */
export const retryDelay = 1_000

/**
 * Does something with the database, however long that takes to come back.
 *
 * @param onFailure told of each failure
 * @throws RelayError `stopping` when it is not back before the stop
 */
export async function persist<T>(runtime: Pick<Runtime, 'logger' | 'stop'>, work: () => Promise<T> | T, onFailure?: () => void): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await work()
    } catch (error) {
      if (failures === 0) runtime.logger.warn('%s', `the database does not answer: ${nameOf(error)}`)
    }
    onFailure?.()
    await sleep(retryDelay, runtime.stop)
    if (runtime.stop.aborted) throw new RelayError('stopping')
  }
}

/** Names an error of the database. Its text may hold the values of a statement, and with them messages. */
export function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const code: unknown = Reflect.get(error, 'code')
  return typeof code === 'string' || typeof code === 'number' ? `${error.name} ${code}` : error.name
}
