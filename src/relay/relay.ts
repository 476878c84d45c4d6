import { RelayError } from '../errors'
import { onAbort } from '../lib/async'
import type { MessageRequest } from '../message/model'
import { inTime, pause } from './clock'
import type { Delivery, State } from './delivery'
import type { History } from './history'
import { Inquiries } from './inquiries'
import { nameOfError, type Journal } from './journal'
import { readLane, type Backlog, type LaneState, type Wait } from './lane'
import type { Ownership } from './owner'
import { preview, type Preview } from './compose'
import type { AdmitRetry, RelayOptions, Submission, Submitted } from './options'
import { Term, type Shared } from './term'

export type { Contact } from '../platform/port'
export type { Delivery } from './delivery'
export type { History } from './history'
export type { Inquiries } from './inquiries'
export type { ListFilter } from './journal'
export { laneOf, readLane, type Backlog, type LaneState, type Wait } from './lane'
export { alertDoor, tellAll, type DigestOptions, type LookUp, type Observer, type RelayOptions, type Submission, type Submitted } from './options'
export { digestDoor } from './digest'
export type { CallOutcome } from './summary'
export { Shared } from './term'

/** How long to wait before a term that could not begin is tried again, in milliseconds. */
const retryDelay = 1_000
/** After how long without a term it is worth a line in the log, in milliseconds. */
const standbyTime = 2_000
/** How long an end waits for a slow database, in milliseconds. */
const longestEnd = 2_000
/** How long a caller waits for the first term, in milliseconds: the relay before a reload may have four seconds to end. */
const startTime = 6_000
const standbyHeaders = { 'retry-after': '5' }
const standbyText = 'this relay stands by for the one that works the database, so it does not know this Idempotency-Key: try again later'

/** What a relay works. */
export interface DataStore {
  journal: Journal
  ownership: Ownership
  /** Whether it stands in for a database that has not arrived: nothing that must last is accepted. */
  isStandIn?: () => boolean
}

/**
 * The core: it takes submissions from all doors, makes each a delivery, and brings each delivery to its end. It works a data store while it
 * is the store's owner, and stands by otherwise.
 */
export class Relay {
  /** What is asked of the platform besides. */
  readonly inquiries: Inquiries
  private readonly stop = new AbortController()
  private term: Term | undefined
  private store: DataStore | undefined
  /** Resolves with the first term, with the end, or when a caller can wait no longer. */
  private readonly begun: Promise<void>
  private readonly hasBegun = new AbortController()
  /** Ends the work on the present data store. */
  private close = new AbortController()
  private working: Promise<void> = Promise.resolve()

  constructor(private readonly shared: Shared, private readonly options: RelayOptions) {
    this.inquiries = new Inquiries({ ...options, stop: this.stop.signal })
    shared.journal.keepContent(options.recordContent)
    this.begun = pause(options.clock, startTime, this.hasBegun.signal)
  }

  /** Works a data store as soon as this relay is its owner. It may be called again, also for another one that has arrived late. */
  open(store: DataStore): void {
    if (store === this.store) return
    const before = this.working
    this.close.abort()
    const close = this.close = new AbortController()
    if (this.stop.signal.aborted) close.abort()
    this.store = store
    this.working = before.then(() => this.work(store, close.signal))
  }

  /** What is known of all deliveries. @throws RelayError `standby` */
  async history(): Promise<History> {
    return (await this.first()).history
  }

  /** Whether this relay works its data store. */
  get isActive(): boolean {
    return this.term !== undefined
  }

  /**
   * Right after the start, the first term is waited for.
   *
   * @throws RelayError `standby`, `stopping`
   */
  async active(): Promise<void> {
    await this.first()
  }

  /** Who is active where this relay stands by; `undefined` where it is active itself, or nobody is known to be. */
  get standsBehind(): string | undefined {
    const { term, store } = this
    return term || store?.ownership.failure !== undefined ? undefined : store?.ownership.active
  }

  /**
   * Sends what a request asks for, unless its key says that this was done before.
   *
   * @throws RelayError what stops the request as such
   */
  async submit(submission: Submission): Promise<Submitted> {
    const { key, deferred, request } = submission
    const term = this.term ?? await this.first(key !== undefined)
    const mustLast = (key ?? deferred ?? request.sendAt) !== undefined
    if (mustLast && this.store?.isStandIn?.()) throw new RelayError(key === undefined ? 'store-down' : 'key-unknown')
    return term.submit(submission)
  }

  /**
   * Shows what a request would become, and sends nothing.
   *
   * @throws RelayError what would stop the request as such
   */
  async preview(request: MessageRequest): Promise<Preview> {
    const { store } = this
    if (request.sendAt && store?.journal.isDurable === false && !store.isStandIn?.()) throw new RelayError('no-database')
    return preview(request, this.options)
  }

  /**
   * Takes a delivery back that waits for its turn. One that nothing was tried of is forgotten, with its key.
   *
   * @returns its state, where there is still a record of it
   * @throws RelayError `not-found`, `conflict`, `store-down`
   */
  async withdraw(id: string): Promise<State | undefined> {
    return (await this.first()).withdraw(id)
  }

  /**
   * Sends what was not delivered of a delivery again. What went unanswered is looked for first.
   *
   * @param admit told, before anything changes, where and which items are to be sent again; what it throws stops this
   * @throws RelayError `not-found`, `conflict`, `unsent`, `store-down`, or what `admit` throws
   */
  async retry(id: string, admit: AdmitRetry): Promise<void> {
    return (await this.first()).replay.retry(id, admit)
  }

  /** The lanes in which something waits or that are paused. */
  lanes(): LaneState[] {
    return this.term?.lanes.states() ?? []
  }

  /** What waits to be sent later; `undefined` without a database. */
  backlog(): Backlog | undefined {
    return this.store?.journal.isDurable ? this.term?.lanes.backlog() : undefined
  }

  /** The lanes that are paused, or were, and in which nothing has got through since, with what the last failure said. */
  failing(): ReadonlyMap<string, string> {
    return this.term?.gates.failing() ?? new Map()
  }

  /** Since when each restricted account is, in milliseconds since the epoch, by its `sid`. */
  restricted(): ReadonlyMap<string, number> {
    return this.term?.gates.restricted() ?? new Map()
  }

  /** Why a queued delivery waits; `undefined` if it waits only for the deliveries before it. */
  waitOf(delivery: Delivery): Wait | undefined {
    return this.term?.lanes.waitOf(delivery)
  }

  /** Ends the pause or hold of a lane before its time, unless its chat is still closed. */
  async resume(lane: string): Promise<void> {
    await this.term?.lanes.resume(lane)
  }

  /**
   * Gives up what waits in a lane. What was to be sent later can be sent again.
   *
   * @returns how many deliveries there were
   * @throws RelayError `not-found` for what is no name of a lane
   */
  async drop(lane: string): Promise<number> {
    if (!readLane(lane)) throw new RelayError('not-found')
    return (await this.first()).lanes.drop(lane, new RelayError('unsent', 'dropped by an operator while it was waiting: nothing was sent'))
  }

  /** Rejects when this relay is not active, or its database is not there or does not answer. */
  async ping(): Promise<void> {
    this.present()
    if (this.store?.isStandIn?.()) throw new RelayError('store-down')
    await this.store?.journal.ping()
  }

  /** Ends everything at once: callers who wait are answered. */
  end(): void {
    this.stop.abort()
    this.close.abort()
    this.hasBegun.abort()
  }

  /** Writes what is left to be written, and gives the data store back, but waits for neither for long. */
  async finish(): Promise<void> {
    // Until then, what is leaving has some time.
    await aborted(this.stop.signal)
    await inTime(this.options.clock, this.working, longestEnd)
  }

  private present(hasKey = false): Term {
    if (this.term) return this.term
    // Whether a first request with the key has sent anything, only an active relay knows.
    const isStandby = this.store?.ownership.failure === undefined
    if (hasKey) throw new RelayError('key-unknown', isStandby ? standbyText : undefined, { headers: standbyHeaders })
    if (this.stop.signal.aborted) throw new RelayError('stopping')
    throw new RelayError(isStandby ? 'standby' : 'store-down', undefined, { headers: standbyHeaders })
  }

  /** Right after the start, the first term is waited for. */
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
