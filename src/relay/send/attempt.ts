import { RelayError } from '../../errors'
import { onAbort } from '../../lib/async'
import { longestLimit, SendError, type Account, type Message, type Receipt } from '../../platform/port'
import { nameOf, type OpenCall } from '../look-up/claims'
import { isRepeatable, type MessageKind } from '../look-up/look-up'
import type { Entry } from '../delivery/deliveries'
import { isDurable, type Open, type Results } from '../delivery/delivery'
import type { Finding } from '../options'
import type { EndCall } from '../delivery/summary'
import { arrived } from './arrived'
import type { SendContext } from './context'
import { say } from '../../texts/text'

/** What an attempt sends. */
export interface AttemptOptions {
  entry: Entry
  /** The results of the delivery up to now. */
  results: Results
  /** The places of its items in the request. */
  indices: readonly number[]
  /** The name of its queue. */
  chat: string
  account: Account
  message: Message
  kind: MessageKind
  /** How long the platform may still carry out a call without an answer, in milliseconds. */
  settle: number
  /** How many further calls are allowed after the first. */
  retries: number
  /** The open call of an earlier run. It is looked up first. */
  earlier?: Open
}

/** The wait before the first further call, and the longest, in milliseconds. */
const firstBackoff = 200
const longestBackoff = 30_000
/** How long a deferred message may take to load its files and pass the bot's other plugins before its call, in milliseconds. */
export const longestPreparation = 60_000
/** The most time reserved for a look-up after the last call, in milliseconds. */
const longestLook = 1_500
/** The first wait between two look-ups, and the longest, in milliseconds. */
const firstMoment = 1_000
const longestMoment = 5_000

/**
 * The wait after a failed call. It doubles each time, with jitter, so that requests that failed together are not repeated together.
 *
 * @param failures how many calls have failed, from 1
 * @param random from 0 (included) to 1
 * @returns milliseconds
 */
export function backoff(failures: number, random: number): number {
  return Math.min(firstBackoff * 2 ** (failures - 1), longestBackoff) * (1 + random / 2)
}

/** What a look-up shows that could not be made. */
const nothing: Finding = { kind: 'silent', messageIds: [], repeatableUntil: -Infinity }

/**
 * Sends one platform message: call, look up, decide. A call without a clear answer is open: the platform may still carry it out. The next
 * call waits until the open one has settled, and is made only if the history does not show the message, or cannot tell and the message
 * may be repeated. A success counts at any time, a refusal only within the time of its call. A refusal leaves nothing open, but where
 * another call may help, the message is looked up once before anything follows.
 *
 * Each step resolves to the failure that ends the attempt, or to nothing if another call follows or the message has arrived.
 */
export class Attempt {
  private readonly name: string
  /** Whether one of the calls may have arrived. */
  private isOpen: boolean
  /** Until when the last look-up allows a further call. */
  private repeatableUntil = Infinity
  /** The number of calls, including those of an earlier run. */
  private calls: number
  /** When the first call was made, by the machine's clock. */
  private since: number | undefined
  /** Until when the caller waits. */
  private deadline: number
  private receipt: Receipt | undefined
  /** Ends the present wait. */
  private wake: () => void = () => undefined
  /** Whether the connection was lost during the last call. */
  private isCut = false
  /** Whether the last call was refused in a way that another may not be: some platforms answer so although they have sent it. */
  private isDoubtful = false
  private hasEnded = false

  constructor(private readonly context: SendContext, private readonly options: AttemptOptions) {
    const { clock, policy: { timeout }, queue: { interval } } = context
    const { entry: { delivery }, indices, earlier, retries } = options
    this.name = nameOf(delivery.id, indices)
    this.isOpen = earlier !== undefined
    this.calls = earlier?.calls ?? 0
    this.since = earlier?.since
    // A caller waits as long as all calls may take, plus a look-up if an earlier call is open.
    let time = earlier ? 2 * timeout : timeout
    for (let failures = 1; failures <= retries; failures++) time += Math.max(backoff(failures, 1), interval) + timeout
    this.deadline = delivery.deferred ? Infinity : clock.now() + time
  }

  /**
   * Sends the message.
   *
   * @throws SendError the outcome of all calls together: `unanswered` while one of them may have arrived
   * @throws RelayError `store-down`, `storage-full`, `stopping`
   */
  async run(): Promise<Receipt> {
    const { context: { claims, stop }, options: { chat, earlier } } = this
    try {
      let failure = earlier && await this.lookUp(new SendError('unanswered'))
      while (!failure && !this.receipt && !stop.aborted) failure = await this.call()
      return this.receipt ?? this.fail(failure)
    } finally {
      this.hasEnded = true
      if (!this.isOpen && !this.receipt) claims.drop(chat, this.name)
    }
  }

  private fail(failure: SendError | undefined): never {
    if (!this.isOpen) throw failure ?? new RelayError('stopping')
    throw failure?.outcome === 'unanswered' ? failure : new SendError('unanswered', undefined, { cause: failure })
  }

  private async call(): Promise<SendError | undefined> {
    const { clock, policy: { timeout }, deliveries } = this.context
    const { entry, indices, message, settle, results } = this.options
    this.calls++
    const begun = clock.now()
    const leaving: Open = { indices, likeness: message.likeness, since: this.since ??= clock.wall(), settle, calls: this.calls }
    try {
      await deliveries.leave(entry, results, leaving)
    } catch (error) {
      // An earlier call may have arrived.
      if (this.isOpen && error instanceof RelayError) return new SendError('unanswered', undefined, { cause: error })
      throw error
    }
    if (this.receipt) return
    const now = clock.now()
    // The time of the disk does not count.
    this.deadline += now - begun
    // The last call of a waiting caller ends early, so that there is time for a look-up. Its answer still counts until the deadline.
    const kept = this.isLast && !entry.delivery.deferred ? Math.min(longestLook, timeout / 3) : 0
    const failure = await this.exchange(Math.min(timeout, this.deadline - now - kept))
    if (!failure) return
    if (this.isDoubtful) return this.verify(failure)
    return failure.outcome === 'unanswered' && failure.isRetryable ? this.lookUp(failure) : this.rest(failure)
  }

  private async exchange(time: number): Promise<SendError | undefined> {
    const { port, clock, claims, deliveries, limits, stop, store } = this.context
    const { entry, account, chat, message, settle } = this.options
    let endCall: EndCall | undefined
    let unwatch: (() => void) | undefined
    let failure: SendError | undefined
    let isOver = false
    this.isCut = this.isDoubtful = false
    const begin = (): void => {
      if (isOver || this.receipt || stop.aborted || !account.isOnline) throw new SendError('unsent')
      // Another process may have the folder by now.
      if (isDurable(entry.delivery)) store.demandLock()
      if (clock.now() >= this.repeatableUntil) throw new SendError('unsent', undefined, { isFinal: true })
      const rest = limits.rest(chat)
      if (rest > 0) throw new SendError('unsent', undefined, { causeId: 'rate-limited', limit: { scope: 'chat', after: rest } })
      endCall = deliveries.called(entry)
      claims.begin(chat, this.name, message.likeness, settle)
      unwatch = port.onHealth(() => {
        if (account.isOnline) return
        failure ??= new SendError('unanswered', say('connection-lost'))
        this.isCut = true
        this.wake()
      })
      this.wake()
    }
    message.send(begin).then(receipt => {
      endCall?.('sent')
      this.onSuccess(receipt)
    }, (error: unknown) => {
      const thrown = error instanceof SendError ? error : new SendError(endCall ? 'unanswered' : 'unsent', undefined, { cause: error })
      if (isOver) endCall?.(thrown.outcome, thrown.wording)
      // `last` sees the limit also where a part of the message has arrived before it.
      limits.note(chat, thrown.last.limit)
      failure ??= thrown
      this.wake()
    })
    // Postponed to its queue, a deferred message would have to load its files again.
    if (entry.delivery.deferred) await this.wait(longestPreparation, () => endCall !== undefined || failure !== undefined)
    if (!entry.delivery.deferred || endCall) await this.wait(time, () => failure !== undefined)
    isOver = true
    unwatch?.()
    if (this.receipt) return
    if (!endCall) return failure ?? this.unready()
    failure ??= new SendError('unanswered')
    endCall(failure.outcome, failure.wording ?? (failure.outcome === 'unanswered' ? say('no-answer-in-time') : undefined))
    if (failure.outcome === 'unanswered') this.isOpen = true
    this.isDoubtful = failure.outcome === 'refused' && failure.isRetryable
    return failure
  }

  /** The failure of a message that was not ready in time. Postponed by anything but a stop, a deferred one would block its queue. */
  private unready(): SendError {
    if (this.options.message.isOpening) return new SendError('unsent', say('no-channel-in-time'), { causeId: 'unreachable' })
    const outcome = this.options.entry.delivery.deferred && !this.context.stop.aborted ? 'refused' : 'unsent'
    return new SendError(outcome, say('held-back'))
  }

  private onSuccess(receipt: Receipt): void {
    const { context, options: { entry, account, indices, chat, message } } = this
    const { claims, stop } = context
    // Until the end is in the file, and after a stop, the next relay finds the answer with the chat.
    claims.answered(chat, this.name, receipt, isDurable(entry.delivery) || stop.aborted)
    this.receipt = receipt
    if (this.hasEnded && !stop.aborted) void arrived(context, entry, account, { indices, likeness: message.likeness }, receipt)
    this.wake()
  }

  /**
   * Waits before a further call, if one is left and there is time for it. A deferred message that cannot leave waits in its queue instead,
   * and no caller waits for a long rate limit.
   */
  private async rest(failure: SendError): Promise<SendError | undefined> {
    const { clock, limits, policy: { timeout }, queue: { interval } } = this.context
    const { account, chat, entry: { delivery: { deferred } } } = this.options
    const limit = limits.rest(chat)
    const time = Math.max(backoff(Math.max(this.calls, 1), Math.random()), interval, limit)
    const isPostponed = failure.outcome === 'unsent' && (deferred || !account.isOnline || limit > longestLimit)
    // A further call needs at least a quarter of its time; a look-up may have used the rest.
    const isLate = this.deadline - clock.now() < time + timeout / 4
    if (!failure.isRetryable || this.isLast || isPostponed || isLate) return failure
    await this.wait(time)
  }

  /** Looks once for a message that was refused, before it is repeated. A file is not sent again if the history cannot tell. */
  private async verify(failure: SendError): Promise<SendError | undefined> {
    const { clock, policy: { timeout }, stop } = this.context
    const end = await this.rest(failure)
    // A further call needs some of the time.
    const finding = await this.look(this.openCall(), Math.min(this.deadline - (end ? 0 : timeout / 4), clock.now() + timeout))
    // The next relay has to look.
    if (stop.aborted && finding === nothing) this.isOpen = true
    const isKnown = finding.kind === 'absent' || finding.kind === 'no-history'
    return end ?? (isKnown || isRepeatable(this.options.kind) ? undefined : failure)
  }

  private openCall(): OpenCall {
    const { context: { claims, clock }, options: { chat, message: { likeness }, settle } } = this
    return claims.restore(chat, this.name, { likeness, since: this.since ?? clock.wall(), settle })
  }

  /** Looks for the message until it is found, may be sent again, or the time is over. */
  private async lookUp(failure: SendError): Promise<SendError | undefined> {
    const { clock, claims, policy: { timeout }, stop } = this.context
    const { chat, entry, kind, message, message: { likeness } } = this.options
    const call = this.openCall()
    // A deferred text with calls left holds its queue until it has settled. Any other deferred message steps aside.
    const patience = kind === 'text' && !this.isLast ? claims.settling(chat, likeness) + 2 * timeout : timeout
    const until = entry.delivery.deferred ? clock.now() + patience : this.deadline
    /** What the last look-up that came to its end found: the time may cut the very last one short. */
    let known = nothing
    for (let moment = Math.min(firstMoment, timeout / 2); ; moment = Math.min(2 * moment, longestMoment)) {
      const finding = await this.look(call, until)
      if (finding !== nothing) known = finding
      if (this.receipt) return
      if (finding.repeatableUntil > clock.now() && !this.isLast) return this.repeat(failure, finding)
      const left = until - clock.now()
      // The answer of the last call still counts until the deadline.
      const isVain = finding.kind === 'no-history' && !message.reports && !this.isLast
      if (isVain || left <= 0 || stop.aborted) return this.explain(failure, known)
      await this.wait(Math.min(moment, left, claims.settling(chat, likeness) || moment))
    }
  }

  /** Waits before a further call that a look-up allows. An absent message leaves nothing open. */
  private async repeat(failure: SendError, finding: Finding): Promise<SendError | undefined> {
    this.repeatableUntil = finding.repeatableUntil
    const end = await this.rest(failure)
    if (end) return this.explain(end, finding)
    if (finding.kind === 'absent' && finding.repeatableUntil === Infinity) this.isOpen = false
  }

  /** Adds to an unanswered failure what a look-up shows of its cause, unless that is the loss of the connection. */
  private explain(failure: SendError, { kind }: Finding): SendError {
    if (this.isCut) return failure
    if (kind === 'local') return new SendError('unanswered', undefined, { causeId: 'swallowed', cause: failure })
    if (kind !== 'absent' || failure.causeId) return failure
    return new SendError('unanswered', undefined, { causeId: 'vanished', cause: failure })
  }

  /** Does one look-up as soon as the bot is online. */
  private async look(call: OpenCall, until: number): Promise<Finding> {
    const { port, lookUps, clock, policy: { timeout } } = this.context
    const { account, message, kind, entry: { delivery: { target } } } = this.options
    const unwatch = port.onHealth(() => this.wake())
    await this.wait(until - clock.now(), () => account.isOnline)
    unwatch()
    if (!account.isOnline || this.receipt) return nothing
    let finding = nothing
    void lookUps.look({ account, target, message, call, kind }).then(found => {
      finding = found
      this.wake()
    })
    await this.wait(Math.min(timeout, until - clock.now()), () => finding !== nothing)
    if (finding.kind === 'found') this.receipt ??= finding
    return finding
  }

  private get isLast(): boolean {
    return this.calls > this.options.retries
  }

  /** Waits for so many milliseconds, or until `isDone`, the message has arrived, or the relay stops. */
  private wait(time: number, isDone = (): boolean => false): Promise<void> {
    const { clock, stop } = this.context
    return new Promise(resolve => {
      const isOver = (): boolean => this.receipt !== undefined || stop.aborted || isDone()
      const end = (): void => {
        cancel()
        unwatch()
        this.wake = () => undefined
        resolve()
      }
      this.wake = () => {
        if (isOver()) end()
      }
      const cancel = clock.after(Math.max(time, 0), end)
      const unwatch = onAbort(stop, end)
      if (isOver()) end()
    })
  }
}
