import { Universal, type Bot } from 'koishi'
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { Call, LedgerEntry } from '../../../simulator/types'
import { isString, listOf } from '../../../src/lib/shape'
import { serve } from '../../support/listen'
import { read, type Reply, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

export const group = '123456'
export const user = '10001'

/** One result of a batch, as a client reads it. */
export interface Result {
  index: number
  success: boolean
  message_ids?: string[]
  code?: number
  msg?: string
  outcome?: string
}

export interface BatchData {
  total: number
  success: number
  failed: number
  results: Result[]
}

/** The calls that would bring something into a chat. */
export function sends({ simulator }: TestRelay): readonly Call[] {
  return simulator.calls.filter(({ action }) => /^(?:send|upload)_/.test(action))
}

/** The message of a list that must hold exactly one. */
export function only<T>(list: readonly T[]): T {
  const [first] = list
  assert(first !== undefined && list.length === 1, `there are ${list.length} of them, not one`)
  return first
}

/** What was delivered, each entry in short: its text and the types of its media. */
export function outline({ simulator }: TestRelay): string[] {
  return simulator.ledger.map(({ text, media }) => [text, ...media.map(({ type }) => `[${type}]`)].join(''))
}

/** The segments of an entry as `type:content`. */
export function shape(entry: LedgerEntry): string[] {
  return entry.segments.map(({ type, data }) => type === 'text' ? `text:${String(data.text)}` : type)
}

/** The IDs in the answer to a single message, which must be a success. */
export function idsOf({ status, msg, data }: Reply): string[] {
  assert.equal(status, 200, msg)
  assert.equal(msg, 'ok')
  assert(isTextList(data.message_ids))
  assert.deepEqual(Object.keys(data).filter(name => name !== 'ignored'), ['message_ids', 'delivery_id'])
  return data.message_ids
}

/** The data in the answer to a batch, of which everything that does not depend on the outcome is checked. */
export function batchOf({ status, headers, body }: Reply): BatchData {
  assert.equal(status, 200, body.msg)
  assert.equal(body.code, 0)
  const { data } = body
  assert(isBatchData(data))
  assert.deepEqual(data.results.map(({ index }) => index), [...data.results.keys()])
  assert.equal(data.total, data.results.length)
  assert.equal(data.success, data.results.filter(({ success }) => success).length)
  assert.equal(data.failed, data.total - data.success)
  const outcomes = new Set(data.results.map(({ outcome = 'sent' }) => outcome))
  assert.equal(headers.get('relay-outcome'), outcomes.size === 1 ? [...outcomes][0] : null)
  for (const result of data.results) {
    assert.deepEqual(Object.keys(result), result.success ? ['index', 'success', 'message_ids'] : ['index', 'success', 'code', 'msg', 'outcome'])
  }
  return data
}

function isBatchData(value: unknown): value is BatchData {
  return typeof value === 'object' && value !== null && 'results' in value && Array.isArray(value.results)
    && 'total' in value && 'success' in value && 'failed' in value
}

const isTextList = listOf(isString)

/** Asserts that a request failed with this status, and returns the text of the failure. What was tried to be sent has a delivery. */
export function failureOf({ status, headers, body, error }: Reply, expected: number): string {
  assert.equal(status, expected, body.msg)
  assert.equal('delivery_id' in error, headers.has('relay-outcome'))
  assert(body.msg.length > 0 && body.msg.length < 300)
  return body.msg
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Uploads one file and returns its ID. */
export async function upload(relay: Pick<TestRelay, 'request'>, name: string, bytes: Uint8Array<ArrayBuffer> | string): Promise<string> {
  const form = new FormData()
  form.append('file', new Blob([bytes]), name)
  const { status, msg, data: { path } } = await read(await relay.request('/upload', { method: 'POST', body: form }))
  assert.equal(status, 200, msg)
  assert(typeof path === 'string')
  return path
}

/** The bot that the adapter connected to the simulator. */
export function oneBot({ app }: TestRelay): Bot {
  return only([...app.bots].filter(bot => bot.platform === 'onebot'))
}

/** Brings the bot back after its connection was lost, as a person does on Koishi's console. */
export async function reconnect(relay: TestRelay): Promise<void> {
  const bot = oneBot(relay)
  await until('the bot is offline', () => bot.status === Universal.Status.OFFLINE)
  await bot.start()
  await until('the bot is online again', () => bot.status === Universal.Status.ONLINE)
}

/** An HTTP server on this machine that answers every path with the same bytes, and the paths that it was asked for. */
export async function linkServer(t: TestContext, bytes: Uint8Array | string): Promise<{ url: string, visits: readonly string[] }> {
  const visits: string[] = []
  const url = await serve(t, ({ url = '' }, response) => {
    visits.push(url)
    response.end(bytes)
  })
  return { url, visits }
}
