import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isObject } from '../../../src/lib/shape'
import { upload } from '../webhook/support'
import { until } from '../../support/until'
import { failStatements, group, later, other, relayWith, slowDown, takeOffline, useStored, type StoredRelay } from './support'

const hello = { group_id: group, msg: 'hello' }

/** For tests that need no settings of their own. */
let relay: StoredRelay
useStored({ config: { chatApiMaxRetries: 0 } }, each => {
  relay = each
})

describe('a deferred request', () => {
  test('is refused where expires_in is malformed', async () => {
    for (const value of [0, -1, '5', 2_592_001, true, {}]) {
      assert.equal((await relay.post({ ...hello, expires_in: value })).status, 400, JSON.stringify(value))
    }
  })

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
      const response = await own.request('/relay/webhook', { method: 'POST', body: JSON.stringify(hello), headers: later })
      assert.equal(response.status, 202)
      assert.equal(response.headers.get('preference-applied'), 'respond-async')
      const body: unknown = await response.json()
      const id = response.headers.get('x-request-id')
      assert.deepEqual(body, { code: 0, msg: 'ok', data: { delivery_id: id, state: 'queued' } })
      assert.equal(response.headers.get('location'), `/relay/deliveries/${id}`)
      await until('it was delivered', () => own.texts().includes('hello'))
    })

    test('needs a database, and says what to add', async t => {
      const own = await relayWith(t, { path: null })
      const { status, msg } = await own.post(hello, later)
      assert.equal(status, 501)
      assert.match(msg, /database-sqlite/)
      assert.deepEqual(own.texts(), [])
      assert.equal((await own.ask('/statusz')).data.outbox, null)
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

describe('the capacity of a queue', { concurrency: 4 }, () => {
  test('holds for what waits for a bot, however many come at once', async t => {
    const relay = await relayWith(t, { config: { chatQueueLimit: 3 } })
    const online = await takeOffline(relay)
    slowDown(relay)
    const answers = await Promise.all(Array.from({ length: 8 }, () => relay.post(hello, later)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 202, 202, 429, 429, 429, 429, 429])
    const refused = answers.find(({ status }) => status === 429)
    assert.equal(refused?.headers.get('retry-after'), '1')
    assert.equal(refused.headers.get('relay-outcome'), 'unsent')
    assert.equal((await relay.post({ ...hello, group_id: other }, later)).status, 202)
    await online()
    await until('they are delivered', () => relay.texts().length === 4)
  })
})

describe('expires_in', () => {
  test('bounds the wait for a turn of a caller who waits', async () => {
    relay.simulator.fault({ fault: { kind: 'late', ms: 800 } })
    const first = relay.post(hello)
    await until('it is under way', () => relay.simulator.calls.length > 0)
    const { status, headers, msg } = await relay.post({ ...hello, msg: 'late', expires_in: 0.1 })
    assert.equal(status, 503)
    assert.equal(headers.get('relay-outcome'), 'unsent')
    assert.match(msg, /expired/)
    assert.equal((await first).status, 200)
    await relay.post({ ...hello, msg: 'in time', expires_in: 5 })
    assert.deepEqual(relay.texts(), ['hello', 'in time'])
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

describe('a database that fails', { concurrency: 4 }, () => {
  const parts = [['storing', /^INSERT/], ['reading', /^SELECT/], ['changing', /^UPDATE/]] as const

  for (const [what, pattern] of parts) {
    test(`while ${what} loses nothing, doubles nothing and tells the log no message`, async t => {
      const relay = await relayWith(t)
      const online = await takeOffline(relay)
      const before = await relay.queue('the secret before')
      const restore = failStatements(relay, sql => pattern.test(sql) && sql.includes('message_relay_'))
      const during = await relay.post({ ...hello, msg: 'the secret meanwhile' }, later)
      assert.equal(during.status, what === 'storing' ? 503 : 202)
      if (what === 'storing') {
        assert.match(during.msg, /database/)
        assert.equal(during.headers.get('relay-outcome'), 'unsent')
      }
      const keyed = await relay.post({ ...hello, group_id: other, msg: 'the secret key' }, { 'idempotency-key': 'a' })
      assert.equal(keyed.status, 503)
      await online()
      const unkeyed = await relay.post({ ...hello, group_id: other, msg: 'sent without it' })
      assert.equal(unkeyed.status, 200)
      restore()
      await relay.reaches(before, 'sent')
      const delivered = ['sent without it', 'the secret before', ...during.status === 202 ? ['the secret meanwhile'] : []]
      await until('all are delivered', () => relay.texts().length === delivered.length)
      assert.deepEqual(relay.texts().sort(), delivered.sort())
      assert.deepEqual(relay.logs.filter(line => line.includes('secret')), [])
    })
  }
})
