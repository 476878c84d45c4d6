import assert from 'node:assert/strict'
import { fieldsOf, type JsonObject } from '../../src/lib/shape'
import { failureOf } from '../integration/webhook/support'
import { read, type Reply, type TestRelay } from '../support/relay'
import { until } from '../support/until'

/** An answer, read. */
export interface Answer {
  status: number
  headers: Headers
  msg: string
  data: JsonObject
}

/** What a test asks of its relay. */
export interface Caller {
  ask: (path: string, init?: RequestInit) => Promise<Answer>
  /** `POST /webhook`. */
  send: (body: object, headers?: Record<string, string>) => Promise<Answer & Reply>
  /** Sends what has to fail, by default with a 502, and gives its outcome and its reason. */
  fail: (body: object, expected?: number) => Promise<string>
  /** Sends something later, and gives the ID of its delivery. */
  queue: (body: object) => Promise<string>
  /** Resolves when the delivery is in this state, or one of these. */
  reaches: (id: string, ...states: string[]) => Promise<JsonObject>
}

/** @param to where everything goes unless it says otherwise; a function names another chat each time */
export function callerOf(relay: () => Pick<TestRelay, 'request'>, to: string | (() => string)): Caller {
  const ask: Caller['ask'] = async (path, init) => {
    const response = await relay().request(path, init)
    const { msg, data } = fieldsOf(await response.json())
    return { status: response.status, headers: response.headers, msg: String(msg), data: fieldsOf(data) }
  }
  const post = (body: object, headers: Record<string, string>): [path: string, init: RequestInit] => {
    return ['/webhook', { method: 'POST', body: JSON.stringify({ to: typeof to === 'string' ? to : to(), ...body }), headers }]
  }
  const send: Caller['send'] = async (body, headers = {}) => {
    const reply = await read(await relay().request(...post(body, headers)))
    return { ...reply, msg: reply.body.msg, data: fieldsOf(reply.body.data) }
  }
  return {
    ask,
    send,
    async fail(body, expected = 502) {
      const answer = await send(body)
      return `${answer.headers.get('relay-outcome') ?? ''}: ${failureOf(answer, expected)}`
    },
    async queue(body) {
      const { status, data, msg } = await ask(...post(body, { prefer: 'respond-async' }))
      assert.equal(status, 202, msg)
      return String(data.delivery_id)
    },
    async reaches(id, ...states) {
      let delivery: JsonObject = {}
      await until(`the delivery is ${states.join(' or ')}`, async () => {
        delivery = (await ask(`/deliveries/${id}`)).data
        return states.includes(String(delivery.state))
      })
      return delivery
    },
  }
}

/** The IDs of what was sent. */
export function idsOf({ status, msg, data: { message_ids: ids } }: Answer): unknown[] {
  assert.equal(status, 200, msg)
  assert(Array.isArray(ids))
  return ids
}

/** The status, and what the relay says of the outcome. */
export function outcomeOf({ status, headers }: Answer): unknown[] {
  return [status, headers.get('relay-outcome')]
}
