import { RelayError } from '../../errors'
import { onAbort } from '../../lib/abort'
import { SendError, type Account, type Finding, type Message, type Receipt, type SendsSince } from '../../platform/port'
import type { EndCall } from '../delivery/about'
import type { Observer } from '../delivery/observer'

/** How calls are repeated. */
export interface AttemptPolicy {
  /** How long each call may take, in milliseconds. */
  timeout: number
  /** How many further attempts a message has after the first; −1 where what is in doubt is looked for and has none left. */
  retries: number
  /** Whether to repeat a call that went unanswered when the platform's history cannot tell whether it arrived. */
  retryUnanswered: boolean
  /** How long a call without an answer may still be carried out at least, in milliseconds. */
  settleTime: number
  /** The least time from the end of an attempt to the next, in milliseconds. */
  interval: number
}

/** One platform message that is to be sent, and who is told of it. */
export interface Sending {
  account: Account
  message: Message
  policy: AttemptPolicy
  /** When it was on its way before the process ended, in milliseconds since the epoch by the machine's clock: it is looked for first. */
  inDoubtSince?: number
  /**
   * What is waited for when an answer does not come: `all`, the end of all attempts together, because a caller waits for it; `settled`,
   * until it may be sent again, however long that takes; `call`, nothing more than the time of the call.
   */
  patience: 'all' | 'settled' | 'call'
  /** Whether the message may be sent again although the platform's history cannot tell whether it arrived. */
  isRepeatable: boolean
  /** A call that left at this time, on the monotonic clock, got no clear answer. */
  onOpen: (leftAt: number) => void
  /** How long the message may still be carried out, in milliseconds; 0 when it has settled. */
  openFor: () => number
  /** What is known to have been sent to the same target. */
  sends: SendsSince
  /** Told of each call right before it is made; what it throws keeps it from being made. What it gives is told how the call ends. */
  onAttempt: () => EndCall
  /** Told when the answer comes after the send was given up as unanswered; says whether that was recorded. */
  onLate: (receipt: Receipt) => Promise<boolean>
  /** Told when all answers of a send that was given up as unanswered have come late, and each of them is a no. */
  onDenied: (failure: SendError) => Promise<void>
  observer: Pick<Observer, 'lookedUp'>
  /** Ends everything at once when the relay stops. */
  stop: AbortSignal
}

/** The wait before the first further attempt, and the longest, in milliseconds. */
const initialDelay = 200
const maxDelay = 30_000
/** The most time kept back at the end of a send for asking the history, in milliseconds. */
const longestInquiry = 1_500
/** The first time between two questions to the history, and the longest, in milliseconds. */
const firstMoment = 1_000
const longestMoment = 5_000

/**
 * How long to wait after an attempt has failed: twice as long each time, with jitter, so that many requests that failed
 * together do not come back together.
 *
 * @param failures how many attempts have failed so far, from 1
 * @param random a number from 0 (included) to 1
 * @returns milliseconds
 */
export function backoff(failures: number, random: number): number {
  return Math.min(initialDelay * 2 ** (failures - 1), maxDelay) * (1 + random / 2)
}

/**
 * Makes a call until it succeeds or the attempts are used up. A call without an answer is open: the platform may be slow and still carry
 * it out. Until it has settled nothing is sent again, and then only if the platform's history shows that the message did not arrive, or
 * cannot tell and the message may be repeated. Its answer counts whenever it comes.
 *
 * @throws SendError with what is known of all attempts together: once one of them may have arrived, it is `unanswered`
 * @throws RelayError `stopping` when the relay stops before anything was sent
 */
export function runAttempts(sending: Sending): Promise<Receipt> {
  return new Promise((resolve, reject) => {
    // What was on its way before may have arrived, whether or not there is still time to look.
    if (sending.stop.aborted) reject(sending.inDoubtSince === undefined ? new RelayError('stopping') : new SendError('unanswered'))
    else new Run(sending, resolve, reject).begin()
  })
}

class Run {
  /** The attempts that were sent and may have arrived, as far as is known. */
  private readonly open = new Set<number>()
  private count = 0
  /** How many of them never left. Where nobody waits for the end of all attempts together, they are no reason to make fewer calls. */
  private unsent = 0
  /** The attempt that is under way, 0 between attempts. */
  private current = 0
  /** Told how it ends. */
  private endCall: EndCall | undefined
  private hasEnded = false
  /** Whether an attempt was taken for lost, as it had settled and the history did not show it. */
  private hasBet = false
  private receipt: Receipt | undefined
  private timer: NodeJS.Timeout | undefined
  private unwatch: (() => void) | undefined
  /** Whether everything had settled when the last question was asked: its answer may show the chat as it was then. */
  private hadSettled = false
  /** Which of the inquiries is the present one; those before it have been overtaken by an answer. */
  private inquiry = 0
  private readonly unwatchStop: () => void
  /** When the first call and the last one were made, and when the send is given up, on the monotonic clock. */
  private since: number | undefined
  private leftAt = performance.now()
  private deadline: number

  constructor(
    private readonly sending: Sending,
    private readonly resolve: (receipt: Receipt) => void,
    private readonly reject: (error: Error) => void,
  ) {
    const { patience, policy: { timeout, retries, interval } } = sending
    let time = timeout
    for (let failures = 1; failures <= retries; failures++) time += Math.max(backoff(failures, 1), interval) + timeout
    this.deadline = performance.now() + (patience === 'all' ? time : Infinity)
    this.unwatchStop = onAbort(sending.stop, () => this.onStop())
  }

  begin(): void {
    const { inDoubtSince } = this.sending
    if (inDoubtSince === undefined) {
      this.start()
      return
    }
    this.since = performance.now() - (Date.now() - inDoubtSince)
    this.open.add(0)
    this.limit()
    void this.reconcile(new SendError('unanswered'))
  }

  private start(): void {
    const mine = this.current = ++this.count
    const { account, message, patience, policy: { timeout }, onAttempt } = this.sending
    this.limit()
    // The last call is given up a little earlier, so that there is time to ask; its answer still counts until the deadline.
    const kept = this.isLast || patience === 'call' ? Math.min(longestInquiry, timeout / 3) : 0
    this.wait(Math.min(timeout, this.left - kept), () => this.onFailure(this.open.has(mine)
      ? new SendError('unanswered')
      : new SendError('unsent', 'another plugin of the bot held the message back')))
    let endCall: EndCall | undefined
    const begin = (): void => {
      if (this.current !== mine) throw new SendError('unsent')
      this.endCall = endCall = onAttempt()
      this.open.add(mine)
      this.leftAt = performance.now()
      this.since ??= this.leftAt
      const unwatch = account.onOffline(() => this.onFailure(new SendError('unanswered', 'the connection was lost')))
      // It may be lost already, and the next watch begun.
      if (this.current === mine) this.unwatch = unwatch
    }
    message.send({ begin }).then(receipt => {
      endCall?.('sent')
      this.onSuccess(receipt)
    }, (error: unknown) => {
      const failure = error instanceof SendError ? error : new SendError(this.open.has(mine) ? 'unanswered' : 'unsent', undefined, { cause: error })
      const isAnswer = failure.outcome !== 'unanswered' && this.open.delete(mine)
      endCall?.(failure.outcome, failure.wording)
      if (this.current === mine) this.onFailure(failure)
      else if (isAnswer && this.open.size === 0 && this.current === 0) this.onDenied(failure)
    })
  }

  /** Where nothing is repeated, nobody waits for longer than a call. */
  private limit(): void {
    const { patience, policy: { timeout } } = this.sending
    if (patience === 'call' || (patience === 'settled' && this.isLast)) this.deadline = performance.now() + timeout
  }

  private get isLast(): boolean {
    return this.count - this.unsent > this.sending.policy.retries
  }

  private get left(): number {
    return this.deadline - performance.now()
  }

  private onStop(): void {
    // The plugin may be loaded anew while the platform is still carrying it out.
    if (this.current !== 0 && this.open.has(this.current)) this.sending.onOpen(this.leftAt)
    this.end()
    // What nobody waits for is looked for once more before it leaves again.
    const isInDoubt = this.open.size > 0 || (this.hasBet && this.sending.patience !== 'all')
    this.reject(isInDoubt ? new SendError('unanswered') : new RelayError('stopping'))
  }

  /** Whether a message is the one that was sent. */
  private isKnown({ messageIds }: Receipt): boolean {
    return messageIds.some(id => this.receipt?.messageIds.includes(id))
  }

  private onSuccess(receipt: Receipt): void {
    this.receipt = receipt
    if (this.hasEnded) {
      void this.tellLate(receipt)
      return
    }
    this.end()
    this.resolve(receipt)
  }

  private async tellLate(receipt: Receipt): Promise<void> {
    const isRecorded = await this.sending.onLate(receipt).catch(() => false)
    if (!isRecorded) this.sending.message.release(receipt)
  }

  private onFailure(failure: SendError): void {
    this.endUnanswered(failure)
    this.current = 0
    this.unwatch?.()
    if (failure.outcome === 'unsent' && this.sending.patience !== 'all') this.unsent++
    if (failure.outcome === 'unanswered') this.sending.onOpen(this.leftAt)
    if (failure.outcome === 'unanswered' && failure.isRetryable) void this.reconcile(failure)
    else this.goOn(failure)
  }

  /** The platform was slow, and has said no in the end: nothing is in doubt any more. */
  private onDenied(failure: SendError): void {
    const { patience, policy: { timeout, interval }, onDenied } = this.sending
    if (this.hasEnded) {
      // What was taken for lost may have arrived since, and is looked for as long as this is unanswered.
      if (!this.hasBet) void onDenied(failure).catch(() => undefined)
      return
    }
    this.inquiry++
    this.unwatch?.()
    const needed = Math.max(backoff(this.count, 1), interval) + timeout
    if (patience !== 'all' || this.left > needed) this.goOn(failure)
    else this.giveUp(failure)
  }

  /** A call that is under way ends without an answer, as far as is known now. */
  private endUnanswered({ outcome, wording = 'no answer in time' }: SendError): void {
    if (this.current !== 0 && outcome === 'unanswered') this.endCall?.(outcome, wording)
  }

  /** Tries again, or gives up. */
  private goOn(failure: SendError): void {
    const { patience, policy: { retries, interval } } = this.sending
    if (failure.isRetryable && !this.isLast && this.unsent <= retries) {
      // The next call has its own.
      if (patience !== 'all') this.deadline = Infinity
      this.wait(Math.max(backoff(this.count, Math.random()), interval), () => this.start())
    } else {
      this.giveUp(failure)
    }
  }

  private giveUp(failure: SendError): void {
    this.endUnanswered(failure)
    this.end()
    const isHonest = this.open.size === 0 || failure.outcome === 'unanswered'
    const { outcome, wording } = failure
    if (!isHonest) this.reject(new SendError('unanswered', undefined, { cause: failure }))
    else this.reject(this.hasBet && outcome === 'unsent' ? new SendError(outcome, wording, { hasLeft: true, cause: failure }) : failure)
  }

  private end(): void {
    this.hasEnded = true
    this.current = 0
    clearTimeout(this.timer)
    this.unwatch?.()
    this.unwatchStop()
  }

  /** Finds out whether what went unanswered has arrived. It just stops when the send ends meanwhile. */
  private async reconcile(failure: SendError): Promise<void> {
    const { patience, policy: { timeout, retryUnanswered }, isRepeatable, openFor } = this.sending
    // The platform may answer the last question before and the first one after a little later, but the queue is not held for ever, be it
    // because its bot is away.
    if (patience === 'settled' && !this.isLast) this.deadline = performance.now() + openFor() + 2 * timeout
    const mine = ++this.inquiry
    for (let moment = Math.min(firstMoment, timeout / 2); ; moment = Math.min(2 * moment, longestMoment)) {
      const finding = await this.ask()
      if (this.hasEnded || this.inquiry !== mine) {
        this.leaveAlone(finding)
        return
      }
      if (finding?.kind === 'found') {
        this.onSuccess(finding)
        return
      }
      if (finding?.kind === 'no-history') {
        if (this.isLast) this.waitForDeadline(failure)
        else if (retryUnanswered && isRepeatable) this.goOn(failure)
        else this.giveUp(failure)
        return
      }
      const mayRepeat = finding?.kind === 'absent' || (finding?.kind === 'inconclusive' && retryUnanswered && isRepeatable)
      // A further call is made only where its whole time fits in.
      if (mayRepeat && !this.isLast && this.hadSettled && (patience === 'settled' || this.left > timeout)) {
        // Otherwise it may be there all the same, whatever becomes of the next one.
        if (finding.kind === 'absent') {
          this.open.clear()
          this.hasBet = true
        }
        this.goOn(new SendError('unanswered'))
        return
      }
      // What has settled since is asked about again at once.
      await new Promise<void>(resolve => this.wait(this.hadSettled ? moment : Math.min(moment, openFor()), resolve))
    }
  }

  /** Asks once, as soon as there is a connection. `undefined` when the question brought no answer. */
  private ask(): Promise<Finding | undefined> {
    const { account, message, sends, observer, openFor } = this.sending
    return new Promise(resolve => {
      this.waitForDeadline(new SendError('unanswered'))
      const onAnswer = (finding?: Finding): void => {
        observer.lookedUp(finding?.kind ?? 'silent')
        if (this.hasEnded) this.leaveAlone(finding)
        else resolve(finding)
      }
      this.unwatch = account.onOnline(() => {
        this.hadSettled = openFor() === 0
        // The machine's clock may have been set meanwhile.
        const since = Date.now() - (performance.now() - (this.since ?? this.leftAt))
        message.find(since, sends).then(onAnswer, () => onAnswer())
      })
    })
  }

  /** What was found too late may be an equal message that has left since. */
  private leaveAlone(finding: Finding | undefined): void {
    if (finding?.kind === 'found' && !this.isKnown(finding)) this.sending.message.release(finding)
  }

  /** Goes on after a while, unless the deadline comes first. */
  private wait(time: number, next: () => void): void {
    if (time > this.left) {
      this.waitForDeadline(new SendError('unanswered'))
      return
    }
    clearTimeout(this.timer)
    this.timer = setTimeout(next, time)
  }

  private waitForDeadline(failure: SendError): void {
    clearTimeout(this.timer)
    if (this.left < Infinity) this.timer = setTimeout(() => this.giveUp(failure), Math.max(this.left, 0))
  }
}
