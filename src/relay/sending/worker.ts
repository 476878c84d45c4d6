import { RelayError } from '../../errors'
import { onAbort } from '../../lib/abort'
import type { ParsedItem } from '../../message/model'
import { SendError, type Account, type Finding, type LoadedItem, type Message, type Receipt, type SendsSince } from '../../platform/port'
import { noteCall, type EndCall } from '../delivery/about'
import {
  abandon, doubtOf, isOverdue, isUnsent, leave, outcomeOf, postpone, unanswered, unfinished, withLate,
  type Delivery, type InDoubt, type ItemResult, type Results,
} from '../delivery/delivery'
import { guard, type Store } from '../store/store'
import { runAttempts } from './attempts'
import { compose, divide } from './compose'
import { maxWeight, prepareItem, type PreparedItem } from './media'
import { isHeavy, settlingTime } from './open-calls'
import { knownOf, type Outcomes } from './outcomes'
import type { Slot, Verdict as TargetVerdict } from './queue'
import { persist, type Runtime } from './runtime'

/** A delivery whose turn has come. */
export interface Job {
  delivery: Delivery
  items: readonly ParsedItem[]
  /** Where the delivery is kept. */
  store: Store
  account: Account
  /** Whether this relay may still send it: where several share a database, another one may have taken its queue over. */
  isOurs: () => boolean
}

/**
 * How a job ended: `done`; `again` when the same has to be tried again before the next one may follow; `gone` when it is not to be
 * sent here any more: it was withdrawn, or its queue is another relay's by now.
 */
export type JobEnd = 'done' | 'again' | 'gone'

/**
 * What the platform says of items in doubt, besides those that it shows: `absent`, the others have not arrived; `unclear`, it cannot
 * tell; `open`, it may still have been carrying them out when it was asked; `silent`, it did not answer.
 */
export type Verdict = 'absent' | 'unclear' | 'open' | 'silent'

/** Thrown to end a job that is not to be done here any more. */
class NotOurs extends Error {
  override readonly name = 'NotOurs'
}

/**
 * Delivers: it sends the items of a delivery whose turn has come, combined where they can be, and records each step before the next one
 * is made. Every delivery comes through here, whether somebody waits for it or not.
 */
export class Worker {
  /** Told of each delivery that has ended, and what was to be sent. */
  onEnd: (delivery: Delivery, items: readonly ParsedItem[]) => void = () => undefined
  /** Told of each delivery whose send has ended without an answer. */
  onUnanswered: (job: Job) => void = () => undefined

  constructor(private readonly runtime: Runtime, private readonly outcomes: Outcomes) {}

  /**
   * Delivers what has not been delivered yet.
   *
   * @throws the error of the database, while nothing has left
   */
  async deliver(slot: Slot, job: Job): Promise<JobEnd> {
    const releases = holdUploads(job.items, this.runtime.holdUpload)
    try {
      const work = new Work(this.runtime, slot, job, this.outcomes)
      const end = await work.run()
      if (end !== 'done') return end
      if (work.isUnanswered) this.onUnanswered(job)
      this.onEnd(job.delivery, job.items)
      return end
    } catch (error) {
      if (error instanceof NotOurs) return 'gone'
      throw error
    } finally {
      for (const release of releases) release()
    }
  }

  /**
   * Asks the platform what became of a delivery without an answer, and sends nothing. What is found is recorded.
   *
   * @returns the verdict on what is still in doubt where that may be sent again, which is not before it has settled
   */
  async reconcile(slot: Slot, job: Job): Promise<Verdict | undefined> {
    const { delivery, store } = job
    const inDoubt = doubtOf(delivery, delivery.results)
    if (!inDoubt) return
    const work = new Work(this.runtime, slot, job, this.outcomes)
    const { found, verdict } = await work.find(inDoubt)
    if (found.size > 0) {
      const results = delivery.results.map((result, index) => found.get(index) ?? result)
      try {
        const wasThere = await this.outcomes.settle(delivery, store, results, { from: ['unanswered', ...unfinished], slot, asRead: true })
        if (!wasThere && !await this.outcomes.correct(delivery, store, found)) {
          work.disclaim()
          return
        }
      } catch (error) {
        work.disclaim()
        throw error
      }
    }
    if (doubtOf(delivery, delivery.results) && work.mayRepeat(inDoubt, verdict)) return verdict
  }

  /**
   * Ends a delivery of which nothing more is to be sent, for this reason. Rejects with the error of the store.
   *
   * @returns whether it did: it may have begun to leave meanwhile
   */
  async abandon(delivery: Delivery, store: Store, error: RelayError): Promise<boolean> {
    if (!await this.outcomes.abandon(delivery, store, error)) return false
    // What is not known any more needs no files.
    this.onEnd(delivery, await Promise.resolve(store.getQueued(delivery.id)).then(found => found?.items ?? [], () => []))
    return true
  }
}

/** An item that can be sent, with its place in the request. */
type Ready = PreparedItem & { index: number }

/** A platform message that is still to be sent. */
interface Outgoing {
  items: readonly Ready[]
  /** Their places in the request. */
  indices: readonly number[]
  retries: number
  /** When it had left before the process ended: it is looked for before it is sent again. */
  inDoubtSince?: number
}

/** The work on one delivery. */
class Work {
  private readonly results: (ItemResult | undefined)[]
  /** What answers told that came after their items had been given up. */
  private readonly late = new Map<number, ItemResult>()
  /** What became of the platform message before; recorded when the next one leaves. */
  private latest: ItemResult | undefined
  /** What was recorded in the end. */
  private final: Results | undefined
  /** Gives up messages that were answered or found and are not recorded yet, each with its own function. */
  private claims: (() => void)[] = []
  /** The places of the items that earlier calls left without an answer, and how many calls that were. */
  private readonly doubted: readonly number[]
  private readonly made: number
  /** The most calls that were made of a platform message, those of an earlier process among them; and the writing of their number. */
  private most = 0
  private counted: Promise<unknown> | undefined
  /** What this was begun under: the plugin may be loaded again after it was stopped, and that does not make this work go on. */
  private readonly stop: AbortSignal

  constructor(
    private readonly runtime: Runtime, private readonly slot: Slot, private readonly job: Job, private readonly outcomes: Outcomes,
  ) {
    this.results = [...job.delivery.results]
    const { indices = [], calls = 0 } = job.delivery.inDoubt ?? {}
    this.doubted = indices
    this.made = calls
    this.stop = runtime.stop
  }

  async run(): Promise<JobEnd> {
    try {
      return await this.deliver()
    } catch (error) {
      this.disclaim()
      throw error
    }
  }

  /** Whether it was sent and has ended without an answer. */
  get isUnanswered(): boolean {
    return this.final !== undefined && this.job.delivery.state === 'unanswered'
  }

  /** Lets searches find again what was answered or found: it could not be recorded, and would be sent a second time. */
  disclaim(): void {
    for (const release of this.claims.splice(0)) release()
  }

  private async deliver(): Promise<JobEnd> {
    const { delivery, store } = this.job
    const { results, runtime: { clock } } = this
    delivery.about.waited ??= Math.max(clock.now() - delivery.createdAt, 0)
    const wasLeaving = delivery.state === 'sending'
    const { inDoubt } = delivery
    let unclear: readonly number[] = []
    // What was leaving when the process ended is looked for as it is sent again; here, what is sent again on request or not at all.
    if (inDoubt && (!wasLeaving || isOverdue(delivery, clock.now()))) {
      const { found, verdict } = await this.find(inDoubt)
      for (const [index, result] of found) if (!results[index]?.success) results[index] = result
      if (!wasLeaving && !this.mayRepeat(inDoubt, verdict)) for (const index of inDoubt.indices) results[index] ??= unanswered()
      else if (verdict === 'unclear') unclear = inDoubt.indices
      delivery.results = results.slice()
    }
    if (isOverdue(delivery, clock.now())) {
      await this.outcomes.settle(delivery, store, abandon(delivery, new RelayError('expired')), { from: [delivery.state], slot: this.slot })
      return 'done'
    }
    const known = results.map(result => result !== undefined)
    await this.sendAll(this.compose(await this.prepareAll(), wasLeaving ? inDoubt : null))
    const fresh = results.filter((_, index) => !known[index])
    this.slot.judge(judge(fresh), reasonOf(fresh))
    // Whatever became of it when it was sent again, it may have arrived before.
    for (const index of unclear) {
      const result = results[index]
      if (result?.success || (delivery.deferred && isUnsent(result))) continue
      results[index] = unanswered()
    }
    return this.end(wasLeaving ? null : inDoubt)
  }

  /**
   * Asks the platform once which of the items in doubt have arrived. Nothing else may leave for the target meanwhile: an equal message
   * could be taken for one of these.
   */
  async find(inDoubt: InDoubt): Promise<{ found: Map<number, ItemResult>, verdict: Verdict }> {
    const { job: { account, delivery, items }, runtime: { clock, openCalls } } = this
    const { target } = delivery
    // Before it is asked: its answer may show the chat as it was then.
    const hadSettled = openCalls.left(delivery, items, inDoubt) === 0
    const found = new Map<number, ItemResult>()
    let verdict: Verdict = 'absent'
    for (const group of compose(await this.prepareAll(true), maxWeight)) {
      const asked = group.filter(({ index }) => inDoubt.indices.includes(index))
      if (asked.length === 0) continue
      // Only a part is in doubt where the group was refused and its items were sent one by one.
      for (const items of asked.length === group.length ? [group] : divide(asked)) {
        const message = account.message(target, await load(items))
        const finding = await this.ask(message, clock.toWall(inDoubt.since))
        if (!finding) return { found, verdict: 'silent' }
        if (finding.kind === 'found') {
          this.claims.push(() => message.release(finding))
          for (const { index } of items) found.set(index, sent(finding))
        } else if (finding.kind !== 'absent') {
          verdict = 'unclear'
        }
      }
    }
    return { found, verdict: hadSettled ? verdict : 'open' }
  }

  /** Whether items in doubt that were not found may be sent again. */
  mayRepeat(inDoubt: InDoubt, verdict: Verdict): boolean {
    const { runtime: { policy }, job: { items } } = this
    return verdict === 'absent' || (verdict === 'unclear' && policy.retryUnanswered && !inDoubt.indices.flatMap(index => items[index] ?? []).some(isHeavy))
  }

  private readonly sends: SendsSince = since => this.runtime.knownSends(this.job.delivery, since)

  /** @returns `undefined` when the question was not answered within the time of a call */
  private ask(message: Message, since: number): Promise<Finding | undefined> {
    const { stop, runtime: { policy: { timeout }, observer } } = this
    return new Promise(resolve => {
      let hasEnded = false
      const end = (finding?: Finding): void => {
        if (!hasEnded) observer.lookedUp(finding?.kind ?? 'silent')
        // Its queue goes on meanwhile: an equal message may have left since, and this may be that one.
        if (hasEnded && finding?.kind === 'found') message.release(finding)
        hasEnded = true
        clearTimeout(timer)
        unwatch()
        resolve(finding)
      }
      const onStop = (): void => end()
      const timer = setTimeout(end, timeout)
      const unwatch = onAbort(stop, onStop)
      message.find(since, this.sends).then(end, onStop)
    })
  }

  /** @param all also the items of which it is known what became of them */
  private async prepareAll(all = false): Promise<Ready[]> {
    const ready: Ready[] = []
    for (const [index, item] of this.job.items.entries()) {
      if (!all && this.results[index]) continue
      try {
        if (item instanceof RelayError) throw item
        const prepared = prepareItem(item, this.runtime.media)
        const known = prepared instanceof Promise ? await prepared : prepared
        this.noteSize(index, known)
        ready.push(Object.assign(known, { index }))
      } catch (error) {
        if (!all) this.results[index] = { success: false, error: RelayError.from(error) }
      }
    }
    return ready
  }

  /** Of a file that was uploaded it is not known before. */
  private noteSize(index: number, prepared: PreparedItem): void {
    const summary = this.job.delivery.about.items[index]
    if (summary && 'load' in prepared && prepared.bytes !== undefined) summary.size ??= prepared.bytes
  }

  private compose(ready: readonly Ready[], inDoubt: InDoubt | null): Outgoing[] {
    const { clock, policy } = this.runtime
    const retriesFor = (message: readonly Ready[]): number => policy.retries - this.madeOf(message)
    const doubted = inDoubt ? ready.filter(({ index }) => inDoubt.indices.includes(index)) : []
    const rest = doubted.length > 0 ? ready.filter(item => !doubted.includes(item)) : ready
    const outgoing = compose(rest, maxWeight).map(message => toOutgoing(message, retriesFor(message)))
    if (!inDoubt || doubted.length === 0) return outgoing
    return [{ ...toOutgoing(doubted, retriesFor(doubted)), inDoubtSince: clock.toWall(inDoubt.since) }, ...outgoing]
  }

  /** How many calls were made of these before, in this process or another. */
  private madeOf(items: readonly Ready[]): number {
    const { doubted, made } = this
    return items.some(({ index }) => doubted.includes(index)) ? made : 0
  }

  private async sendAll(queue: Outgoing[]): Promise<void> {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const result = await this.send(next)
      const cause = result.success ? undefined : result.error.cause
      const parts = cause instanceof SendError && cause.outcome === 'refused' && !cause.isAboutTarget ? divide(next.items) : []
      if (parts.length > 1) {
        // Only the bad ones are to fail, so each goes by itself, once.
        queue.unshift(...parts.map(part => toOutgoing(part, 0)))
        continue
      }
      // What is refused because of the target would be refused again, and knocking on a closed door gets accounts banned.
      const isClosed = cause instanceof SendError && cause.isAboutTarget
      const indices = isClosed ? [next, ...queue.splice(0)].flatMap(({ indices }) => indices) : next.indices
      for (const index of indices) this.results[index] = result
      // Nothing follows before it has been looked for once more: what is recorded of the next one would take the place of its doubt.
      const rest = this.job.delivery.deferred && hasLeft(result) ? queue.splice(0).flatMap(({ indices }) => indices) : []
      for (const index of rest) this.results[index] = { success: false, error: new RelayError('unsent') }
      // The process may not come to the end of the delivery.
      if (queue.length > 0 && !this.job.store.isDurable) this.log(result)
      this.latest = result
    }
  }

  /** Writes down at once what became of a platform message, before the next one of the delivery leaves. */
  private log(result: ItemResult): void {
    const { runtime: { sentLog }, job: { delivery, store } } = this
    sentLog.write({ ...delivery, results: [result] }, store.isDurable)
    sentLog.flush()
  }

  /** Sends one platform message. */
  private async send({ items, indices, retries, inDoubtSince }: Outgoing): Promise<ItemResult> {
    const { slot, runtime, job: { account, delivery, store, items: all }, stop } = this
    const { policy, openCalls } = runtime
    const settle = settlingTime(items, Math.max(policy.settleTime, policy.timeout))
    const made = { calls: this.madeOf(items) }
    const leaving = { indices, settle, calls: made.calls + 1 }
    await slot.pace()
    try {
      if (inDoubtSince === undefined) await this.recordLeaving(leaving)
      // The process may not come to the end of the delivery.
      if (this.latest && store.isDurable) this.log(this.latest)
      const message = account.message(delivery.target, await load(items))
      const receipt = await runAttempts({
        account,
        message,
        policy: retries === policy.retries ? policy : { ...policy, retries },
        ...inDoubtSince !== undefined && { inDoubtSince },
        // Only a text that may be sent again holds its queue while it is open.
        patience: !delivery.deferred ? 'all' : items.every(({ type }) => type === 'text') ? 'settled' : 'call',
        isRepeatable: !items.some(isHeavy),
        onOpen: leftAt => openCalls.note(delivery, all, leaving, leftAt),
        openFor: () => openCalls.left(delivery, all, leaving),
        sends: this.sends,
        onAttempt: () => this.countAttempt(made),
        onLate: receipt => this.recordLate(indices, receipt),
        onDenied: failure => this.recordDenied(indices, failure),
        observer: runtime.observer,
        stop,
      })
      this.claims.push(() => message.release(receipt))
      return sent(receipt)
    } catch (error) {
      if (error instanceof NotOurs) throw error
      return { success: false, error: error instanceof SendError ? error.toRelayError() : RelayError.from(error) }
    } finally {
      slot.sent()
    }
  }

  /** From here on nobody knows whether the items arrived, until there is an answer. */
  private async recordLeaving(leaving: Pick<InDoubt, 'indices' | 'settle' | 'calls'>): Promise<void> {
    const { runtime, slot, job: { delivery, store, account, isOurs } } = this
    if (this.counted) await this.counted
    delivery.results = this.results.slice()
    if (!store.isDurable) {
      void store.update(delivery, unfinished, leave(delivery, { ...leaving, since: runtime.clock.now(), before: [] }))
      return
    }
    // Recorded as leaving, it would have to be looked for by the next process.
    if (this.stop.aborted) throw new RelayError('stopping')
    if (!isOurs()) throw new NotOurs()
    const change = leave(delivery, { ...leaving, since: runtime.clock.now(), before: account.recent(delivery.target) })
    const write = (): Promise<boolean> | boolean => store.update(delivery, [delivery.state], change)
    if (delivery.deferred) {
      const wasThere = await persist(runtime, write, () => slot.turnAway(new RelayError('store-down')))
      if (!wasThere || !isOurs()) throw new NotOurs()
    } else {
      const wasThere = await guard(write())
      // Another relay has taken this one for dead, and settled it.
      if (!wasThere) throw new NotOurs()
    }
    // All results so far are recorded with it.
    this.claims = []
  }

  /** @param made how many calls were made of the platform message */
  private countAttempt(made: { calls: number }): EndCall {
    const { job: { isOurs, delivery }, runtime: { clock, observer } } = this
    // A message that is looked for first, or tried again, may be another relay's by now.
    if (!isOurs()) throw new SendError('unsent', undefined, { isFinal: true })
    delivery.attempts++
    made.calls++
    this.most = Math.max(this.most, made.calls)
    this.recordCalls(made)
    const end = noteCall(delivery.about, clock.now(), (outcome, time) => observer.called(outcome, time))
    return (outcome, reason) => {
      if (outcome === 'unsent') made.calls--
      end(outcome, reason)
    }
  }

  /** The first call is recorded as its items leave. What nobody waits for goes on in the next process, which has to know of the others. */
  private recordCalls({ calls }: { calls: number }): void {
    const { delivery, store } = this.job
    if (!delivery.inDoubt || delivery.inDoubt.calls >= calls) return
    const inDoubt = delivery.inDoubt = { ...delivery.inDoubt, calls }
    if (!delivery.deferred || !store.isDurable) return
    this.counted = Promise.resolve(store.update(delivery, ['sending'], { inDoubt })).catch(() => undefined)
  }

  /** @returns whether it was recorded, or will be */
  private async recordLate(indices: readonly number[], receipt: Receipt): Promise<boolean> {
    const { job: { delivery, store } } = this
    if (indices.every(index => (this.final ?? this.results)[index]?.success)) return true
    // The next process looks for it.
    if (this.stop.aborted && store.isDurable) return false
    for (const index of indices) this.late.set(index, sent(receipt))
    if (!this.final) return true
    // It may wait to be sent again meanwhile; then it is looked for before.
    return this.outcomes.correct({ ...delivery, results: this.final }, store, this.late)
  }

  private async recordDenied(indices: readonly number[], failure: SendError): Promise<void> {
    const { final, stop, outcomes, doubted, job: { delivery, store } } = this
    // What settled without an answer before may have arrived since, and is looked for as long as this is unanswered.
    if (indices.some(index => doubted.includes(index))) return
    const denied = new Map(indices.map((index): [number, ItemResult] => [index, { success: false, error: failure.toRelayError() }]))
    if (!final) for (const [index, result] of denied) this.late.set(index, result)
    else if (!stop.aborted) await outcomes.deny({ ...delivery, results: final }, store, denied)
  }

  /** What is in doubt where something could not leave: what went unanswered, also before, and what was taken for lost and has yet to go. */
  private doubtLeft(results: Results, inDoubt: InDoubt | null): InDoubt | null {
    const { made, most, job: { delivery } } = this
    const isInDoubt = (result: ItemResult | undefined, index: number): boolean => !result?.success
      && (outcomeOf(result) === 'unanswered' || hasLeft(result) || inDoubt?.indices.includes(index) === true)
    const indices = results.flatMap((result, index) => isInDoubt(result, index) ? [index] : [])
    const known = inDoubt ?? delivery.inDoubt
    if (!known || indices.length === 0) return null
    return { ...known, indices, settle: Math.max(known.settle, delivery.inDoubt?.settle ?? 0), calls: Math.max(made, most) }
  }

  /** @param inDoubt what went unanswered before, and was not looked for as it was sent */
  private async end(inDoubt: InDoubt | null): Promise<JobEnd> {
    const { runtime, slot, outcomes, job: { delivery, store } } = this
    if (this.counted) await this.counted
    const results = withLate(this.results, this.late)
    if (delivery.deferred) {
      // It is recorded as leaving, and is looked for after the restart.
      if (this.stop.aborted && doubtOf(delivery, results)) {
        this.disclaim()
        return 'again'
      }
      if (results.some(isUnsent)) {
        // It is looked for by the relay whose it is by now.
        if (!this.job.isOurs()) throw new NotOurs()
        const change = postpone(results, this.doubtLeft(results, inDoubt))
        await persist(runtime, () => outcomes.record(delivery, store, change), () => slot.turnAway(new RelayError('store-down')))
        return 'again'
      }
    }
    this.final = results
    if (!await outcomes.settle(delivery, store, results, { slot })) {
      // Another relay has taken this one for dead meanwhile, and recorded that nobody knows.
      await outcomes.correct(delivery, store, knownOf(results))
      return 'gone'
    }
    return 'done'
  }
}

function sent({ messageIds, trace }: Receipt): ItemResult {
  return { success: true, messageIds, ...trace && { trace } }
}

function toOutgoing(items: readonly Ready[], retries: number): Outgoing {
  return { items, indices: items.map(({ index }) => index), retries }
}

async function load(items: readonly Ready[]): Promise<LoadedItem[]> {
  const loaded: LoadedItem[] = []
  for (const item of items) loaded.push('load' in item ? await item.load() : item)
  return loaded
}

/** Whether what could not be sent had left before, without an answer. */
function hasLeft(result: ItemResult | undefined): boolean {
  return result?.success === false && result.error.cause instanceof SendError && result.error.cause.hasLeft
}

/** Keeps the uploaded files among the items from being removed, until the functions returned are called. */
function holdUploads(items: readonly ParsedItem[], hold: (id: string) => () => void): (() => void)[] {
  return items.flatMap(item => 'link' in item && item.link.kind === 'upload' ? [hold(item.link.id)] : [])
}

/** What the last failure says. */
function reasonOf(results: Results): string | undefined {
  const failure = results.findLast(result => result && !result.success)
  return failure && !failure.success ? failure.error.message : undefined
}

/** What the results say about the target. */
function judge(results: Results): TargetVerdict {
  if (results.some(result => result?.success)) return 'good'
  const isBad = results.some(result => result && !result.success && result.error.cause instanceof SendError
    && (result.error.cause.isAboutTarget || result.error.cause.outcome === 'unanswered'))
  return isBad ? 'bad' : 'none'
}
