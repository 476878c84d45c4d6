import assert from 'node:assert/strict'
import { isObject, listOf, type JsonObject } from '../../src/lib/shape'
import { read, type Reply, type TestRelay } from './relay'
import { until } from './until'

/** A delivery in the format of the API. */
export interface Shown extends JsonObject {
  id: string
  state: string
  results: readonly JsonObject[]
  attempts: number
}

/** The requests that tests make. */
export interface Caller {
  ask: (path: string, method?: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>
  /** `POST /webhook`. */
  post: (body: unknown, headers?: Record<string, string>) => Promise<Reply>
  /** Posts a deferred message and returns the ID of its delivery. */
  accept: (body: object) => Promise<string>
  show: (id: string) => Promise<Shown>
  list: (query?: string) => Promise<Shown[]>
  /** Resolves when the delivery is in one of these states. */
  reaches: (id: string, ...states: string[]) => Promise<Shown>
}

export function callerOf(request: TestRelay['request']): Caller {
  const ask: Caller['ask'] = async (path, method = 'GET', body, headers = {}) => (
    read(await request(path, { method, headers, ...body !== undefined && { body: JSON.stringify(body) } }))
  )
  const post: Caller['post'] = (body, headers) => ask('/webhook', 'POST', body, headers)
  const show: Caller['show'] = async id => {
    const { status, data, msg } = await ask(`/deliveries/${id}`)
    assert.equal(status, 200, msg)
    return toShown(data)
  }
  return {
    ask,
    post,
    show,
    async accept(body) {
      const { status, data, msg } = await post(body, { prefer: 'respond-async' })
      assert.equal(status, 202, msg)
      return String(data.delivery_id)
    },
    async list(query = '') {
      const { status, data, msg } = await ask(`/deliveries${query}`)
      assert.equal(status, 200, msg)
      assert(Array.isArray(data.deliveries))
      return data.deliveries.map(toShown)
    },
    async reaches(id, ...states) {
      let shown = await show(id)
      await until(`the delivery is ${states.join(' or ')}`, async () => states.includes((shown = await show(id)).state))
      return shown
    },
  }
}

function toShown(value: unknown): Shown {
  assert(isShown(value), JSON.stringify(value))
  return value
}

function isShown(value: unknown): value is Shown {
  return isObject(value) && typeof value.id === 'string' && typeof value.state === 'string' && listOf(isObject)(value.results)
}
