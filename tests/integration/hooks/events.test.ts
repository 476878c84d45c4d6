import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startRelay, useRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { relayWith } from '../deliveries/support'
import { group, post, texts, type HookReply } from './support'

let events = 0

const relay = useRelay({ config: { targets: { ops: `group:${group}`, all: [`group:${group}`, 'group:654321'] }, chatApiMaxRetries: 0 } })

/** Tells of an event, which its key names. */
function tell(key: string, text: string, path = 'message/ops', to: TestRelay = relay): Promise<HookReply> {
  return post(to, path, { text }, { headers: { 'content-type': 'application/json', 'idempotency-key': key } })
}

const newKey = (): string => `event-${++events}`

describe('the same event', () => {
  test('is sent once, whatever else it says the second time', async () => {
    const key = newKey()
    const first = await tell(key, 'a')
    const second = await tell(key, 'b')
    assert.deepEqual([first.status, second.status], [200, 200])
    assert.equal(second.data.delivery_id, first.data.delivery_id)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(texts(relay), ['a'])
  })

  test('is another one at another address', async () => {
    const key = newKey()
    for (const path of ['message/ops', 'message/ops?lang=en-US', `message/group:${group}`]) assert.equal((await tell(key, 'a', path)).status, 200)
    assert.equal(texts(relay).length, 3)
  })

  test('is sent once to each of several targets', async () => {
    const key = newKey()
    await tell(key, 'a', 'message/all')
    const { data } = await tell(key, 'a', 'message/all')
    assert.deepEqual([data.total, data.success], [2, 2])
    assert.match(JSON.stringify(data.deliveries), /"replayed":true.*"replayed":true/)
    assert.equal(texts(relay).length, 2)
  })

  test('is a success while the first is under way, within its wait and after it', async () => {
    const key = newKey()
    relay.simulator.fault({ fault: { kind: 'late', ms: 1600 } })
    const first = tell(key, 'a')
    await until('the first is under way', () => relay.simulator.pending.length === 1)
    const second = tell(key, 'a')
    assert.deepEqual((await Promise.all([first, second])).map(({ status }) => status), [200, 200])
    const third = await tell(key, 'a')
    assert.deepEqual([third.status, third.data.delivery_id], [200, (await first).data.delivery_id])
    await until('it is sent', () => texts(relay).length === 1)
    await until('it is recorded', async () => (await tell(key, 'a')).data.state === 'sent')
    assert.equal(texts(relay).length, 1)
  })

  test('is sent the next time where it was not the first time', async () => {
    const key = newKey()
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const [first, second] = [await tell(key, 'a'), await tell(key, 'a')]
    assert.deepEqual([first.status, second.status], [200, 200])
    assert.notEqual(first.data.delivery_id, second.data.delivery_id)
    assert.deepEqual(texts(relay), ['a'])
  })

  test('is a group of alerts for five minutes from the first time, and then another one', async t => {
    const said = {
      status: 'firing', groupKey: '{}:{}',
      alerts: [{ status: 'firing', fingerprint: 'a', startsAt: '2026-11-22T01:02:03Z', labels: { alertname: 'HostDown' }, annotations: {} }],
    }
    const tellAlerts = async (after: number): Promise<unknown> => {
      const { now } = Date
      const shifted = t.mock.method(Date, 'now', () => now() + after)
      const { status, data } = await post(relay, 'alertmanager/ops', said)
      shifted.mock.restore()
      assert.equal(status, 200)
      return data.delivery_id
    }
    const first = await tellAlerts(0)
    // The second time does not begin the five minutes again.
    for (const after of [200_000, 299_000]) assert.equal(await tellAlerts(after), first)
    assert.notEqual(await tellAlerts(301_000), first)
    assert.equal(texts(relay).length, 2)
  })

  test('is sent once, also when it is told of twice at a time', async t => {
    const stored = await relayWith(t)
    stored.bot.status = Universal.Status.RECONNECT
    const key = newKey()
    const told = await Promise.all([1, 2, 3].map(() => tell(key, 'a', `message/group:${group}`, stored)))
    assert.deepEqual(told.map(({ status, data }) => [status, data.state]), Array.from({ length: 3 }, () => [200, 'queued']))
    assert.equal(new Set(told.map(({ data }) => data.delivery_id)).size, 1)
    stored.bot.status = Universal.Status.ONLINE
    await stored.reaches(String(told[0]?.data.delivery_id), 'sent')
    assert.deepEqual(stored.texts(), ['a'])
  })
})

describe('a hook', () => {
  test('that is under way when the relay stops is sent before it has stopped', async () => {
    const own = await startRelay()
    own.simulator.fault({ fault: { kind: 'late', ms: 1500 } })
    const { status, data } = await post(own, `message/group:${group}`, { text: 'a' }, { isHasty: true })
    assert.deepEqual([status, data.state], [200, 'queued'])
    own.unload()
    await until('it has arrived', () => texts(own).length === 1)
    await own.stop()
  })

  test('that waits for its turn is answered at once when the relay stops', async () => {
    const own = await startRelay({ config: { chatSendInterval: 30 } })
    await post(own, `message/group:${group}`, { text: 'a' })
    const second = post(own, `message/group:${group}`, { text: 'b' }, { isHasty: true })
    await until('it waits', async () => (await (await own.request('/statusz')).text()).includes('"waiting":1'))
    assert.deepEqual([(await second).status, (await second).data.state], [200, 'queued'])
    own.unload()
    await own.stop()
    assert.deepEqual(texts(own), ['a'])
  })

  test('that finds the queue full is asked to come again', async () => {
    const own = await startRelay({ config: { chatQueueLimit: 0 } })
    own.simulator.fault({ fault: { kind: 'late', ms: 1500 } })
    await post(own, `message/group:${group}`, { text: 'a' }, { isHasty: true })
    const { status, headers, text } = await post(own, `discord/group:${group}`, { content: 'b' })
    assert.equal(status, 503)
    assert.match(headers.get('retry-after') ?? '', /^\d+$/)
    assert.match(text, /^\{"message":"too many messages are waiting.*"code":0,"retry_after":\d+,"global":false\}$/)
    await own.stop()
  })
})
