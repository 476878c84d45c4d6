import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, other, relayWith } from '../deliveries/support'
import { until } from '../../support/until'
import { gaps, waiting } from '../reload/support'
import { sends } from './support'

const path = null

describe('messages to one target', () => {
  test('keep their distance, also within a batch and between attempts', async t => {
    const relay = await relayWith(t, { path, config: { chatSendInterval: 0.25, chatApiMaxRetries: 1 } })
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const batch = { group_id: group, messages: [{ msg: 'a' }, { type: 'file', url: 'base64://YQ==' }] }
    await Promise.all([relay.post(batch), relay.post({ group_id: group, msg: 'b' }), relay.post({ group_id: group, msg: 'c' })])
    assert.equal(sends(relay).length, 5)
    for (const gap of gaps(relay)) assert(gap >= 249, `${gap} ms`)
  })

  test('are refused when too many wait', async t => {
    const relay = await relayWith(t, { path, config: { chatQueueLimit: 2 } })
    relay.simulator.fault({ fault: { kind: 'late', ms: 500 } })
    const first = relay.post({ group_id: group, msg: 'first' })
    await until('it is under way', () => sends(relay).length === 1)
    const answers = await Promise.all(Array.from({ length: 5 }, () => relay.post({ group_id: group, msg: 'more' })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 429, 429, 429])
    const refused = answers.find(({ status }) => status === 429)
    assert.equal(refused?.headers.get('retry-after'), '1')
    assert.equal(refused.headers.get('relay-outcome'), 'unsent')
    assert.equal((await first).status, 200)
    assert.equal(relay.simulator.ledger.length, 3)
  })

  test('are taken out when their caller goes away, also while only the interval is waited out', async t => {
    const relay = await relayWith(t, { path, config: { chatSendInterval: 0.5 } })
    assert.equal((await relay.post({ group_id: group, msg: 'first' })).status, 200)
    const gone = new AbortController()
    const request = relay.request('/webhook', { method: 'POST', body: JSON.stringify({ group_id: group, msg: 'gone' }), signal: gone.signal })
    await until('it waits', async () => await waiting(relay) === 1)
    gone.abort()
    await assert.rejects(request)
    await until('it does not', async () => await waiting(relay) === 0)
    assert.equal((await relay.post({ group_id: group, msg: 'last' })).status, 200)
    assert.deepEqual(relay.texts(), ['first', 'last'])
  })
})

describe('a target that keeps failing', () => {
  test('is left alone for a while, and then tried with one request', async t => {
    const relay = await relayWith(t, { path, config: { chatPauseAfter: 2, chatPauseTime: 0.5, chatApiMaxRetries: 0 } })
    const failing = relay.simulator.fault({ fault: { kind: 'not-member' }, target: group, times: Infinity })
    const send = () => relay.post({ group_id: group, msg: 'hello' })
    assert.deepEqual([(await send()).status, (await send()).status], [502, 502])
    const paused = await send()
    assert.equal(paused.status, 503)
    assert.equal(paused.headers.get('retry-after'), '1')
    assert.equal(paused.headers.get('relay-outcome'), 'unsent')
    assert.equal(sends(relay).length, 2)
    assert.equal((await relay.post({ group_id: other, msg: 'other' })).status, 200)
    const { data } = await relay.ask('/statusz')
    assert.match(JSON.stringify(data.queues), /paused_until/)
    failing.remove()
    await until('the probe goes through', async () => (await send()).status === 200)
    assert.equal((await send()).status, 200)
  })

  test('does not count a bad picture, and counts a batch once', async t => {
    const relay = await relayWith(t, { path, config: { chatPauseAfter: 2, chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: 3 })
    for (let i = 0; i < 3; i++) assert.equal((await relay.post({ group_id: group, type: 'image', url: 'base64://YQ==' })).status, 502)
    relay.simulator.removeBot(group)
    const batch = { group_id: group, messages: [{ msg: 'a' }, { type: 'file', url: 'base64://YQ==' }, { type: 'file', url: 'base64://Yg==' }] }
    assert.equal((await relay.post(batch)).data.failed, 3)
    assert.equal((await relay.post(batch)).data.failed, 3)
    assert.equal((await relay.post(batch)).status, 503)
  })
})
