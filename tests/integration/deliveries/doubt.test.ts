import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../../src'
import { sends } from '../webhook/support'
import { until } from '../../support/until'
import { group, later, other, relayWith, type StoredRelay } from './support'

const key = { 'idempotency-key': 'k' }
/** One call, which settles at once when it is over. */
const once = { chatApiTimeout: 1, chatSettleTime: 1, chatApiMaxRetries: 0, chatRetryUnanswered: false }

/** A relay that has sent something, and that is so old that what an earlier process had called would have settled. */
async function settledRelay(t: TestContext, config: Config = once): Promise<StoredRelay> {
  const relay = await relayWith(t, { config })
  await relay.post({ group_id: group, msg: 'before' })
  await delay(1_100)
  return relay
}

/** The ID of a request whose answer holds none. */
async function send(relay: StoredRelay, body: object, headers: Record<string, string>): Promise<string> {
  const response = await relay.request('/webhook', { method: 'POST', headers, body: JSON.stringify({ group_id: group, ...body }) })
  return response.headers.get('x-request-id') ?? ''
}

describe('what may still arrive', { concurrency: true }, () => {
  test('as a text that is delivered later holds its queue while it is open, however often it could not leave before', async t => {
    const relay = await settledRelay(t, { ...once, chatApiTimeout: 1, chatApiMaxRetries: 1 })
    let held = 0
    t.after(relay.app.on('before-send', () => held++ === 0 ? new Promise<never>(() => undefined) : undefined))
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /^send_/ })
    const ids = [await relay.queue('first'), await relay.queue('second')]
    for (const id of ids) await relay.reaches(id, 'sent')
    assert.deepEqual(relay.texts(), ['before', 'first', 'second'])
    assert.equal(sends(relay).length, 4)
  })

  test('of an event that is told again in other words is found as it was told first', async t => {
    const relay = await settledRelay(t)
    relay.simulator.fault({ fault: { kind: 'lost-answer' }, action: /^send_/ })
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: 2 })
    const tell = async (title: string): Promise<number> => (await relay.request(`/hooks/github/group:${group}`, {
      method: 'POST',
      headers: { 'x-github-event': 'issues', 'x-github-delivery': 'd-1', 'content-type': 'application/json' },
      body: JSON.stringify({ action: 'opened', issue: { number: 1, title }, repository: { full_name: 'a/b' }, sender: { login: 'eva' } }),
    })).status
    assert.equal(await tell('first title'), 200)
    const told = (): string[] => relay.texts().filter(text => text !== 'before')
    await until('it is in the chat', () => told().length === 1)
    await until('it is known to be there', async () => await tell('edited title') === 200 && (await relay.list()).every(({ state }) => state === 'sent'))
    assert.match(told().join(), /^[^,]*first title[^,]*$/)
  })

  test('nothing is looked for that is in no doubt', async t => {
    const relay = await relayWith(t, { config: once })
    await relay.post({ group_id: group, msg: 'before' })
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /^send_/ })
    const file = { type: 'file', url: 'base64://YQ==', filename: 'a.log' }
    const id = await send(relay, { messages: [{ msg: 'text' }, file, file] }, later)
    await relay.reaches(id, 'unanswered')
    const looks = (): number => relay.simulator.calls.filter(({ action }) => action.includes('history')).length
    await until('it has settled', async () => {
      const before = looks()
      const { status } = await relay.ask(`/deliveries/${id}/retry`, 'POST')
      if (status === 409) return false
      assert.equal(status, 202)
      await relay.reaches(id, 'sent')
      assert.equal(looks() - before, 1)
      return true
    })
    assert.deepEqual(relay.texts(), ['before', '', '', 'text'])
  })

  test('each of several targets is told when its key may be asked again', async t => {
    const relay = await relayWith(t, { config: { chatApiTimeout: 0.5, chatSettleTime: 30, chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'silent' }, times: 2 })
    const { data } = await relay.post({ to: [`group:${group}`, `group:${other}`], msg: 'hello' }, key)
    assert(Array.isArray(data.deliveries))
    const told = data.deliveries.map((entry: Record<string, unknown>) => [entry.code, Number(entry.retry_after) > 20])
    assert.deepEqual(told, [[504, true], [504, true]])
  })
})
