import { RelayError } from '../errors'
import type { ParsedItem } from '../message/model'
import { writeTarget } from '../message/target'
import { inTime, pause } from './clock'
import { end, failRest, interrupt, isUnfinished, leave, outcomeOf, postpone, usesUpKey, withSent, type Change, type Delivery, type Open, type Results, type Sent } from './delivery'
import type { ThreadLink } from './flow'
import { NotOwner, inThread, keepsContent, nameOfError, orStoreDown, type Journal } from './journal'
import type { RunningOptions } from './options'
import type { Ownership } from './owner'
import { noteCall, type EndCall } from './summary'

/** A delivery in memory. */
export interface Active {
  readonly delivery: Delivery
  /** What is to be sent; absent while only the journal has it. */
  items: readonly ParsedItem[] | undefined
  /** Its key when it came into memory. The key stays taken until the end of the delivery is written. */
  key: string | null
  /** Whether each step has to be in the journal before the next one is made. */
  readonly mustLast: boolean
}

export interface DeliveriesOptions extends RunningOptions {
  journal: Journal
  ownership: Pick<Ownership, 'isFresh'>
}

/** Told the end of a delivery, and why its request as a whole was stopped where nothing was tried. */
type OnEnd = (rejection?: RelayError) => void

/** How long to wait before a write that failed is tried again, in milliseconds. */
const retryDelay = 1_000
const contentGone = 'the content of this delivery is gone: send it again as a new request'
/** How much longer than its delivery may wait an uploaded file is kept, in milliseconds. */
const fileMargin = 60 * 60 * 1000
/** How many that ended without an answer are remembered to be looked for. */
const mostUnanswered = 10_000
/** How long a stop waits for the journal, in milliseconds. */
const lastWriteTime = 300

/**
 * The only owner of what is active: every delivery from its acceptance until its end is written. It makes every change of a delivery, has
 * it written down, and tells who waits for the end. Memory is the truth: what could not be written yet is written later, always as it is
 * then. Only the content of what waits may be left to the journal.
 */
export class Deliveries {
  private readonly active = new Map<string, Active>()
  /** Who has which key: those in memory, and those whose rows are being cancelled. */
  private readonly keys = new Map<string | null, Active>()
  private readonly waiters = new Map<string, readonly OnEnd[]>()
  private readonly writing = new Map<string, Promise<void>>()
  /** Those that ended without an answer in this process, or within the last day, by ID. */
  readonly unanswered = new Map<string, Active>()
  /** Whether something waits to be written since a write failed. */
  isStoreDown = false

  constructor(private readonly options: DeliveriesOptions) {}

  get isDurable(): boolean {
    return this.options.journal.isDurable
  }

  /** Takes a delivery into memory. */
  add(delivery: Delivery, items?: readonly ParsedItem[]): Active {
    return this.keep(this.toActive(delivery, items))
  }

  /**
   * Writes a new delivery that must last.
   *
   * @throws RelayError `storage-full`: its content could not be kept
   * @throws RelayError `store-down`, `key-unknown`: it may have been written, so it is cancelled; until then its key stays taken
   */
  async insert(active: Active): Promise<void> {
    const { delivery, items = [] } = active
    const { journal, logger } = this.options
    try {
      await journal.insert(delivery, items)
    } catch (cause) {
      if (cause instanceof RelayError) throw cause
      logger.warn('%s', `${delivery.id} was not accepted: the database does not answer (${nameOfError(cause)})`)
      this.cancel(delivery)
      // A relay that was away for long may have lost the row to one that sends it.
      const isUnsent = delivery.key === null && this.mayCall(active)
      throw new RelayError(isUnsent ? 'store-down' : 'key-unknown', undefined, { cause })
    }
  }

  /** The delivery that has this key: one in memory, or one whose row is being cancelled. */
  findByKey(key: string): Active | undefined {
    return this.keys.get(key)
  }

  /** Gives the key of a delivery free whose lifetime is over, also where the delivery is still looked for. */
  async freeKey(key: string): Promise<void> {
    await this.options.journal.freeKey(key)
    for (const active of this.unanswered.values()) if (active.key === key) active.key = active.delivery.key = null
  }

  /** One that has not ended, or whose end is not written yet. */
  get(id: string): Active | undefined {
    return this.active.get(id)
  }

  /** The same, or one that is remembered because it ended unanswered. */
  find(id: string): Active | undefined {
    return this.active.get(id) ?? this.unanswered.get(id)
  }

  /** Those in memory. */
  values(): IterableIterator<Active> {
    return this.active.values()
  }

  /** A delivery that is not active, without taking it into memory. */
  toActive(delivery: Delivery, items?: readonly ParsedItem[]): Active {
    const { key, deferred } = delivery
    return { delivery, items, key, mustLast: this.isDurable && (key !== null || deferred) }
  }

  /** What is to be sent; as long as it has not ended, from now on in memory. @throws the error of the database */
  async itemsOf(active: Active): Promise<readonly ParsedItem[]> {
    const { items, delivery: { id, results } } = active
    if (items) return items
    const stored = await this.options.journal.items(id) ?? results.map(() => new RelayError('internal', contentGone))
    if (this.active.get(id) === active) active.items = stored
    return stored
  }

  /** The deliveries of a digest that have not ended. */
  membersOf({ flow: { members = [] } }: Pick<Delivery, 'flow'>): Active[] {
    return members.flatMap(({ id }) => {
      const active = this.active.get(id)
      return active && isUnfinished(active.delivery.state) ? [active] : []
    })
  }

  /** Leaves the content of a delivery that waits to the journal. */
  shed(active: Active): void {
    if (active.mustLast) active.items = undefined
  }

  /**
   * The other deliveries of a thread to the same chat that were accepted since then, in milliseconds since the epoch, the oldest first.
   * What a caller waits for does not wait for the database.
   *
   * @throws the error of the database, for what is deferred
   */
  async inThread({ delivery: { id, bot, target, deferred } }: Active, thread: string, since: number): Promise<Delivery[]> {
    if (!deferred && (this.isStoreDown || !this.mayCall({ mustLast: true }))) return []
    const known = await inThread(this.options.journal, thread, bot, target, since).catch((error: unknown) => {
      if (deferred) throw error
      return []
    })
    return known.filter(each => each.id !== id)
  }

  /** How a delivery goes on with its thread. That is written with its next step. */
  link(sender: Active, thread: ThreadLink): void {
    const { delivery } = this.present(sender)
    this.change(delivery, { flow: { ...delivery.flow, thread } })
  }

  /** Whether a call may be made for it now: what must last is called for only while this relay is surely the owner. */
  mayCall({ mustLast }: Pick<Active, 'mustLast'>): boolean {
    return !mustLast || this.options.ownership.isFresh()
  }

  /**
   * A platform message leaves; what must last is on disk before this resolves.
   *
   * @throws RelayError `store-down` for a caller who waits, `stopping`
   */
  leave(active: Active, results: Results, leaving: Open): Promise<void> {
    const { delivery } = active
    this.change(delivery, leave(delivery, results, leaving))
    return delivery.deferred ? this.save(active) : this.saveOnce(active)
  }

  /** Notes a call to the platform that is made now. */
  called({ delivery }: Active): EndCall {
    const { clock, observer } = this.options
    delivery.attempts++
    return noteCall(delivery.summary, clock, (outcome, time) => observer.called(outcome, time))
  }

  /** Nothing of what is left can be sent right now. At a stop, a message that is open keeps the delivery `sending`, for the next owner. */
  async postpone(active: Active, results: Results): Promise<void> {
    const { delivery } = active
    this.change(delivery, this.options.stop.aborted ? interrupt(delivery, results) : postpone(delivery, results))
    await this.save(active)
  }

  /** A delivery that has ended is to be sent again. `saveOnce` writes that down. @returns the delivery in memory */
  revive({ delivery, items }: Active, change: Change): Active {
    this.unanswered.delete(delivery.id)
    this.change(delivery, change)
    return this.add(delivery, items)
  }

  /** A delivery cannot be sent again after all. Its row may have been changed: it is written back, and until then the key stays taken. */
  undo(active: Active, before: Delivery): void {
    const { delivery, mustLast } = active
    this.change(delivery, before)
    if (delivery.state === 'unanswered') this.remember(active)
    if (mustLast) void this.save(active).catch(() => undefined)
    else this.forget(delivery.id)
  }

  /**
   * A delivery has ended. Resolves once that is written, or the caller can wait no longer; then it is written later.
   *
   * @param rejection why the request as a whole was stopped; not told where something may have arrived, or another relay may know better
   */
  async end(active: Active, results: Results, rejection?: RelayError): Promise<void> {
    const { delivery } = active
    const { clock, logger, observer } = this.options
    const isKnown = await this.writeEnd(active, results) || this.mayCall(active)
    const { id, state, deferred, target, attempts, createdAt, flow } = delivery
    const by = flow.digest ? `in digest ${flow.digest.id}` : `after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`
    if (deferred) logger.info('%s', `${id} deferred ${writeTarget(target)} ${state} ${by}`)
    observer.ended(delivery, clock.wall() - createdAt)
    // What this relay has not sent, another one may have.
    const isTrue = isKnown || delivery.results.every(result => ['sent', 'unanswered'].includes(outcomeOf(result)))
    this.tell(id, !isTrue ? new RelayError('key-unknown') : usesUpKey(delivery.results) ? undefined : rejection)
  }

  /** A delivery has ended, or ends otherwise than it seemed. @returns whether that is written; otherwise it is written later */
  private async writeEnd(active: Active, results: Results): Promise<boolean> {
    const { delivery, items = [], mustLast } = active
    // Until it is written, memory has the truth.
    if (mustLast) this.keep(active)
    this.change(delivery, end(delivery, results))
    this.keepFiles(active)
    if (delivery.state === 'unanswered') this.remember(active)
    else this.unanswered.delete(delivery.id)
    if (delivery.flow.members) await this.endMembers(delivery)
    if (mustLast) return this.saveInTime(active)
    this.options.journal.record(delivery, items)
    this.forget(delivery.id)
    return true
  }

  /** Tells who waits for the end of a delivery that it has ended. */
  private tell(id: string, rejection?: RelayError): void {
    for (const onEnd of this.waiters.get(id) ?? []) onEnd(rejection)
    this.waiters.delete(id)
  }

  /**
   * The deliveries of a digest end as it has ended, and on disk before it: a restart in between finds the rest by the digest, which has not
   * ended there. Those that ended unanswered with it end again: what became of it later is true for them as well.
   */
  private async endMembers({ id: digest, results: [result], flow: { members = [] } }: Delivery): Promise<void> {
    const outcome = outcomeOf(result)
    const hasLeft = outcome === 'sent' || outcome === 'unanswered'
    await Promise.all(members.map(async ({ id, shown }) => {
      const active = this.find(id)
      if (!active) return
      const { delivery } = active
      const { digest: share, ...flow } = delivery.flow
      const isToEndAgain = delivery.state === 'unanswered' && share?.id === digest && outcome !== 'unanswered'
      if (!isUnfinished(delivery.state) && !isToEndAgain) return
      // What never left in it can be sent again by itself.
      this.change(delivery, { flow: { ...flow, ...hasLeft && { digest: { id: digest, count: members.length, shown } } } })
      await this.end(active, delivery.results.map(() => result))
    }))
  }

  /** Writes a delivery as it is. @returns whether it is written; where the answer cannot wait for that, it is written later */
  private async saveInTime(active: Active): Promise<boolean> {
    const { clock, policy: { timeout }, stop } = this.options
    const saved = this.save(active).then(() => true, () => false)
    const isSaved = await inTime(clock, saved, timeout, stop)
    // A stop leaves it a last moment.
    return isSaved ?? (stop.aborted && await inTime(clock, saved, lastWriteTime) === true)
  }

  /** A request that became no delivery in a lane: its record says why. */
  reject(delivery: Delivery, items: readonly ParsedItem[], error: RelayError): void {
    void this.end({ delivery, items, key: null, mustLast: false }, failRest(delivery, error))
  }

  /**
   * A delivery that waited is taken back: neither it nor its key remains.
   *
   * @throws RelayError `store-down`: it is not sent any more, and its row goes as soon as the database answers
   */
  async withdraw(delivery: Delivery): Promise<void> {
    const { id, key } = delivery
    this.active.delete(id)
    try {
      await this.options.journal.cancel(id)
    } catch (cause) {
      this.cancel(delivery)
      throw new RelayError('store-down', undefined, { cause })
    }
    this.keys.delete(key)
    this.tell(id, new RelayError('unsent', 'it was withdrawn while it waited: nothing was sent'))
  }

  /** A platform message of a delivery was found, or its success was answered late, after its send had ended. */
  async correct(sender: Active, indices: readonly number[], sent: Sent): Promise<void> {
    const active = this.present(sender)
    const { delivery } = active
    // Its record is written anew, with what it has of the content.
    if (!active.mustLast) active.items ??= await this.options.journal.items(delivery.id).catch(() => undefined)
    if (indices.every(index => delivery.results[index]?.success)) return
    const results = withSent(delivery.results, indices, sent)
    if (isUnfinished(delivery.state)) this.change(delivery, { results })
    else await this.writeEnd(active, results)
  }

  /**
   * The end of a delivery.
   *
   * @param limit milliseconds after which the present state is told
   * @throws RelayError why the request as a whole was stopped
   */
  async ended({ delivery }: Active, limit?: number, gone?: AbortSignal): Promise<Delivery> {
    const { clock, stop } = this.options
    const { id, state } = delivery
    if (!isUnfinished(state)) return delivery
    const told = new Promise<RelayError | undefined>(resolve => this.waiters.set(id, [...this.waiters.get(id) ?? [], resolve]))
    const end = told.then(rejection => {
      if (rejection) throw rejection
      return delivery
    })
    const isInTime = limit === undefined || await inTime(clock, end, limit, stop, ...gone ? [gone] : [])
    // An end is told once it is written.
    return isInTime || !isUnfinished(delivery.state) ? end : delivery
  }

  /** Remembers one that ended without an answer, to be looked for. */
  remember(active: Active): void {
    const { unanswered } = this
    // The journal has it, and there may be thousands.
    active.items = undefined
    unanswered.set(active.delivery.id, active)
    const [oldest] = unanswered.keys()
    if (unanswered.size > mostUnanswered && oldest !== undefined) unanswered.delete(oldest)
  }

  /** Keeps the uploaded files of a delivery, until then in milliseconds since the epoch. @throws RelayError `file-not-found` */
  async keepUploads(items: readonly ParsedItem[], until: number): Promise<void> {
    for (const item of items) {
      if ('link' in item && item.link.kind === 'upload') await this.options.files.keepUntil(item.link.id, until + fileMargin)
    }
  }

  /** Waits until what is being written of a delivery is written, but not for long. */
  async written(id: string): Promise<void> {
    const { clock, stop } = this.options
    const writing = this.writing.get(id)
    if (writing) await inTime(clock, writing.catch(() => undefined), retryDelay, stop)
  }

  /** Waits for what is being written, but not for long. */
  async finish(): Promise<void> {
    const { clock, journal } = this.options
    const written = Promise.all([...this.writing.values(), journal.flush()]).catch(() => undefined)
    await inTime(clock, written, lastWriteTime)
  }

  /**
   * Writes a delivery as it is, where it must last, however long the database takes to come back. A change made meanwhile is written as
   * well.
   *
   * @throws NotOwner, or RelayError `stopping` when it was not written before the stop
   */
  async save(active: Active): Promise<void> {
    const { delivery, mustLast } = active
    if (!mustLast) return
    const { id, flow: { members = [] } } = delivery
    const before = this.writing.get(id)?.catch(() => undefined)
    // The end of a digest is not on disk before those of its members: after a kill in between they are found by the digest.
    const others = members.flatMap(member => this.writing.get(member.id) ?? [])
    const write = (): Promise<void> => this.untilWritten(() => this.options.journal.update(delivery))
    const saved = before || others.length > 0 ? Promise.all([before, ...others]).then(write) : write()
    this.writing.set(id, saved)
    const done = (): void => {
      if (this.writing.get(id) !== saved) return
      this.writing.delete(id)
      if (!isUnfinished(delivery.state)) this.forget(id)
    }
    // What could not be written before the end of the term stays unwritten.
    saved.then(done, () => undefined)
    await saved
  }

  /** Writes a delivery as it is, where it must last, if the database answers. @throws RelayError `store-down` */
  async saveOnce({ delivery, mustLast }: Active): Promise<void> {
    if (mustLast) await orStoreDown(this.options.journal.update(delivery))
  }

  /** @throws NotOwner, or RelayError `stopping` when it was not written before the stop */
  private async untilWritten(write: () => Promise<void>): Promise<void> {
    const { clock, logger, stop } = this.options
    for (;;) {
      try {
        await write()
        this.isStoreDown = false
        return
      } catch (error) {
        if (error instanceof NotOwner) throw error
        if (!this.isStoreDown) logger.warn('%s', `the database does not answer, deliveries wait for it: ${nameOfError(error)}`)
        this.isStoreDown = true
      }
      await pause(clock, retryDelay, stop)
      if (stop.aborted) throw new RelayError('stopping')
    }
  }

  /** Cancels a row that may be there, however long the database takes to come back. Until then its key stays taken. */
  private cancel({ id, key }: Delivery): void {
    this.active.delete(id)
    void this.untilWritten(() => this.options.journal.cancel(id)).then(() => this.keys.delete(key), () => undefined)
  }

  private keep(active: Active): Active {
    const { id, key } = active.delivery
    this.active.set(id, active)
    if (key !== null) this.keys.set(key, active)
    return active
  }

  /** Takes a delivery out of memory. */
  forget(id: string): void {
    const { key = null } = this.active.get(id) ?? {}
    this.active.delete(id)
    this.keys.delete(key)
  }

  /** It may have been read again since. */
  private present(sender: Active): Active {
    return this.find(sender.delivery.id) ?? sender
  }

  /** Changes a delivery. That is written with its next step. */
  change(delivery: Delivery, change: Change): void {
    Object.assign(delivery, change)
    delivery.updatedAt = this.options.clock.wall()
  }

  /** What can be sent again needs its files. */
  private keepFiles(active: Active): void {
    const { recordContent, clock, retention } = this.options
    const isKept = keepsContent(active.delivery.state, recordContent)
    if (isKept) void this.itemsOf(active).then(items => this.keepUploads(items, clock.wall() + retention)).catch(() => undefined)
  }
}
