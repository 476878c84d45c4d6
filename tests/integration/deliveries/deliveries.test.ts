import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { editFile } from '../../support/data-file'
import { serve } from '../../support/listen'
import { apiKey, askAs } from '../../support/relay'
import { until } from '../../support/until'
import { upload } from '../webhook/support'
import { group, later, other, relayWith, releaseHeld, takeOffline, useStored, type StoredRelay } from './support'

const hello = { group_id: group, msg: 'hello' }
const secretOf = (name: string): string => `the-secret-of-${name}`

/** For tests that need no settings of their own. */
const relay = useStored({ config: { chatApiMaxRetries: 0 } })

function isPage(value: unknown): value is { data: { deliveries: { id: string }[] } } {
  return typeof value === 'object' && value !== null && 'data' in value && typeof value.data === 'object' && value.data !== null
    && 'deliveries' in value.data && Array.isArray(value.data.deliveries)
}

describe('the list of deliveries', () => {
  test('has the newest first, those of callers who waited too, and can be paged and filtered', async t => {
    const relay = await relayWith(t)
    const ids: string[] = []
    for (let i = 0; i < 3; i++) {
      ids.push(await relay.queue(`queued ${i}`))
      ids.push((await relay.post(hello)).headers.get('x-request-id') ?? '')
      ids.push((await relay.post({ ...hello, group_id: other }, { 'idempotency-key': `k${i}` })).headers.get('x-request-id') ?? '')
    }
    await until('all are delivered', () => relay.texts().length === 9)
    const newest = ids.toReversed()
    const idsOf = async (query: string): Promise<string[]> => (await relay.list(query)).map(({ id }) => id)
    assert.deepEqual(await idsOf(''), newest)
    assert.deepEqual(await idsOf('?limit=4'), newest.slice(0, 4))
    assert.deepEqual(await idsOf(`?limit=4&before=${newest[3]}`), newest.slice(4, 8))
    assert.deepEqual(await idsOf(`?target=group:${other}`), newest.filter((_, i) => i % 3 === 0))
    assert.deepEqual(await idsOf(`?target=group:${other}&state=sent&limit=1`), newest.slice(0, 1))
    assert.deepEqual(await idsOf('?state=failed'), [])
    assert.equal((await relay.request('/deliveries', { method: 'HEAD' })).status, 200)
  })

  test('leads to the next page, also where large results make a page shorter than was asked for', async t => {
    const relay = await relayWith(t, { config: { path: '/relay' } })
    // Not `relay.request`: to compare so many MB with the schema takes ten seconds, and shorter answers are compared.
    const request = (path: string, init?: RequestInit): Promise<Response> => fetch(`${relay.url}${path}`, { headers: { 'x-api-key': apiKey }, ...init })
    const ids: string[] = []
    for (let count = 0; count < 60; count++) {
      const response = await request('/relay/webhook', {
        method: 'POST', body: JSON.stringify({ group_id: group, messages: Array(count % 20 === 0 ? 1 : 1000).fill({ type: 'image' }) }),
      })
      assert.equal(response.status, 200)
      ids.push(response.headers.get('x-request-id') ?? '')
    }
    for (const query of [`?target=group:${group}&limit=1000`, '?limit=25', '?state=failed&limit=59']) {
      const found: string[] = []
      for (let path: string | undefined = `/relay/deliveries${query}`; path !== undefined;) {
        const response: Response = await request(path)
        const text = await response.text()
        assert(text.length < 4.5 * 1024 * 1024)
        const page: unknown = JSON.parse(text)
        assert(isPage(page))
        assert(page.data.deliveries.length > 0)
        found.push(...page.data.deliveries.map(({ id }) => id))
        path = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
      }
      assert.deepEqual(found, ids.toReversed(), query)
    }
  })

  test('refuses what it cannot filter by', async () => {
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'state=lost', 'target=123', 'target=group:', 'target=group:%00', 'target=:group:1', 'before=x', 'before=%00']) {
      assert.equal((await relay.ask(`/deliveries?${query}`)).status, 400, query)
    }
  })
})

describe('a delivery', () => {
  test('is what the reply to a command is as well, under the ID of the command in the log', async t => {
    const commandCallbackUrl = await serve(t, (_, response) => response.end('{"reply":"pong"}'))
    const relay = await relayWith(t, { config: { commandCallbackUrl } })
    relay.simulator.say({ group, user: '10001', text: '#ping x' })
    const replied = /(\S+) command "ping" from group "123456": replied/
    await until('the log says so', () => relay.logs.some(line => replied.test(line)))
    const id = relay.logs.map(line => replied.exec(line)?.[1]).find(Boolean) ?? ''
    const { state, results } = await relay.show(id)
    assert.equal(state, 'sent')
    assert.deepEqual(results, [{ index: 0, success: true, message_ids: [String(relay.simulator.ledger[0]?.messageId)] }])
    assert.deepEqual(relay.texts(), ['pong'])
  })

  test('that nobody knows is a 404, whatever its ID looks like', async () => {
    for (const id of ['x', '%00', '%27%20or%201', '0197f7a0-0000-7000-8000-000000000000', '%F0%9F%98%80', '__proto__']) {
      assert.equal((await relay.ask(`/deliveries/${id}`)).status, 404, id)
      assert.equal((await relay.ask(`/deliveries/${id}`, 'DELETE')).status, 404, id)
      assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 404, id)
    }
  })
})

describe('withdrawing', () => {
  test('takes back what is queued, and its key with it', async () => {
    const online = await takeOffline(relay)
    const key = { 'idempotency-key': 'withdrawn', ...later }
    const { data } = await relay.post(hello, key)
    const id = String(data.delivery_id)
    assert.equal((await relay.ask(`/deliveries/${id}`, 'DELETE')).status, 200)
    assert.equal((await relay.ask(`/deliveries/${id}`)).status, 404)
    assert.equal((await relay.ask(`/deliveries/${id}`, 'DELETE')).status, 404)
    assert.equal((await relay.post({ ...hello, msg: 'other' }, key)).status, 202)
    await online()
    await until('the other is delivered', () => relay.texts().length > 0)
    assert.deepEqual(relay.texts(), ['other'])
  })

  test('comes too late for what is leaving, or has left', async () => {
    relay.simulator.fault({ fault: { kind: 'late', ms: 300 } })
    const id = await relay.queue('hello')
    await relay.reaches(id, 'sending')
    assert.equal((await relay.ask(`/deliveries/${id}`, 'DELETE')).status, 409)
    await relay.reaches(id, 'sent')
    assert.equal((await relay.ask(`/deliveries/${id}`, 'DELETE')).status, 409)
  })

  test('is refused for what a caller waits for, which is queued until its turn comes', async () => {
    relay.simulator.fault({ fault: { kind: 'late', ms: 1500 } })
    const answers = [relay.post(hello)]
    await until('the first is leaving', () => relay.texts().length === 1)
    answers.push(relay.post(hello), relay.post(hello, { 'idempotency-key': 'waited-for' }))
    await until('both others wait', async () => (await relay.list('?state=queued')).length === 2)
    for (const { id } of await relay.list('?state=queued')) {
      const { status, msg } = await relay.ask(`/deliveries/${id}`, 'DELETE')
      assert.equal(status, 409)
      assert.match(msg, /^the caller of this delivery waits for it/)
    }
    for (const { status } of await Promise.all(answers)) assert.equal(status, 200)
  })

  test('of what was tried before keeps its record and its key, because it may have arrived', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, chatApiTimeout: 0.3 } })
    relay.simulator.fault({ fault: { kind: 'lost-answer' } })
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: Infinity })
    const key = { 'idempotency-key': 'a' }
    const { status, headers } = await relay.post(hello, key)
    assert.equal(status, 504)
    const id = headers.get('x-request-id') ?? ''
    // Nobody sends it again while its bot is away.
    const online = await takeOffline(relay)
    assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 202)
    assert.deepEqual((await relay.ask(`/deliveries/${id}`, 'DELETE')).data, { delivery_id: id, state: 'unanswered' })
    assert.equal((await relay.show(id)).state, 'unanswered')
    relay.simulator.clearFaults()
    await online()
    await until('it is found', async () => (await relay.post(hello, key)).status === 200)
    assert.deepEqual(relay.texts(), ['hello'])
  })
})

describe('sending again', () => {
  test('works for a request without a key', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const { headers } = await relay.post({ group_id: group, messages: [{ msg: 'a' }, { type: 'file', url: 'base64://YQ==' }, { type: 'image' }] })
    const id = headers.get('x-request-id') ?? ''
    assert.equal((await relay.show(id)).content, true)
    // Once it has ended it could be asked for again: its last item always fails.
    relay.simulator.fault({ fault: { kind: 'hold' } })
    const again = await Promise.all([relay.ask(`/deliveries/${id}/retry`, 'POST'), relay.ask(`/deliveries/${id}/retry`, 'POST')])
    assert.deepEqual(again.map(({ status }) => status).sort(), [202, 409])
    const accepted = again.find(({ status }) => status === 202)
    assert.deepEqual([accepted?.data, accepted?.headers.get('location')], [{ delivery_id: id, state: 'queued' }, `/deliveries/${id}`])
    await until('all of it has arrived', () => relay.simulator.ledger.length === 2)
    await releaseHeld(relay)
    await until('that is recorded', async () => ['sent', 'failed'].includes((await relay.show(id)).state))
    assert.deepEqual((await relay.show(id)).results.map(({ success }) => success), [true, true, false])
    assert.deepEqual((await relay.list()).map(each => each.id), [id])
    assert.equal((await relay.show(id)).attempts, 3)
  })

  test('needs what was to be sent, and takes a bot that is there', async t => {
    const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, recordContent: 'none' } })
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: 2 })
    for (const headers of [undefined, { 'idempotency-key': 'a' }]) {
      const id = (await relay.post(hello, headers)).headers.get('x-request-id') ?? ''
      assert.equal((await relay.show(id)).state, 'failed')
      const { status, msg } = await relay.ask(`/deliveries/${id}/retry`, 'POST')
      assert.equal(status, 409)
      assert.match(msg, /^the content of this delivery is not kept/)
    }
    await relay.reload({ chatApiMaxRetries: 0 })
    const online = await takeOffline(relay)
    const id = (await relay.post(hello)).headers.get('x-request-id') ?? ''
    const other = (await relay.post({ ...hello, self_id: '7' })).headers.get('x-request-id') ?? ''
    const named = (await relay.post({ ...hello, self_id: '10000' })).headers.get('x-request-id') ?? ''
    assert.equal((await relay.ask(`/deliveries/${other}/retry`, 'POST')).status, 409)
    for (const each of [id, named]) assert.equal((await relay.ask(`/deliveries/${each}/retry`, 'POST')).status, 202)
    await online()
    for (const each of [id, named]) await relay.reaches(each, 'sent')
  })

  test('of all that a filter finds queues the oldest first, and says why it skips others', async t => {
    const key = 'the-secret-of-manager'
    const relay = await relayWith(t, {
      config: { chatApiMaxRetries: 0, keys: [{ name: 'manager', key, allow: ['manage'], targets: [`group:${group}`] }] },
    })
    const broken = relay.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
    for (const msg of ['1', '2', '3']) assert.equal((await relay.post({ group_id: group, msg })).status, 502)
    const skipped = (await relay.post({ group_id: other, msg: 'elsewhere' })).headers.get('x-request-id')
    broken.remove()
    await relay.post({ group_id: group, msg: 'sent before' })

    const none = { queued: 0, skipped: [], more: false }
    for (const query of ['?state=expired', '?state=failed&since=2999-01-01', '?state=failed&target=group:9']) {
      assert.deepEqual((await relay.ask(`/deliveries/retry${query}`, 'POST')).data, none, query)
    }
    for (const query of ['', '?state=', '?state=sent', '?state=failed,expired', '?state=failed&since=x', '?state=failed&group_id=1']) {
      assert.equal((await relay.ask(`/deliveries/retry${query}`, 'POST')).status, 400, query)
    }
    const { status, data } = await askAs(relay, key, 'POST', '/deliveries/retry?state=failed')
    assert.equal(status, 202)
    assert.deepEqual(data, { queued: 3, skipped: [{ id: skipped, msg: `this key may not send to group:${other}` }], more: false })
    await relay.simulator.until(({ ledger }) => ledger.length === 4)
    assert.deepEqual((await relay.ask('/deliveries/retry?state=failed', 'POST')).data, { queued: 1, skipped: [], more: false })
    await relay.simulator.until(({ ledger }) => ledger.length === 5)
    assert.deepEqual(relay.texts(), ['sent before', '1', '2', '3', 'elsewhere'])
  })

  test('leaves out what the relay itself had to say', async t => {
    const relay = await relayWith(t, { config: { alertTo: ['private:10001', 'http://127.0.0.1:1/'], chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'not-member' }, times: Infinity })
    assert.equal((await relay.post({ group_id: group, msg: 'lost' })).status, 502)
    await until('the alert has failed as well', async () => (await relay.list('?state=failed')).length === 2)
    const { data } = await relay.ask('/deliveries/retry?state=failed', 'POST')
    assert.deepEqual([data.queued, JSON.stringify(data.skipped).includes('an alert of the relay')], [1, true])
  })

  test('takes the oldest, as many as its limit says', async t => {
    const relay = await relayWith(t)
    await takeOffline(relay)
    for (const msg of ['1', '2', '3']) assert.equal((await relay.post({ group_id: group, msg })).status, 503)
    assert.equal((await relay.ask('/deliveries/retry?state=failed&limit=1001', 'POST')).status, 400)
    const retry = async (): Promise<unknown> => (await relay.ask('/deliveries/retry?state=failed&limit=2', 'POST')).data
    assert.deepEqual(await retry(), { queued: 2, skipped: [], more: true })
    assert.deepEqual(await retry(), { queued: 1, skipped: [], more: false })
  })

  describe('by a key that may manage', () => {
    const keys = [
      { name: 'manager', key: secretOf('manager'), allow: ['manage'], rate: 1 },
      { name: 'crier', key: secretOf('crier'), allow: ['manage', 'mention-all'] },
    ]
    const retry = async (relay: StoredRelay, id: string, name: string): Promise<unknown[]> => {
      const { status, msg } = await askAs(relay, secretOf(name), 'POST', `/deliveries/${id}/retry`)
      return [status, ...status === 403 ? [msg] : []]
    }
    const fail = async (relay: StoredRelay, body: object): Promise<string> => (await relay.post(body)).headers.get('x-request-id') ?? ''

    test('mentions everybody only with a key that may, where the mention is still to be sent', async t => {
      const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, keys } })
      const upload = relay.simulator.fault({ fault: { kind: 'refuse' }, action: 'upload_group_file', times: Infinity })
      const file = await fail(relay, { group_id: group, messages: [{ type: 'at', user_id: 'all' }, { msg: 'a' }, { type: 'file', url: 'base64://YQ==' }] })
      const message = relay.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
      const mention = await fail(relay, { ...hello, at: 'all' })
      upload.remove()
      message.remove()
      assert.deepEqual(await retry(relay, mention, 'manager'), [403, 'this key may not do this: it lacks the permission mention-all'])
      assert.equal((await relay.show(mention)).state, 'failed')
      assert.deepEqual(await retry(relay, file, 'manager'), [202])
      assert.deepEqual(await retry(relay, mention, 'crier'), [202])
      for (const id of [file, mention]) await relay.reaches(id, 'sent')
    })

    test('costs nothing of its rate where nothing is sent again', async t => {
      const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, keys } })
      relay.simulator.fault({ fault: { kind: 'refuse' }, times: 2 })
      const [first, second] = [await fail(relay, hello), await fail(relay, hello)]
      await takeOffline(relay)
      const waiting = await relay.queue('waiting')
      const status = async (id: string): Promise<unknown> => (await retry(relay, id, 'manager'))[0]
      assert.deepEqual([await status(waiting), await status(waiting), await status(first), await status(second)], [409, 409, 202, 429])
    })
  })

  test('of what no bot was there for may a key for the platform that it goes to then', async t => {
    const keys = [['right', 'onebot'], ['wrong', 'other']].map(([name = '', platform]) => ({
      name, key: secretOf(name), targets: [`${platform}:group:${group}`], allow: ['manage'],
    }))
    const relay = await relayWith(t, { config: { keys } })
    const retry = async (id: string, name: string): Promise<number> =>
      (await askAs(relay, secretOf(name), 'POST', `/deliveries/${id}/retry`)).status
    const online = await takeOffline(relay)
    const id = (await relay.post(hello)).headers.get('x-request-id') ?? ''
    assert.equal((await relay.show(id)).bot, '')
    await online()
    assert.equal(await retry(id, 'wrong'), 403)
    assert.equal(await retry(id, 'right'), 202)
    await relay.reaches(id, 'sent')
  })
})

describe('what was to be sent', () => {
  const png = 'iVBORw0KGgo='

  test('is shown as long as it is kept, with the bytes that the relay has', async t => {
    const relay = await relayWith(t, { config: { recordContent: 'full' } })
    const file = await upload(relay, 'page.html', '<script>')
    const messages = [
      { type: 'text', msg: 'x'.repeat(100_000) }, { type: 'image', url: `base64://${png}` }, { type: 'file', url: file },
      { type: 'image', url: `data:image/gif;base64,${png}` }, { type: 'file', url: 'https://example.com/a.log' },
      { type: 'image', url: `data:image/svg+xml;base64,${png}` }, { type: 'image', url: `data:text/html;base64,${png}` },
    ]
    const id = (await relay.post({ group_id: group, messages })).headers.get('x-request-id') ?? ''
    assert.deepEqual((await relay.ask(`/deliveries/${id}/items`)).data.items, messages)
    for (const [index, type, bytes] of [
      [1, 'image/png', Buffer.from(png, 'base64')], [2, 'application/octet-stream', Buffer.from('<script>')],
      [3, 'image/gif', Buffer.from(png, 'base64')], [5, 'application/octet-stream', Buffer.from(png, 'base64')],
      [6, 'application/octet-stream', Buffer.from(png, 'base64')],
    ] as const) {
      const response = await relay.request(`/deliveries/${id}/items/${index}`)
      assert.equal(response.headers.get('content-type'), type)
      assert.equal(response.headers.get('content-security-policy'), 'sandbox; default-src \'none\'')
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
      assert.match(response.headers.get('content-disposition') ?? '', /^attachment; filename/)
      assert(Buffer.from(await response.arrayBuffer()).equals(bytes))
      assert.equal((await relay.request(`/deliveries/${id}/items/${index}`, { method: 'HEAD' })).status, 200)
    }
    for (const index of ['0', '4', '7', '-1', 'x', '1e0', '%00']) assert.equal((await relay.ask(`/deliveries/${id}/items/${index}`)).status, 404)
  })

  test('is forgotten once it is delivered, and kept with its files until then', async () => {
    const file = await upload(relay, 'report.txt', 'report')
    for (const headers of [undefined, { 'idempotency-key': 'kept' }, later]) {
      relay.simulator.fault({ fault: { kind: 'refuse' } })
      const id = (await relay.post({ group_id: group, messages: [{ type: 'file', url: file }] }, headers)).headers.get('x-request-id') ?? ''
      assert.equal((await relay.reaches(id, 'failed')).content, true)
      assert.equal((await relay.ask(`/deliveries/${id}/items`)).status, 200)
      await until('its file is kept', async () => (await stat(join(relay.uploadDir, file))).mtimeMs > Date.now() + 5 * 24 * 60 * 60 * 1000)
      assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 202)
      assert.equal((await relay.reaches(id, 'sent')).content, undefined)
      const { status, msg } = await relay.ask(`/deliveries/${id}/items`)
      assert.equal(status, 404)
      assert.match(msg, /content of this delivery was not kept/)
    }
  })
})

test('the counts tell by the hour how deliveries ended, of all or of the key that asks', async t => {
  const keys = [{ name: 'ci', key: 'the-secret-of-ci', allow: 'send,read' }]
  const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, keys } })
  relay.simulator.fault({ fault: { kind: 'refuse' } })
  for (const headers of [undefined, undefined, { 'idempotency-key': 'a' }, later]) await relay.post(hello, headers)
  const ci = (method: string, at: string, body?: object) => askAs(relay, 'the-secret-of-ci', method, at, body)
  assert.equal((await ci('POST', '/webhook', hello)).status, 200)
  const sum = (data: unknown, state: string): number =>
    [...JSON.stringify(data).matchAll(new RegExp(`"${state}":(\\d+)`, 'g'))].reduce((total, [, count]) => total + Number(count), 0)
  await until('all have ended', async () => (await relay.list('?state=sent,failed')).length === 5)
  const { data } = await relay.ask('/deliveries/counts?hours=3')
  assert(Array.isArray(data.hours))
  assert.equal(data.hours.length, 3)
  const states = { queued: 0, scheduled: 0, sending: 0, sent: 4, failed: 1, unanswered: 0, expired: 0 }
  assert.deepEqual(Object.keys(states).slice(3).map(state => sum(data.hours, state)), [4, 1, 0, 0])
  assert.deepEqual(data.states, states)
  assert.equal(sum((await ci('GET', '/deliveries/counts')).body, 'sent'), 2)
  const none = { ...states, sent: 0, failed: 0 }
  for (const query of ['key=', `target=group:${group}`, `target=onebot:group:${group}`, 'text=hel', 'door=webhook', 'since=2020-01-01']) {
    assert.deepEqual((await relay.ask(`/deliveries/counts?${query}`)).data.states, states, query)
  }
  for (const query of ['target=group:9', 'target=discord:group:1', 'text=nothing', 'door=hooks', 'until=2020-01-01', 'key=nobody']) {
    const { data: found } = await relay.ask(`/deliveries/counts?${query}`)
    assert.deepEqual([found.states, sum(found.hours, 'sent')], [none, 0], query)
  }
  assert.deepEqual((await relay.ask('/deliveries/counts?key=ci')).data.states, { ...none, sent: 1 })
  for (const offset of [-840, 0, 480]) {
    const { data: { days } } = await relay.ask(`/deliveries/counts?days=2&offset=${offset}&text=hello`)
    assert(Array.isArray(days))
    assert.equal(days.length, 2)
    const day = new Date(Date.now() + offset * 60_000).toISOString().slice(0, 10)
    assert.deepEqual(days[1], { day, sent: 4, failed: 1, unanswered: 0, expired: 0 })
  }
  for (const query of ['hours=0', 'hours=169', 'hours=x', 'hours=-1', 'days=91', 'days=0', 'days=1&offset=841', 'text=a&since=soon']) {
    assert.equal((await relay.ask(`/deliveries/counts?${query}`)).status, 400, query)
  }
})

test('old records are removed, but not what waits or was finished a moment ago', async t => {
  const relay = await relayWith(t, { config: { recordRetention: 1 } })
  for (let i = 0; i < 60; i++) await relay.queue(String(i))
  await until('all are delivered', async () => (await relay.list('?state=sent')).length === 60)
  const online = await takeOffline(relay)
  await relay.queue('waiting')
  relay.unload()
  // UUIDv7 of a long time ago.
  await editFile(relay.dataDir, database => database.exec('UPDATE deliveries SET id = \'010\' || substr(id, 4), updated_at = 0'))
  await relay.reload()
  await until('they are removed', async () => (await relay.list()).length === 1)
  await online()
  await until('what waited is delivered', async () => (await relay.list('?state=sent')).length === 1)
  await relay.reload()
  await relay.reaches(await relay.queue('new'), 'sent')
  assert.equal((await relay.list()).length, 2)
})
