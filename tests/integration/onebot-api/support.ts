import assert from 'node:assert/strict'
import { isObject } from '../../../src/lib/shape'
import { apiKey, type TestRelay } from '../../support/relay'

export { group, idsOf, linkServer, oneBot, only, sends, sha256, upload, user } from '../webhook/support'

/** An answer to a call. */
export interface CallReply {
  status: number
  headers: Headers
  /** As it was sent, without its line end. */
  text: string
  retcode: unknown
  body: Readonly<Record<string, unknown>>
}

/** Reads an answer in the shape of OneBot 11. */
export async function readReply(response: Response): Promise<CallReply> {
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  const raw = await response.text()
  assert(raw.endsWith('}\n'), raw)
  const text = raw.trimEnd()
  const body: unknown = JSON.parse(text)
  assert(isObject(body), text)
  return { status: response.status, headers: response.headers, text, retcode: body.retcode, body }
}

/** Calls an action with JSON and the master key. */
export async function call(relay: TestRelay, action: string, params: object = {}, key = apiKey): Promise<CallReply> {
  return readReply(await fetch(`${relay.url}/onebot/${action}`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(params),
  }))
}

/** The ID in the answer to a message that was sent. */
export function messageIdOf({ status, body, text }: CallReply): number {
  assert.equal(status, 200)
  assert.match(text, /^\{"retcode":0,"status":"ok","data":\{"message_id":-?\d+,"delivery_id":"[0-9a-f-]{36}"\},"message":"","wording":""/)
  const { data } = body
  assert(isObject(data) && typeof data.message_id === 'number')
  return data.message_id
}

/** Asserts that a call failed like this, and returns why. One that became a delivery says so. */
export function failureOf({ status, headers, body }: CallReply, retcode: number): string {
  assert.equal(status, 200)
  const { message, ...rest } = body
  assert(typeof message === 'string' && message.length > 0)
  const data = body.data === null ? null : { delivery_id: headers.get('x-request-id') }
  assert.deepEqual(rest, { retcode, status: 'failed', data, wording: message })
  return message
}

/** What was delivered: the segments of each message, a mention with whom it names and a reply with what it answers; files by their name. */
export function seen({ simulator }: TestRelay): string[] {
  return simulator.ledger.map(({ segments, media, kind }) => {
    if (kind === 'file') return `[${media[0]?.name ?? ''}]`
    return segments.map(({ type, data }) => {
      if (type === 'text') return String(data.text)
      return type === 'at' ? `@${String(data.qq)}` : type === 'reply' ? `>${String(data.id)}` : `[${type}]`
    }).join('')
  })
}
