import { RelayError } from '../errors'
import { Mutex } from '../lib/async'
import type { MessageRequest, ParsedItem } from '../message/model'
import { platformOf, selectorOf } from '../message/target'
import type { Storage } from './database'
import { doubtOf, isOverdue, isUnfinished, retry, retryable, unanswered, type Delivery, type State } from './delivery/delivery'
import { keyConflict, type Submission, type Submitted } from './delivery/submission'
import type { FollowUps } from './follow-ups'
import type { History } from './history'
import { defaultExpiry, type Intake } from './intake'
import type { Outcomes } from './sending/outcomes'
import type { Runtime } from './sending/runtime'
import type { Verdict } from './sending/worker'
import { agreed } from './store/clock'
import { guard } from './store/store'
import type { Stores } from './stores'
import { Result } from './waiter'

/** @throws RelayError where the caller may not send these items through a bot of this platform */
export type AdmitRetry = (platform: string, items: readonly ParsedItem[]) => void

/**
 * Everything that has a delivery sent again which has ended: its key is repeated, its owner asks for it, or it has turned out that it did
 * not arrive. What went unanswered is looked for before.
 */
export class Repeats {
  private readonly requests = new Mutex()

  constructor(
    private readonly runtime: Runtime, private readonly stores: Stores, private readonly outcomes: Outcomes,
    private readonly intake: Intake, private readonly followUps: FollowUps, private readonly history: History,
  ) {}

  /**
   * For whoever repeats the key of an earlier request that went unanswered: finds out what became of it. Once it has settled and did not
   * arrive, what is missing is sent.
   *
   * @throws RelayError `in-progress`, `store-down`, or what stops the request as such
   */
  async ofKey(submission: Submission, earlier: Delivery): Promise<Submitted> {
    const { stores } = this
    const { storage, memory } = stores
    const { event, signal } = submission
    const { id, deferred, bot, mode } = earlier
    // What died with its process is not taken over yet, perhaps.
    const from = [earlier.state, 'unanswered'] as const
    // An event may be told in other words, and what is deferred is sent as it was accepted.
    const stored = event || deferred ? memory.getQueued(id) ?? await guard(storage?.store.getQueued(id)) : undefined
    const items = stored?.items ?? submission.request.items
    // What only waited for its turn when its process ended has not left: an equal message is another's.
    const hasLeft = earlier.state !== 'queued' || earlier.inDoubt !== null
    const verdict = hasLeft ? await this.reconcile(earlier, items, signal) : 'absent'
    if (!verdict) return { delivery: earlier, isReplay: true }
    const store = stores.of(earlier)
    // What is known of it, and asked of the platform, is of the bot that was to send it before.
    const again: Submission = { ...submission, request: { ...submission.request, items, mode, ...bot !== '' && { bot: selectorOf(bot) } } }
    if (deferred && storage && stored) {
      const delivery = await this.deferAgain(storage, again, earlier, from)
      if (delivery) return { delivery, isReplay: false }
    } else {
      const results = items.map((_, index) => earlier.results[index]).map(result => result?.success ? result : undefined)
      // It stays in doubt: an answer that comes late says nothing of the calls before.
      const change = { ...retry(earlier, 0), deferred: false, expiresAt: earlier.expiresAt, results }
      const isMine = await guard(store.amend(earlier, from, change))
      if (isMine) return { delivery: await this.intake.deliver(again, earlier, true), isReplay: false }
    }
    // It has changed meanwhile.
    const present = await guard(store.get(id)) ?? earlier
    if (isUnfinished(present.state) && !present.deferred && !event) throw keyConflict(true)
    return { delivery: present, isReplay: true }
  }

  /**
   * Sends what was not delivered of a finished delivery again. What went unanswered is looked for first.
   *
   * @param admit told, before anything changes, the platform of the bot that is to send and the items that are to be sent again; whatever
   *   it throws stops the request. It may be told twice.
   * @throws RelayError `not-found`, `conflict`, `unsent`, `store-down`, or what `admit` throws
   */
  onRequest(id: string, admit: AdmitRetry): Promise<void> {
    return this.requests.run(id, async () => {
      const isQueued = await this.retryOnce(id, admit) || await this.retryOnce(id, admit)
      if (!isQueued) throw new RelayError('conflict', 'this delivery is changing: try again later')
    })
  }

  /** @returns whether it is queued; otherwise it has changed meanwhile, and is to be judged anew */
  private async retryOnce(id: string, admit: AdmitRetry): Promise<boolean> {
    const { state } = await this.history.get(id)
    if (!isRetryable(state)) throw notRetryable(state)
    const { stores: { storage, memory }, runtime: { clock, openCalls, port } } = this
    const stored = memory.getQueued(id) ?? await guard(storage?.store.getQueued(id))
    const delivery = stored?.delivery ?? await this.history.get(id)
    const items = stored?.items ?? await guard(storage?.archive.items(id))
    if (!items) throw new RelayError('conflict', 'the content of this delivery is not kept: send it as a new request')
    this.learnOpenCalls(delivery, items)
    const settling = openCalls.leftOf(delivery, items)
    if (settling > 0) {
      const seconds = Math.ceil(settling / 1000)
      throw new RelayError('conflict', `the platform may still be carrying it out: try again in ${seconds} s`, {
        headers: { 'retry-after': String(seconds) },
      })
    }
    if (delivery.bot === '') {
      const account = port.chooseLater({})
      account.checkIds(delivery.target, items)
      delivery.bot = account.sid
    }
    admit(platformOf(delivery.bot) ?? '', items.filter((_, index) => !delivery.results[index]?.success))
    if (!storage) {
      await this.retryFromMemory(delivery, items)
      return true
    }
    const expiresAt = clock.now() + defaultExpiry
    // A file that is gone already makes its item fail in its turn.
    await this.intake.keepUploads({ items, mode: 'batch' }, expiresAt)
    if (stored && !memory.hasContent(id)) {
      // What became of it is not written down yet.
      if (memory.get(id)) throw new RelayError('store-down')
      return guard(storage.backlog.requeue(delivery, retryable, retry(delivery, expiresAt)))
    }
    await this.move(storage, delivery, items, expiresAt)
    return true
  }

  /** Moves a delivery from memory, or from the records, to those that wait in the database, to be sent again. */
  private async move(storage: Storage, read: Delivery, items: readonly ParsedItem[], expiresAt: number): Promise<void> {
    const { store, backlog, archive } = storage
    const { stores: { memory }, runtime: { clock } } = this
    const { id, bot } = read
    // An answer may have come since it was read.
    const here = memory.get(id)
    const { state, results, inDoubt, deferred, expiresAt: expired } = here ?? read
    if (!isRetryable(state)) throw notRetryable(state)
    const change = retry(here ?? read, expiresAt)
    const again = { ...here ?? read, ...change, bot, key: null, updatedAt: clock.now() }
    // From here on an answer that comes late does not change what is moved: it is looked for before anything is sent.
    if (here) memory.update(here, retryable, change)
    try {
      await guard(backlog.adopt(again, items))
    } catch (error) {
      if (here) memory.update(here, ['queued'], { state, results, inDoubt, deferred, expiresAt: expired })
      this.intake.takeBack(store, id)
      throw error
    }
    memory.discard(id)
    await guard(archive.remove(id))
  }

  private async retryFromMemory(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    const { id, door, mode, target, bot } = delivery
    const change = { ...retry(delivery, 0), deferred: false, expiresAt: null }
    if (!this.stores.memory.update(delivery, retryable, change)) throw notRetryable(delivery.state)
    const request = { mode, target, items, bot: selectorOf(bot) }
    await this.intake.deliverInBackground({ id, door, request }, delivery, 0, true)
  }

  /**
   * Has a deferred delivery sent again for whoever has repeated its key, in its own queue, and waits for the result as long as its calls
   * may take.
   *
   * @returns `undefined` where it has changed meanwhile
   */
  private async deferAgain(
    { backlog }: Storage, submission: Submission, delivery: Delivery, from: readonly State[],
  ): Promise<Delivery | undefined> {
    const { request: { items, expiresIn = defaultExpiry }, admit, deferred, signal } = submission
    const { clock, policy: { timeout, retries }, stop } = this.runtime
    admit?.(platformOf(delivery.bot) ?? '')
    const expiresAt = clock.now() + expiresIn
    // A file that is gone already makes its item fail in its turn.
    await this.intake.keepUploads({ items, mode: 'batch' }, expiresAt)
    const result = new Result(this.outcomes, delivery.id)
    try {
      if (!await guard(backlog.requeue(delivery, from, retry(delivery, expiresAt)))) return
      return await result.within(deferred?.wait ?? timeout * (retries + 1), signal?.(), stop) ?? delivery
    } finally {
      result.end()
    }
  }

  /** Has a deferred delivery sent again that nobody asked for again, as far as it is still wanted. */
  async unasked(delivery: Delivery): Promise<void> {
    const { storage } = this.stores
    const now = this.runtime.clock.now()
    if (!storage || isOverdue(delivery, now)) return
    const change = retry(delivery, delivery.expiresAt ?? now + defaultExpiry)
    const inDoubt = doubtOf(delivery, delivery.results)
    // The calls that were made go on counting.
    const counted = inDoubt && { ...inDoubt, calls: Math.max(inDoubt.calls, delivery.attempts) }
    await storage.backlog.requeue(delivery, ['unanswered'], { ...change, inDoubt: counted })
  }

  /** Finds out what became of an earlier request that went unanswered, and gives the verdict where what is missing may be sent now. */
  private async reconcile(delivery: Delivery, items: readonly ParsedItem[], signal: Submission['signal']): Promise<Verdict | undefined> {
    Object.assign(delivery, { state: 'unanswered', results: delivery.results.map(result => result ?? unanswered()) })
    this.learnOpenCalls(delivery, items)
    // The queue is full or paused, the caller has gone away, the database is away, or the relay stops.
    return this.followUps.reconcile(delivery, this.stores.of(delivery), items, signal).catch(() => undefined)
  }

  /** Of a delivery whose calls another relay has made it is not known here when they have settled. */
  private learnOpenCalls(delivery: Delivery, items: MessageRequest['items']): void {
    const { stores: { storage }, runtime: { clock, openCalls } } = this
    if (storage?.isShared) openCalls.learn(delivery, items, Math.max(clock.now() - delivery.updatedAt - agreed, 0))
  }
}

function isRetryable(state: State): boolean {
  return retryable.some(name => name === state)
}

function notRetryable(state: State): RelayError {
  return new RelayError('conflict', `this delivery is ${state}: only one that was not delivered can be sent again`)
}
