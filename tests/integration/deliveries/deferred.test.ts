import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isObject } from '../../../src/lib/shape'
import { upload } from '../webhook/support'
import { failFiles } from '../../support/data-file'
import { until } from '../../support/until'
import { group, later, other, relayWith, takeOffline, useStored } from './support'

const hello = { group_id: group, msg: 'hello' }

/** For tests that need no settings of their own. */
const relay = useStored({ config: { chatApiMaxRetries: 0 } })

describe('a deferred request', () => {
  test('for several targets is answered with the state of each', async () => {
    const { status, data } = await relay.post({ to: [`group:${group}`, 'group:nobody', `group:${other}`], msg: 'hello' }, later)
    assert.equal(status, 200)
    assert(Array.isArray(data.deliveries))
    const entries = data.deliveries.filter(entry => isObject(entry))
    assert.deepEqual(entries.map(({ success, state, code }) => [success, state, code]), [
      [true, 'queued', undefined], [false, undefined, 400], [true, 'queued', undefined],
    ])
    await until('both were delivered', () => relay.texts().length === 2)
  })

  test('waits for the real answer as long as it is asked to', async () => {
    const { status, data, headers } = await relay.post(hello, { prefer: 'respond-async, wait=5' })
    assert.equal(status, 200)
    assert.equal(headers.get('preference-applied'), null)
    assert.equal(headers.get('relay-outcome'), 'sent')
    assert.deepEqual(data.message_ids, [String(relay.simulator.ledger[0]?.messageId)])
    const batch = await relay.post({ group_id: group, messages: [{ msg: 'a' }, { type: 'x' }] }, { prefer: 'wait=5, respond-async' })
    assert.deepEqual([batch.status, batch.data.total, batch.data.success, batch.data.failed], [200, 2, 1, 1])
  })

  test('gets a refusal as its real answer', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
    const { status, headers } = await relay.post(hello, { prefer: 'respond-async, wait=5' })
    assert.equal(status, 502)
    assert.equal(headers.get('relay-outcome'), 'refused')
    assert.equal(headers.get('preference-applied'), null)
    assert.match(relay.logs.join('\n'), / warn .* deferred group:123456 failed after 1 attempt: the platform refused the message/)
  })

  test('is answered as accepted when the real answer is not there in time', async () => {
    relay.simulator.fault({ fault: { kind: 'late', ms: 1_200 } })
    const { status, headers, data } = await relay.post(hello, { prefer: 'respond-async, wait=1' })
    assert.equal(status, 202)
    assert.equal(headers.get('preference-applied'), 'respond-async')
    await relay.reaches(String(data.delivery_id), 'sent')
  })

  describe('with settings of its own', { concurrency: 4 }, () => {
    test('is answered before it is delivered, and says where its state is found', async t => {
      const own = await relayWith(t, { config: { path: '/relay' } })
      own.simulator.fault({ fault: { kind: 'late', ms: 300 } })
      const ask = () => own.request('/relay/webhook', {
        method: 'POST', body: JSON.stringify(hello), headers: { ...later, 'idempotency-key': 'a' },
      })
      const response = await ask()
      assert.equal(response.status, 202)
      assert.equal(response.headers.get('preference-applied'), 'respond-async')
      const body: unknown = await response.json()
      const id = response.headers.get('x-request-id')
      assert.deepEqual(body, { code: 0, msg: 'ok', data: { delivery_id: id, state: 'queued' } })
      assert.equal(response.headers.get('location'), `/relay/deliveries/${id}`)
      const { status, headers } = await ask()
      const told = ['idempotent-replayed', 'location'].map(name => headers.get(name))
      assert.deepEqual([status, ...told], [202, 'true', response.headers.get('location')])
      await until('it was delivered', async () => (await ask()).status === 200)
      assert.equal((await ask()).headers.get('preference-applied'), null)
      assert.deepEqual(own.texts(), ['hello'])
    })

    test('is a 429 that says when to come again where too many wait for its target', async t => {
      const own = await relayWith(t, { config: { chatQueueLimit: 1 } })
      await takeOffline(own)
      await own.queue('waits')
      const { status, headers } = await own.post(hello, later)
      assert.deepEqual([status, headers.get('retry-after'), headers.get('relay-outcome')], [429, '1', 'unsent'])
    })

    test('that waits for its real answer is told that it was accepted when the relay stops', async t => {
      const own = await relayWith(t)
      await takeOffline(own)
      const answer = own.post(hello, { prefer: 'respond-async, wait=600' })
      await until('it is stored', async () => (await own.list('?state=queued')).length === 1)
      own.unload()
      assert.equal((await answer).status, 202)
    })
  })
})

describe('a file that a deferred delivery needs', () => {
  test('is not removed while it waits', async t => {
    const path = await upload(relay, 'report.txt', 'report')
    const online = await takeOffline(relay)
    const { data } = await relay.post({ group_id: group, type: 'file', url: path, expires_in: 3 * 24 * 60 * 60 }, later)
    const now = Date.now()
    t.mock.method(Date, 'now', () => now + 2 * 24 * 60 * 60 * 1000)
    await relay.reload()
    await until('it is gone on with', async () => (await relay.ask('/deliveries')).status === 200)
    t.mock.restoreAll()
    await online()
    await relay.reaches(String(data.delivery_id), 'sent')
    assert.equal(relay.simulator.ledger[0]?.media[0]?.size, 6)
  })

  test('has to be there, or only its item of a batch fails', async () => {
    const url = '11111111-1111-4111-8111-111111111111/gone.txt'
    assert.equal((await relay.post({ group_id: group, type: 'file', url }, later)).status, 404)
    const { status, data } = await relay.post({ group_id: group, messages: [{ msg: 'a' }, { type: 'file', url }] }, later)
    assert.equal(status, 202)
    const { results } = await relay.reaches(String(data.delivery_id), 'failed')
    assert.deepEqual(results.map(({ success, code }) => success === true || code), [true, 404])
  })
})

test('a data file that fails while storing loses nothing, doubles nothing and tells the log no message', async t => {
  const relay = await relayWith(t)
  const online = await takeOffline(relay)
  const before = await relay.queue('the secret before')
  const restore = failFiles('run')
  const during = await relay.post({ ...hello, msg: 'the secret meanwhile' }, later)
  assert.deepEqual([during.status, during.headers.get('relay-outcome')], [503, 'unsent'])
  assert.match(during.msg, /cannot use its data file/)
  const keyed = await relay.post({ ...hello, group_id: other, msg: 'the secret key' }, { 'idempotency-key': 'a' })
  assert.equal(keyed.status, 503)
  await online()
  const unkeyed = await relay.post({ ...hello, group_id: other, msg: 'sent without it' })
  assert.equal(unkeyed.status, 200)
  restore()
  await relay.reaches(before, 'sent')
  assert.deepEqual(relay.texts().sort(), ['sent without it', 'the secret before'])
  assert.deepEqual(relay.logs.filter(line => line.includes('secret')), [])
})
