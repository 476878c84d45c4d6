import assert from 'node:assert/strict'
import type { ItemAccount, Told } from './account'
import type { PlannedRequest } from './plan'

/** A parsed answer. */
export interface Reply {
  status: number
  headers: Headers
  msg: string
  data: unknown
}

/** Parses an answer, which must be an envelope. */
export async function readReply(response: Response): Promise<Reply> {
  const { status, headers } = response
  const body: unknown = await response.json()
  const msg = field(body, 'msg')
  assert(typeof msg === 'string', `${status} without an envelope`)
  assert.equal(field(body, 'code'), status < 300 ? 0 : status, msg)
  return { status, headers, msg, data: field(body, 'data') }
}

/** The meaning of an answer to `POST /webhook`. */
export type Reading
  = | { kind: 'results', results: ItemAccount[], replayed: boolean }
  /** Accepted for later delivery. */
    | { kind: 'accepted', id: string, replayed: boolean }
  /** Another request with the same key is in progress. */
    | { kind: 'in-progress' }

const outcomes: Readonly<Partial<Record<number, Told>>> = { 200: 'sent', 502: 'refused', 503: 'unsent', 504: 'unanswered', 429: 'unsent' }

function isTold(value: unknown): value is Told {
  return value === 'sent' || value === 'refused' || value === 'unsent' || value === 'unanswered'
}

/**
 * Interprets an answer.
 *
 * @throws AssertionError when a relay must not answer like this
 */
export function readAnswer({ status, headers, msg, data }: Reply, { mode, items }: PlannedRequest): Reading {
  const replayed = headers.get('idempotent-replayed') === 'true'
  const said = `${status} ${msg}`
  if (status === 409) return { kind: 'in-progress' }
  if (status === 202) {
    const id = field(data, 'delivery_id')
    assert(typeof id === 'string', said)
    return { kind: 'accepted', id, replayed }
  }
  const header = headers.get('relay-outcome')
  // The relay could not use its file, which has the outcome of an earlier request with this key.
  if (status === 503 && header === null) return { kind: 'in-progress' }
  if (status === 200 && mode === 'batch') {
    const results = readResults(field(data, 'results'), items.length)
    const told = new Set(results.map(result => result.told))
    assert.equal(header, told.size === 1 ? [...told][0] : null, `the header says ${header ?? 'nothing'}, the results ${[...told].join()}`)
    return { kind: 'results', results, replayed }
  }
  const told = outcomes[status]
  assert(told !== undefined, `unexpected answer: ${said}, Relay-Outcome ${header ?? 'missing'}`)
  assert.equal(header, told, said)
  const ids = field(data, 'message_ids')
  return { kind: 'results', results: items.map(() => ({ told, ids: readIds(ids) })), replayed }
}

/** A delivery in the format of `GET /deliveries/<id>`; `undefined` while it is unfinished. */
export function readDelivery(data: unknown, count: number): { state: string, attempts: number, results: ItemAccount[] } | undefined {
  const state = field(data, 'state')
  assert(typeof state === 'string')
  if (state === 'queued' || state === 'sending') return
  return { state, attempts: Number(field(data, 'attempts')), results: readResults(field(data, 'results'), count) }
}

function readResults(results: unknown, count: number): ItemAccount[] {
  assert(Array.isArray(results))
  assert.deepEqual(results.map(result => field(result, 'index')), Array.from({ length: count }, (_, index) => index), 'a result is missing')
  return results.map((result: unknown) => {
    if (field(result, 'success') === true) return { told: 'sent', ids: readIds(field(result, 'message_ids')) }
    const outcome = field(result, 'outcome')
    assert(isTold(outcome), `unexpected outcome of an item: ${JSON.stringify(result)}`)
    return { told: outcome, ids: [] }
  })
}

function readIds(ids: unknown): string[] {
  return Array.isArray(ids) ? ids.map(String) : []
}

export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
