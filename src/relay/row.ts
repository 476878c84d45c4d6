import type { Context } from 'koishi'
import { createHash } from 'node:crypto'
import { laneOf } from '../platform/bots'
import type { ItemResult } from './transmitter'
import { RelayError } from '../errors'
import { isObject } from '../message/parse'
import { readTarget, writeTarget } from '../message/target'
import { readResults, states, writeResults, type DeliveryRecord } from './delivery'

declare module 'koishi' {
  interface Tables {
    message_relay_delivery: DeliveryRow
  }
}

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

export const table = 'message_relay_delivery'

/** Declares the table, which is created when it is first used. */
export function defineTable(ctx: Context): void {
  ctx.model.extend(table, {
    id: { type: 'string', length: 36, nullable: false },
    state: { type: 'string', length: 16, nullable: false },
    mode: { type: 'string', length: 16, nullable: false },
    deferred: { type: 'boolean', nullable: false },
    lane: { type: 'string', length: 64, nullable: false },
    position: { type: 'string', length: 36, nullable: false },
    target: { type: 'string', length: 300, nullable: false },
    bot: { type: 'string', length: 255, nullable: false },
    createdAt: { type: 'double', nullable: false },
    updatedAt: { type: 'double', nullable: false },
    expiresAt: { type: 'double', nullable: true, initial: null },
    attempts: { type: 'unsigned', nullable: false },
    results: { type: 'text', length: 2 ** 24, nullable: false },
    sending: { type: 'text', length: 2 ** 24, nullable: true, initial: null },
    key: { type: 'string', length: 64, nullable: true, initial: null },
    fingerprint: { type: 'string', length: 64, nullable: true, initial: null },
    body: { type: 'text', length: 2 ** 30, nullable: true, initial: null },
  }, {
    primary: 'id',
    unique: ['key'],
    indexes: [['state', 'lane', 'position'], ['state', 'expiresAt'], ['state', 'id'], ['target', 'id'], ['target', 'state', 'id']],
  })
}

/** The fields of a record; the body may be large and is read only to be sent. */
export const recordFields = [
  'id', 'state', 'mode', 'deferred', 'target', 'bot', 'createdAt', 'updatedAt', 'expiresAt', 'attempts', 'results', 'sending', 'key',
  'fingerprint',
] as const satisfies (keyof DeliveryRow)[]

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/**
 * @param position its place in its lane; empty for one that does not wait there
 * @param body kept to send the request later
 */
export function toRow(record: DeliveryRecord, position: string, body: unknown): DeliveryRow {
  const { target, results, sending, ...rest } = record
  return {
    ...rest,
    lane: position && digest(laneOf(record.bot, target)),
    position,
    target: writeTarget(target),
    results: writeResults(results),
    sending: sending && JSON.stringify(sending),
    body: JSON.stringify(body),
  }
}

/** @throws Error when the row was not written by `toRow` */
export function fromRow(row: Pick<DeliveryRow, typeof recordFields[number]>): DeliveryRecord {
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
