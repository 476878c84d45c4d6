import assert from 'node:assert/strict'
import { fieldsOf, type JsonObject } from '../../src/message/parse'
import type { TestRelay } from '../support/relay'
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
  send: (body: JsonObject, headers?: Record<string, string>) => Promise<Answer>
  /** Sends what has to fail, by default with a 502, and gives its outcome and its reason. */
  fail: (body: JsonObject, expected?: number) => Promise<string>
  /** Sends something later, and gives the ID of its delivery. */
  queue: (body: JsonObject) => Promise<string>
  /** Resolves when the delivery is in this state, or one of these. */
  reaches: (id: string, ...states: string[]) => Promise<JsonObject>
}

/** @param to where everything goes unless it says otherwise */
export function callerOf(relay: () => Pick<TestRelay, 'request'>, to: string): Caller {
  const ask: Caller['ask'] = async (path, init) => {
    const response = await relay().request(path, init)
    const { msg, data } = fieldsOf(await response.json())
    return { status: response.status, headers: response.headers, msg: String(msg), data: fieldsOf(data) }
  }
  const send: Caller['send'] = (body, headers = {}) => ask('/webhook', { method: 'POST', body: JSON.stringify({ to, ...body }), headers })
  return {
    ask,
    send,
    async fail(body, expected = 502) {
      const { status, headers, msg } = await send(body)
      assert.equal(status, expected, msg)
      return `${headers.get('relay-outcome') ?? ''}: ${msg}`
    },
    async queue(body) {
      const { status, data, msg } = await send(body, { prefer: 'respond-async' })
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
