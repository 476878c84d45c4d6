import type { Context } from 'koishi'
import { RelayError } from '../errors'
import { Mutex, sleep } from '../lib/async'
import { digest } from '../lib/digest'
import { unwrap } from '../lib/unwrap'
import type { MessageRequest, ParsedItem } from '../message/model'
import { platformOf, selectorOf } from '../message/target'
import type { KnownSends } from '../platform/port'
import { aboutOf, type RecordContent } from './about'
import { agreed, Clock } from './clock'
import { awaitDatabase, isDatabaseLoaded, Storage } from './database'
import {
  abandon, createDelivery, isOverdue, isUnfinished, retry, retryable, settle, unanswered, usesUpKey,
  type Delivery, type Idempotency, type State,
} from './delivery'
import { fingerprintOf } from './fingerprint'
import { FollowUps } from './follow-ups'
import { History } from './history'
import { Inquiries } from './inquiries'
import { MemoryStore } from './memory-store'
import { OpenCalls } from './open-calls'
import { Operations } from './operations'
import { preview, type Preview } from './preview'
import { Queues, type QueueOptions } from './queue'
import { nameOf, type Runtime } from './runtime'
import { clockMargin, SentLog } from './sent-log'
import { guard, noPosition, queueOf, type Store } from './store'
import { Deadline, Result } from './waiter'
import { Worker, type Verdict } from './worker'

export type { Contact } from '../platform/port'
export type { CallOutcome } from './about'
export type { History, HourCounts } from './history'
export type { Inquiries } from './inquiries'
export { tellAll, type LookUp, type Observer } from './observer'
export type { HeldQueue, Operations } from './operations'
export type { QueueState } from './queue'
export { queueOf, readQueue, type Backlog, type ListFilter } from './store'

/** What a caller wants to be sent, and how it wants to be told. */
export interface Submission {
  /** A UUIDv7: the ID of the delivery, and of its request in the log. */
  id: string
  request: MessageRequest
  /** What it came through, as its record tells: `webhook`, `send`, `hooks/<source>`, `onebot`, `commands` or `alert`. */
  door: string
  /** The name of the key of its caller; absent where that is the master key, or there is none. */
  caller?: string | null
  /**
   * Told the platform of the bot that is to send, as Koishi names it, before anything is stored or sent.
   *
   * @throws RelayError where the caller may not send to its target there
   */
  admit?: (platform: string) => void
  /** Its Idempotency-Key, which is one of its caller's own. */
  key?: string
  /**
   * Whether the key names an event that the caller may tell of several times: then what is to be sent is not compared, a repeat while the
   * first is under way is no conflict, and the key may be good for a shorter time, in milliseconds.
   */
  event?: { lifetime?: number }
  /**
   * Whether to answer before it is delivered, and how long to wait for the result first, in milliseconds. Without a database it is
   * refused, or where `inMemory` says how long to wait in that case, it is lost with the process.
   */
  deferred?: { wait: number, inMemory?: number }
  /** Aborted when the caller has gone away; only asked for where there is a wait. */
  signal?: () => AbortSignal
}

/** @throws RelayError where the caller may not send these items through a bot of this platform */
type AdmitRetry = (platform: string, items: readonly ParsedItem[]) => void

/** What the caller is told. */
export interface Submitted {
  delivery: Delivery
  /** Whether it tells of an earlier request with the same key, and nothing was sent now. */
  isReplay: boolean
  /** For a request with a key whose message may still arrive: after how many seconds it may be asked again. */
  retryAfter?: number
}

/** What the relay goes by; a reload of the plugin may bring others. */
export interface RelayOptions extends Pick<
  Runtime, 'port' | 'policy' | 'media' | 'logger' | 'inFlight' | 'holdUpload' | 'keepUpload' | 'digestUpload' | 'observer'
> {
  queues: QueueOptions
  /** Where the log of what was sent is, absolute. */
  dataDir: string
  /** How long records are kept in a database, in milliseconds. */
  retention: number
  /** How many are kept there, at most. */
  recordLimit: number
  /** How much the records keep of what was to be sent. */
  recordContent: RecordContent
}

/** How long an Idempotency-Key lives, in milliseconds. */
const keyLifetime = 24 * 60 * 60 * 1000
/** In the place of the digest of a request, where it does not count what the request means. */
const anything = 'anything'
/** After which time a deferred delivery, or one that is sent again, is dropped unless its request says otherwise, in milliseconds. */
const defaultExpiry = 24 * 60 * 60 * 1000
/** How much longer than its delivery waits an uploaded file is kept, for a send that begins at the last moment, in milliseconds. */
const uploadMargin = 60 * 60 * 1000

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
  private readonly memory = new MemoryStore(this.clock)
  private readonly worker: Worker
  /** What is known of all deliveries. */
  readonly history = new History(this.memory, this.clock, () => this.storage)
  /** What waits, and what holds it up. */
  readonly operations: Operations
  /** What is asked of the platform besides. */
  readonly inquiries: Inquiries
  private readonly followUps: FollowUps
  private readonly retries = new Mutex()
  private storage: Storage | undefined
  /** The same, also after it has gone. */
  private lastStorage: Storage | undefined
  /** Those that were made for a database that may come back. */
  private readonly storages: Storage[] = []
  /** Those that are delivered from memory although nobody waits for them, by their IDs. */
  private readonly background = new Set<string>()
  /** The keys of requests under way, with the digests of what they mean; `end` is when their callers are answered. */
  private readonly underWay = new Map<string, { fingerprint: string, end: Promise<void> }>()
  /** How long records are kept in a database, in milliseconds. */
  private retention = 0
  private recordContent: RecordContent = 'preview'
  private hasDatabase: () => boolean = () => false
  private arrival: Promise<void> = Promise.resolve()
  private hasArrived = false
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
        if (isLatest()) await relay.lastStorage?.finish()
      },
    }
  }

  private constructor(options: RelayOptions) {
    this.queues = new Queues(options.queues, () => this.runtime.observer.paused())
    this.runtime = {
      ...options, clock: this.clock, sentLog: new SentLog(), openCalls: new OpenCalls(), stop: this.stop.signal, isPaused: true,
      knownSends: (delivery, since) => this.knownSends(delivery, since),
    }
    this.operations = new Operations(this.queues, this.runtime, () => this.storage)
    this.inquiries = new Inquiries(this.runtime, this.history)
    this.worker = new Worker(this.runtime, this.memory)
    this.followUps = new FollowUps({
      queues: this.queues, worker: this.worker, runtime: this.runtime, sendAgain: delivery => this.sendAgain(delivery),
      keepsItems: store => store.isDurable || this.memory.keeps('unanswered'), readItems: id => this.history.items(id),
    })
    this.worker.onEnd = (delivery, items) => this.keepFiles(delivery, items)
    this.worker.onUnanswered = ({ delivery, store, items }) => this.followUps.add(delivery, store, items)
  }

  private start(ctx: Context, options: RelayOptions): number {
    const { runtime, queues } = this
    const { port, policy, media, logger, inFlight, holdUpload, keepUpload, digestUpload, observer, dataDir } = options
    const { retention, recordLimit, recordContent } = options
    if (this.stop.signal.aborted) this.stop = new AbortController()
    Object.assign(runtime, {
      port, policy, media, logger, inFlight, holdUpload, keepUpload, digestUpload, observer, stop: this.stop.signal, isPaused: false,
    })
    this.retention = retention
    this.recordContent = recordContent
    this.memory.keeps = state => recordContent === 'full' || (recordContent === 'preview' && state !== 'sent')
    if (recordContent === 'none') this.memory.forgetContents()
    queues.open(options.queues)
    this.worker.resume()
    this.followUps.resume()
    runtime.sentLog.open(dataDir, error => {
      logger.warn('%s', `what is sent cannot be logged, so that look-ups know less: ${nameOf(error)}`)
    })
    ctx.inject(['database'], inner => {
      const known = this.storages.find(({ store }) => store.uses(inner.database))
      const storage = known ?? new Storage(inner, {
        queues, worker: this.worker, memory: this.memory, runtime,
        onFound: (delivery, store, items) => this.followUps.add(delivery, store, items),
      })
      if (!known) this.storages.push(storage)
      this.storage = this.lastStorage = storage
      storage.attach(inner, { retention, keyLifetime, limit: recordLimit, content: recordContent })
      inner.on('dispose', () => {
        if (this.storage === storage) this.storage = undefined
      })
    })
    const registry = unwrap(ctx.registry)
    this.hasDatabase = () => isDatabaseLoaded(registry)
    this.hasArrived = false
    this.arrival = awaitDatabase(ctx).then(() => {
      this.hasArrived = true
    })
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
    if (!this.storage) await this.awaitStorage(submission)
    if (submission.key === undefined) return { delivery: await this.accept(submission), isReplay: false }
    const key = digestKey(submission.caller ?? null, submission.key)
    const fingerprint = submission.event ? anything : await fingerprintOf(submission.request, this.runtime.digestUpload)
    // Whoever tells of an event again is told what became of it.
    while (submission.event && this.underWay.has(key)) await this.underWay.get(key)?.end
    const other = this.underWay.get(key)
    if (other) throw keyConflict(other.fingerprint === fingerprint)
    const work = this.submitOnce(submission, { key, fingerprint })
    this.underWay.set(key, { fingerprint, end: work.then(() => undefined, () => undefined) })
    try {
      const { delivery, isReplay } = await work
      const settling = delivery.state === 'unanswered' ? this.runtime.openCalls.leftOf(delivery, submission.request.items) : 0
      return { delivery, isReplay, ...settling > 0 && { retryAfter: Math.ceil(settling / 1000) } }
    } finally {
      this.underWay.delete(key)
    }
  }

  private async submitOnce(submission: Submission, idempotency: Idempotency): Promise<Submitted> {
    const { event } = submission
    const earlier = await this.findByKey(idempotency.key, event?.lifetime)
    if (!earlier && event) return this.acceptEvent(submission, idempotency)
    if (!earlier) return { delivery: await this.accept(submission, idempotency), isReplay: false }
    if (earlier.fingerprint !== idempotency.fingerprint) throw keyConflict(false)
    const isUnderWay = !earlier.deferred && isUnfinished(earlier.state)
    // Its caller did not wait for it.
    if (isUnderWay && this.background.has(earlier.id)) return { delivery: earlier, isReplay: true }
    if (isUnderWay) {
      // In another process: nothing of this one has the key.
      const life = await guard(this.storage?.lifeOf(earlier.id)) ?? 0
      if (life > 0 && event) return { delivery: earlier, isReplay: true }
      if (life > 0) throw keyConflict(true, life)
    }
    return isUnderWay || earlier.state === 'unanswered' ? this.repeat(submission, earlier) : { delivery: earlier, isReplay: true }
  }

  /** Finds out what became of an earlier request that went unanswered. Once it has settled and did not arrive, what is missing is sent. */
  private async repeat(submission: Submission, earlier: Delivery): Promise<Submitted> {
    const { storage, memory } = this
    const { event, signal } = submission
    const { id, deferred, bot, mode } = earlier
    // What died with its process is not taken over yet, perhaps.
    const from = [earlier.state, 'unanswered'] as const
    // An event may be told in other words, and what is deferred is sent as it was accepted.
    const stored = event || deferred ? memory.getQueued(id) ?? await guard(storage?.store.getQueued(id)) : undefined
    const items = stored?.items ?? submission.request.items
    const verdict = await this.reconcile(earlier, items, signal)
    if (!verdict) return { delivery: earlier, isReplay: true }
    const store = this.storeOf(earlier)
    // What is known of it, and asked of the platform, is of the bot that was to send it before.
    const again: Submission = { ...submission, request: { ...submission.request, items, mode, ...bot !== '' && { bot: selectorOf(bot) } } }
    if (deferred && storage && stored) {
      const delivery = await this.deferAgain(storage, again, earlier, from)
      if (delivery) return { delivery, isReplay: false }
    } else {
      const results = items.map((_, index) => earlier.results[index]).map(result => result?.success ? result : undefined)
      const change = { state: 'queued' as const, deferred: false, inDoubt: verdict === 'absent' ? null : earlier.inDoubt, results }
      if (await guard(store.amend(earlier, from, change))) return { delivery: await this.deliver(again, earlier, true), isReplay: false }
    }
    // It has changed meanwhile.
    const present = await guard(store.get(id)) ?? earlier
    if (isUnfinished(present.state) && !present.deferred && !event) throw keyConflict(true)
    return { delivery: present, isReplay: true }
  }

  /** Accepts what tells of an event, unless another process has just done so. */
  private async acceptEvent(submission: Submission, idempotency: Idempotency): Promise<Submitted> {
    try {
      return { delivery: await this.accept(submission, idempotency), isReplay: false }
    } catch (thrown) {
      const isTold = thrown instanceof RelayError && thrown.code === 'in-progress'
      const delivery = isTold ? await this.findByKey(idempotency.key, submission.event?.lifetime) : undefined
      if (!delivery) throw thrown
      return { delivery, isReplay: true }
    }
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
    const store = this.storage?.store
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
  retry(id: string, admit: AdmitRetry): Promise<Delivery> {
    return this.retries.run(id, async () => {
      const again = await this.retryOnce(id, admit) ?? await this.retryOnce(id, admit)
      if (!again) throw new RelayError('conflict', 'this delivery is changing: try again later')
      return again
    })
  }

  /** @returns `undefined` where it has changed meanwhile, and is to be judged anew */
  private async retryOnce(id: string, admit: AdmitRetry): Promise<Delivery | undefined> {
    const { state } = await this.history.get(id)
    if (!isRetryable(state)) throw notRetryable(state)
    const { storage, memory, runtime: { openCalls, port } } = this
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
    if (!storage) return this.retryFromMemory(delivery, items)
    const expiresAt = this.clock.now() + defaultExpiry
    // A file that is gone already makes its item fail in its turn.
    await this.keepUploads({ items, mode: 'batch' }, expiresAt)
    if (stored && !memory.hasContent(id)) {
      // What became of it is not written down yet.
      if (memory.get(id)) throw new RelayError('store-down')
      const isQueued = await guard(storage.backlog.requeue(delivery, retryable, retry(delivery, expiresAt)))
      return isQueued ? delivery : undefined
    }
    return this.move(storage, delivery, items, expiresAt)
  }

  /** Moves a delivery from memory, or from the records, to those that wait in the database, to be sent again. */
  private async move(storage: Storage, read: Delivery, items: readonly ParsedItem[], expiresAt: number): Promise<Delivery> {
    const { store, backlog, archive } = storage
    const { memory } = this
    const { id, bot } = read
    // An answer may have come since it was read.
    const here = memory.get(id)
    const { state, results, inDoubt, deferred, expiresAt: expired } = here ?? read
    if (!isRetryable(state)) throw notRetryable(state)
    const change = retry(here ?? read, expiresAt)
    const again = { ...here ?? read, ...change, bot, key: null, updatedAt: this.clock.now() }
    // From here on an answer that comes late does not change what is moved: it is looked for before anything is sent.
    if (here) memory.update(here, retryable, change)
    try {
      await guard(backlog.adopt(again, items))
    } catch (error) {
      if (here) memory.update(here, ['queued'], { state, results, inDoubt, deferred, expiresAt: expired })
      this.takeBack(store, id)
      throw error
    }
    memory.discard(id)
    await guard(archive.remove(id))
    return again
  }

  private async retryFromMemory(delivery: Delivery, items: readonly ParsedItem[]): Promise<Delivery> {
    const { id, door, mode, target, bot } = delivery
    const change = { ...retry(delivery, 0), deferred: false, expiresAt: null }
    if (!this.memory.update(delivery, retryable, change)) throw notRetryable(delivery.state)
    const request = { mode, target, items, bot: selectorOf(bot) }
    return this.deliverInBackground({ id, door, request }, delivery, 0, true)
  }

  /** Without the database that holds it, a key would be taken for a new one, and what waits would be overtaken. */
  private async awaitStorage({ key, deferred }: Submission): Promise<void> {
    const isNeeded = key !== undefined || deferred !== undefined
    if ((this.hasArrived && !isNeeded) || !this.hasDatabase()) return
    await this.arrival
    if (isNeeded && !this.hasStorage()) throw new RelayError('store-down')
  }

  /** A function, because it may change at every wait. */
  private hasStorage(): boolean {
    return this.storage !== undefined
  }

  private accept(submission: Submission, idempotency?: Idempotency): Promise<Delivery> {
    const { id, request, caller, door, deferred } = submission
    const about = aboutOf(request.items, this.recordContent)
    const delivery = createDelivery(id, this.clock.now(), request, idempotency, { caller, door, about })
    if (!deferred) return this.deliver(submission, delivery)
    return deferred.inMemory !== undefined && !this.hasDatabase()
      ? this.deliverInBackground(submission, delivery, deferred.inMemory)
      : this.defer(submission, delivery, deferred.wait)
  }

  /** Delivers without a database, and waits for the result no longer than this. */
  private async deliverInBackground(submission: Submission, delivery: Delivery, wait: number, isKnown = false): Promise<Delivery> {
    const { background, runtime: { inFlight, stop } } = this
    const leave = inFlight.enter()
    background.add(delivery.id)
    const work = this.deliver({ ...submission, signal: undefined }, delivery, isKnown).finally(() => {
      background.delete(delivery.id)
      leave()
    })
    await Promise.race([work, sleep(wait, stop)])
    return delivery
  }

  /** The one place that decides where a delivery is kept: what may be asked about after a restart is in the database. */
  private storeOf({ key }: Delivery): Store {
    return key === null ? this.memory : this.storage?.store ?? this.memory
  }

  /**
   * Delivers while the caller waits.
   *
   * @param isKnown whether the delivery is in its store already
   */
  private async deliver({ request, admit, signal }: Submission, delivery: Delivery, isKnown = false): Promise<Delivery> {
    const { queues, worker, storage } = this
    const { items, target } = request
    const store = this.storeOf(delivery)
    // What an earlier process left comes first.
    if (storage && !storage.backlog.isOpen) await storage.backlog.opened
    const deadline = new Deadline(signal, request.expiresIn)
    let isKept = isKnown
    try {
      const account = this.runtime.port.choose(request.bot)
      admit?.(account.platform)
      account.checkIds(target, items)
      if (!isKnown) {
        delivery.bot = account.sid
        const inserted = this.insert(store, delivery, items)
        if (inserted) await inserted
      }
      isKept = true
      const isOurs = (): boolean => !store.isDurable || storage?.isAlive() === true
      const end = await queues.use(queueOf(account.sid, target), { signal: () => deadline.signal() }, slot =>
        worker.deliver(slot, { delivery, items, store, account, isOurs }))
      if (end !== 'gone') return delivery
      // The others have taken this relay for dead, and settled it, or may do so at any time.
      const present = await guard(store.get(delivery.id))
      if (present && !isUnfinished(present.state)) return present
      throw present && present.updatedAt !== delivery.updatedAt ? keyConflict(true) : new RelayError('unsent')
    } catch (thrown) {
      const error = RelayError.from(thrown)
      // What an earlier request with its key has left without an answer may have arrived, whatever stops this one.
      const results = abandon(delivery, error)
      if (isKept) {
        await worker.settle(delivery, store, results, { asRead: true })
        this.keepFiles(delivery, items)
        if (delivery.state === 'unanswered') return delivery
      } else if (error.outcome) {
        // It is not sent again where it is not known through which bot.
        const isSure = delivery.bot !== '' || (request.bot.platform === undefined && request.bot.selfId === undefined)
        // Without an outcome it was no delivery at all.
        this.memory.insert(Object.assign(delivery, settle(delivery, results)), noPosition, isSure ? items : [])
        this.runtime.observer.ended(delivery, this.clock.now() - delivery.createdAt)
        if (isSure) this.keepFiles(delivery, items)
      }
      throw error
    } finally {
      deadline.end()
    }
  }

  /** Stores what is to be sent later, and waits a while for the result if the caller likes to. */
  private async defer({ id, request, admit, signal }: Submission, delivery: Delivery, wait: number): Promise<Delivery> {
    const { storage, runtime: { port } } = this
    if (!storage) throw new RelayError('no-database')
    const account = port.chooseLater(request.bot)
    admit?.(account.platform)
    account.checkIds(request.target, request.items)
    const expiresAt = delivery.createdAt + (request.expiresIn ?? defaultExpiry)
    Object.assign(delivery, { deferred: true, bot: account.sid, expiresAt })
    await this.keepUploads(request, expiresAt)
    const result = wait > 0 ? new Result(this.worker, id) : undefined
    try {
      await this.insertInto(storage.store, delivery, () => storage.backlog.add(delivery, request.items))
      return await result?.within(wait, signal?.(), this.runtime.stop) ?? delivery
    } finally {
      result?.end()
    }
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
    const { policy: { timeout, retries }, stop } = this.runtime
    admit?.(platformOf(delivery.bot) ?? '')
    const expiresAt = this.clock.now() + expiresIn
    // A file that is gone already makes its item fail in its turn.
    await this.keepUploads({ items, mode: 'batch' }, expiresAt)
    const result = new Result(this.worker, delivery.id)
    try {
      if (!await guard(backlog.requeue(delivery, from, retry(delivery, expiresAt)))) return
      return await result.within(deferred?.wait ?? timeout * (retries + 1), signal?.(), stop) ?? delivery
    } finally {
      result.end()
    }
  }

  /** Has a deferred delivery sent again that nobody asked for again, as far as it is still wanted. */
  private async sendAgain(delivery: Delivery): Promise<void> {
    const { storage } = this
    const now = this.clock.now()
    if (!storage || isOverdue(delivery, now)) return
    await storage.backlog.requeue(delivery, ['unanswered'], retry(delivery, delivery.expiresAt ?? now + defaultExpiry))
  }

  /** Finds out what became of an earlier request that went unanswered, and gives the verdict where what is missing may be sent now. */
  private async reconcile(delivery: Delivery, items: readonly ParsedItem[], signal: Submission['signal']): Promise<Verdict | undefined> {
    Object.assign(delivery, { state: 'unanswered', results: delivery.results.map(result => result ?? unanswered()) })
    this.learnOpenCalls(delivery, items)
    // The queue is full or paused, the caller has gone away, the database is away, or the relay stops.
    return this.followUps.reconcile(delivery, this.storeOf(delivery), items, signal).catch(() => undefined)
  }

  /** Of a delivery whose calls another relay has made it is not known here when they have settled. */
  private learnOpenCalls(delivery: Delivery, items: MessageRequest['items']): void {
    if (this.storage?.isShared) this.runtime.openCalls.learn(delivery, items, Math.max(this.clock.now() - delivery.updatedAt - agreed, 0))
  }

  /** @param since in milliseconds since the epoch, by the machine's clock */
  private async knownSends(delivery: Delivery, since: number): Promise<KnownSends> {
    // The machine's clock may have been set since that time was read, and what is asked for too long is only known better.
    const oldest = Math.min(this.clock.fromWall(since), delivery.inDoubt?.since ?? Infinity) - clockMargin
    // Also those of a database that is away: it is not known then.
    const stored = await Promise.all(this.storages.map(({ store }) => store.messageIds(delivery, oldest)))
    const logged = await this.runtime.sentLog.read(delivery.bot, delivery.target)
    // Older records may have been removed.
    const kept = this.storages.length > 0 ? Date.now() - this.retention : -Infinity
    // What another relay left to this one has to be found although the log of that one is not here.
    const isShared = this.storages.some(({ isShared }) => isShared)
    const messageIds = new Set([...logged.messageIds, ...stored.flat()])
    return { ...logged, messageIds, since: isShared ? kept : Math.max(logged.since, kept) }
  }

  private insert(store: Store, delivery: Delivery, items: MessageRequest['items']): Promise<void> | undefined {
    if (store.isDurable) return this.insertInto(store, delivery, () => store.insert(delivery, noPosition, items))
    void store.insert(delivery, noPosition, items)
  }

  /** @throws RelayError `in-progress` or `key-reused` when its key was taken meanwhile, `queue-full`, `store-down` */
  private async insertInto(store: Store, delivery: Delivery, insert: () => Promise<void> | void): Promise<void> {
    try {
      await insert()
    } catch (cause) {
      if (cause instanceof RelayError) throw cause
      this.takeBack(store, delivery.id)
      // Drivers word a duplicate key differently; asking for it is the same everywhere.
      const other = delivery.key === null ? undefined : await guard(store.findByKey(delivery.key))
      if (other && other.id !== delivery.id) throw keyConflict(other.fingerprint === delivery.fingerprint)
      throw new RelayError('store-down', undefined, { cause })
    }
  }

  /** What could not be inserted may be there although the answer was lost, but nobody is told that it is. */
  private takeBack(store: Store, id: string): void {
    void Promise.resolve(store.discard(id)).catch(() => undefined)
  }

  private async findByKey(key: string, lifetime = keyLifetime): Promise<Delivery | undefined> {
    const oldest = this.clock.now() - lifetime
    const remembered = this.memory.findByKey(key)
    if (remembered && remembered.createdAt > oldest) return remembered
    this.memory.releaseKey(key)
    const store = this.storage?.store
    // Whether a first request has sent anything is not known then.
    const stored = await guard(store?.findByKey(key), 'key-unknown')
    // What became of it is not written down yet, and would be once it is another delivery's key.
    if (stored && this.memory.get(stored.id)) throw new RelayError('key-unknown')
    if (!stored || stored.createdAt > oldest) return stored
    await guard(store?.releaseKey(key))
  }

  /** What can be sent again needs its files. */
  private keepFiles({ state }: Delivery, items: readonly ParsedItem[]): void {
    if (this.memory.keeps(state)) void this.keepUploads({ items, mode: 'batch' }, this.clock.now() + this.retention)
  }

  /**
   * @param until by the relay's clock
   * @throws RelayError `file-not-found` when the one file of a single message is not there; in a batch, the item fails in its turn
   */
  private async keepUploads({ items, mode }: Pick<MessageRequest, 'items' | 'mode'>, until: number): Promise<void> {
    for (const item of items) {
      if (!('link' in item) || item.link.kind !== 'upload') continue
      try {
        await this.runtime.keepUpload(item.link.id, this.clock.toWall(until) + uploadMargin)
      } catch (error) {
        if (mode === 'single') throw error
      }
    }
  }
}

/** What an Idempotency-Key is known by. No two callers have one in common: neither a key nor a name has a line break in it. */
function digestKey(caller: string | null, key: string): string {
  return caller === null ? digest(key) : digest(`${caller}\n`, key)
}

/**
 * The failure of a request whose key belongs to another one that is under way, or that meant something else.
 *
 * @param until after which time it may be over, in milliseconds
 */
function keyConflict(isSame: boolean, until = 0): RelayError {
  if (!isSame) return new RelayError('key-reused')
  return new RelayError('in-progress', undefined, { headers: { 'retry-after': String(Math.max(Math.ceil(until / 1000), 1)) } })
}

function isRetryable(state: State): boolean {
  return retryable.some(name => name === state)
}

function notRetryable(state: State): RelayError {
  return new RelayError('conflict', `this delivery is ${state}: only one that was not delivered can be sent again`)
}
