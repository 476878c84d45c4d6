import { RelayError } from '../errors'
import { Chats, LookUps, nameOf } from './chats'
import type { Clock } from './clock'
import { Deliveries, nameOfError } from './deliveries'
import { failRest, isUnfinished, type State } from './delivery'
import { GateMemory, Gates } from './gates'
import { History } from './history'
import { Intake } from './intake'
import type { Head, Journal } from './journal'
import { MemoryJournal } from './journal-memory'
import { Lanes, laneOf } from './lanes'
import { Limits } from './limits'
import type { AdmitRetry, RelayOptions, Submission, Submitted } from './options'
import type { Ownership } from './owner'
import { Recheck } from './recheck'
import { Replay, orStoreDown } from './replay'

/** What outlives a reload of the plugin in one process: what is known of the chats, pauses and intervals, and the journal in memory. */
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

/** For how long what ended unanswered is looked for by the next owner, in milliseconds. */
const day = 24 * 60 * 60 * 1000
/** How often rows are adopted that came late, and old ones removed, in milliseconds. */
const upkeepInterval = 60_000

/**
 * The relay at work under one owner number. When the ownership is lost, the term ends: its memory is dropped, and it neither calls nor
 * writes any more.
 */
export class Term {
  readonly history: History
  readonly lanes: Lanes
  readonly gates: Gates
  private readonly deliveries: Deliveries
  private readonly intake: Intake
  private readonly replay: Replay
  private readonly recheck: Recheck
  private readonly stop = new AbortController()
  /** What was adopted and is still to be gone on with: where the database does not answer, that is tried again. */
  private readonly adopted = new Set<Head>()
  private cancel: () => void

  /**
   * Begins a term: what the journal has and has not ended goes on.
   *
   * @throws the error of the database
   */
  static async begin(options: RelayOptions, memory: Shared, journal: Journal, ownership: Ownership, owner: number): Promise<Term> {
    const heads = await journal.adopt(owner, options.clock.wall() - day)
    const term = new Term(options, memory, journal, ownership, owner, heads.reduce((last, { seq }) => Math.max(last, seq), 0))
    try {
      await term.goOn(heads)
    } catch (error) {
      term.end()
      // What it has begun must not write under the number of the next term.
      await term.finish()
      throw error
    }
    // Another setting may keep less than what is there.
    void term.keepUp([])
    return term
  }

  private constructor(
    private readonly options: RelayOptions, private readonly memory: Shared, private readonly journal: Journal, ownership: Ownership,
    private readonly owner: number, last: number,
  ) {
    const { clock, observer, policy: { retryUnanswered: asked } } = options
    const { chats, limits } = memory
    const running = { ...options, stop: this.stop.signal }
    const deliveries = this.deliveries = new Deliveries({ ...running, journal, ownership })
    const lookUps = new LookUps(chats, journal, observer, limits, ({ platform, retriesUnanswered: usual }) => {
      return typeof asked === 'boolean' ? asked : asked[platform] ?? usual
    })
    const sending = { ...running, chats, limits, deliveries, lookUps }
    const gates = this.gates = new Gates({ ...options, limits }, memory.gates)
    const lanes = this.lanes = new Lanes({ ...sending, gates })
    const intake = this.intake = new Intake({ ...options, deliveries, lanes }, last)
    const recheck = this.recheck = new Recheck({ ...sending, lanes })
    this.replay = new Replay({ ...options, journal, deliveries, lanes, gates, intake, recheck })
    this.history = new History(deliveries, journal)
    const tick = (): void => {
      this.cancel = clock.after(upkeepInterval, tick)
      void this.keepUp()
    }
    this.cancel = clock.after(upkeepInterval, tick)
  }

  /** @throws RelayError what stops the request as such */
  async submit(submission: Submission): Promise<Submitted> {
    const { key } = submission
    if (key !== undefined) return this.replay.submit(submission, key)
    return { delivery: await this.intake.accept(submission), isReplay: false }
  }

  retry(id: string, admit: AdmitRetry): Promise<void> {
    return this.replay.retry(id, admit)
  }

  /**
   * Takes a delivery back that waits for its turn.
   *
   * @returns its state where there is still a record of it, because something of it was tried before
   * @throws RelayError `not-found`, `conflict`, `store-down`
   */
  async withdraw(id: string): Promise<State | undefined> {
    const { deliveries, lanes } = this
    const delivery = await this.history.get(id)
    const { state, deferred, results, attempts, open, flow } = delivery
    if (state === 'queued' && results.some(result => result?.success)) {
      throw new RelayError('conflict', 'a part of this delivery has been sent: it cannot be withdrawn any more')
    }
    if (state === 'queued' && !deferred) throw new RelayError('conflict', 'the caller of this delivery waits for it: it cannot be withdrawn')
    // The members of a digest end with it.
    const leavesRecord = attempts > 0 || open.length > 0 || flow.members !== undefined
    const active = state === 'queued' && leavesRecord ? await orStoreDown(deliveries.load(delivery)) : undefined
    if (state === 'queued' && lanes.leave(delivery)) {
      if (!active) {
        await deliveries.withdraw(delivery)
        return
      }
      await deliveries.end(active, failRest(active.delivery, new RelayError('unsent', 'withdrawn while it was waiting: nothing was sent this time')))
      return active.delivery.state
    }
    const now = (await this.history.get(id)).state
    throw new RelayError('conflict', `this delivery is ${now === 'queued' ? 'leaving in a digest' : now}: only a queued one can be withdrawn`)
  }

  /** Ends everything at once. Callers are answered; what is deferred stays in the journal. */
  end(): void {
    this.cancel()
    this.recheck.end()
    this.stop.abort()
    this.lanes.close()
  }

  /** Waits for the sends that the end cuts short, and writes what is left to be written, but not for long. */
  async finish(): Promise<void> {
    await this.lanes.idle()
    await this.deliveries.finish()
  }

  /** @param heads what was adopted already; absent: rows that came late are adopted */
  private async keepUp(heads?: readonly Head[]): Promise<void> {
    const { clock, logger } = this.options
    const wall = clock.wall()
    try {
      await this.goOn(heads ?? await this.journal.adopt(this.owner, wall - day))
      await this.journal.purge(wall)
    } catch (error) {
      if (!this.stop.signal.aborted) logger.warn('%s', `the upkeep of the database failed: ${nameOfError(error)}`)
    }
  }

  /**
   * Goes on with what another term has left: what is deferred joins its lane; what a caller waited for has ended, unanswered where it was
   * leaving; what went unanswered is looked for.
   */
  private async goOn(heads: readonly Head[]): Promise<void> {
    const { adopted, stop } = this
    const leaving = new Set(heads.flatMap(({ state, flow: { members = [] } }) => state === 'sending' ? members.map(({ id }) => id) : []))
    // What is leaving in a digest ends with it.
    for (const head of heads) if (!leaving.has(head.id)) adopted.add(head)
    for (const head of adopted) {
      if (stop.signal.aborted) return
      adopted.delete(head)
      try {
        await this.goOnWith(head)
      } catch (error) {
        adopted.add(head)
        throw error
      }
    }
  }

  /** Whether this is a digest that never left: its members wait by themselves. */
  private async isUnsent({ flow: { members: [first] = [] } }: Head): Promise<boolean> {
    const member = first && await this.journal.find(first.id)
    return member !== undefined && isUnfinished(member.state)
  }

  private async goOnWith(head: Head): Promise<void> {
    const { deliveries, lanes, memory: { chats } } = this
    if (deliveries.get(head.id)) return
    if (head.state === 'queued' && head.deferred) {
      if (await this.isUnsent(head)) await this.journal.cancel(head.id)
      else lanes.join(head, true)
      return
    }
    const delivery = await this.journal.find(head.id)
    if (!delivery || !(isUnfinished(delivery.state) || delivery.state === 'unanswered')) return
    for (const open of delivery.open) chats.restore(laneOf(delivery), nameOf(delivery.id, open.indices), open)
    if (isUnfinished(delivery.state) && delivery.deferred) {
      lanes.join(head)
      return
    }
    const items = await this.journal.items(head.id) ?? []
    if (isUnfinished(delivery.state)) {
      const error = new RelayError('stopping', 'the relay ended before this could be sent: nothing was sent')
      await deliveries.end(deliveries.add(delivery, items), failRest(delivery, error))
    } else {
      deliveries.remember(deliveries.toActive(delivery, items))
    }
  }
}
