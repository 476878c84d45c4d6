import { RelayError } from '../errors'
import { Chats, LookUps, nameOf } from './look-up/claims'
import { every, type Clock } from './clock'
import { Deliveries } from './delivery/deliveries'
import { failRest, isUnfinished, type Delivery, type State } from './delivery/delivery'
import { GateMemory, Gates } from './queue/gates'
import { History } from './delivery/history'
import { Intake } from './accept/intake'
import { nameOfError, type Journal } from './journal'
import { MemoryJournal } from './journal-memory'
import { queueOf } from './queue/queue'
import { Queues } from './queue/queues'
import { Limits } from './queue/limits'
import type { RelayOptions, Submission, Submitted } from './options'
import type { Ownership } from './owner'
import { isChanging, Recheck } from './look-up/recheck'
import { Replay } from './accept/keys'

/** Survives a reload of the plugin: the known messages of the chats, pauses, limits, and the journal in memory. */
export class Shared {
  readonly chats: Chats
  readonly limits: Limits
  readonly gates = new GateMemory()
  readonly journal = new MemoryJournal()

  constructor(clock: Clock) {
    this.chats = new Chats(clock)
    this.limits = new Limits(clock)
  }
}

/** How old an unanswered delivery may be for the next owner to look for it, in milliseconds. */
const day = 24 * 60 * 60 * 1000
/** How often late rows are adopted and old ones removed, in milliseconds. */
const upkeepInterval = 60_000

/**
 * The time of one owner, with all it has in memory. The term ends when the ownership is lost: its memory is dropped, and it makes no more
 * calls and writes.
 */
export class Term {
  readonly history: History
  readonly queues: Queues
  readonly gates: Gates
  readonly replay: Replay
  private readonly deliveries: Deliveries
  private readonly intake: Intake
  private readonly recheck: Recheck
  private readonly stop = new AbortController()
  private readonly endUpkeep: () => void
  private isPurging = false

  /**
   * Begins a term, and resumes the deliveries in the journal that have not ended.
   *
   * @throws the error of the database
   */
  static async begin(options: RelayOptions, memory: Shared, journal: Journal, ownership: Ownership, owner: number): Promise<Term> {
    const adopted = await journal.adopt(owner, options.clock.wall() - day)
    // What was sent before the database was there.
    const moved = journal.isDurable ? memory.journal.moveTo(journal) : []
    const left = [...adopted, ...moved]
    const term = new Term(options, memory, journal, ownership, owner, left.reduce((last, { seq }) => Math.max(last, seq), 0))
    term.goOn(left)
    // The settings may keep less than before.
    void term.keepUp(term.purge())
    return term
  }

  private constructor(
    private readonly options: RelayOptions, private readonly memory: Shared, private readonly journal: Journal, ownership: Ownership,
    private readonly owner: number, last: number,
  ) {
    const { chats, limits } = memory
    const running = { ...options, stop: this.stop.signal, journal, ownership, chats, limits }
    const deliveries = this.deliveries = new Deliveries(running)
    const gates = this.gates = new Gates(running, memory.gates)
    const sending = { ...running, deliveries, lookUps: new LookUps(running), gates }
    const entering = { ...sending, queues: this.queues = new Queues(sending) }
    const intake = this.intake = new Intake(entering, last)
    const recheck = this.recheck = new Recheck(entering)
    this.replay = new Replay({ ...entering, intake, recheck })
    this.history = new History(deliveries, journal)
    this.endUpkeep = every(options.clock, upkeepInterval, () => void this.keepUp(this.adopt()))
  }

  /** Whether a write waits for the database. */
  get isStoreDown(): boolean {
    return this.deliveries.isStoreDown
  }

  /** @throws RelayError the reason why the request is refused as a whole */
  async submit(submission: Submission): Promise<Submitted> {
    const { key } = submission
    if (key !== undefined) return this.replay.submit(submission, key)
    return { delivery: await this.intake.accept(submission), isReplay: false }
  }

  /**
   * Withdraws a waiting delivery.
   *
   * @returns its state, if there is still a record because a part of it was tried before
   * @throws RelayError `not-found`, `conflict`, `store-down`
   */
  async withdraw(id: string): Promise<State | undefined> {
    const { deliveries, queues } = this
    const { state, deferred, results, attempts, open, flow } = await this.history.get(id)
    if (state !== 'queued') throw new RelayError('conflict', `this delivery is ${state}: only a queued one can be withdrawn`)
    if (results.some(result => result?.success)) {
      throw new RelayError('conflict', 'a part of this delivery has been sent: it cannot be withdrawn any more')
    }
    if (!deferred) throw new RelayError('conflict', 'the caller of this delivery waits for it: it cannot be withdrawn')
    const active = deliveries.get(id)
    // It is withdrawn already, and its row is still there.
    if (!active) throw isChanging()
    if (!queues.giveUp(active.delivery)) throw new RelayError('conflict', 'this delivery is leaving in a digest: only a queued one can be withdrawn')
    // The members of a digest end with it.
    const leavesRecord = attempts > 0 || open.length > 0 || flow.members !== undefined
    if (!leavesRecord) {
      await deliveries.withdraw(active.delivery)
      return
    }
    await deliveries.end(active, failRest(active.delivery, new RelayError('unsent', 'withdrawn while it was waiting: nothing was sent this time')))
    return active.delivery.state
  }

  /** Stops all work at once. Callers are answered; deferred deliveries stay in the journal. */
  end(): void {
    this.endUpkeep()
    this.recheck.end()
    this.stop.abort()
    this.queues.close()
  }

  /** Waits for the sends that the end cuts short, and a short time for the last writes. */
  async finish(): Promise<void> {
    await this.queues.idle()
    await this.deliveries.finish()
  }

  /** Adopts late rows and removes old ones. */
  private async adopt(): Promise<void> {
    const { journal, options: { clock } } = this
    this.goOn(await journal.adopt(this.owner, clock.wall() - day))
    await this.purge()
  }

  /** Removes old rows. One that takes longer than the interval goes on instead of another. */
  private async purge(): Promise<void> {
    if (this.isPurging) return
    this.isPurging = true
    await this.journal.purge(this.options.clock.wall()).finally(() => this.isPurging = false)
  }

  /** Logs a failure of the upkeep. The next one tries again. */
  private async keepUp(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      if (!this.stop.signal.aborted) this.options.logger.warn('%s', `the upkeep of the database failed: ${nameOfError(error)}`)
    }
  }

  /**
   * Resumes the deliveries of an earlier term. Deferred ones join their queues. Those with a waiting caller end: as unanswered if they were
   * being sent. Unanswered ones are looked up.
   */
  private goOn(left: readonly Delivery[]): void {
    const { deliveries, queues, stop, memory: { chats } } = this
    if (stop.signal.aborted) return
    const found = left.filter(({ id }) => !deliveries.find(id))
    const waiting = found.filter(({ state }) => isUnfinished(state)).map(delivery => deliveries.add(delivery))
    for (const active of waiting) deliveries.cut(active)
    const inDigests = new Set<string>()
    for (const delivery of found) {
      for (const open of delivery.open) chats.restore(queueOf(delivery), nameOf(delivery.id, open.indices), open)
      if (delivery.state === 'unanswered') deliveries.remember(deliveries.toActive(delivery))
    }
    for (const { delivery } of waiting) {
      const members = deliveries.membersOf(delivery)
      // A digest that never left is removed, and its members wait by themselves.
      const hasNeverLeft = delivery.open.length === 0 && (members.length > 0 || (delivery.flow.members && delivery.attempts === 0))
      if (hasNeverLeft) void deliveries.withdraw(delivery).catch(() => undefined)
      else for (const { delivery: { id } } of members) inDigests.add(id)
    }
    for (const active of waiting) {
      const { id, deferred } = active.delivery
      // Members end with their digest.
      if (inDigests.has(id) || !deliveries.get(id)) continue
      if (deferred) queues.join(active)
      else void deliveries.end(active, failRest(active.delivery, new RelayError('stopping', 'the relay ended before this could be sent: nothing was sent')))
    }
  }
}
