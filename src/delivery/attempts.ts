import { RelayError } from '../errors'
import { backoff } from './backoff'
import { classifyThrown, SendError, type Receipt } from './outcome'

/** What one attempt tells its runner. */
export interface Attempt {
  /**
   * To be called right before the call to the platform is made: from here on something may arrive.
   *
   * @throws when the attempt has been given up meanwhile, so that nothing leaves behind the caller's back
   */
  begin(): void
}

/** How a call is repeated (contract, "Timeouts and retries"). */
export interface AttemptPolicy {
  /** How long each call may take, in milliseconds. */
  timeout: number
  /** How many further attempts there are after the first. */
  retries: number
  /** Ends everything at once when the relay stops. */
  stop: AbortSignal
}

/**
 * Makes a call until it succeeds or the attempts are used up. The answer to an earlier attempt still counts when it arrives
 * late.
 *
 * @throws SendError with what is known of all attempts together: once one of them may have arrived, it is `unanswered`
 * @throws RelayError `stopping` when the relay stops before anything was sent
 */
export function runAttempts(call: (attempt: Attempt) => Promise<Receipt>, policy: AttemptPolicy): Promise<Receipt> {
  return new Promise((resolve, reject) => {
    const { timeout, retries, stop } = policy
    /** The attempts that were sent and have had no answer yet. */
    const open = new Set<number>()
    let count = 0
    let running = 0
    /** Whether the platform itself could not say of some attempt whether the message arrived. */
    let uncertain = false
    let timer: NodeJS.Timeout | undefined

    function end(): void {
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
      count = Infinity
      running = 0
    }

    function fail(failure: SendError): void {
      running = 0
      clearTimeout(timer)
      uncertain ||= failure.outcome === 'unanswered' && open.size === 0
      if (failure.isRetryable && count <= retries) {
        timer = setTimeout(start, backoff(count, Math.random()))
        return
      }
      end()
      const mayHaveArrived = open.size > 0 || uncertain
      reject(mayHaveArrived && failure.outcome !== 'unanswered' ? new SendError('unanswered', undefined, false, { cause: failure }) : failure)
    }

    function onStop(): void {
      const mayHaveArrived = open.size > 0 || uncertain
      end()
      reject(mayHaveArrived ? new SendError('unanswered') : new RelayError('stopping'))
    }

    function start(): void {
      const mine = running = ++count
      timer = setTimeout(() => {
        fail(open.has(mine) ? new SendError('unanswered') : new SendError('unsent', 'another plugin of the bot held the message back'))
      }, timeout)
      const attempt: Attempt = {
        begin() {
          if (running !== mine) throw new SendError('unsent')
          open.add(mine)
        },
      }
      call(attempt).then(receipt => {
        if (count === Infinity) return
        end()
        resolve(receipt)
      }, (error: unknown) => {
        open.delete(mine)
        if (running === mine) fail(classifyThrown(error))
      })
    }

    if (stop.aborted) {
      reject(new RelayError('stopping'))
      return
    }
    stop.addEventListener('abort', onStop)
    start()
  })
}
