import { RelayError } from '../errors'
import { onAbort } from '../lib/abort'
import { SendError, type Account, type Message, type Receipt } from '../platform/port'
import { nameOf, type Chats, type Finding, type LookUps, type OpenCall } from './chats'
import type { Clock } from './clock'
import type { Active, Deliveries } from './deliveries'
import type { Open, Results, Sent } from './delivery'
import type { EndCall } from './summary'

/** How calls are made and repeated. Times are in milliseconds. */
export interface Policy {
  /** How long each call may take. */
  timeout: number
  /** How many further calls a message has after the first. */
  retries: number
  /** Whether to call again where the platform's history cannot tell whether the message arrived. */
  retryUnanswered: boolean
  /** How long the platform may still carry out a call without an answer, at least. */
  settleTime: number
  /** The least time from the end of a call to the next one in the same lane. */
  interval: number
}

/** What attempts need of the rest of the core. */
export interface AttemptContext {
  clock: Clock
  policy: Policy
  chats: Chats
  deliveries: Deliveries
  lookUps: LookUps
  /** Aborted when everything ends at once. */
  stop: AbortSignal
}

/** One platform message that is to be sent. */
export interface Sending {
  active: Active
  /** The results of the delivery so far. */
  results: Results
  /** The places of its items in the request. */
  indices: readonly number[]
  /** As the lane is named. */
  chat: string
  account: Account
  message: Message
  /** How long a call without an answer may still be carried out, in milliseconds. */
  settle: number
  /** How many further calls it has. */
  retries: number
  /** Whether it may be sent a second time where nobody can tell whether it arrived. */
  isRepeatable: boolean
  /** How long an answer is waited for: as long as its caller waits, until it has settled, or no longer than the call. */
  patience: 'caller' | 'settled' | 'call'
  /** What an earlier run left open: it is looked for first. */
  earlier?: Open
}

/** The wait before the first further call, and the longest, in milliseconds. */
const firstBackoff = 200
const longestBackoff = 30_000
/** The most time kept back at the end of a call for a look-up, in milliseconds. */
const longestLook = 1_500
/** The first wait between two look-ups, and the longest, in milliseconds. */
const firstMoment = 1_000
const longestMoment = 5_000

/**
 * The wait after a failed call: twice as long each time, with jitter, so that requests that failed together do not come back together.
 *
 * @param failures how many calls have failed so far, from 1
 * @param random from 0 (included) to 1
 * @returns milliseconds
 */
export function backoff(failures: number, random: number): number {
  return Math.min(firstBackoff * 2 ** (failures - 1), longestBackoff) * (1 + random / 2)
}

/**
 * Sends one platform message: call, look up, decide. A call without a clear answer is open: the platform may still carry it out. Until it
 * has settled nothing is called again, and then only if the history does not show the message, or cannot tell and the message may be
 * repeated. An answer counts whenever it comes.
 *
 * @throws SendError what is known of all calls together: while one of them may have arrived, it is `unanswered`
 * @throws RelayError `store-down`, `stopping`
 */
export function attempt(context: AttemptContext, sending: Sending): Promise<Receipt> {
  return new Attempt(context, sending).run()
}

/** A message without an ID is remembered by its likeness, so that no look-up takes it for an equal one. */
export function toSent({ messageIds }: Receipt, likeness: string): Sent {
  return { success: true, messageIds, ...messageIds.length === 0 && { likeness } }
}

/** What follows: another call, the end with the success in `answer`, or the end with this failure. */
type Next = 'call' | 'done' | SendError

class Attempt {
  private readonly name: string
  /** The calls that may have arrived, by their numbers; 0 stands for those of an earlier run. */
  private readonly open = new Set<number>()
  /** Calls made, those of an earlier run among them. */
  private calls: number
  private leftAt: number
  /** When the first call was made, by the machine's clock. */
  private since: number | undefined
  private deadline: number
  /** The answer that counts: a success of any call, or a refusal after which nothing is open. */
  private answer: Receipt | SendError | undefined
  /** Ends the present wait. */
  private wake: () => void = () => undefined
  private hasEnded = false

  constructor(private readonly context: AttemptContext, private readonly sending: Sending) {
    const { clock, policy: { timeout, interval } } = context
    const { active, indices, earlier, patience, retries } = sending
    this.name = nameOf(active.delivery.id, indices)
    this.calls = earlier?.calls ?? 0
    this.leftAt = clock.now()
    this.since = earlier?.since
    if (earlier) this.open.add(0)
    let time = earlier ? 2 * timeout : timeout
    for (let failures = 1; failures <= retries; failures++) time += Math.max(backoff(failures, 1), interval) + timeout
    this.deadline = patience === 'caller' ? this.leftAt + time : Infinity
  }

  async run(): Promise<Receipt> {
    const { stop } = this.context
    try {
      let next: Next = this.sending.earlier ? await this.lookUp(this.sending.earlier) : 'call'
      while (next === 'call' && !stop.aborted) next = await this.call()
      return this.conclude(next)
    } finally {
      this.hasEnded = true
    }
  }

  private conclude(next: Next): Receipt {
    const { answer, context: { chats }, sending: { chat } } = this
    if (answer && !(answer instanceof SendError)) return answer
    if (this.open.size === 0) chats.drop(chat, this.name)
    if (!(next instanceof SendError)) throw this.open.size > 0 ? new SendError('unanswered') : new RelayError('stopping')
    throw this.open.size === 0 || next.outcome === 'unanswered' ? next : new SendError('unanswered', undefined, { cause: next })
  }

  /** Makes one call, and decides what follows from its answer or the lack of one. */
  private async call(): Promise<Next> {
    const { clock, policy: { timeout }, deliveries } = this.context
    const { active, indices, message, settle, results, patience } = this.sending
    this.calls++
    this.answer = undefined
    const leaving: Open = { indices, likeness: message.likeness, since: this.since ??= clock.wall(), settle, calls: this.calls }
    const begun = clock.now()
    const written = deliveries.leave(active, results, leaving)
    try {
      if (written) await written
    } catch (error) {
      // What an earlier call has left open may have arrived.
      if (this.open.size > 0 && error instanceof RelayError) return new SendError('unanswered', undefined, { cause: error })
      throw error
    }
    if (this.isAnswered) return this.answerOr(new SendError('unanswered'))
    this.leftAt = clock.now()
    // The time that the journal took is not the platform's.
    this.deadline += this.leftAt - begun
    if (patience === 'call' || (patience === 'settled' && this.isLast)) this.deadline = this.leftAt + timeout
    else if (patience === 'settled') this.deadline = Infinity
    // The last call is given up a little earlier, so that there is time to look; its answer still counts until the deadline.
    const kept = this.isLast || patience === 'call' ? Math.min(longestLook, timeout / 3) : 0
    const failure = await this.exchange(Math.min(timeout, this.deadline - this.leftAt - kept))
    if (!failure) return 'done'
    if (failure.outcome !== 'unanswered' || !failure.isRetryable) return this.afterFailure(failure)
    return this.lookUp(leaving, failure)
  }

  /** @returns `undefined` for a success, which is in `answer` then */
  private async exchange(time: number): Promise<SendError | undefined> {
    const { chats, deliveries, stop } = this.context
    const { active, account, chat, message, settle } = this.sending
    const number = this.calls
    let endCall: EndCall | undefined
    let unwatch: (() => void) | undefined
    let failure: SendError | undefined
    let isOver = false
    const begin = (): void => {
      if (isOver || this.isAnswered || stop.aborted || !deliveries.mayCall(active)) throw new SendError('unsent')
      endCall = deliveries.called(active)
      this.open.add(number)
      chats.begin(chat, this.name, message.likeness, settle)
      unwatch = account.onOffline(() => {
        failure ??= new SendError('unanswered', 'the connection was lost')
        this.wake()
      })
    }
    message.send(begin).then(receipt => {
      endCall?.('sent')
      this.onSuccess(receipt)
    }, (error: unknown) => {
      const thrown = error instanceof SendError ? error : new SendError(this.open.has(number) ? 'unanswered' : 'unsent', undefined, { cause: error })
      endCall?.(thrown.outcome, thrown.wording)
      if (thrown.outcome !== 'unanswered') this.open.delete(number)
      if (!isOver) failure = thrown
      else if (this.open.size === 0 && thrown.outcome !== 'unanswered') this.answer = thrown
      this.wake()
    })
    await this.wait(time, () => this.answer !== undefined || failure !== undefined)
    isOver = true
    unwatch?.()
    if (this.answer && !(this.answer instanceof SendError)) return
    failure ??= this.open.has(number) ? new SendError('unanswered') : new SendError('unsent', 'another plugin of the bot held the message back')
    if (failure.outcome === 'unanswered') endCall?.('unanswered', failure.wording ?? 'no answer in time')
    return failure
  }

  private onSuccess(receipt: Receipt): void {
    const { context: { chats, deliveries, stop }, sending: { active, indices, chat, message } } = this
    // Until its end is written, and after a stop, the next term learns of it from the chat.
    chats.answered(chat, this.name, receipt, active.mustLast || stop.aborted)
    this.answer = receipt
    const sent = toSent(receipt, message.likeness)
    if (this.hasEnded && !stop.aborted) deliveries.correct(active.delivery.id, indices, sent).catch(() => undefined)
    this.wake()
  }

  /** A call was refused, or never left. */
  private async afterFailure(failure: SendError): Promise<Next> {
    const { context: { clock, policy: { timeout, interval } }, sending: { patience } } = this
    const rest = Math.max(backoff(this.calls, Math.random()), interval)
    const isPostponed = failure.outcome === 'unsent' && patience !== 'caller'
    const hasTime = this.deadline - clock.now() >= rest + (this.open.size > 0 ? timeout : 0)
    if (!failure.isRetryable || this.isLast || isPostponed || !hasTime) return failure
    await this.wait(rest, () => this.isAnswered)
    return this.isAnswered ? this.answerOr(failure) : 'call'
  }

  /** Looks for the message until it is there, may be called again, or the time is over. */
  private async lookUp(open: Open, failure = new SendError('unanswered')): Promise<Next> {
    const { clock, chats, policy: { timeout, retryUnanswered } } = this.context
    const { chat, patience, earlier, account, isRepeatable } = this.sending
    const { likeness } = open
    const call = chats.find(chat, this.name) ?? chats.restore(chat, this.name, open)
    if (patience === 'settled' && !this.isLast) this.deadline = clock.now() + chats.openFor(chat, likeness) + 2 * timeout
    else if (this.deadline === Infinity) this.deadline = clock.now() + timeout
    for (let moment = Math.min(firstMoment, timeout / 2); ; moment = Math.min(2 * moment, longestMoment)) {
      await this.online()
      const hadSettled = chats.openFor(chat, likeness) === 0
      const finding = account.isOnline ? await this.look(call) : undefined
      if (this.isAnswered) return this.answerOr(failure)
      if (finding?.kind === 'found') {
        this.answer = { messageIds: finding.messageIds }
        return 'done'
      }
      const mayRepeat = finding?.kind === 'absent' || (finding !== undefined && retryUnanswered && isRepeatable)
      const hasTime = patience !== 'caller' || this.deadline - clock.now() > timeout
      if (mayRepeat && !this.isLast && hasTime && (hadSettled || finding.kind === 'no-history')) {
        if (finding.kind === 'absent') this.open.clear()
        return this.afterRest()
      }
      // No further look can change what was conclusive.
      const isConclusive = hadSettled && this.calls === (earlier?.calls ?? 0)
      const isOver = finding !== undefined && !mayRepeat && (isConclusive || (finding.kind === 'no-history' && !this.isLast))
      const left = this.deadline - clock.now()
      if (isOver || left <= 0 || this.isStopped) return failure
      const settling = chats.openFor(chat, likeness)
      await this.wait(Math.min(hadSettled ? moment : Math.min(moment, settling), left), () => this.isAnswered)
    }
  }

  private async afterRest(): Promise<Next> {
    await this.wait(Math.max(backoff(Math.max(this.calls, 1), Math.random()), this.context.policy.interval), () => this.isAnswered)
    return this.isAnswered ? this.answerOr(new SendError('unanswered')) : 'call'
  }

  private async look(call: OpenCall): Promise<Finding | undefined> {
    const { context: { lookUps, clock, policy: { timeout } }, sending: { account, chat, message, active: { delivery: { target } } } } = this
    let finding: Finding | undefined
    let isDone = false
    void lookUps.look(account, target, { message, chat, call, isFile: this.isFile }).then(found => {
      finding = found
      isDone = true
      this.wake()
    })
    await this.wait(Math.min(timeout, Math.max(this.deadline - clock.now(), 0)), () => isDone || this.isAnswered)
    return finding
  }

  /** Waits until the bot is online, or the time is over. */
  private async online(): Promise<void> {
    let isOnline = false
    const unwatch = this.sending.account.onOnline(() => {
      isOnline = true
      this.wake()
    })
    await this.wait(Math.max(this.deadline - this.context.clock.now(), 0), () => isOnline || this.isAnswered)
    unwatch()
  }

  private get isFile(): boolean {
    const [index = 0] = this.sending.indices
    const item = this.sending.active.items[index]
    return item !== undefined && 'type' in item && item.type === 'file'
  }

  private get isLast(): boolean {
    return this.calls > this.sending.retries
  }

  private get isStopped(): boolean {
    return this.context.stop.aborted
  }

  private get isAnswered(): boolean {
    return this.answer !== undefined
  }

  /** A success ends the attempt; a refusal after which nothing is open is treated like one that came in time. */
  private answerOr(failure: SendError): Next | Promise<Next> {
    const { answer } = this
    if (!(answer instanceof SendError)) return answer ? 'done' : failure
    this.answer = undefined
    return this.afterFailure(answer)
  }

  /** Waits for so many milliseconds, or until it is done, or the stop. */
  private wait(time: number, isDone: () => boolean): Promise<void> {
    const { clock, stop } = this.context
    return new Promise(resolve => {
      const end = (): void => {
        cancel()
        unwatch()
        this.wake = () => undefined
        resolve()
      }
      this.wake = () => {
        if (isDone()) end()
      }
      const cancel = clock.after(time, end)
      const unwatch = onAbort(stop, end)
      if (stop.aborted || isDone()) end()
    })
  }
}
