import type { Context } from 'koishi'
import { RelayError } from '../errors'
import { unwrap } from '../lib/unwrap'
import type { MessageRequest } from '../message/model'
import type { KnownSends } from '../platform/port'
import { usesUpKey, type Delivery, type State } from './delivery/delivery'
import type { Submission, Submitted } from './delivery/submission'
import { FollowUps } from './follow-ups'
import { History } from './history'
import { KeyedRequests, keyLifetime } from './idempotency'
import { Inquiries } from './inquiries'
import { Intake } from './intake'
import { Operations } from './operations'
import { preview, type Preview } from './preview'
import { Repeats, type AdmitRetry } from './repeats'
import { OpenCalls } from './sending/open-calls'
import { Outcomes } from './sending/outcomes'
import { Queues, type QueueOptions } from './sending/queue'
import { nameOf, type Runtime } from './sending/runtime'
import { Worker } from './sending/worker'
import { Clock } from './store/clock'
import { MemoryStore } from './store/memory-store'
import { clockMargin, SentLog } from './store/sent-log'
import { guard } from './store/store'
import { Stores } from './stores'

export type { Contact } from '../platform/port'
export type { CallOutcome } from './delivery/about'
export type { History, HourCounts } from './history'
export type { Inquiries } from './inquiries'
export { tellAll, type LookUp, type Observer } from './delivery/observer'
export type { HeldQueue, Operations } from './operations'
export type { QueueState } from './sending/queue'
export { queueOf, readQueue, type Backlog, type ListFilter } from './store/store'
export type { Submission, Submitted } from './delivery/submission'

/** What the relay goes by; a reload of the plugin may bring others. */
export interface RelayOptions extends Pick<
  Runtime,
  'port' | 'policy' | 'media' | 'logger' | 'inFlight' | 'holdUpload' | 'keepUpload' | 'digestUpload' | 'retention' | 'recordContent' | 'observer'
> {
  queues: QueueOptions
  /** Where the log of what was sent is, absolute. */
  dataDir: string
  /** How many records are kept in a database, at most, of what was sent without a key, and as many of the rest. */
  recordLimit: number
}

/** A relay that works, and how it is stopped. */
interface Started {
  relay: Relay
  /** Nothing more begins that nobody waits for. */
  pause: () => void
  /** Ends everything at once. */
  end: () => void
  /** Writes what is left to be written; to be called last. */
  finish: () => Promise<void>
}

const relays = new WeakMap<object, Relay>()

/**
 * The core: it takes submissions from all doors, makes each a delivery, and sees to it that this comes to its end. There is one for an app,
 * and it outlives a reload of the plugin with all that is queued, in flight, keyed and recorded.
 */
export class Relay {
  private readonly runtime: Runtime
  private readonly queues: Queues
  private readonly clock = new Clock()
  private readonly stores = new Stores(new MemoryStore(this.clock))
  private readonly outcomes: Outcomes
  private readonly worker: Worker
  private readonly intake: Intake
  private readonly repeats: Repeats
  private readonly keyed: KeyedRequests
  private readonly followUps: FollowUps
  /** What is known of all deliveries. */
  readonly history = new History(this.stores, this.clock)
  /** What waits, and what holds it up. */
  readonly operations: Operations
  /** What is asked of the platform besides. */
  readonly inquiries: Inquiries
  private stop = new AbortController()
  private starts = 0

  /** The relay of the app that a context belongs to, working by these options until `pause`, `end` and `finish` are called. */
  static start(ctx: Context, options: RelayOptions): Started {
    const app = unwrap(ctx.root)
    const relay = relays.get(app) ?? new Relay(options)
    relays.set(app, relay)
    const start = relay.start(ctx, options)
    const isLatest = (): boolean => relay.starts === start
    return {
      relay,
      pause: () => {
        if (isLatest()) relay.runtime.isPaused = true
      },
      end: () => {
        if (isLatest()) relay.end()
      },
      finish: async () => {
        if (isLatest()) await relay.stores.finish()
      },
    }
  }

  private constructor(options: RelayOptions) {
    const { clock, stores, history } = this
    const { memory } = stores
    const queues = this.queues = new Queues(options.queues, () => this.runtime.observer.paused())
    const runtime = this.runtime = {
      ...options, clock, sentLog: new SentLog(), openCalls: new OpenCalls(), stop: this.stop.signal, isPaused: true,
      knownSends: (delivery, since) => this.knownSends(delivery, since),
    }
    this.operations = new Operations(queues, runtime, stores)
    this.inquiries = new Inquiries(runtime, history)
    const outcomes = this.outcomes = new Outcomes(runtime, memory)
    const worker = this.worker = new Worker(runtime, outcomes)
    const followUps = this.followUps = new FollowUps({
      queues, worker, runtime, sendAgain: delivery => this.repeats.unasked(delivery),
      keepsItems: store => store.isDurable || memory.keeps('unanswered'), readItems: id => history.items(id),
    })
    const intake = this.intake = new Intake(runtime, queues, stores, worker, outcomes)
    this.repeats = new Repeats(runtime, stores, outcomes, intake, followUps, history)
    this.keyed = new KeyedRequests(runtime, stores, intake, this.repeats)
    worker.onEnd = (delivery, items) => intake.keepFiles(delivery, items)
    worker.onUnanswered = ({ delivery, store, items }) => followUps.add(delivery, store, items)
  }

  private start(ctx: Context, options: RelayOptions): number {
    const { runtime, queues, worker, stores, stores: { memory }, followUps } = this
    const {
      port, policy, media, logger, inFlight, holdUpload, keepUpload, digestUpload, retention, recordContent, observer, dataDir, recordLimit,
    } = options
    if (this.stop.signal.aborted) this.stop = new AbortController()
    Object.assign(runtime, {
      port, policy, media, logger, inFlight, holdUpload, keepUpload, digestUpload, retention, recordContent, observer,
      stop: this.stop.signal, isPaused: false,
    })
    memory.keeps = state => recordContent === 'full' || (recordContent === 'preview' && state !== 'sent')
    if (recordContent === 'none') memory.forgetContents()
    queues.open(options.queues)
    this.outcomes.resume()
    followUps.resume()
    runtime.sentLog.open(dataDir, error => {
      logger.warn('%s', `what is sent cannot be logged, so that look-ups know less: ${nameOf(error)}`)
    })
    stores.attach(ctx, {
      queues, worker, memory, runtime,
      onFound: (delivery, store, items) => followUps.add(delivery, store, items),
    }, { retention, keyLifetime, limit: recordLimit, content: recordContent })
    return ++this.starts
  }

  /** Ends everything at once. What has not left stays in the database. */
  private end(): void {
    this.runtime.isPaused = true
    this.stop.abort()
    this.queues.close()
    this.runtime.sentLog.close()
    this.followUps.pause()
  }

  /**
   * Sends what a request asks for, unless its key says that this was done before. Its `expiresIn` bounds the wait for its turn as well,
   * when the caller waits for the result.
   *
   * @throws RelayError what stops the request as such
   */
  async submit(submission: Submission): Promise<Submitted> {
    const { key, deferred } = submission
    // Without the database that holds it, a key would be taken for a new one, and what waits would be overtaken.
    if (!this.stores.storage) await this.stores.arrived(key !== undefined || deferred !== undefined)
    if (key !== undefined) return this.keyed.submit(submission, key)
    return { delivery: await this.intake.accept(submission), isReplay: false }
  }

  /**
   * Shows what a request would become, and sends nothing.
   *
   * @throws RelayError what would stop the request as such
   */
  preview(request: MessageRequest): Promise<Preview> {
    return preview(request, this.runtime)
  }

  /**
   * Takes a delivery back that waits for its turn. One that nothing was tried of is forgotten, with its key.
   *
   * @returns its state, where there is still a record of it
   * @throws RelayError `not-found`, `conflict`, `store-down`
   */
  async withdraw(id: string): Promise<State | undefined> {
    const delivery = await this.history.get(id)
    const { state, deferred, results, attempts, inDoubt } = delivery
    if (state === 'queued' && usesUpKey(results)) {
      throw new RelayError('conflict', 'a part of this delivery has been sent: it cannot be withdrawn any more')
    }
    if (state === 'queued' && !deferred) throw new RelayError('conflict', 'the caller of this delivery waits for it: it cannot be withdrawn')
    const store = this.stores.storage?.store
    if (state === 'queued' && store) {
      // A call that a kill has interrupted is in no count.
      const wasTried = attempts > 0 || inDoubt !== null
      if (!wasTried && await guard(store.withdraw(id))) return
      // Its record tells of what was tried before, and what went unanswered then may have arrived.
      const error = new RelayError('unsent', 'withdrawn while it was waiting: nothing was sent this time')
      if (wasTried && await guard(this.worker.abandon(delivery, store, error))) return delivery.state
    }
    throw new RelayError('conflict', `this delivery is ${(await this.history.get(id)).state}: only a queued one can be withdrawn`)
  }

  /**
   * Sends what was not delivered of a finished delivery again. What went unanswered is looked for first.
   *
   * @param admit told, before anything changes, the platform of the bot that is to send and the items that are to be sent again; whatever
   *   it throws stops the request. It may be told twice.
   * @throws RelayError `not-found`, `conflict`, `unsent`, `store-down`, or what `admit` throws
   */
  retry(id: string, admit: AdmitRetry): Promise<void> {
    return this.repeats.onRequest(id, admit)
  }

  /** @param since in milliseconds since the epoch, by the machine's clock */
  private async knownSends(delivery: Delivery, since: number): Promise<KnownSends> {
    // The machine's clock may have been set since that time was read, and what is asked for too long is only known better.
    const oldest = Math.min(this.clock.fromWall(since), delivery.inDoubt?.since ?? Infinity) - clockMargin
    // Also those of a database that is away: it is not known then.
    const { known } = this.stores
    const stored = await Promise.all(known.map(({ store }) => store.messageIds(delivery, oldest)))
    const logged = await this.runtime.sentLog.read(delivery.bot, delivery.target)
    // Older records may have been removed.
    const kept = known.length > 0 ? Date.now() - this.runtime.retention : -Infinity
    // What another relay left to this one has to be found although the log of that one is not here.
    const isShared = known.some(({ isShared }) => isShared)
    const messageIds = new Set([...logged.messageIds, ...stored.flat()])
    return { ...logged, messageIds, since: isShared ? kept : Math.max(logged.since, kept) }
  }
}
