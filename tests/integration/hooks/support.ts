import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fieldsOf, isObject, type JsonObject } from '../../../src/lib/shape'
import { apiKey, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

export const group = '123456'
export const other = '654321'

/** What a hook was answered. */
export interface HookReply {
  status: number
  headers: Headers
  type: string
  text: string
  /** Of the envelope, or of a robot's answer; empty where it is no JSON. */
  body: JsonObject
  data: JsonObject
  error: JsonObject
}

/** Posts as a sender does that has its key in the address, and waits, unless told otherwise, until what was accepted has left. */
export async function post(
  relay: TestRelay, path: string, body: unknown, init: RequestInit & { key?: string, isHasty?: boolean } = {},
): Promise<HookReply> {
  const url = new URL(`${relay.url}/hooks/${path}`)
  const { key = apiKey, isHasty = false, ...rest } = init
  if (key !== '') url.searchParams.set('key', key)
  const response = await fetch(url, {
    method: 'POST',
    body: typeof body === 'string' || body instanceof FormData || body instanceof URLSearchParams ? body : JSON.stringify(body),
    ...typeof body === 'string' || body instanceof FormData || body instanceof URLSearchParams ? {} : { headers: { 'content-type': 'application/json' } },
    ...rest,
  })
  if (!isHasty) await left(relay)
  return reply(response)
}

/** Asks by GET with the key in a header. */
export async function get(relay: TestRelay, path: string, method = 'GET'): Promise<HookReply> {
  const response = await relay.request(`/hooks/${path}`, { method })
  await left(relay)
  return reply(response)
}

/** Waits until nothing is on its way. What is held, or waits for its bot, stays. */
export async function left(relay: TestRelay): Promise<void> {
  await until('what was accepted has left', async () => {
    const { data } = await reply(await relay.request('/deliveries?state=queued,sending'))
    return Array.isArray(data.deliveries) && data.deliveries.every(each => fieldsOf(each).held !== undefined)
  })
}

async function reply(response: Response): Promise<HookReply> {
  const raw = await response.text()
  const type = response.headers.get('content-type') ?? ''
  const isJson = type.startsWith('application/json') && raw !== ''
  assert(!isJson || raw.endsWith('\n'), raw)
  const text = isJson ? raw.trimEnd() : raw
  const body: unknown = isJson ? JSON.parse(text) : {}
  assert(isObject(body))
  return { status: response.status, headers: response.headers, type, text, body, data: fieldsOf(body.data), error: fieldsOf(body.error) }
}

/** The texts that were delivered. */
export function texts(relay: TestRelay): string[] {
  return relay.simulator.ledger.map(({ text }) => text)
}

/** The kinds of all segments that were delivered. */
export function kinds(relay: TestRelay): string[] {
  return relay.simulator.ledger.flatMap(({ segments }) => segments.map(({ type }) => type))
}

/** Puts a template into the folder of the operator. */
export async function putTemplate(relay: TestRelay, name: string, text: string): Promise<void> {
  const file = join(dirname(relay.uploadDir), 'data/templates', name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}
