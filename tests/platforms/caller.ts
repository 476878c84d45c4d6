import assert from 'node:assert/strict'
import { failureOf } from '../integration/webhook/support'
import { callerOf as plainCallerOf, type Caller } from '../support/caller'
import { read, type Reply, type TestRelay } from '../support/relay'

/** A caller whose messages go to one place. */
export interface PlatformCaller extends Pick<Caller, 'ask' | 'reaches'> {
  /** `POST /webhook`. */
  send: (body: object, headers?: Record<string, string>) => Promise<Reply>
  /** Sends what has to fail, by default with a 502, and gives its outcome and its reason. */
  fail: (body: object, expected?: number) => Promise<string>
  /** Sends something later, and gives the ID of its delivery. */
  queue: (body: object) => Promise<string>
}

/** @param to where everything goes unless it says otherwise; a function names another chat each time */
export function callerOf(relay: () => Pick<TestRelay, 'request'>, to: string | (() => string)): PlatformCaller {
  const { ask, accept, reaches } = plainCallerOf((...args) => relay().request(...args))
  const addressed = (body: object): object => ({ to: typeof to === 'string' ? to : to(), ...body })
  const send: PlatformCaller['send'] = async (body, headers = {}) => (
    read(await relay().request('/webhook', { method: 'POST', body: JSON.stringify(addressed(body)), headers }))
  )
  return {
    ask,
    send,
    reaches,
    queue: body => accept(addressed(body)),
    async fail(body, expected = 502) {
      const answer = await send(body)
      return `${answer.headers.get('relay-outcome') ?? ''}: ${failureOf(answer, expected)}`
    },
  }
}

/** The IDs of what was sent. */
export function idsOf({ status, msg, data: { message_ids: ids } }: Reply): unknown[] {
  assert.equal(status, 200, msg)
  assert(Array.isArray(ids))
  return ids
}

/** The status, and what the relay says of the outcome. */
export function outcomeOf({ status, headers }: Reply): unknown[] {
  return [status, headers.get('relay-outcome')]
}
