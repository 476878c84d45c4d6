import { v7 as uuid } from 'uuid'
import { RelayError, isErrorCode } from '../errors'
import { printable } from '../lib/log'
import { isBoolean, isString, isTime, isWhole, listOf, nullable, objectOf, oneOf, optional } from '../lib/shape'
import type { Address, ParsedItem, Target } from '../message/model'
import { platformOf, readTarget, writeTarget } from '../message/target'
import { isUnfinished, states, type Delivery, type ItemResult, type Open, type Results, type Sent, type State } from './delivery/delivery'
import { isFlow } from './delivery/flow'
import { isSummary, wordsOf, type RecordContent } from './delivery/summary'

/**
 * The store of deliveries: one table of a database (`journal-database.ts`), or a bounded list in memory
 * (`journal-memory.ts`). Memory is the truth while a delivery is active; the journal is what outlives it.
 *
 * Every method that returns a promise may reject with the error of the database. The statement may then have been carried out, or may
 * still be.
 */
export interface Journal {
  /** Whether the journal outlives the process. */
  readonly isDurable: boolean

  /** Writes a new durable delivery. Fails if another delivery has the same key. */
  insert(delivery: Delivery, items: readonly ParsedItem[]): Promise<void>
  /**
   * Writes the state of a delivery at the time of the call. Calls for one delivery run one after another, and an older version never
   * replaces a newer one. Whether the content is kept depends on the state of the delivery (`recordContent`).
   *
   * @throws NotOwner if the row has the number of another owner
   */
  update(delivery: Delivery): Promise<void>
  /** Replaces the row of a delivery by a tombstone, so that a late insert fails. */
  cancel(id: string): Promise<void>
  /** Writes the record of an ended delivery that is not durable: a little later, in a batch. It replaces an earlier record. */
  record(delivery: Delivery, items: readonly ParsedItem[]): void
  /** Writes the records that still wait. */
  flush(): Promise<void>

  find(id: string): Promise<Delivery | undefined>
  findByKey(key: string): Promise<Delivery | undefined>
  /** The content of a delivery; `undefined` if it is not kept. */
  items(id: string): Promise<readonly ParsedItem[] | undefined>
  /** Lists deliveries in the order of the filter. A damaged row is left out, with a line in the log. */
  list(filter: ListFilter): Promise<Delivery[]>
  /** The deliveries among these whose content is kept. */
  withContent(ids: readonly string[]): Promise<readonly string[]>
  /** Counts the deliveries of a filter by state, on any platform. The case of a text does not count. */
  count(filter: Filter & { states: readonly State[] }): Promise<ReadonlyMap<State, number>>
  /**
   * Puts this owner's number on every row that has not ended, or ended `unanswered` since a time in milliseconds since the epoch. From then
   * on, every write is conditional on the number. To be called at the start, and from time to time for late rows.
   *
   * @returns the deliveries whose rows had another number, in the order of acceptance
   */
  adopt(owner: number, since: number): Promise<Delivery[]>
  /** Removes records past the retention or beyond the limit, some rows at a time. */
  purge(wall: number): Promise<void>
  /** Rejects if the database does not answer. */
  ping(): Promise<void>
}

/** The row that names the active relay. */
export interface OwnerRow {
  /** The number on the rows of the owner. It grows by one with each take-over. */
  number: number
  /** Grows with each renewal; 0 once the owner has released the row. */
  beat: number
  /** The owner as people see it: host and process. */
  name: string
}

/** The store of that row. */
export interface OwnerStore {
  /** `undefined` if there was never an owner. */
  readOwner(): Promise<OwnerRow | undefined>
  /**
   * Replaces the row if it still equals `from` (compare-and-set).
   *
   * @returns whether it did
   */
  swapOwner(from: OwnerRow | undefined, to: OwnerRow): Promise<boolean>
}

/** Thrown when a row has the number of another owner: this relay has lost the data store. */
export class NotOwner extends Error {
  override readonly name = 'NotOwner'
}

/** Converts errors of the database. @throws RelayError with this code */
export async function orStoreDown<T>(work: Promise<T>, code: 'store-down' | 'key-unknown' = 'store-down'): Promise<T> {
  return work.catch((cause: unknown) => {
    throw cause instanceof RelayError ? cause : new RelayError(code, undefined, { cause })
  })
}

/** Selects deliveries. */
export interface Filter {
  /** Their states. */
  states?: readonly State[]
  /** Their targets, each on its platform if it has one. */
  targets?: readonly (Target & Pick<Address, 'platform'>)[]
  /** The `sid` of their bot. */
  bot?: string
  /** As `ThreadLink.name`. */
  thread?: string
  /** The name of the caller's key. */
  caller?: string
  /** A door, or a group of doors, such as `hooks`. */
  door?: string
  /** A part of the start of their texts. The case of ASCII letters does not count. */
  text?: string
  /** The first time of acceptance, and the end of the span, in milliseconds since the epoch. */
  since?: number
  until?: number
  /** Older than the delivery with this ID. */
  before?: string
}

/** Selects deliveries, in an order. */
export interface ListFilter extends Filter {
  /** `asc` for the oldest first; otherwise the newest come first. */
  order?: 'asc' | 'desc'
  limit: number
}

/** A delivery as a row of the journal: the columns that are searched, and the rest as JSON. */
export interface Row {
  id: string
  /** A `State`, or `gone`. */
  state: string
  /** As `writeTarget` has it. */
  target: string
  /** As `writeCaller` has it. */
  caller: string | null
  door: string
  /** As `ThreadLink.name`. */
  thread: string | null
  key: string | null
  /** In milliseconds since the epoch. */
  updatedAt: number
  /** As JSON. A column of its own keeps searches short. */
  summary: string
  /** All other fields, as JSON. */
  record: string
}

/** The state of a tombstone: the row of a delivery that was cancelled. */
export const gone = 'gone'

/** Sorts after every ID. */
const lastId = 'g'

/** The lowest possible ID of a delivery accepted at a time in milliseconds since the epoch. */
export function lowestId(time: number): string {
  return time === Infinity ? lastId : uuid({ msecs: Math.max(Math.ceil(time), 0), seq: 0, random: new Uint8Array(16) })
}

/** The time of an ID, in milliseconds since the epoch (RFC 9562, section 5.7). */
function timeOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Whether the content of a delivery in this state is kept. */
export function keepsContent(state: State, content: RecordContent): boolean {
  if (content === 'full' || isUnfinished(state) || state === 'unanswered') return true
  return content === 'preview' && state !== 'sent'
}

/** The approximate memory of a content: its characters, and a share for each item. */
export function sizeOfItems(items: readonly ParsedItem[]): number {
  return items.reduce((size, item) => {
    if ('text' in item) return size + 100 + item.text.length
    return size + 100 + ('link' in item && item.link.kind === 'data' ? item.link.base64.length : 0)
  }, 0)
}

/** Whether a delivery matches a filter. */
export function matches({ id, state, target, bot, caller, door, flow, summary }: Delivery, filter: Filter): boolean {
  // A delivery that never had a bot matches every platform.
  const isTo: NonNullable<Filter['targets']>[number] = { ...target, platform: platformOf(bot) }
  return holds(filter.since, since => timeOf(id) >= since)
    && holds(filter.until, until => timeOf(id) < until)
    && holds(filter.states, states => states.includes(state))
    && holds(filter.targets, targets => targets.some(each => each.kind === isTo.kind && each.id === isTo.id
      && holds(each.platform, platform => holds(isTo.platform, own => own === platform))))
    && holds(filter.bot, sid => sid === bot)
    && holds(filter.thread, name => name === flow.thread?.name)
    && holds(filter.caller, name => name === caller)
    && holds(filter.door, name => door === name || door.startsWith(`${name}/`))
    && holds(filter.before, before => id < before)
    && holds(filter.text, text => lowerCase(wordsOf(summary)).includes(lowerCase(text)))
}

/** How many deliveries of a thread are read at each end. */
const threadEnds = 50

/**
 * The deliveries of a thread through this bot to this target, the oldest first, since a time in milliseconds since the epoch. Of a long
 * thread, only its first and last ones.
 */
export async function inThread(journal: Pick<Journal, 'list'>, thread: string, bot: string, target: Target, since: number): Promise<Delivery[]> {
  const filter = { thread, bot, targets: [target], since, limit: threadEnds }
  const [first, last] = [await journal.list({ ...filter, order: 'asc' }), await journal.list(filter)]
  return [...first, ...last.reverse().filter(({ id }) => first.every(each => each.id < id))]
}

/** Applies the order and the limit of a filter. */
export function cutList(deliveries: readonly Delivery[], { order, limit }: Pick<ListFilter, 'order' | 'limit'>): Delivery[] {
  const sign = order === 'asc' ? 1 : -1
  return deliveries.toSorted((a, b) => a.id < b.id ? -sign : sign).slice(0, limit)
}

/** Whether a value meets a condition; `true` without a condition. */
function holds<T>(wanted: T | undefined, condition: (wanted: T) => boolean): boolean {
  return wanted === undefined || condition(wanted)
}

/** Lowers ASCII letters only: other characters may change their length. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

/** The name of a caller as hexadecimal UTF-8, because MySQL treats texts as equal that differ in case or accents. */
export function writeCaller(caller: string): string {
  return Buffer.from(caller).toString('hex')
}

/** A failed item. Another release may have written a code that this one does not know. */
interface StoredFailure { error: string, msg: string }

/** The content of the column `record`. */
interface StoredRecord extends Omit<Delivery, Exclude<keyof Row, 'record'> | 'results'> {
  results: (Sent | StoredFailure | null)[]
}

const isSent = objectOf<Sent>({ success: oneOf([true]), messageIds: listOf(isString), likeness: optional(isString) })
const isFailure = objectOf<StoredFailure>({ error: isString, msg: isString })
const isOpen = objectOf<Open>({ indices: listOf(isWhole), likeness: isString, since: isTime, settle: isTime, calls: isWhole })

const isRecord = objectOf<StoredRecord>({
  seq: isWhole,
  mode: oneOf(['single', 'batch']),
  deferred: isBoolean,
  bot: isString,
  createdAt: isTime,
  expiresAt: nullable(isTime),
  attempts: isWhole,
  results: listOf(nullable(value => isSent(value) || isFailure(value))),
  open: listOf(isOpen),
  requestKey: optional(isString),
  fingerprint: nullable(isString),
  flow: isFlow,
})

export function toRow(delivery: Delivery): Row {
  const { id, state, target, caller, door, key, updatedAt, summary, results, ...record } = delivery
  return {
    id, state, door, key, updatedAt,
    target: writeTarget(target),
    caller: caller && writeCaller(caller),
    thread: record.flow.thread?.name ?? null,
    summary: JSON.stringify(summary),
    record: JSON.stringify({ ...record, results: results.map(writeResult) }),
  }
}

/** @throws Error if the row was not written by `toRow` */
export function fromRow({ id, door, key, updatedAt, ...row }: Row): Delivery {
  const record: unknown = JSON.parse(row.record)
  const summary: unknown = JSON.parse(row.summary)
  const target = readTarget(row.target)
  const state = states.find(name => name === row.state)
  const isSound = isRecord(record) && isSummary(summary) && isTime(updatedAt)
  if (!state || !target || !isSound) throw new Error('the row is damaged')
  const { open, results, flow: { route } } = record
  const isBeyond = open.some(({ indices }) => indices.some(index => index >= results.length))
  if (isBeyond || (route && route.index >= route.ways.length)) throw new Error('the row is damaged')
  return {
    ...record, id, state, target, door, key, updatedAt, summary,
    caller: row.caller === null ? null : Buffer.from(row.caller, 'hex').toString(),
    results: record.results.map(readResult),
  }
}

function writeResult(result: Results[number]): StoredRecord['results'][number] {
  if (!result) return null
  return result.success ? result : { error: result.error.code, msg: result.error.message }
}

function readResult(stored: StoredRecord['results'][number]): ItemResult | undefined {
  if (!stored) return
  if ('success' in stored) return stored
  const { error, msg } = stored
  const code = isErrorCode(error) ? error : 'internal'
  // The words of an adapter may contain those of a message.
  return { success: false, error: new RelayError(code, msg, { logText: code }) }
}

/** The text of a database that did not answer in time. */
export const noAnswer = 'the database did not answer in time'
/** Texts without values: this one, and those of SQLite for a file that it cannot use, whose errors have no codes. */
const plainTexts = new Set([
  noAnswer,
  'attempt to write a readonly database', 'database disk image is malformed', 'database is locked', 'database or disk is full',
  'disk I/O error', 'file is not a database', 'unable to open database file',
])

/** Names an error of the database. Its own text may contain the values of a statement, and so messages. */
export function nameOfError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  if (plainTexts.has(error.message)) return error.message
  const code: unknown = Reflect.get(error, 'code')
  return printable(typeof code === 'string' || typeof code === 'number' ? `${error.name} ${code}` : error.name)
}
