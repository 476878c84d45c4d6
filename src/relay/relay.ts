import { RelayError } from '../errors'
import { onAbort } from '../lib/async'
import type { MessageRequest } from '../message/model'
import type { SendError } from '../platform/port'
import { Inquiries } from './accept/inquiries'
import { inTime, pause } from './clock'
import { Core, type Memory } from './core'
import { createDelivery, partsFor, type Delivery, type State } from './delivery/delivery'
import type { History } from './delivery/history'
import type { AdmitRetry, RelayOptions, Submission, Submitted } from './options'
import { readQueue, waitOf, type Backlog, type QueueState, type Wait } from './queue/queue'
import { preview, type Preview } from './send/preview'
import { ClosedStore } from './store/failures'
import type { Storage, Store } from './store/store'
import { say, type Text } from '../texts/text'

/** How long the end waits for a slow disk, in milliseconds. */
const longestEnd = 2_000
/** How long a caller waits for the store after the start, in milliseconds: during a reload, the earlier relay has four seconds to end. */
const startTime = 6_000
/** The wait before the next try after the core could not begin, in milliseconds. */
const retryDelay = 1_000
const standbyHeaders = { 'retry-after': '5' }

/**
 * The door of the core: it turns submissions of all doors into deliveries, and brings each to its end. It has a core while this process
 * owns the data folder, and stands by otherwise.
 */
export class Relay {
  /** Requests to platforms besides sending. */
  readonly inquiries: Inquiries
  /** Resolves after `end`, once the last writes are done and the data folder is released, or a short time later. */
  readonly ended: Promise<void>
  private readonly stop = new AbortController()
  private core: Core | undefined
  /** Resolves with the first core, at the end, or when callers should wait no longer. */
  private readonly begun: Promise<void>
  private readonly hasBegun = new AbortController()
  private readonly absent = new ClosedStore(
    new RelayError('store-down', say('not-opened-yet'), { headers: standbyHeaders }), this.stop.signal,
  )

  /**
   * @param memory what survives a reload of the plugin
   * @param last resolves when the relay before a reload has ended
   */
  constructor(
    private readonly memory: Memory, private readonly options: RelayOptions, private readonly storage: Storage, last = Promise.resolve(),
  ) {
    this.inquiries = new Inquiries({ ...options, stop: this.stop.signal })
    this.begun = pause(options.clock, startTime, this.hasBegun.signal)
    const work = last.then(() => this.work())
    this.ended = aborted(this.stop.signal).then(() => inTime(options.clock, work, longestEnd))
  }

  /** The present store; one with a failure while there is none. */
  get store(): Store {
    return this.core?.store ?? this.absent
  }

  /** The records of all deliveries. @throws RelayError `standby` */
  async history(): Promise<History> {
    return (await this.first()).history
  }

  /** Whether this relay works, and does not stand by. */
  get isActive(): boolean {
    return this.core !== undefined
  }

  /**
   * Resolves if this relay is active. Right after the start, it waits for the store.
   *
   * @throws RelayError `standby`, `stopping`
   */
  async active(): Promise<void> {
    await this.first()
  }

  /** Why nothing can be kept now; `undefined` while all is well. */
  get failure(): RelayError | undefined {
    if (this.core) return this.core.failure
    // While the file is opened again, nobody else has it.
    return new RelayError(this.storage.owner === undefined ? 'store-down' : 'standby')
  }

  /** The process that has the data folder while this relay stands by. */
  get standsBehind(): Text | undefined {
    return this.core ? undefined : this.storage.owner
  }

  /**
   * Carries out a request, unless an earlier one with its Idempotency-Key did.
   *
   * @throws RelayError the reason why the request is refused as a whole
   */
  async submit(submission: Submission): Promise<Submitted> {
    return (this.core ?? await this.first(submission.key !== undefined)).submit(submission)
  }

  /**
   * Composes a request without sending it, and tells why it would wait.
   *
   * @throws RelayError the reason why the request would be refused as a whole
   */
  async preview(request: MessageRequest): Promise<Preview & { wait: Wait | undefined }> {
    if (!this.core) await this.begun
    const composed = await preview(request, this.options)
    const delivery = createDelivery({ id: '', caller: null, door: '' }, 0, this.options.clock.wall(), request)
    return { ...composed, wait: this.waitOf({ ...delivery, ...partsFor(request, 'none'), bot: composed.bot, deferred: true }) }
  }

  /**
   * Withdraws a waiting delivery. If nothing of it was tried, its record and its Idempotency-Key are removed.
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
    return (await this.first()).keys.retry(id, admit)
  }

  /** The queues that are not empty, or are paused or held. */
  queues(): QueueState[] {
    return this.core?.queues.states() ?? []
  }

  /** The deferred deliveries; `undefined` on a standby. */
  backlog(): Backlog | undefined {
    return this.core?.queues.backlog()
  }

  /** The queues that reached the pause limit with no success since, with the last failure. */
  failing(): ReadonlyMap<string, SendError> {
    return this.core?.gates.failing() ?? new Map()
  }

  /** Since when each restricted account is, in milliseconds since the epoch, by its `sid`. */
  restricted(): ReadonlyMap<string, number> {
    return this.core?.gates.restricted() ?? new Map()
  }

  /** Why a queued delivery waits; `undefined` if it waits only for the deliveries before it. */
  waitOf(delivery: Delivery): Wait | undefined {
    return this.core && waitOf(delivery, this.core.gates, this.core.queues.nextWayAt(delivery))
  }

  /** Ends the pause or hold of a queue early, unless its chat is still closed. */
  async resume(queue: string): Promise<void> {
    await this.core?.queues.resume(queue)
  }

  /**
   * Ends all deliveries waiting in a queue. They can be retried.
   *
   * @returns their number
   * @throws RelayError `not-found` if the text is not the name of a queue
   */
  async drop(queue: string): Promise<number> {
    if (!readQueue(queue)) throw new RelayError('not-found')
    const { queues, store } = await this.first()
    const dropped = queues.drop(queue, new RelayError('unsent', say('dropped-by-operator')))
    if (!store.failure) await store.flushed()
    return dropped
  }

  /** Stops all work at once, and answers the waiting callers. */
  end(): void {
    this.stop.abort()
    this.hasBegun.abort()
  }

  /**
   * The present core. Right after the start, this waits for the first one.
   *
   * @param isRepeatable whether an earlier request may have sent the message, which only the store knows
   * @throws RelayError `standby`, `store-down`, `stopping`
   */
  private async first(isRepeatable = false): Promise<Core> {
    if (!this.core) await this.begun
    if (this.core) return this.core
    // While the file is opened again, nobody else has it.
    const code = this.stop.signal.aborted ? 'stopping' : this.storage.owner === undefined ? 'store-down' : 'standby'
    throw new RelayError(code, undefined, { headers: standbyHeaders, ...isRepeatable && { outcome: null } })
  }

  private async work(): Promise<void> {
    const { memory, options, storage, stop: { signal } } = this
    const hasStopped = (): boolean => signal.aborted
    while (!hasStopped()) {
      const store = await storage.open(signal).catch(() => undefined)
      if (!store) return
      try {
        const core = this.core = new Core(options, memory, store)
        this.hasBegun.abort()
        await aborted(store.over, signal)
        core.end()
        await core.finish()
      } catch (error) {
        options.logger.warn(say('cannot-begin', { failure: RelayError.from(error).logText }))
        await pause(options.clock, retryDelay, signal)
      }
      await store.close()
      if (!hasStopped()) this.core = undefined
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
