import { v7 as uuid } from 'uuid'
import { RelayError, isErrorCode } from '../errors'
import { printable } from '../lib/log'
import { isBoolean, isNumber, isString, listOf, nullable, objectOf, oneOf, optional } from '../lib/shape'
import type { Address, ParsedItem, Target } from '../message/model'
import { platformOf, readTarget, writeTarget } from '../message/target'
import { isUnfinished, states, type Delivery, type ItemResult, type Open, type Results, type Sent, type State } from './delivery'
import { isFlow } from './flow'
import { isSummary, wordsOf, type RecordContent } from './summary'

/**
 * Where deliveries are written down: one table of a database (`journal-database.ts`), or a bounded list in memory
 * (`journal-memory.ts`). Memory is the truth while a delivery is active; the journal is what outlives it.
 *
 * Every method that returns a promise may reject with the error of the database. After such a rejection it is unknown whether the
 * statement was carried out, or still will be.
 */
export interface Journal {
  /** Whether what is written outlives the process. */
  readonly isDurable: boolean

  /** Writes a new delivery that must last. It fails where its key is another delivery's. */
  insert(delivery: Delivery, items: readonly ParsedItem[]): Promise<void>
  /**
   * Writes a delivery as it is at the time of the call. Calls about one delivery are carried out one after another, and an older version
   * never replaces a newer one. The content goes or stays by the state of the delivery (`recordContent`).
   *
   * @throws NotOwner where the row has the number of another owner
   */
  update(delivery: Delivery): Promise<void>
  /** Makes sure that a delivery is not there and never will be: a tombstone takes its place, which a late insert cannot replace. */
  cancel(id: string): Promise<void>
  /** Writes the record of a delivery that has ended and need not last, a little later and many at a time. It replaces an earlier one. */
  record(delivery: Delivery, items: readonly ParsedItem[]): void
  /** Writes what `record` still has to write. */
  flush(): Promise<void>

  find(id: string): Promise<Delivery | undefined>
  findByKey(key: string): Promise<Delivery | undefined>
  /** What was to be sent, item by item; `undefined` where it is not kept. */
  items(id: string): Promise<readonly ParsedItem[] | undefined>
  /** In the order asked for. A row that cannot be read is left out, with a line in the log. */
  list(filter: ListFilter): Promise<Delivery[]>
  /** Those of these deliveries whose content is kept. */
  withContent(ids: readonly string[]): Promise<readonly string[]>
  /** How many deliveries are in each of the states of a filter, on any platform. Of a text, the case of no letter counts. */
  count(filter: Filter & { states: readonly State[] }): Promise<ReadonlyMap<State, number>>
  /**
   * Puts this owner's number on every row that has not ended, or ended `unanswered` since then (milliseconds since the epoch), and from
   * then on makes every write conditional on it. To be called at the start, and from time to time for rows that came late.
   *
   * @returns the deliveries whose rows had another number, by their sequence numbers
   */
  adopt(owner: number, since: number): Promise<Delivery[]>
  /** Removes what is past its retention or beyond the limit, some rows at a time. */
  purge(wall: number): Promise<void>
  /** Rejects when the database does not answer. */
  ping(): Promise<void>
}

/** The row that names the active relay. */
export interface OwnerRow {
  /** Grows by one with each take-over; it is the number on the rows of the owner. */
  number: number
  /** Grows with each renewal; 0 once the owner has given it back. */
  beat: number
  /** Who it is, for people: host and process. */
  name: string
}

/** Where that row is written down. */
export interface OwnerStore {
  /** `undefined` when there never was one. */
  readOwner(): Promise<OwnerRow | undefined>
  /**
   * Replaces the row, if it still is as `from` has it.
   *
   * @returns whether it did
   */
  swapOwner(from: OwnerRow | undefined, to: OwnerRow): Promise<boolean>
}

/** A row has the number of another owner: this relay has lost the data store. */
export class NotOwner extends Error {
  override readonly name = 'NotOwner'
}

/** @throws RelayError with this code for whatever the database throws */
export async function orStoreDown<T>(work: Promise<T>, code: 'store-down' | 'key-unknown' = 'store-down'): Promise<T> {
  return work.catch((cause: unknown) => {
    throw cause instanceof RelayError ? cause : new RelayError(code, undefined, { cause })
  })
}

/** Which deliveries are asked for. */
export interface Filter {
  /** Those in one of these states. */
  states?: readonly State[]
  /** Those to one of these targets, on its platform where it has one. */
  targets?: readonly (Target & Pick<Address, 'platform'>)[]
  /** The `sid` of the bot that they go through. */
  bot?: string
  /** As `ThreadLink.name`. */
  thread?: string
  /** The name of the caller's key. */
  caller?: string
  /** A door, or a kind of doors, such as `hooks`. */
  door?: string
  /** A part of the first characters of their texts. The case of ASCII letters does not count. */
  text?: string
  /** Accepted from this time on, and before that one, in milliseconds since the epoch. */
  since?: number
  until?: number
  /** Older than the delivery with this ID. */
  before?: string
}

/** Which deliveries are listed. */
export interface ListFilter extends Filter {
  /** `asc` for the oldest first; the newest come first unless given. */
  order?: 'asc' | 'desc'
  limit: number
}

/** A delivery as a row of the journal: the columns by which rows are found, and the rest as JSON. */
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
  /** As JSON. It has a column of its own, so that a search does not look through everything. */
  summary: string
  /** All other fields, as JSON. */
  record: string
}

/** The state of a tombstone: the row of a delivery that was cancelled. */
export const gone = 'gone'

/** It sorts after every ID. */
const lastId = 'g'

/** The lowest ID that a delivery accepted at this time can have, in milliseconds since the epoch. */
export function lowestId(time: number): string {
  return time === Infinity ? lastId : uuid({ msecs: Math.max(Math.ceil(time), 0), seq: 0, random: new Uint8Array(16) })
}

/** When an ID was made, in milliseconds since the epoch (RFC 9562, section 5.7). */
function timeOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Whether what was to be sent is kept of a delivery in this state. */
export function keepsContent(state: State, content: RecordContent): boolean {
  if (content === 'full' || isUnfinished(state) || state === 'unanswered') return true
  return content === 'preview' && state !== 'sent'
}

/** How much memory what was to be sent takes: its characters, and something for each item. */
export function sizeOfItems(items: readonly ParsedItem[]): number {
  return items.reduce((size, item) => {
    if ('text' in item) return size + 100 + item.text.length
    return size + 100 + ('link' in item && item.link.kind === 'data' ? item.link.base64.length : 0)
  }, 0)
}

/** Whether a delivery is one of those that a filter asks for. */
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

/** How many deliveries of a thread are read at its beginning, and at its end. */
const threadEnds = 50

/**
 * The deliveries of a thread through this bot to this target that were accepted since then (milliseconds since the epoch), the oldest
 * first. Of a long thread some at its beginning and some at its end.
 */
export async function inThread(journal: Pick<Journal, 'list'>, thread: string, bot: string, target: Target, since: number): Promise<Delivery[]> {
  const filter = { thread, bot, targets: [target], since, limit: threadEnds }
  const [first, last] = [await journal.list({ ...filter, order: 'asc' }), await journal.list(filter)]
  return [...first, ...last.reverse().filter(({ id }) => first.every(each => each.id < id))]
}

/** Puts deliveries into the order asked for, and leaves out those beyond the limit. */
export function cutList(deliveries: readonly Delivery[], { order, limit }: Pick<ListFilter, 'order' | 'limit'>): Delivery[] {
  const sign = order === 'asc' ? 1 : -1
  return deliveries.toSorted((a, b) => a.id < b.id ? -sign : sign).slice(0, limit)
}

/** Whether a condition holds, or is not asked for. */
function holds<T>(wanted: T | undefined, condition: (wanted: T) => boolean): boolean {
  return wanted === undefined || condition(wanted)
}

/** Of ASCII letters only: other texts may get longer. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

/** The name of a caller as hexadecimal UTF-8: MySQL takes texts for equal that differ in case or in accents. */
export function writeCaller(caller: string): string {
  return Buffer.from(caller).toString('hex')
}

/** An item that failed. Another release may have had more codes. */
interface StoredFailure { error: string, msg: string }

/** What the column `record` holds. */
interface StoredRecord extends Omit<Delivery, Exclude<keyof Row, 'record'> | 'results'> {
  results: (Sent | StoredFailure | null)[]
}

const isSent = objectOf<Sent>({ success: oneOf([true]), messageIds: listOf(isString), likeness: optional(isString) })
const isFailure = objectOf<StoredFailure>({ error: isString, msg: isString })
const isOpen = objectOf<Open>({ indices: listOf(isNumber), likeness: isString, since: isNumber, settle: isNumber, calls: isNumber })

const isRecord = objectOf<StoredRecord>({
  seq: isNumber,
  mode: oneOf(['single', 'batch']),
  deferred: isBoolean,
  bot: isString,
  createdAt: isNumber,
  expiresAt: nullable(isNumber),
  attempts: isNumber,
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

/** @throws Error when it was not written by `toRow` */
export function fromRow({ id, door, key, updatedAt, ...row }: Row): Delivery {
  const record: unknown = JSON.parse(row.record)
  const summary: unknown = JSON.parse(row.summary)
  const target = readTarget(row.target)
  const state = states.find(name => name === row.state)
  if (!state || !target || !isRecord(record) || !isSummary(summary)) throw new Error('the row is damaged')
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
  return { success: false, error: new RelayError(isErrorCode(error) ? error : 'internal', msg) }
}

/** What SQLite says of a file that it cannot use. Its errors have no codes. */
const fileFlaws = new Set([
  'attempt to write a readonly database', 'database disk image is malformed', 'database is locked', 'database or disk is full',
  'disk I/O error', 'file is not a database', 'unable to open database file',
])

/** Names an error of the database. Its text may hold the values of a statement, and with them messages. */
export function nameOfError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  if (fileFlaws.has(error.message)) return error.message
  const code: unknown = Reflect.get(error, 'code')
  return printable(typeof code === 'string' || typeof code === 'number' ? `${error.name} ${code}` : error.name)
}
