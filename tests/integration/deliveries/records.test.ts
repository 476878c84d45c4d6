import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OtherBot } from '../../support/other-bot'
import { until } from '../../support/until'
import { upload } from '../webhook/support'
import { group, later, relayWith, takeOffline, useStored, type StoredRelay } from './support'

/** Sends a text and gives the ID of its delivery. */
async function send(relay: StoredRelay, body: object, headers: Record<string, string> = {}): Promise<string> {
  return (await relay.post({ group_id: group, ...body }, headers)).headers.get('x-request-id') ?? ''
}

describe('the record of a delivery', () => {
  const relay = useStored({ config: { chatApiMaxRetries: 1 } })

  test('tells what was to be sent, its files by name and size, and how its text begins', async () => {
    const path = await upload(relay, 'report.txt', 'a report')
    const long = '长'.repeat(150)
    const messages = [
      { msg: long }, { msg: long }, { msg: 'too late' }, { type: 'file', url: path }, { type: 'image', url: 'base64://aGVsbG8=' },
      { type: 'file', url: 'https://example.com/logs/build.log?token=secret' }, { type: 'image' }, { type: 'at', user_id: '10001' },
    ]
    for (const headers of [undefined, { 'idempotency-key': 'items' }]) {
      const { items } = await relay.show(await send(relay, { messages }, headers))
      assert.deepEqual(items, [
        { type: 'text', msg: long }, { type: 'text', msg: long.slice(0, 50), size: 450 }, { type: 'text', msg: '', size: 8 },
        { type: 'file', name: 'report.txt', size: 8 }, { type: 'image', size: 5 }, { type: 'file', name: 'build.log' },
        { type: 'invalid' }, { type: 'at' },
      ])
    }
  })

  test('tells kinds and sizes only where the setting says so', async t => {
    const own = await relayWith(t, { config: { recordContent: 'none' } })
    const { items } = await own.show(await send(own, { messages: [{ msg: 'secret' }, { type: 'file', url: 'base64://aGVsbG8=' }] }))
    assert.deepEqual(items, [{ type: 'text', size: 6 }, { type: 'file', size: 5 }])
  })

  for (const [how, headers] of [['waited for', {}], ['with a key', { 'idempotency-key': 'a' }], ['sent later', later]] as const) {
    test(`tells of each call, and how long things took, of one ${how}`, async () => {
      relay.simulator.fault({ fault: { kind: 'refuse' } })
      const id = await send(relay, { msg: 'hello' }, headers)
      const { history, attempts, waited_ms: waited, platform_ms: took } = await relay.reaches(id, 'sent')
      assert.equal(attempts, 2)
      assert(Array.isArray(history))
      const calls = history.map((call: Record<string, unknown>) => call)
      assert.deepEqual(calls.map(({ outcome }) => outcome), ['refused', 'sent'])
      assert.equal(typeof calls[0]?.reason, 'string')
      assert(calls.every(({ at }) => Math.abs(Date.parse(String(at)) - Date.now()) < 60_000))
      assert(typeof waited === 'number' && waited >= 0)
      assert(typeof took === 'number' && took < 30_000)
    })
  }

  test('says of a call that was not answered how it ended, and how when the answer comes late', async t => {
    const own = await relayWith(t, { config: { chatApiTimeout: 0.2, chatApiMaxRetries: 0 }, simulator: { history: false } })
    own.simulator.fault({ fault: { kind: 'late', ms: 600 } })
    const id = await send(own, { msg: 'hello' })
    const { history } = await own.reaches(id, 'unanswered')
    assert.match(JSON.stringify(history), /"outcome":"unanswered","reason":"no answer in time"/)
    const after = await own.reaches(id, 'sent')
    assert.match(JSON.stringify(after.history), /"took_ms":\d{3,},"outcome":"sent"/)
  })
})

describe('the history', () => {
  test('outlives the process where it is stopped, and a reload of the plugin', async t => {
    const relay = await relayWith(t)
    const first = await send(relay, { msg: 'one' })
    await relay.reload()
    assert.equal((await relay.show(first)).state, 'sent')
    const second = await send(relay, { msg: 'two' })
    await relay.app.parallel('exit', 'SIGTERM')
    const next = await relayWith(t, { config: { dataDir: relay.dataDir } })
    assert.deepEqual((await next.list()).map(({ id }) => id), [second, first])
  })

  test('keeps the newest where the setting says how many', async t => {
    const relay = await relayWith(t, { config: { recordLimit: 5 } })
    const ids: string[] = []
    for (let index = 0; index < 12; index++) ids.push(await send(relay, { msg: String(index) }))
    await relay.reload({ recordLimit: 5 })
    await until('the rest is removed', async () => (await relay.list()).length === 5)
    assert.deepEqual((await relay.list()).map(({ id }) => id), ids.slice(-5).reverse())
  })

  test('has all that is needed to send again what failed, however large and often', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0 } })
    const msg = 'x'.repeat(100_000)
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: 2 })
    const id = await send(relay, { msg })
    for (const state of ['failed', 'sent']) {
      assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 202)
      await relay.reaches(id, state)
    }
    assert.deepEqual(relay.texts(), [msg])
    assert.equal((await relay.list()).length, 1)
  })

  test('forgets what was to be sent once the setting says that nothing is kept, but not of what may still be sent', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: 3 })
    const ids = [
      await send(relay, { msg: 'one' }), await send(relay, { msg: 'x'.repeat(100_000) }), await send(relay, { msg: 'two' }, { 'idempotency-key': 'a' }),
    ]
    assert((await relay.list()).every(({ content }) => content === true))
    const bringBack = await takeOffline(relay)
    const waiting = await relay.queue('three')
    await relay.reload({ chatApiMaxRetries: 0, recordContent: 'none' })
    await until('it is forgotten', async () => (await relay.list()).filter(({ content }) => content === true).length === 1)
    for (const id of ids) assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 409)
    await bringBack()
    await relay.reaches(waiting, 'sent')
    assert.deepEqual(relay.texts(), ['three'])
  })
})

describe('the list', () => {
  test('has each delivery once, and of the platform that a name or a target says', async t => {
    const relay = await relayWith(t, {
      config: {
        chatApiMaxRetries: 0,
        targets: { both: [`onebot:group:${group}`, `other:group:${group}`], here: `onebot:group:${group}`, anywhere: [`group:${group}`, `other:group:${group}`] },
      },
    })
    relay.app.plugin(OtherBot, {})
    await until('both are online', () => relay.app.bots.length === 2)
    const ids = [
      await send(relay, { msg: 'one', platform: 'onebot' }), await send(relay, { msg: 'two', platform: 'other' }),
      // There is no such bot: nobody knows the platform.
      await send(relay, { msg: 'three', self_id: 'nobody' }), await send(relay, { msg: 'four', platform: 'onebot' }, { 'idempotency-key': 'a' }),
    ]
    for (const [name, ...expected] of [
      ['both', 3, 2, 1, 0], ['here', 3, 2, 0], ['anywhere', 3, 2, 1, 0], [`group:${group}`, 3, 2, 1, 0],
      [`onebot:group:${group}`, 3, 2, 0], [`other:group:${group}`, 2, 1], [`another:group:${group}`, 2],
    ] as const) {
      assert.deepEqual((await relay.list(`?target=${name}`)).map(({ id }) => ids.indexOf(id)), expected, name)
    }
  })

  test('finds records by door, name of a target, state, key, text and time, wherever they are', async t => {
    const relay = await relayWith(t, {
      config: { chatApiMaxRetries: 0, targets: { ops: 'group:654321,private:10001' }, keys: [{ name: 'ci', key: 'the-secret-of-ci' }] },
    })
    const refused = relay.simulator.fault({ fault: { kind: 'refuse' }, target: '654321', times: Infinity })
    const ids = [
      await send(relay, { msg: 'Build 100% "green"' }),
      await send(relay, { msg: 'deployed' }, { 'idempotency-key': 'a' }),
    ]
    const middle = new Date().toISOString()
    ids.push(await send(relay, { msg: 'deployed', group_id: '654321' }))
    refused.remove()
    const hook = await relay.request(`/hooks/message/group:${group}`, {
      method: 'POST', body: '{"title":"disk full"}', headers: { 'content-type': 'application/json' },
    })
    ids.push(hook.headers.get('x-request-id') ?? '')
    await relay.reaches(ids[3] ?? '', 'sent')
    await fetch(`${relay.url}/webhook`, { method: 'POST', body: `{"group_id":"${group}","msg":"by ci"}`, headers: { 'x-api-key': 'the-secret-of-ci' } })
      .then(response => ids.push(response.headers.get('x-request-id') ?? ''))
    for (const [query, ...expected] of [
      ['door=webhook', 4, 2, 1, 0], ['door=hooks', 3], ['door=hooks/message', 3], ['door=send'], ['target=ops', 2], ['state=failed,unanswered', 2],
      ['state=sent,failed', 4, 3, 2, 1, 0], ['key=ci', 4], ['key=other'], ['text=deployed', 2, 1], ['text=100%25%20%22GREEN', 0], ['text=deployed&state=failed', 2],
      [`since=${middle}`, 4, 3, 2], [`until=${middle}`, 1, 0], [`since=${middle}&door=webhook`, 4, 2], ['since=2020-01-01&until=2021-01-01'],
    ] as const) {
      assert.deepEqual((await relay.list(`?${query}`)).map(({ id }) => ids.indexOf(id)), expected, query)
    }
    for (const query of ['state=sent,lost', 'target=nobody', 'since=yesterday', 'until=2026-13-01']) {
      assert.equal((await relay.ask(`/deliveries?${query}`)).status, 400, query)
    }
  })
})
