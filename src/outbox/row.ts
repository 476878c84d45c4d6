import { createHash } from 'node:crypto'
import type { ItemResult } from '../delivery/transmitter'
import { RelayError } from '../errors'
import type { Target } from '../message/model'
import { isObject } from '../message/parse'
import { readResults, states, writeResults, type DeliveryRecord } from './record'

/** A delivery as it is stored. Times are milliseconds since the epoch. */
export interface DeliveryRow {
  id: string
  state: string
  mode: string
  deferred: boolean
  /** Digest of the name of the lane in which it waits, empty when it does not. MySQL takes names that differ in case for equal. */
  lane: string
  /** Its place in the order of the lane: a UUIDv7 made when it was accepted, which is after its body had come in. */
  position: string
  target: string
  bot: string
  createdAt: number
  updatedAt: number
  expiresAt: number | null
  attempts: number
  /** JSON. */
  results: string
  /** JSON. */
  sending: string | null
  /** Digest of the Idempotency-Key. */
  key: string | null
  fingerprint: string | null
  /** The request as JSON: what is needed to send it later. */
  body: string | null
}

/** The fields of a record; the body may be large and is read only to be sent. */
export const recordFields = [
  'id', 'state', 'mode', 'deferred', 'target', 'bot', 'createdAt', 'updatedAt', 'expiresAt', 'attempts', 'results', 'sending', 'key',
  'fingerprint',
] as const satisfies (keyof DeliveryRow)[]

export type RecordRow = Pick<DeliveryRow, typeof recordFields[number]>

/** A target in one word, such as `group:123456`. */
export function writeTarget({ kind, id }: Target): string {
  return `${kind}:${id}`
}

/** Reads what `writeTarget` wrote, `undefined` for anything else. */
export function readTarget(text: string): Target | undefined {
  const [, kind, id] = /^(group|private):(\P{Cc}{1,255})$/u.exec(text) ?? []
  if (id !== undefined && (kind === 'group' || kind === 'private')) return { kind, id }
}

/** The name of the lane of a stored delivery, as `laneOf` has it. */
export function laneNameOf({ bot, target }: Pick<DeliveryRecord, 'bot' | 'target'>): string {
  return `${bot}/${writeTarget(target)}`
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/**
 * @param position its place in its lane; empty for one that does not wait there
 * @param body kept to send the request later
 */
export function toRow(record: DeliveryRecord, position: string, body: unknown): DeliveryRow {
  return { ...toFields(record), lane: position && digest(laneNameOf(record)), position, body: JSON.stringify(body) }
}

/** The record alone, without what is needed to send it. */
export function toFields({ target, results, sending, ...rest }: DeliveryRecord): RecordRow {
  return { ...rest, target: writeTarget(target), results: writeResults(results), sending: sending && JSON.stringify(sending) }
}

/** @throws Error when the row was not written by `toRow` or `toFields` */
export function fromRow(row: RecordRow): DeliveryRecord {
  const { id, deferred, bot, createdAt, updatedAt, expiresAt, attempts, key, fingerprint } = row
  const state = states.find(name => name === row.state)
  const target = readTarget(row.target)
  if (!state || !target) throw new Error(`the stored delivery ${id} is not readable`)
  const results = readResults(row.results)
  return {
    id, state, mode: row.mode === 'batch' ? 'batch' : 'single', deferred, target, bot, createdAt, updatedAt, expiresAt, attempts,
    // Of what was interrupted only the state was written down.
    results: state === 'unanswered' ? results.map(result => result ?? unanswered()) : results,
    sending: readSending(row.sending), key, fingerprint,
  }
}

/** The result of an item of which only that is known. */
export function unanswered(): ItemResult {
  return { success: false, error: new RelayError('unanswered') }
}

function readSending(text: string | null): DeliveryRecord['sending'] {
  const stored: unknown = text === null ? null : JSON.parse(text)
  if (!isObject(stored)) return null
  const { indices, since, others } = stored
  if (!Array.isArray(indices) || typeof since !== 'number') return null
  return { indices: indices.map(Number), since, others: Array.isArray(others) ? others.map(String) : [] }
}
