import { RelayError } from '../errors'
import { day } from '../lib/time'
import { Intake } from './accept/intake'
import { Keys } from './accept/keys'
import { Recheck } from './accept/recheck'
import { every, type Clock } from './clock'
import { Deliveries } from './delivery/deliveries'
import { DeliveriesTable } from './delivery/deliveries-table'
import { failRest, isUnfinished, type Delivery, type State } from './delivery/delivery'
import { History } from './delivery/history'
import { Purge } from './delivery/purge'
import { Limits } from './limits'
import { Claims, nameOf } from './look-up/claims'
import { LookUps } from './look-up/look-up'
import type { RelayOptions, Submission, Submitted } from './options'
import { GateMemory, Gates } from './queue/gates'
import { queueOf } from './queue/queue'
import { Queues } from './queue/queues'
import type { Store } from './store/store'
import { say } from '../texts/text'

/** Survives a reload of the plugin: the known messages of the chats, pauses and limits. */
export class Memory {
  readonly claims: Claims
  readonly limits: Limits
  readonly gates = new GateMemory()

  constructor(clock: Clock) {
    this.claims = new Claims(clock)
    this.limits = new Limits(clock)
  }
}

/** How often old records are removed, in milliseconds. */
const upkeepInterval = 60_000

/** The parts of the core, in the order in which a delivery passes them, on one open store. They end with it. */
export class Core {
  readonly history: History
  readonly queues: Queues
  readonly gates: Gates
  readonly keys: Keys
  private readonly deliveries: Deliveries
  private readonly intake: Intake
  private readonly recheck: Recheck
  private readonly purge: Purge
  private readonly stop = new AbortController()
  private readonly endUpkeep: () => void

  /** @throws RelayError if the file cannot be read */
  constructor(private readonly options: RelayOptions, memory: Memory, readonly store: Store) {
    const { clock, recordContent, logger } = options
    const { claims, limits } = memory
    const table = new DeliveriesTable(store, { recordContent, logger })
    const left = store.failure ? [] : table.left(clock.wall() - day).sort((a, b) => a.seq - b.seq)
    const running = { ...options, store, stop: this.stop.signal }
    const deliveries = this.deliveries = new Deliveries(running, table)
    const gates = this.gates = new Gates({ ...running, limits }, memory.gates)
    const sending = { ...running, deliveries, claims, limits, gates, lookUps: new LookUps({ ...running, claims, limits, table }) }
    const entering = { ...sending, queues: this.queues = new Queues(sending) }
    const intake = this.intake = new Intake(entering, left.reduce((last, { seq }) => Math.max(last, seq), 0))
    const recheck = this.recheck = new Recheck(entering)
    this.keys = new Keys({ ...entering, intake, recheck })
    this.history = new History(deliveries)
    this.purge = new Purge(running, table)
    this.endUpkeep = every(clock, upkeepInterval, () => void this.tidy())
    this.resume(left, claims)
    // The settings may keep less than before.
    void this.tidy()
  }

  /** Why nothing can be kept now; `undefined` while all is well. */
  get failure(): RelayError | undefined {
    return this.store.failure ?? this.deliveries.failure ?? (this.store.isFull ? new RelayError('storage-full', say('disk-full')) : undefined)
  }

  /** @throws RelayError the reason why the request is refused as a whole */
  async submit(submission: Submission): Promise<Submitted> {
    const { key } = submission
    const kept = this.intake.keepUploads(submission)
    if (kept) await kept
    if (key !== undefined) return this.keys.submit(submission, key)
    return { delivery: await this.intake.accept(submission), isReplay: false }
  }

  /**
   * Withdraws a waiting delivery.
   *
   * @returns its state, if there is still a record because a part of it was tried before
   * @throws RelayError `not-found`, `conflict`, `store-down`
   */
  async withdraw(id: string): Promise<State | undefined> {
    const { deliveries, queues, store } = this
    const { state, deferred, results, attempts, open, flow } = this.history.get(id)
    const entry = deliveries.get(id)
    if (state !== 'queued' || !entry) throw new RelayError('conflict', say('withdraw-only-queued', { state }))
    if (results.some(result => result?.success)) throw new RelayError('conflict', say('withdraw-partly-sent'))
    if (!deferred) throw new RelayError('conflict', say('withdraw-awaited'))
    if (!queues.holds(entry)) throw new RelayError('conflict', say('withdraw-in-digest'))
    // The members of a digest end with it.
    const leavesRecord = attempts > 0 || open.length > 0 || flow.members !== undefined
    if (!leavesRecord) deliveries.withdraw(entry.delivery)
    queues.giveUp(entry)
    if (leavesRecord) deliveries.end(entry, failRest(entry.delivery, new RelayError('unsent', say('withdrawn-this-time'))))
    await store.flushed()
    return leavesRecord ? entry.delivery.state : undefined
  }

  /** Stops all work at once. Callers are answered; deferred deliveries stay in the file. */
  end(): void {
    this.endUpkeep()
    this.recheck.end()
    this.stop.abort()
    this.queues.close()
  }

  /** Waits for the sends that the end cuts short, and writes the last records. */
  async finish(): Promise<void> {
    await this.queues.idle()
    this.deliveries.close()
  }

  private async tidy(): Promise<void> {
    if (this.store.failure) return
    try {
      await this.purge.run()
    } catch (error) {
      if (!this.stop.signal.aborted) this.options.logger.warn(say('old-records-stay', { failure: RelayError.from(error).logText }))
    }
  }

  /**
   * Resumes what an earlier process left. Deferred deliveries join their queues. Those whose callers waited end: as unanswered if they were
   * being sent. Unanswered ones are looked up.
   */
  private resume(left: readonly Delivery[], claims: Claims): void {
    const { deliveries, queues } = this
    const waiting = left.filter(({ state }) => isUnfinished(state)).map(delivery => deliveries.add(delivery))
    for (const entry of waiting) deliveries.cut(entry)
    const inDigests = new Set<string>()
    for (const delivery of left) {
      for (const open of delivery.open) claims.restore(queueOf(delivery), nameOf(delivery.id, open.indices), open)
      if (delivery.state === 'unanswered') deliveries.remember({ delivery, items: undefined, hasRow: true })
    }
    for (const { delivery } of waiting) {
      const members = deliveries.membersOf(delivery)
      // A digest that never left is removed, and its members wait by themselves.
      const hasNeverLeft = delivery.open.length === 0 && (members.length > 0 || (delivery.flow.members && delivery.attempts === 0))
      if (hasNeverLeft) deliveries.withdraw(delivery)
      else for (const { delivery: { id } } of members) inDigests.add(id)
    }
    for (const entry of waiting) {
      const { id, deferred } = entry.delivery
      // Members end with their digest.
      if (inDigests.has(id) || !deliveries.get(id)) continue
      if (deferred) queues.join(entry)
      else deliveries.end(entry, failRest(entry.delivery, new RelayError('stopping', say('ended-before-sent'))))
    }
  }
}
