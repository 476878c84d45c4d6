import { RelayError } from '../../errors'
import type { ParsedItem } from '../../message/model'
import { writeTarget } from '../../message/target'
import { inTime, pause } from '../clock'
import { end, failRest, isUnfinished, leave, mayHaveArrived, outcomeOf, postpone, resultOf, withSent, type Change, type Delivery, type Open, type Results, type Sent } from './delivery'
import type { ThreadLink } from './flow'
import { NotOwner, inThread, keepsContent, nameOfError, orStoreDown, type Journal } from '../journal'
import type { RunningOptions } from '../options'
import type { Ownership } from '../owner'
import { noteCall, noteCut, type EndCall } from './summary'

/** A delivery in memory. */
export interface Active {
  readonly delivery: Delivery
  /** The content; absent while only the journal has it. */
  items: readonly ParsedItem[] | undefined
  /** Its key when it came into memory. The key stays taken until the end of the delivery is in the journal. */
  key: string | null
  /** Whether each step must be in the journal before the next one. */
  readonly isDurable: boolean
}

export interface DeliveriesOptions extends RunningOptions {
  journal: Journal
  ownership: Pick<Ownership, 'isFresh'>
}

/** Called at the end of a delivery. The rejection says why the request was stopped, if nothing was tried. */
type OnEnd = (rejection?: RelayError) => void

/** The wait before a failed write is repeated, in milliseconds. */
const retryDelay = 1_000
const contentGone = 'the content of this delivery is gone: send it again as a new request'
/** How much longer than its delivery an uploaded file is kept, in milliseconds. */
const fileMargin = 60 * 60 * 1000
/** How many unanswered deliveries are remembered for look-ups. */
const mostUnanswered = 10_000
/** How long a stop waits for the journal, in milliseconds. */
const lastWriteTime = 300

/**
 * The only owner of active deliveries: each from its acceptance until its end is in the journal. This class makes every change of a
 * delivery, writes it to the journal, and notifies the callers that wait for the end. Memory is the truth: a write that failed is repeated
 * with the state of that later moment. Only the content of a waiting delivery may be left to the journal.
 */
export class Deliveries {
  private readonly active = new Map<string, Active>()
  /** Deliveries by key: those in memory, and those whose rows are being cancelled. */
  private readonly keys = new Map<string | null, Active>()
  private readonly waiters = new Map<string, readonly OnEnd[]>()
  private readonly writing = new Map<string, Promise<void>>()
  /** The deliveries that ended unanswered in this process or within the last day, by ID. */
  readonly unanswered = new Map<string, Active>()
  /** Whether a write has failed and waits for the database. */
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
   * Writes a new durable delivery.
   *
   * @throws RelayError `storage-full`: its content could not be kept
   * @throws RelayError `store-down`, `key-unknown`: the row may be there, so it is cancelled; until then the key stays taken
   */
  async insert(active: Active): Promise<void> {
    const { delivery, items = [] } = active
    const { journal, logger } = this.options
    try {
      await journal.insert(delivery, items)
    } catch (cause) {
      if (cause instanceof RelayError) throw cause
      logger.warn('%s', `${delivery.id} was not accepted: the database does not answer (${nameOfError(cause)})`)
      void this.cancel(delivery).catch(() => undefined)
      // If another relay owns the store by now, it may send the row.
      const isUnsent = delivery.key === null && this.mayCall(active)
      throw new RelayError(isUnsent ? 'store-down' : 'key-unknown', undefined, { cause })
    }
  }

  /** The delivery with this key, in memory or while its row is being cancelled. */
  findByKey(key: string): Active | undefined {
    return this.keys.get(key)
  }

  /** Frees the key of a delivery when its lifetime is over, even if the delivery is still looked for. */
  async freeKey(earlier: Delivery): Promise<void> {
    const active = this.find(earlier.id) ?? this.toActive(earlier)
    active.key = active.delivery.key = null
    await this.options.journal.update(active.delivery)
  }

  /** A delivery that has not ended, or whose end is not in the journal yet. */
  get(id: string): Active | undefined {
    return this.active.get(id)
  }

  /** As `get`; also a remembered unanswered delivery. */
  find(id: string): Active | undefined {
    return this.active.get(id) ?? this.unanswered.get(id)
  }

  /** The deliveries in memory. */
  values(): IterableIterator<Active> {
    return this.active.values()
  }

  /** Wraps a delivery without taking it into memory. */
  toActive(delivery: Delivery, items?: readonly ParsedItem[]): Active {
    const { key, deferred } = delivery
    return { delivery, items, key, isDurable: this.isDurable && (key !== null || deferred) }
  }

  /** The content of a delivery. That of an active one stays in memory from now on. @throws the error of the database */
  async itemsOf(active: Active): Promise<readonly ParsedItem[]> {
    const { items, delivery: { id, results } } = active
    if (items) return items
    const stored = await this.options.journal.items(id) ?? results.map(() => new RelayError('internal', contentGone))
    if (this.active.get(id) === active) active.items = stored
    return stored
  }

  /** The members of a digest that have not ended. */
  membersOf({ flow: { members = [] } }: Pick<Delivery, 'flow'>): Active[] {
    return members.flatMap(({ id }) => {
      const active = this.active.get(id)
      return active && isUnfinished(active.delivery.state) ? [active] : []
    })
  }

  /** Drops the content of a waiting delivery from memory, if the journal has it. */
  shed(active: Active): void {
    if (active.isDurable) active.items = undefined
  }

  /**
   * The other deliveries of a thread to the same chat, the oldest first. A delivery whose caller waits does not wait for the database, and
   * gets none while it is away.
   *
   * @param since the earliest acceptance, in milliseconds since the epoch
   * @throws the error of the database, for a deferred delivery
   */
  async inThread({ delivery: { id, bot, target, deferred } }: Active, thread: string, since: number): Promise<Delivery[]> {
    if (!deferred && (this.isStoreDown || !this.mayCall({ isDurable: true }))) return []
    const known = await inThread(this.options.journal, thread, bot, target, since).catch((error: unknown) => {
      if (deferred) throw error
      return []
    })
    return known.filter(each => each.id !== id)
  }

  /** Notes how a delivery joins its thread. The next write saves it. */
  link(sender: Active, thread: ThreadLink): void {
    const { delivery } = this.present(sender)
    this.change(delivery, { flow: { ...delivery.flow, thread } })
  }

  /** Whether a delivery may be called now: a durable one only while this relay is certain to own the store. */
  mayCall({ isDurable }: Pick<Active, 'isDurable'>): boolean {
    return !isDurable || this.options.ownership.isFresh()
  }

  /**
   * A platform message leaves. For a durable delivery, this resolves once that is in the journal.
   *
   * @throws RelayError `store-down` for a waiting caller, `stopping`
   */
  leave(active: Active, results: Results, leaving: Open): Promise<void> {
    const { delivery } = active
    this.change(delivery, leave(delivery, results, leaving))
    return delivery.deferred ? this.save(active) : this.saveOnce(active)
  }

  /** Notes the start of a call to the platform. */
  called({ delivery }: Active): EndCall {
    const { clock, observer } = this.options
    delivery.attempts++
    return noteCall(delivery.summary, clock, observer.called)
  }

  /** Notes the call that an earlier process may have been making: the row was written right before. */
  cut({ delivery }: Active): void {
    if (delivery.state !== 'sending') return
    delivery.attempts++
    noteCut(delivery.summary, delivery.updatedAt)
  }

  /** The rest of a delivery cannot be sent for now. */
  async postpone(active: Active, results: Results): Promise<void> {
    const { delivery } = active
    this.change(delivery, postpone(delivery, results))
    await this.save(active)
  }

  /** Makes an ended delivery active again. `saveOnce` writes the change. @returns the delivery in memory */
  revive({ delivery, items }: Active, change: Change): Active {
    this.unanswered.delete(delivery.id)
    this.change(delivery, change)
    return this.add(delivery, items)
  }

  /** Takes a revival back. The row may have been changed, so it is written again; until then the key stays taken. */
  undo(active: Active, before: Delivery): void {
    const { delivery, isDurable } = active
    this.change(delivery, before)
    if (delivery.state === 'unanswered') this.remember(active)
    if (isDurable) void this.save(active).catch(() => undefined)
    else this.forget(delivery.id)
  }

  /**
   * Ends a delivery. Resolves once the end is in the journal, or after the time of a call; the write then goes on.
   *
   * @param rejection why the request was stopped; kept from the caller if an item may have arrived, or another relay may know more
   */
  async end(active: Active, results: Results, rejection?: RelayError): Promise<void> {
    const { delivery } = active
    const { clock, observer } = this.options
    const isKnown = await this.writeEnd(active, results) || this.mayCall(active)
    if (delivery.deferred) this.report(delivery)
    observer.ended(delivery, clock.wall() - delivery.createdAt)
    // An unsent result may be wrong after a change of owner: the other relay may have sent the message.
    const isTrue = isKnown || delivery.results.every(mayHaveArrived)
    this.notify(delivery.id, !isTrue ? new RelayError('key-unknown') : delivery.results.some(mayHaveArrived) ? undefined : rejection)
  }

  /** Logs the end of a deferred delivery: its answer has long been given. */
  private report(delivery: Delivery): void {
    const { id, state, target, attempts, flow } = delivery
    const by = flow.digest ? `in digest ${flow.digest.id}` : `after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`
    const line = `${id} deferred ${writeTarget(target)} ${state} ${by}`
    const result = resultOf(delivery)
    if (result?.success === false) this.options.logger.warn('%s', `${line}: ${result.error.logText}`)
    else this.options.logger.info('%s', line)
  }

  /** Writes the end of a delivery, or a later correction of it. @returns whether it is written; otherwise it is written later */
  private async writeEnd(active: Active, results: Results): Promise<boolean> {
    const { delivery, items = [], isDurable } = active
    // It stays in memory until the write.
    if (isDurable) this.keep(active)
    this.change(delivery, end(delivery, results))
    this.keepFiles(active)
    if (delivery.state === 'unanswered') this.remember(active)
    else this.unanswered.delete(delivery.id)
    if (delivery.flow.members) await this.endMembers(delivery)
    if (isDurable) return this.saveInTime(active)
    this.options.journal.record(delivery, items)
    this.forget(delivery.id)
    return true
  }

  /** Notifies the callers that wait for the end of a delivery. */
  private notify(id: string, rejection?: RelayError): void {
    for (const onEnd of this.waiters.get(id) ?? []) onEnd(rejection)
    this.waiters.delete(id)
  }

  /**
   * Ends the members of a digest like the digest itself. Their ends are written first: a restart in between finds the other members by the
   * digest, which has not ended in the journal. Members that ended unanswered with it end again when the digest is corrected.
   */
  private async endMembers({ id: digest, results: [result], flow: { members = [] } }: Delivery): Promise<void> {
    const outcome = outcomeOf(result)
    const hasLeft = mayHaveArrived(result)
    await Promise.all(members.map(async ({ id, shown }) => {
      const active = this.find(id)
      if (!active) return
      const { delivery } = active
      const { digest: share, ...flow } = delivery.flow
      const isToEndAgain = delivery.state === 'unanswered' && share?.id === digest && outcome !== 'unanswered'
      if (!isUnfinished(delivery.state) && !isToEndAgain) return
      // A member that never left can be sent again by itself, so it keeps no digest.
      this.change(delivery, { flow: { ...flow, ...hasLeft && { digest: { id: digest, count: members.length, shown } } } })
      await this.end(active, delivery.results.map(() => result))
    }))
  }

  /** Writes a delivery. @returns whether that succeeded within the time of a call; otherwise it is written later */
  private async saveInTime(active: Active): Promise<boolean> {
    const { clock, policy: { timeout }, stop } = this.options
    const saved = this.save(active).then(() => true, () => false)
    const isSaved = await inTime(clock, saved, timeout, stop)
    // A stop leaves it a last moment.
    return isSaved ?? (stop.aborted && await inTime(clock, saved, lastWriteTime) === true)
  }

  /** Records a request that did not enter a queue, with the reason. */
  reject(delivery: Delivery, items: readonly ParsedItem[], error: RelayError): void {
    void this.end({ delivery, items, key: null, isDurable: false }, failRest(delivery, error))
  }

  /**
   * Removes a waiting delivery and frees its key.
   *
   * @throws RelayError `store-down`: it is not sent any more, and its row is removed once the database answers
   */
  async withdraw(delivery: Delivery): Promise<void> {
    const { id, key } = delivery
    this.active.delete(id)
    try {
      await this.options.journal.cancel(id)
    } catch (cause) {
      void this.cancel(delivery).catch(() => undefined)
      throw new RelayError('store-down', undefined, { cause })
    }
    this.keys.delete(key)
    this.notify(id, new RelayError('unsent', 'it was withdrawn while it waited: nothing was sent'))
  }

  /** Corrects a delivery after its send has ended: a platform message was found, or its success was answered late. */
  async correct(sender: Active, indices: readonly number[], sent: Sent): Promise<void> {
    const active = this.present(sender)
    const { delivery } = active
    // Its record is rewritten, so it needs the content.
    if (!active.isDurable) active.items ??= await this.options.journal.items(delivery.id).catch(() => undefined)
    if (indices.every(index => delivery.results[index]?.success)) return
    const results = withSent(delivery.results, indices, sent)
    if (isUnfinished(delivery.state)) this.change(delivery, { results })
    else await this.writeEnd(active, results)
  }

  /**
   * Waits for the end of a delivery.
   *
   * @param limit milliseconds after which the present state is returned
   * @throws RelayError why the request was stopped
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
    // An end is returned only once it is in the journal.
    return isInTime || !isUnfinished(delivery.state) ? end : delivery
  }

  /** Remembers an unanswered delivery for look-ups. */
  remember(active: Active): void {
    const { unanswered } = this
    // The journal has the content, and there may be thousands.
    active.items = undefined
    unanswered.set(active.delivery.id, active)
    const [oldest] = unanswered.keys()
    if (unanswered.size > mostUnanswered && oldest !== undefined) unanswered.delete(oldest)
  }

  /** Keeps the uploaded files of a delivery until a time in milliseconds since the epoch. @throws RelayError `file-not-found` */
  async keepUploads(items: readonly ParsedItem[], until: number): Promise<void> {
    for (const item of items) {
      if ('link' in item && item.link.kind === 'upload') await this.options.files.keepUntil(item.link.id, until + fileMargin)
    }
  }

  /** Waits a short time for the present write of a delivery. */
  async written(id: string): Promise<void> {
    const { clock, stop } = this.options
    const writing = this.writing.get(id)
    if (writing) await inTime(clock, writing.catch(() => undefined), retryDelay, stop)
  }

  /** Waits a short time for all present writes. */
  async finish(): Promise<void> {
    const { clock, journal } = this.options
    const written = Promise.all([...this.writing.values(), journal.flush()]).catch(() => undefined)
    await inTime(clock, written, lastWriteTime)
  }

  /**
   * Writes a durable delivery, however long the database is away. Changes made meanwhile are included.
   *
   * @throws NotOwner, or RelayError `stopping` if the stop came first
   */
  async save(active: Active): Promise<void> {
    const { delivery, isDurable } = active
    if (!isDurable) return
    const { id, flow: { members = [] } } = delivery
    const before = this.writing.get(id)?.catch(() => undefined)
    // The members of a digest are written before it: after a kill in between, the next process finds them by the digest.
    const others = members.flatMap(member => this.writing.get(member.id) ?? [])
    const write = (): Promise<void> => this.untilWritten(() => this.options.journal.update(delivery))
    const saved = before || others.length > 0 ? Promise.all([before, ...others]).then(write) : write()
    this.writing.set(id, saved)
    const done = (): void => {
      if (this.writing.get(id) !== saved) return
      this.writing.delete(id)
      if (!isUnfinished(delivery.state)) this.forget(id)
    }
    // A write that failed at the end of the term is not repeated.
    saved.then(done, () => undefined)
    await saved
  }

  /** Writes a durable delivery, without repeating a failed write. @throws RelayError `store-down` */
  async saveOnce({ delivery, isDurable }: Active): Promise<void> {
    if (isDurable) await orStoreDown(this.options.journal.update(delivery))
  }

  /** Repeats a write until it succeeds. @throws NotOwner, or RelayError `stopping` if the stop came first */
  private async untilWritten(write: () => Promise<void>): Promise<void> {
    const { clock, logger, stop } = this.options
    for (;;) {
      try {
        await write()
        if (this.isStoreDown) logger.info('the database answers again')
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

  /**
   * Cancels a row that may be there, however long the database is away. Until then its key stays taken.
   *
   * @throws NotOwner, or RelayError `stopping` if the stop came first
   */
  async cancel({ id, key }: Delivery): Promise<void> {
    this.active.delete(id)
    await this.untilWritten(() => this.options.journal.cancel(id))
    this.keys.delete(key)
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

  /** The present object of a delivery, which may have been read from the journal again. */
  private present(sender: Active): Active {
    return this.find(sender.delivery.id) ?? sender
  }

  /** Changes a delivery. The next write saves it. */
  change(delivery: Delivery, change: Change): void {
    Object.assign(delivery, change)
    delivery.updatedAt = this.options.clock.wall()
  }

  /** Keeps the uploaded files of a delivery that can be sent again. */
  private keepFiles(active: Active): void {
    const { recordContent, clock, retention } = this.options
    const isKept = keepsContent(active.delivery.state, recordContent)
    if (isKept) void this.itemsOf(active).then(items => this.keepUploads(items, clock.wall() + retention)).catch(() => undefined)
  }
}
