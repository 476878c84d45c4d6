import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../../support/until'
import { group, later } from './support'
import { victim } from './victim'

const hour = 60 * 60 * 1000
const year = 365 * 24 * hour

const text = (msg: string, more: object = {}): object => ({ group_id: group, msg, ...more })

describe('when the clock of the machine is set', { concurrency: 2 }, () => {
  for (const ahead of [year, hour, -hour]) {
    test(`after it was ${ahead / hour} hours ahead, what was accepted is delivered in its order by the next process`, async t => {
      const relay = await victim(t, {}, ahead)
      await relay.simulator.goOffline()
      for (const msg of ['one', 'two']) assert.equal((await relay.post(text(msg), later)).status, 202)
      await relay.kill()
      relay.setClock(0)
      await relay.start()
      assert.equal((await relay.post(text('three'), later)).status, 202)
      await relay.simulator.goOnline()
      await until('all are delivered', () => relay.texts().length === 3, 20_000)
      assert.deepEqual(relay.texts(), ['one', 'two', 'three'])
      await until('that is written down', async () => (await relay.states()).join() === 'sent,sent,sent')
    })

    test(`after it was ${ahead / hour} hours ahead, what was accepted expires in its time in the next process`, async t => {
      const relay = await victim(t, {}, ahead)
      await relay.simulator.goOffline()
      assert.equal((await relay.post(text('late', { expires_in: 8 }), later)).status, 202)
      assert.equal((await relay.post(text('in time'), later)).status, 202)
      await relay.kill()
      relay.setClock(0)
      await relay.start()
      await until('it has expired', async () => (await relay.states()).join() === 'expired,queued', 20_000)
      await relay.simulator.goOnline()
      await until('the other is delivered', () => relay.texts().length === 1, 20_000)
      assert.deepEqual(relay.texts(), ['in time'])
    })
  }

  for (const by of [year, -year]) {
    test(`by ${by / hour} hours, nothing expires that should not, and what should does`, async t => {
      const relay = await victim(t)
      await relay.simulator.goOffline()
      assert.equal((await relay.post(text('late', { expires_in: 8 }), later)).status, 202)
      assert.equal((await relay.post(text('in time'), later)).status, 202)
      relay.setClock(by)
      assert.equal((await relay.post(text('after'), later)).status, 202)
      await until('it has expired', async () => (await relay.states()).includes('expired'), 20_000)
      await relay.simulator.goOnline()
      await until('the others are delivered', () => relay.texts().length === 2, 20_000)
      assert.deepEqual(relay.texts(), ['in time', 'after'])
    })

    test(`by ${by / hour} hours, a key is still known, in this process and in the next`, async t => {
      const relay = await victim(t)
      const key = { 'idempotency-key': 'a' }
      assert.equal((await relay.post(text('once'), key)).status, 200)
      relay.setClock(by)
      assert.equal((await relay.post(text('once'), key)).headers.get('idempotent-replayed'), 'true')
      assert((await (await relay.get('/deliveries')).text()).includes(String(new Date(Date.now() + by).getUTCFullYear())))
      // The clock is looked at every five seconds, right before what expires.
      await relay.simulator.goOffline()
      assert.equal((await relay.post(text('late', { expires_in: 1 }), later)).status, 202)
      await until('the clock was looked at', async () => (await relay.states()).includes('expired'), 20_000)
      await relay.kill()
      await relay.simulator.goOnline()
      await relay.start()
      await relay.online()
      assert.equal((await relay.post(text('once'), key)).headers.get('idempotent-replayed'), 'true')
      assert.deepEqual(relay.texts(), ['once'])
    })
  }

  for (const [when, [before, after], end, more] of [
    ['all the time', [8 * hour, 8 * hour], 'sent', {}], ['until then', [year, 0], 'sent', {}],
    ['from then on', [0, year], 'unanswered', { chatRetryUnanswered: false }],
  ] as const) {
    test(`ahead ${when}, a message whose answer is lost is not sent again, and is ${end}`, async t => {
      const relay = await victim(t, { chatApiTimeout: 1, chatSettleTime: 1, chatApiMaxRetries: 1, ...more }, before)
      assert.equal((await relay.post(text('one'))).status, 200)
      relay.setClock(after)
      relay.simulator.fault({ fault: { kind: 'lost-answer' }, action: /^send_/ })
      assert.equal((await relay.post(text('two'), later)).status, 202)
      await until(`it is ${end}`, async () => (await relay.states()).join() === `sent,${end}`, 20_000)
      assert.deepEqual(relay.texts(), ['one', 'two'])
    })
  }

  test('ahead, nothing is sent again by the next process, to which nothing shows that it is', async t => {
    const relay = await victim(t, { chatApiTimeout: 1, chatSettleTime: 1, chatApiMaxRetries: 1, chatRetryUnanswered: false }, 8 * hour)
    relay.simulator.fault({ fault: { kind: 'lost-answer' }, action: /^send_/ })
    assert.equal((await relay.post(text('once'), later)).status, 202)
    await until('it has arrived', () => relay.texts().length === 1)
    await relay.kill()
    await relay.start()
    await until('it is given up', async () => (await relay.states()).join() === 'unanswered', 20_000)
    assert.deepEqual(relay.texts(), ['once'])
  })

  test('back during a send, its caller is answered, and its queue goes on', async t => {
    const relay = await victim(t, { chatApiTimeout: 2 })
    relay.simulator.fault({ fault: { kind: 'late', ms: 500, delivered: 'then' } })
    const slow = relay.post(text('slow'))
    await relay.simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    relay.setClock(-hour)
    assert.equal((await slow).status, 200)
    assert.equal((await relay.post(text('next'))).status, 200)
    assert.deepEqual(relay.texts(), ['slow', 'next'])
  })

  test('back after a kill, a key that it has interrupted may be asked at once', async t => {
    const relay = await victim(t, { chatApiTimeout: 1 })
    const key = { 'idempotency-key': 'a' }
    relay.simulator.fault({ fault: { kind: 'silent' } })
    const interrupted = relay.post(text('hello'), key).catch(() => undefined)
    await relay.simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    await relay.kill()
    await interrupted
    relay.setClock(-hour)
    await relay.start()
    await relay.online()
    assert.notEqual((await relay.post(text('hello'), key)).status, 409)
  })
})
