import { RelayError, isErrorCode } from '../../errors'
import { isBoolean, isNumber, isString, isTime, isWhole, listOf, nullable, objectOf, oneOf, optional } from '../../lib/shape'
import { readTarget, writeTarget } from '../../message/target'
import { isUnfinished, states, type Delivery, type ItemResult, type Open, type Results, type Sent, type State } from './delivery'
import { isFlow } from './flow'
import { isSummary, type RecordContent } from './summary'
import { isText, parseTexts, type Text, words } from '../../texts/text'

/** A delivery as a row: the columns that are searched, and the rest as JSON. The content has a column of its own. */
export interface Row {
  id: string
  /** A `State`. */
  state: string
  /** As `writeTarget` has it. */
  target: string
  bot: string
  /** As `writeCaller` has it. */
  caller: string | null
  door: string
  /** As `ThreadLink.name`. */
  thread: string | null
  key: string | null
  /** In milliseconds since the epoch. */
  updated_at: number
  /** As JSON. A column of its own keeps searches short. */
  summary: string
  /** All other fields, as JSON. */
  record: string
}

export const isRow = objectOf<Row>({
  id: isString, state: isString, target: isString, bot: isString, caller: nullable(isString), door: isString, thread: nullable(isString),
  key: nullable(isString), updated_at: isNumber, summary: isString, record: isString,
})

/** The columns of a row, in the order of the table. */
export const columns = ['id', 'state', 'target', 'bot', 'caller', 'door', 'thread', 'key', 'updated_at', 'summary', 'record'] as const satisfies (keyof Row)[]

/** Whether the content of a delivery in this state is kept. */
export function keepsContent(state: State, content: RecordContent): boolean {
  if (content === 'full' || isUnfinished(state) || state === 'unanswered') return true
  return content === 'preview' && state !== 'sent'
}

/** The name of a caller as hexadecimal UTF-8: a name of the settings may hold characters that SQLite does not give back. */
export function writeCaller(caller: string): string {
  return Buffer.from(caller).toString('hex')
}

/** A failed item. Another release may have written a code that this one does not know. */
interface StoredFailure { error: string, msg: Text }

/** The content of the column `record`. */
interface StoredRecord extends Omit<Delivery, 'id' | 'state' | 'target' | 'bot' | 'caller' | 'door' | 'key' | 'updatedAt' | 'summary' | 'results'> {
  results: (Sent | StoredFailure | null)[]
}

const isSent = objectOf<Sent>({ success: oneOf([true]), messageIds: listOf(isString), likeness: optional(isString) })
const isFailure = objectOf<StoredFailure>({ error: isString, msg: isText })
const isOpen = objectOf<Open>({ indices: listOf(isWhole), likeness: isString, since: isTime, settle: isTime, calls: isWhole })

const isRecord = objectOf<StoredRecord>({
  seq: isWhole,
  mode: oneOf(['single', 'batch']),
  deferred: isBoolean,
  createdAt: isTime,
  expiresAt: nullable(isTime),
  attempts: isWhole,
  results: listOf(nullable(value => isSent(value) || isFailure(value))),
  open: listOf(isOpen),
  requestKey: optional(isString),
  fingerprint: nullable(isString),
  flow: isFlow,
})

export function toRow({ id, state, target, bot, caller, door, key, updatedAt, summary, results, ...record }: Delivery): Row {
  return {
    id, state, bot, door, key, updated_at: updatedAt,
    target: writeTarget(target),
    caller: caller && writeCaller(caller),
    thread: record.flow.thread?.name ?? null,
    summary: JSON.stringify(summary),
    record: JSON.stringify({ ...record, results: results.map(writeResult) }),
  }
}

/** @throws Error if the row was not written by `toRow` */
export function fromRow({ id, bot, door, key, updated_at: updatedAt, ...row }: Row): Delivery {
  const record: unknown = parseTexts(row.record)
  const summary: unknown = parseTexts(row.summary)
  const target = readTarget(row.target)
  const state = states.find(name => name === row.state)
  const isSound = isRecord(record) && isSummary(summary) && isTime(updatedAt)
  if (!state || !target || !isSound) throw new Error('the row is damaged')
  const { open, results, flow: { route } } = record
  const isBeyond = open.some(({ indices }) => indices.some(index => index >= results.length))
  if (isBeyond || (route && route.index >= route.ways.length)) throw new Error('the row is damaged')
  return {
    ...record, id, state, target, bot, door, key, updatedAt, summary,
    caller: row.caller === null ? null : Buffer.from(row.caller, 'hex').toString(),
    results: record.results.map(readResult),
  }
}

function writeResult(result: Results[number]): StoredRecord['results'][number] {
  if (!result) return null
  return result.success ? result : { error: result.error.code, msg: result.error.said }
}

function readResult(stored: StoredRecord['results'][number]): ItemResult | undefined {
  if (!stored) return
  if ('success' in stored) return stored
  const { error, msg } = stored
  const code = isErrorCode(error) ? error : 'internal'
  // The words of an adapter may contain those of a message.
  return { success: false, error: new RelayError(code, msg, { logText: words(code) }) }
}
