import { RelayError } from '../errors'
import type { Outbox } from './outbox'
import type { DeliveryRecord } from './delivery'

/** What a timer can wait at most, in milliseconds; one for longer goes off at once. */
const longestTimer = 2 ** 31 - 1

/** Says when a request need not wait for its turn any more: its caller has gone away, or its time is over. */
export class Deadline {
  private readonly until: number
  private timer: NodeJS.Timeout | undefined

  /**
   * @param gone the caller has gone away; only asked for where there is a wait
   * @param time from now, in milliseconds
   */
  constructor(private readonly gone: () => AbortSignal, time: number | undefined) {
    this.until = time === undefined ? Infinity : Date.now() + time
  }

  signal(): AbortSignal {
    const gone = this.gone()
    if (this.until === Infinity) return gone
    const controller = new AbortController()
    gone.addEventListener('abort', () => controller.abort())
    if (gone.aborted) controller.abort()
    this.timer = setTimeout(() => controller.abort(new RelayError('expired')), Math.min(this.until - Date.now(), longestTimer))
    return controller.signal
  }

  end(): void {
    clearTimeout(this.timer)
  }
}

/** The result of a deferred delivery, watched for from before it can be there. */
export class Result {
  private readonly unwatch: () => void
  private tell: ((record?: DeliveryRecord) => void) | undefined
  private told: { record: DeliveryRecord | undefined } | undefined

  constructor(outbox: Outbox, id: string) {
    this.unwatch = outbox.watch(id, record => {
      this.told = { record }
      this.tell?.(record)
    })
  }

  /**
   * Waits for it, but no longer than this, nor than the caller or the relay.
   *
   * @param patience in milliseconds
   */
  within(patience: number, gone: AbortSignal): Promise<DeliveryRecord | undefined> {
    return new Promise(resolve => {
      const end = (record?: DeliveryRecord): void => {
        clearTimeout(timer)
        gone.removeEventListener('abort', onGone)
        resolve(record)
      }
      const onGone = (): void => end()
      const timer = setTimeout(onGone, patience)
      gone.addEventListener('abort', onGone)
      this.tell = end
      if (this.told) end(this.told.record)
    })
  }

  end(): void {
    this.unwatch()
  }
}
