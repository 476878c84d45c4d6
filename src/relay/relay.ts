import { RelayError } from '../errors'
import { onAbort } from '../lib/async'
import type { MessageRequest } from '../message/model'
import type { SendError } from '../platform/port'
import { inTime, pause } from './clock'
import type { Delivery, State } from './delivery/delivery'
import type { History } from './delivery/history'
import { Inquiries } from './accept/inquiries'
import { nameOfError, type Journal } from './journal'
import { readQueue, waitOf, type Backlog, type QueueState, type Wait } from './queue/queue'
import type { Ownership } from './owner'
import { preview, type Preview } from './send/compose'
import type { AdmitRetry, RelayOptions, Submission, Submitted } from './options'
import { Term, type Shared } from './term'

export type { Contact } from '../platform/port'
export type { Delivery } from './delivery/delivery'
export type { Block } from './queue/gates'
export type { History } from './delivery/history'
export type { Inquiries } from './accept/inquiries'
export type { ListFilter } from './journal'
export { queueOf, readQueue, type Backlog, type QueueState, type Wait } from './queue/queue'
export { alertDoor, tellAll, type DigestOptions, type LookUp, type Observer, type RelayOptions, type Submission, type Submitted } from './options'
export { digestDoor } from './queue/bundle'
export type { CallOutcome } from './delivery/summary'
export { Shared } from './term'

/** The wait before the next try after a term could not begin, in milliseconds. */
const retryDelay = 1_000
/** After how long without a term the log says so, in milliseconds. */
const standbyTime = 2_000
/** How long the end waits for a slow database, in milliseconds. */
const longestEnd = 2_000
/** How long a caller waits for the first term, in milliseconds: during a reload, the earlier relay has four seconds to end. */
const startTime = 6_000
const standbyHeaders = { 'retry-after': '5' }
const standbyText = 'this relay stands by for the one that works the database, so it does not know this Idempotency-Key: try again later'

/** The data store of a relay. */
export interface DataStore {
  journal: Journal
  ownership: Ownership
  /** Whether this is memory in place of a database that is not there yet: then no durable delivery is accepted. */
  isStandIn?: () => boolean
}

/**
 * The façade of the core: it turns submissions of all doors into deliveries, and brings each to its end. It works a data store while it
 * owns the store, and stands by otherwise.
 */
export class Relay {
  /** Requests to platforms besides sending. */
  readonly inquiries: Inquiries
  private readonly stop = new AbortController()
  private term: Term | undefined
  private store: DataStore | undefined
  /** Resolves with the first term, at the end, or when callers should wait no longer. */
  private readonly begun: Promise<void>
  private readonly hasBegun = new AbortController()
  /** Ends the work on the present data store. */
  private close = new AbortController()
  private working: Promise<void> = Promise.resolve()
  /** Resolves after `end`, once the last writes are done and the data store is released, or a short time later. */
  readonly ended: Promise<void>

  constructor(private readonly shared: Shared, private readonly options: RelayOptions) {
    this.inquiries = new Inquiries({ ...options, stop: this.stop.signal })
    shared.journal.keepContent(options.recordContent)
    this.begun = pause(options.clock, startTime, this.hasBegun.signal)
    this.ended = aborted(this.stop.signal).then(() => inTime(options.clock, this.working, longestEnd))
  }

  /** Works a data store as soon as this relay owns it. Called again when another store takes its place, such as a late database. */
  open(store: DataStore): void {
    if (store === this.store) return
    const before = this.working
    this.close.abort()
    const close = this.close = new AbortController()
    if (this.stop.signal.aborted) close.abort()
    this.store = store
    this.working = before.then(() => this.work(store, close.signal))
  }

  /** The records of all deliveries. @throws RelayError `standby` */
  async history(): Promise<History> {
    return (await this.first()).history
  }

  /** Whether this relay works its data store. */
  get isActive(): boolean {
    return this.term !== undefined
  }

  /**
   * Resolves if this relay is active. Right after the start, it waits for the first term.
   *
   * @throws RelayError `standby`, `stopping`
   */
  async active(): Promise<void> {
    await this.first()
  }

  /** The active relay while this one stands by; `undefined` if this one is active, or none is known. */
  get standsBehind(): string | undefined {
    const { term, store } = this
    return term || store?.ownership.failure !== undefined ? undefined : store?.ownership.active
  }

  /**
   * Carries out a request, unless an earlier one with its key did.
   *
   * @throws RelayError the reason why the request is refused as a whole
   */
  async submit(submission: Submission): Promise<Submitted> {
    const { key, deferred, request } = submission
    const term = this.term ?? await this.first(key !== undefined)
    const isDurable = (key ?? deferred ?? request.sendAt) !== undefined
    if (isDurable && this.store?.isStandIn?.()) throw new RelayError(key === undefined ? 'store-down' : 'key-unknown')
    return term.submit(submission)
  }

  /**
   * Composes a request without sending it.
   *
   * @throws RelayError the reason why the request would be refused as a whole
   */
  async preview(request: MessageRequest): Promise<Preview> {
    const { store } = this
    if (request.sendAt && store?.journal.isDurable === false && !store.isStandIn?.()) throw new RelayError('no-database')
    return preview(request, this.options)
  }

  /**
   * Withdraws a waiting delivery. If nothing of it was tried, its record and its key are removed.
   *
   * @returns its state, if there is still a record
   * @throws RelayError `not-found`, `conflict`, `store-down`
   */
  async withdraw(id: string): Promise<State | undefined> {
    return (await this.first()).withdraw(id)
  }

  /**
   * Sends the items of a delivery again that were not delivered. Unanswered ones are looked up first.
   *
   * @param admit called before any change, with the target and the items to send; may throw to refuse
   * @throws RelayError `not-found`, `conflict`, `unsent`, `store-down`, or what `admit` throws
   */
  async retry(id: string, admit: AdmitRetry): Promise<void> {
    return (await this.first()).replay.retry(id, admit)
  }

  /** The queues that are not empty, or are paused or held. */
  queues(): QueueState[] {
    return this.term?.queues.states() ?? []
  }

  /** The deferred deliveries; `undefined` without a database. */
  backlog(): Backlog | undefined {
    return this.store?.journal.isDurable ? this.term?.queues.backlog() : undefined
  }

  /** The queues that reached the pause limit with no success since, with the last failure. */
  failing(): ReadonlyMap<string, SendError> {
    return this.term?.gates.failing() ?? new Map()
  }

  /** Since when each restricted account is, in milliseconds since the epoch, by its `sid`. */
  restricted(): ReadonlyMap<string, number> {
    return this.term?.gates.restricted() ?? new Map()
  }

  /** Why a queued delivery waits; `undefined` if it waits only for the deliveries before it. */
  waitOf(delivery: Delivery): Wait | undefined {
    return this.term && waitOf(delivery, this.term.gates, this.term.queues.nextWayAt(delivery))
  }

  /** Ends the pause or hold of a queue early, unless its chat is still closed. */
  async resume(queue: string): Promise<void> {
    await this.term?.queues.resume(queue)
  }

  /**
   * Ends all deliveries waiting in a queue. Deferred ones can be retried.
   *
   * @returns their number
   * @throws RelayError `not-found` if the text is not the name of a queue
   */
  async drop(queue: string): Promise<number> {
    if (!readQueue(queue)) throw new RelayError('not-found')
    return (await this.first()).queues.drop(queue, new RelayError('unsent', 'dropped by an operator while it was waiting: nothing was sent'))
  }

  /** Rejects if this relay is not active, or its database is missing, does not answer, or refuses what is written. */
  async ping(): Promise<void> {
    const { isStoreDown } = this.present()
    if (isStoreDown || this.store?.isStandIn?.()) throw new RelayError('store-down')
    await this.store?.journal.ping()
  }

  /** Stops all work at once, and answers the waiting callers. */
  end(): void {
    this.stop.abort()
    this.close.abort()
    this.hasBegun.abort()
  }

  private present(hasKey = false): Term {
    if (this.term) return this.term
    // Only the active relay knows whether an earlier request with the key has sent anything.
    const isStandby = this.store?.ownership.failure === undefined
    if (hasKey) throw new RelayError('key-unknown', isStandby ? standbyText : undefined, { headers: standbyHeaders })
    if (this.stop.signal.aborted) throw new RelayError('stopping')
    throw new RelayError(isStandby ? 'standby' : 'store-down', undefined, { headers: standbyHeaders })
  }

  /** The present term. Right after the start, this waits for the first one. */
  private async first(hasKey = false): Promise<Term> {
    if (!this.term) await this.begun
    return this.present(hasKey)
  }

  private async reportStandby(ownership: Ownership, acquired: Promise<number>, close: AbortSignal): Promise<void> {
    const { clock, logger } = this.options
    const isOwner = await inTime(clock, acquired.then(() => true, () => true), standbyTime)
    if (isOwner || close.aborted) return
    const { active = 'another relay', failure } = ownership
    logger.warn('%s', failure === undefined
      ? `this relay stands by: ${active} works its data; it takes over when that one ends`
      : `this relay cannot begin until its database answers: ${nameOfError(failure)}`)
    await acquired.then(() => logger.info('this relay is active now'), () => undefined)
  }

  private async work({ journal, ownership }: DataStore, close: AbortSignal): Promise<void> {
    const { clock, logger } = this.options
    const isClosed = (): boolean => close.aborted
    while (!isClosed()) {
      let term: Term | undefined
      try {
        const acquired = ownership.acquire(close)
        void this.reportStandby(ownership, acquired, close)
        const owner = await acquired
        term = await Term.begin(this.options, this.shared, journal, ownership, owner)
        this.term = term
        this.hasBegun.abort()
        await aborted(ownership.lost, close)
        if (!isClosed()) logger.warn('%s', 'another relay works the database now: this one stands by')
      } catch (error) {
        if (!isClosed()) logger.warn('%s', `the relay cannot begin its work: ${nameOfError(error)}`)
      }
      term?.end()
      await term?.finish()
      await ownership.release().catch(() => undefined)
      if (!this.stop.signal.aborted) this.term = undefined
      await pause(clock, retryDelay, close)
    }
  }
}

/** Resolves as soon as one of them is aborted. */
function aborted(...signals: AbortSignal[]): Promise<void> {
  return new Promise(resolve => {
    for (const signal of signals) onAbort(signal, resolve)
    if (signals.some(signal => signal.aborted)) resolve()
  })
}
