import { RelayError } from '../errors'
import { onAbort } from '../lib/abort'
import { longestTimer } from '../lib/async'
import type { Delivery } from './delivery/delivery'
import type { Outcomes } from './sending/outcomes'

/** Says when a request need not wait for its turn any more: its caller has gone away, or its time is over. */
export class Deadline {
  private readonly until: number
  private timer: NodeJS.Timeout | undefined

  /** @param time from now, in milliseconds */
  constructor(private readonly gone: (() => AbortSignal) | undefined, time: number | undefined) {
    this.until = time === undefined ? Infinity : performance.now() + time
  }

  /** `undefined` where nothing ends its wait. */
  signal(): AbortSignal | undefined {
    const gone = this.gone?.()
    if (this.until === Infinity) return gone
    const controller = new AbortController()
    gone?.addEventListener('abort', () => controller.abort())
    if (gone?.aborted) controller.abort()
    this.timer = setTimeout(() => controller.abort(new RelayError('expired')), Math.min(this.until - performance.now(), longestTimer))
    return controller.signal
  }

  end(): void {
    clearTimeout(this.timer)
  }
}

/** The result of a deferred delivery, watched for from before it can be there. */
export class Result {
  private readonly unwatch: () => void
  private tell: ((delivery?: Delivery) => void) | undefined
  private delivery: Delivery | undefined

  constructor(outcomes: Outcomes, id: string) {
    this.unwatch = outcomes.watch(id, delivery => {
      this.delivery = delivery
      this.tell?.(delivery)
    })
  }

  /**
   * Waits for it, but no longer than this, nor than the caller or the relay.
   *
   * @param patience in milliseconds
   */
  within(patience: number, gone: AbortSignal | undefined, stop: AbortSignal): Promise<Delivery | undefined> {
    return new Promise(resolve => {
      const end = (delivery?: Delivery): void => {
        clearTimeout(timer)
        for (const unwatch of watches) unwatch()
        resolve(delivery)
      }
      const giveUp = (): void => end()
      const timer = setTimeout(giveUp, patience)
      const watches = [gone, stop].flatMap(signal => signal ? [onAbort(signal, giveUp)] : [])
      this.tell = end
      if (this.delivery) end(this.delivery)
      else if (stop.aborted) end()
    })
  }

  end(): void {
    this.unwatch()
  }
}
