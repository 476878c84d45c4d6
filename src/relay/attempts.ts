import { RelayError } from '../errors'
import { backoff } from './backoff'
import { SendError, type Receipt } from '../platform/port'
import { classifyThrown } from '../platform/failure'

/** What one attempt tells its runner. */
export interface Attempt {
  /**
   * To be called right before the call to the platform is made: from here on something may arrive.
   *
   * @throws when the attempt has been given up meanwhile, so that nothing leaves behind the caller's back
   */
  begin(): void
}

/** What the platform's own records say of a message that went unanswered. */
export type Finding = { kind: 'found', messageIds: string[] } | { kind: 'absent' } | { kind: 'no-history' }

/** One platform message on its way through one bot. */
export interface Passage {
  /** Makes the call. */
  call(attempt: Attempt): Promise<Receipt>
  /**
   * Asks the platform once whether the message is there.
   *
   * @param since when the first call was made, in milliseconds since the epoch
   * @throws when there is no connection, or no answer
   */
  lookUp(since: number): Promise<Finding>
  /** Lets go of a message that nobody takes for the answer to this one any more, so that a look-up finds it. */
  disown(receipt: Receipt): void
  /** Calls back once when the connection is lost; what it returns ends the watch. */
  onLost(callback: () => void): () => void
  /** Calls back once when the connection is there, at once if it is; what it returns ends the watch. */
  onConnected(callback: () => void): () => void
}

/** How calls are repeated (contract, "Timeouts and retries"). */
export interface AttemptPolicy {
  /** How long each call may take, in milliseconds. */
  timeout: number
  /** Whether to repeat a call that went unanswered when the platform has no history to tell. */
  retryUnanswered: boolean
  /** The least time from the end of an attempt to the next, in milliseconds. */
  interval: number
  /** Ends everything at once when the relay stops. */
  stop: AbortSignal
}

/** One message that is to be sent. */
export interface Sending {
  /** How many further attempts there are after the first. */
  retries: number
  /** When it was on its way before the process ended, in milliseconds since the epoch: it is looked up first. */
  doubtfulSince: number | undefined
  /** Told of each call right before it is made; what it throws keeps it from being made. */
  onAttempt: () => void
  /** Told when the answer comes after the send was given up as unanswered; says whether that was taken down. */
  onLate: (receipt: Receipt) => Promise<boolean>
}

/** The most time kept back at the end of a send for asking the history, in milliseconds. */
const longestInquiry = 1_500
/** The most time between two questions to the history, which may not show a message at once, in milliseconds. */
const longestMoment = 1_000

/**
 * Makes a call until it succeeds or the attempts are used up. A call that went unanswered is looked up before it is repeated,
 * and its answer still counts when it arrives late.
 *
 * @throws SendError with what is known of all attempts together: once one of them may have arrived, it is `unanswered`
 * @throws RelayError `stopping` when the relay stops before anything was sent
 */
export function runAttempts(passage: Passage, sending: Sending, policy: AttemptPolicy): Promise<Receipt> {
  return new Promise((resolve, reject) => {
    // What was on its way before may have arrived, whether or not there is still time to look.
    if (policy.stop.aborted) reject(sending.doubtfulSince === undefined ? new RelayError('stopping') : new SendError('unanswered'))
    else new Run(passage, sending, policy, resolve, reject).begin()
  })
}

class Run {
  /** The attempts that were sent and may have arrived, as far as is known. */
  private readonly open = new Set<number>()
  private count = 0
  /** The attempt that is under way, 0 between attempts. */
  private current = 0
  private ended = false
  private timer: NodeJS.Timeout | undefined
  private unwatch: (() => void) | undefined
  /** When the first call was made. */
  private since = 0
  /** A send never takes longer than all its attempts together. */
  private readonly deadline: number

  constructor(
    private readonly passage: Passage,
    private readonly sending: Sending,
    private readonly policy: AttemptPolicy,
    private readonly resolve: (receipt: Receipt) => void,
    private readonly reject: (error: Error) => void,
  ) {
    let patience = policy.timeout
    for (let failures = 1; failures <= sending.retries; failures++) {
      patience += Math.max(backoff(failures, 1), policy.interval) + policy.timeout
    }
    this.deadline = Date.now() + patience
    policy.stop.addEventListener('abort', this.onStop)
  }

  begin(): void {
    const { doubtfulSince } = this.sending
    if (doubtfulSince === undefined) {
      this.start()
      return
    }
    this.since = doubtfulSince
    this.open.add(0)
    void this.inquire(new SendError('unanswered'))
  }

  private start(): void {
    const mine = this.current = ++this.count
    const { timeout } = this.policy
    // The last call is given up a little earlier, so that there is time to ask; its answer still counts until the deadline.
    const kept = this.isLast ? Math.min(longestInquiry, timeout / 3) : 0
    this.wait(Math.min(timeout, this.deadline - Date.now() - kept), () => this.onFailure(this.open.has(mine)
      ? new SendError('unanswered')
      : new SendError('unsent', 'another plugin of the bot held the message back')))
    const begin = (): void => {
      if (this.current !== mine) throw new SendError('unsent')
      this.sending.onAttempt()
      this.open.add(mine)
      this.since ||= Date.now()
      const unwatch = this.passage.onLost(() => this.onFailure(new SendError('unanswered', 'the connection was lost')))
      // It may be lost already, and the next watch begun.
      if (this.current === mine) this.unwatch = unwatch
    }
    this.passage.call({ begin }).then(receipt => this.onSuccess(receipt), (error: unknown) => {
      const failure = classifyThrown(error)
      if (failure.outcome !== 'unanswered') this.open.delete(mine)
      if (this.current === mine) this.onFailure(failure)
    })
  }

  private get isLast(): boolean {
    return this.count > this.sending.retries
  }

  private readonly onStop = (): void => {
    this.end()
    this.reject(this.open.size > 0 ? new SendError('unanswered') : new RelayError('stopping'))
  }

  private onSuccess(receipt: Receipt): void {
    if (this.ended) {
      void this.tellLate(receipt)
      return
    }
    this.end()
    this.resolve(receipt)
  }

  private async tellLate(receipt: Receipt): Promise<void> {
    const isTaken = await this.sending.onLate(receipt).catch(() => false)
    if (!isTaken) this.passage.disown(receipt)
  }

  private onFailure(failure: SendError): void {
    this.current = 0
    this.unwatch?.()
    if (failure.outcome === 'unanswered' && failure.isRetryable) void this.inquire(failure)
    else this.goOn(failure)
  }

  /** Tries again, or gives up. */
  private goOn(failure: SendError): void {
    if (failure.isRetryable && !this.isLast) {
      this.wait(Math.max(backoff(this.count, Math.random()), this.policy.interval), () => this.start())
    } else {
      this.giveUp(failure)
    }
  }

  private giveUp(failure: SendError): void {
    this.end()
    const isHonest = this.open.size === 0 || failure.outcome === 'unanswered'
    this.reject(isHonest ? failure : new SendError('unanswered', undefined, { cause: failure }))
  }

  private end(): void {
    this.ended = true
    this.current = 0
    clearTimeout(this.timer)
    this.unwatch?.()
    this.policy.stop.removeEventListener('abort', this.onStop)
  }

  /** Looks up whether what went unanswered has arrived. It just stops when the send ends meanwhile. */
  private async inquire(failure: SendError): Promise<void> {
    const moment = Math.min(longestMoment, this.policy.timeout / 2)
    for (let absences = 0; ;) {
      const finding = await this.ask()
      if (finding?.kind === 'found') {
        this.onSuccess(finding)
        return
      }
      if (finding?.kind === 'no-history') {
        if (this.isLast) this.waitForDeadline(failure)
        else if (this.policy.retryUnanswered) this.goOn(failure)
        else this.giveUp(failure)
        return
      }
      if (finding?.kind === 'absent' && ++absences > 1 && !this.isLast) {
        this.open.clear()
        this.goOn(failure)
        return
      }
      await new Promise<void>(resolve => this.wait(moment, resolve))
    }
  }

  /** Asks once, as soon as there is a connection. `undefined` when the question brought no answer. */
  private ask(): Promise<Finding | undefined> {
    return new Promise(resolve => {
      this.waitForDeadline(new SendError('unanswered'))
      const onAnswer = (finding?: Finding): void => {
        if (!this.ended) resolve(finding)
        else if (finding?.kind === 'found') this.onSuccess(finding)
      }
      this.unwatch = this.passage.onConnected(() => {
        this.passage.lookUp(this.since).then(onAnswer, () => onAnswer())
      })
    })
  }

  /** Goes on after a while, unless the deadline comes first. */
  private wait(time: number, next: () => void): void {
    const left = this.deadline - Date.now()
    if (time > left) {
      this.waitForDeadline(new SendError('unanswered'))
      return
    }
    clearTimeout(this.timer)
    this.timer = setTimeout(next, time)
  }

  private waitForDeadline(failure: SendError): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.giveUp(failure), Math.max(this.deadline - Date.now(), 0))
  }
}
