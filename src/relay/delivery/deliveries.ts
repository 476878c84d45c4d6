import { RelayError } from '../../errors'
import { hour } from '../../lib/time'
import type { MessageRequest, ParsedItem } from '../../message/model'
import { writeTarget } from '../../message/target'
import { inTime } from '../clock'
import type { RunningOptions } from '../options'
import { end, failRest, isDurable, isUnfinished, leave, mayHaveArrived, outcomeOf, postpone, resultOf, transition, withSent, type Change, type Delivery, type Open, type Results, type Sent } from './delivery'
import type { DeliveriesTable } from './deliveries-table'
import type { Deferral, ThreadLink } from './flow'
import { keepsContent } from './row'
import { noteCall, noteCut, type EndCall } from './summary'
import { clauses, say } from '../../texts/text'

/** A delivery in memory. What it waits for is set when it enters a queue. */
export interface Entry {
  readonly delivery: Delivery
  /** The content; absent while only the file has it. */
  items: readonly ParsedItem[] | undefined
  /** Whether the file has a row of it. */
  hasRow: boolean
  /** Until when the caller waits for its turn, on the monotonic clock. */
  until?: number | undefined
  /** Gives a signal that is aborted when the caller disconnects. Only asked for if the delivery has to wait. */
  signal?: (() => AbortSignal) | undefined
  /** That signal, once the delivery waits. */
  gone?: AbortSignal | undefined
  /** Since when the delivery is due, on the monotonic clock; absent while it is not. */
  since?: number | undefined
  /** Why the delivery is not due yet, and when it will be. */
  deferral?: Deferral | undefined
  /** Whether it leaves by itself, after a digest with it was refused. */
  isAlone?: boolean
  /** Whether it was waiting before a restart: then the platform is asked before the first send to its chat. */
  isLeft?: boolean
}

/** Called at the end of a delivery. The rejection says why the request was stopped, if nothing was tried. */
type OnEnd = (rejection?: RelayError) => void

/** How long the record of a plain message may take until it is written, and the wait after a write that failed, in milliseconds. */
const writeInterval = 450
const retryDelay = 1_000
/** How many records one commit writes at least, and how many wait at most while the file takes none. */
const chunk = 250
const mostRecords = 10_000
/** How much longer than its delivery an uploaded file is kept, in milliseconds. */
const fileMargin = hour
/** How many unanswered deliveries are remembered for look-ups. */
const mostUnanswered = 10_000

/**
 * Makes every change of an accepted delivery, in memory and in the file, and notifies the callers that wait for its end. A step of a
 * durable delivery towards the platform is in the file before it is in memory. Afterwards memory is the truth: what happened is written as
 * soon as the file takes it.
 */
export class Deliveries {
  private readonly active = new Map<string, Entry>()
  /** Deliveries in memory by the hash of their Idempotency-Key. */
  private readonly keys = new Map<string, Entry>()
  private readonly waiters = new Map<string, readonly OnEnd[]>()
  /** What the file does not have yet: the records of plain messages for a moment, anything else while the file takes nothing. */
  private readonly unwritten = new Map<string, Entry>()
  /** The deliveries that ended unanswered in this process or within the last day, by ID. */
  readonly unanswered = new Map<string, Entry>()
  private cancelWrite: (() => void) | undefined
  /** Why the file took nothing at the last try. */
  failure: RelayError | undefined

  constructor(private readonly options: RunningOptions, readonly table: DeliveriesTable) {}

  /** Takes a new delivery into memory, and a durable one into the file. @param request absent for a digest. @throws RelayError */
  accept(delivery: Delivery, items: readonly ParsedItem[], request?: MessageRequest): Entry {
    const { store, observer } = this.options
    const isNeeded = isDurable(delivery)
    if (isNeeded && store.isFull) throw new RelayError('storage-full')
    // What only its name wants in the file leaves without it as well.
    const hasRow = isNeeded || (delivery.flow.policy?.durable === true && !store.failure && !store.isFull)
    if (hasRow) {
      store.commit(writer => {
        this.table.insert(writer, delivery, items)
        if (request) observer.accepted(writer, delivery, request)
      })
    }
    observer.changed(delivery)
    return this.keep({ delivery, items, hasRow })
  }

  /** Takes a delivery from the file into memory. */
  add(delivery: Delivery, items?: readonly ParsedItem[]): Entry {
    return this.keep({ delivery, items, hasRow: true })
  }

  /** The delivery in memory with the hash of this Idempotency-Key. */
  findByKey(key: string): Entry | undefined {
    return this.keys.get(key)
  }

  /** Frees the Idempotency-Key of a delivery when its lifetime is over, even if the delivery is still looked for. @throws RelayError */
  freeKey(earlier: Delivery): void {
    this.step(this.find(earlier.id) ?? toEntry(earlier), { key: null })
  }

  /** A delivery that has not ended, or whose end is not in the file yet. */
  get(id: string): Entry | undefined {
    return this.active.get(id) ?? this.unwritten.get(id)
  }

  /** As `get`; also a remembered unanswered delivery. */
  find(id: string): Entry | undefined {
    return this.active.get(id) ?? this.unanswered.get(id)
  }

  /** The deliveries in memory. */
  values(): IterableIterator<Entry> {
    return this.active.values()
  }

  /** The content of a delivery. That of an active one stays in memory from now on. @throws RelayError */
  itemsOf(entry: Entry): readonly ParsedItem[] {
    const { items, delivery: { id, results } } = entry
    if (items) return items
    const stored = this.table.items(id) ?? results.map(() => new RelayError('internal', say('content-gone')))
    if (this.active.get(id) === entry) entry.items = stored
    return stored
  }

  /** The members of a digest that have not ended. */
  membersOf({ flow: { members = [] } }: Pick<Delivery, 'flow'>): Entry[] {
    return members.flatMap(({ id }) => {
      const entry = this.active.get(id)
      return entry && isUnfinished(entry.delivery.state) ? [entry] : []
    })
  }

  /** Drops the content of a waiting delivery from memory, if the file has it. */
  shed(entry: Entry): void {
    if (entry.hasRow) entry.items = undefined
  }

  /**
   * The other deliveries of a thread to the same chat, the oldest first; none for a waiting caller while the file cannot be read.
   *
   * @param since the earliest acceptance, in milliseconds since the epoch
   * @throws RelayError for a deferred delivery
   */
  inThread({ delivery: { id, bot, target, deferred } }: Entry, thread: string, since: number): Delivery[] {
    try {
      this.write()
      return this.table.inThread(thread, bot, target, since).filter(each => each.id !== id)
    } catch (error) {
      if (deferred) throw error
      return []
    }
  }

  /** Notes how a delivery joins its thread. The next write saves it. */
  link(sender: Entry, thread: ThreadLink): void {
    const { delivery } = this.present(sender)
    this.change(delivery, { flow: { ...delivery.flow, thread } })
  }

  /** A platform message leaves. For a delivery in the file, this resolves once that survives a power cut. @throws RelayError */
  async leave(entry: Entry, results: Results, leaving: Open): Promise<void> {
    this.step(entry, leave(entry.delivery, results, leaving))
    if (entry.hasRow) await this.options.store.flushed()
  }

  /** Notes the start of a call to the platform. */
  called({ delivery }: Entry): EndCall {
    const { clock, observer } = this.options
    delivery.attempts++
    return noteCall(delivery.summary, clock, observer.called)
  }

  /** Notes the call that an earlier process may have been making: the row was written right before. */
  cut({ delivery }: Entry): void {
    if (delivery.state !== 'sending') return
    delivery.attempts++
    noteCut(delivery.summary, delivery.updatedAt)
  }

  /** The rest of a delivery cannot be sent for now. */
  postpone(entry: Entry, results: Results): void {
    this.change(entry.delivery, postpone(entry.delivery, results))
    this.note([entry])
  }

  /** Makes an ended delivery active again. @returns the delivery in memory. @throws RelayError; the delivery is then unchanged */
  revive(ended: Entry, change: Change): Entry {
    this.write()
    this.step(ended, change)
    this.unanswered.delete(ended.delivery.id)
    return this.keep({ delivery: ended.delivery, items: ended.items, hasRow: true })
  }

  /** Changes a delivery that waits or is to wait again, in the file first. @throws RelayError; nothing is changed then */
  step({ delivery, hasRow }: Entry, change: Change): void {
    const { clock, store, observer } = this.options
    const next = { ...delivery }
    transition(next, change, clock.wall())
    if (hasRow) store.commit(writer => this.table.update(writer, next))
    observer.changed(next, delivery)
    Object.assign(delivery, next)
  }

  /**
   * Ends a delivery, and the members of a digest with it, in one commit.
   *
   * @param rejection why the request was stopped; kept from the caller if an item may have arrived
   */
  end(entry: Entry, results: Results, rejection?: RelayError): void {
    const ended = this.conclude(entry, results)
    for (const { delivery } of ended) this.report(delivery)
    this.notify(entry.delivery.id, entry.delivery.results.some(mayHaveArrived) ? undefined : rejection)
    for (const { delivery } of ended) this.notify(delivery.id)
  }

  /** Corrects a delivery after its send has ended: a platform message was found, or its success was answered late. */
  correct(sender: Entry, indices: readonly number[], sent: Sent): void {
    const entry = this.present(sender)
    const { delivery } = entry
    if (indices.every(index => delivery.results[index]?.success)) return
    const results = withSent(delivery.results, indices, sent)
    if (isUnfinished(delivery.state)) this.change(delivery, { results })
    else this.conclude(entry, results).slice(1).forEach(({ delivery }) => this.report(delivery))
  }

  /** Records a request that did not enter a queue, with the reason. */
  reject(delivery: Delivery, items: readonly ParsedItem[], error: RelayError): void {
    this.options.observer.changed(delivery)
    this.end({ delivery, items, hasRow: false }, failRest(delivery, error))
  }

  /** Removes a waiting delivery and frees its Idempotency-Key. @throws RelayError; nothing is changed then */
  withdraw({ id }: Delivery): void {
    this.options.store.commit(writer => this.table.remove(writer, id))
    this.forget(id)
    this.notify(id, new RelayError('unsent', say('withdrawn-waiting')))
  }

  /**
   * Waits for the end of a delivery.
   *
   * @param limit milliseconds after which the present state is returned
   * @throws RelayError why the request was stopped
   */
  async ended(entry: Entry, limit?: number, gone?: AbortSignal): Promise<Delivery> {
    const { clock, stop } = this.options
    const { delivery } = entry
    const present = { ...delivery }
    const end = this.told(entry).then(rejection => {
      if (rejection) throw rejection
      return delivery
    })
    if (limit === undefined) return end
    // An end that is not told yet does not show.
    return await inTime(clock, end, limit, stop, ...gone ? [gone] : []) ?? (isUnfinished(delivery.state) ? delivery : present)
  }

  /** Remembers an unanswered delivery for look-ups. */
  remember(entry: Entry): void {
    const { unanswered } = this
    // The file has the content, and there may be thousands.
    this.shed(entry)
    unanswered.set(entry.delivery.id, entry)
    const [oldest] = unanswered.keys()
    if (unanswered.size > mostUnanswered && oldest !== undefined) unanswered.delete(oldest)
  }

  /** Keeps the uploaded files of a delivery until a time in milliseconds since the epoch. @throws RelayError `file-not-found` */
  async keepUploads(items: readonly ParsedItem[], until: number): Promise<void> {
    for (const item of items) {
      if ('link' in item && item.link.kind === 'upload') await this.options.files.keepUntil(item.link.id, until + fileMargin)
    }
  }

  /** Writes what has happened and is not in the file yet. @throws RelayError */
  write(): void {
    this.writeAll([...this.unwritten.values()])
  }

  /** Takes a delivery out of memory. */
  forget(id: string): void {
    const { delivery: { requestKey = '' } = {} } = this.active.get(id) ?? {}
    this.active.delete(id)
    this.unwritten.delete(id)
    if (this.keys.get(requestKey)?.delivery.id === id) this.keys.delete(requestKey)
  }

  /** Changes a delivery in memory only. The next write saves it. */
  change(delivery: Delivery, change: Change): void {
    const { clock, observer } = this.options
    const { mode, state, results } = delivery
    transition(delivery, change, clock.wall())
    observer.changed(delivery, { mode, state, results })
  }

  /** Stops writing behind, after a last write. */
  close(): void {
    this.cancelWrite?.()
    // Nothing is written behind any more.
    this.cancelWrite = () => undefined
    this.tryToWrite()
  }

  private conclude(entry: Entry, results: Results): Entry[] {
    const { delivery } = entry
    this.change(delivery, end(delivery, results))
    const ended = [entry, ...this.concludeMembers(delivery)]
    for (const each of ended) {
      if (each.delivery.state !== 'unanswered') this.unanswered.delete(each.delivery.id)
      this.keepFiles(each)
    }
    this.note(ended)
    for (const each of ended) if (each.delivery.state === 'unanswered') this.remember(each)
    return ended
  }

  /** The members of a digest end like it. Those that ended unanswered with it end again when it is corrected. */
  private concludeMembers({ id: digest, results: [result], flow: { members = [] } }: Delivery): Entry[] {
    const outcome = outcomeOf(result)
    const hasLeft = mayHaveArrived(result)
    return members.flatMap(({ id, shown }) => {
      const entry = this.find(id)
      if (!entry) return []
      const { delivery } = entry
      const { digest: share, ...flow } = delivery.flow
      const isToEndAgain = delivery.state === 'unanswered' && share?.id === digest && outcome !== 'unanswered'
      if (!isUnfinished(delivery.state) && !isToEndAgain) return []
      // A member that never left can be sent again by itself, so it keeps no digest.
      this.change(delivery, { flow: { ...flow, ...hasLeft && { digest: { id: digest, count: members.length, shown } } } })
      this.change(delivery, end(delivery, delivery.results.map(() => result)))
      return [entry]
    })
  }

  /** Logs the end of a deferred delivery, whose answer has long been given, and tells the observer. */
  private report(delivery: Delivery): void {
    const { clock, logger, observer } = this.options
    const { id, state, target, attempts, flow, deferred, createdAt } = delivery
    observer.ended(delivery, clock.wall() - createdAt)
    if (!deferred) return
    const facts = { id, target: writeTarget(target), state }
    const line = flow.digest
      ? say('deferred-ended-in-digest', { ...facts, digest: flow.digest.id })
      : attempts === 1 ? say('deferred-ended-one', facts) : say('deferred-ended', { ...facts, attempts })
    const result = resultOf(delivery)
    if (result?.success === false) logger.warn(clauses(line, result.error.logText))
    else logger.info(line)
  }

  /** Why an end may be wrong: without the store, another relay may have the delivery by now, and may have sent it. */
  private doubtOf({ delivery, hasRow }: Entry): RelayError | undefined {
    const isSure = !hasRow || !this.options.store.failure || delivery.results.every(mayHaveArrived)
    return isSure ? undefined : new RelayError('unanswered', say('lost-data-file'))
  }

  /**
   * Waits for the end of a delivery. If it is deferred, also until that survives a power cut: it would be sent after one.
   *
   * @returns why the request was stopped
   */
  private async told(entry: Entry): Promise<RelayError | undefined> {
    const { delivery: { id, deferred, state } } = entry
    const rejection = isUnfinished(state)
      ? await new Promise<RelayError | undefined>(resolve => this.waiters.set(id, [...this.waiters.get(id) ?? [], resolve]))
      : undefined
    if (deferred) await this.options.store.flushed().catch(() => undefined)
    return this.doubtOf(entry) ?? rejection
  }

  /** Notifies the callers that wait for the end of a delivery. */
  private notify(id: string, rejection?: RelayError): void {
    for (const onEnd of this.waiters.get(id) ?? []) onEnd(rejection)
    this.waiters.delete(id)
  }

  /** Writes what has happened: at once where the file has a row, and a little later the record of a plain message. */
  note(entries: readonly Entry[]): void {
    const { unwritten } = this
    for (const entry of entries) unwritten.set(entry.delivery.id, entry)
    if (entries.some(({ hasRow }) => hasRow)) this.tryToWrite(entries)
    const [oldest] = unwritten.size > mostRecords ? [...unwritten.values()].filter(({ hasRow }) => !hasRow) : []
    if (oldest) this.forget(oldest.delivery.id)
    this.writeLater(writeInterval)
  }

  private writeLater(ms: number): void {
    // A store that is over takes nothing any more.
    if (this.unwritten.size === 0 || this.options.store.failure) return
    this.cancelWrite ??= this.options.clock.after(this.failure ? retryDelay : ms, () => {
      this.cancelWrite = undefined
      this.tryToWrite([...this.unwritten.values()].slice(0, chunk))
      this.writeLater(0)
    })
  }

  /** As `write`; what the file does not take stays in memory. */
  tryToWrite(entries: readonly Entry[] = [...this.unwritten.values()]): void {
    const { logger, stop, store } = this.options
    try {
      this.writeAll(entries)
      if (this.failure) logger.info(say('written-again'))
      this.failure = undefined
    } catch (error) {
      const failure = RelayError.from(error)
      // A store that is over has told so itself.
      const isTold = this.failure !== undefined || store.failure !== undefined
      if (!isTold && !stop.aborted) logger.warn(say('kept-in-memory', { failure: failure.logText }))
      this.failure = failure
    }
  }

  /** Writes entries in one commit. */
  private writeAll(entries: readonly Entry[]): void {
    if (entries.length === 0) return
    this.options.store.commit(writer => {
      for (const { delivery, items = [], hasRow } of entries) {
        if (hasRow) this.table.update(writer, delivery)
        else this.table.insert(writer, delivery, items)
        if (!isUnfinished(delivery.state)) this.options.observer.recorded(writer, delivery)
      }
    })
    for (const entry of entries) {
      const { id, state } = entry.delivery
      entry.hasRow = true
      this.unwritten.delete(id)
      if (isUnfinished(state)) continue
      this.forget(id)
      this.shed(entry)
    }
  }

  private keep(entry: Entry): Entry {
    const { id, key } = entry.delivery
    this.active.set(id, entry)
    if (key !== null) this.keys.set(key, entry)
    return entry
  }

  /** The present object of a delivery, which may have been read from the file again. */
  private present(sender: Entry): Entry {
    return this.find(sender.delivery.id) ?? sender
  }

  /** Keeps the uploaded files of a delivery that can be sent again; nothing needs the content of any other. */
  private keepFiles(entry: Entry): void {
    const { recordContent, clock, retention } = this.options
    const { items } = entry
    if (!keepsContent(entry.delivery.state, recordContent)) entry.items = undefined
    else void Promise.resolve().then(() => this.keepUploads(items ?? this.itemsOf(entry), clock.wall() + retention)).catch(() => undefined)
  }
}

/** Wraps a delivery from the file without taking it into memory. */
export function toEntry(delivery: Delivery, items?: readonly ParsedItem[]): Entry {
  return { delivery, items, hasRow: true }
}
