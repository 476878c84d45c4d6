import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, afterEach, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { callerOf } from '../../platforms/caller'
import { until } from '../../support/until'
import { PlatformServer, type Fault } from '../../platforms/server'
import { upload } from '../webhook/support'
import { freePort } from '../../support/process'
import { DebianPrograms } from '../../support/programs'
import { read, startRelay, type TestRelay } from '../../support/relay'

const secret = `whsec_${Buffer.from('a secret of the receiver').toString('base64')}`

const programs = new DebianPrograms('Apprise', 'apprise', ['apprise'])

describe('an HTTP address', () => {
  let relay: TestRelay
  let receiver: PlatformServer
  const { send, fail, ask, queue } = callerOf(() => relay, 'hook')
  const answer = (status: number, headers: Record<string, string> = {}): Pick<Fault, 'path' | 'answer'> => ({ path: /^\//, answer: { status, headers } })

  before(async () => {
    receiver = await PlatformServer.start(({ path }) => ({ status: path.startsWith('/notify') ? 200 : 204 }))
    const [hook, user] = [`${receiver.url}/confidential?token=confidential`, receiver.url.replace('//', '//user:word@')]
    relay = await startRelay({
      config: {
        chatApiTimeout: 1, chatApiMaxRetries: 1, chatPauseAfter: 100,
        targets: {
          hook: { first: [{ url: hook }] },
          signed: { first: [{ url: `${user}/signed`, secret }] },
          both: { first: ['group:5', { url: `${receiver.url}/both` }] },
          mail: { first: [{ url: `${receiver.url}/notify/key`, format: 'apprise' }] },
          closed: { first: [`http://127.0.0.1:${await freePort()}/confidential`] },
          ...Object.fromEntries(Array.from({ length: 10 }, (_, index) => `hook-${index}`).map(name => (
            [name, { first: [{ url: `${receiver.url}/${name}?token=confidential` }] }]
          ))),
        },
      },
    })
  })
  after(async () => {
    await relay.stop()
    await receiver.stop()
  })
  afterEach(() => receiver.clear())

  test('gets a message as JSON', async () => {
    const { status, data, msg } = await send({ msg: 'disk full <at id="1"/>' })
    assert.equal(status, 200, msg)
    const [call, ...others] = receiver.calls
    assert(call)
    assert.deepEqual([call.method, call.path, call.query.get('token'), others.length], ['POST', '/confidential', 'confidential', 0])
    assert.deepEqual(call.fields, { text: 'disk full <at id="1"/>', target: 'hook', delivery_id: data.delivery_id })
    assert.deepEqual([call.headers['content-type'], call.headers['user-agent'], call.headers.connection], ['application/json', 'koishi-plugin-message-relay', 'close'])
    assert.equal(call.headers['webhook-signature'], undefined)
    const record = await ask(`/deliveries/${String(data.delivery_id)}`)
    assert.deepEqual([record.data.state, record.data.bot, record.data.target], ['sent', 'http:ways', 'group:hook/1'])
  })

  test('is reached by its name only, and not by what the record calls it', async () => {
    for (const target of [{ to: 'http:group:hook/1' }, { to: 'http:ways:group:hook/1' }, { group_id: 'hook/1', platform: 'http' }, { to: 'group:hook/1', platform: 'http' }]) {
      const { status, msg } = await read(await relay.request('/webhook', { method: 'POST', body: JSON.stringify({ ...target, msg: 'x' }) }))
      assert.deepEqual([status, msg], [400, 'an HTTP address is reached by its name only'], JSON.stringify(target))
    }
    for (const value of ['http:group:hook/1', { first: ['http:group:hook/1'] }]) {
      const reply = await read(await relay.request('/targets/sly', { method: 'PUT', body: JSON.stringify(value) }))
      assert.equal(reply.status, 400, reply.msg)
    }
    assert.equal(receiver.calls.length, 0)
  })

  test('gets everything in the nearest form that text has', async () => {
    const picture = { type: 'image', url: 'https://pictures.example.com/a.png' }
    const file = { type: 'file', url: await upload(relay, 'run.log', 'log') }
    const { status, msg } = await send({ messages: [{ type: 'at', user_id: '7' }, { type: 'text', msg: 'look' }, picture, file] })
    assert.equal(status, 200, msg)
    assert.deepEqual(receiver.calls.map(({ fields }) => fields.text), ['@7 look\n[image] https://pictures.example.com/a.png', '[file] run.log'])
  })

  test('gets the whole of a long text that another way had as a file', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: 10 })
    const log = 'line 1 of the build\n'.repeat(600)
    const { status, data } = await read(await relay.request('/send/both', { method: 'POST', body: log }))
    assert.equal(status, 200, JSON.stringify(data))
    const texts = receiver.calls.map(({ fields }) => String(fields.text))
    assert.deepEqual(texts, [log.slice(0, 999).trimEnd(), `[file] message.txt\n${log.trimEnd()}`])
    relay.simulator.clearFaults()
  })

  test('gets a signature that Standard Webhooks accepts, and its credentials', async () => {
    receiver.fault(answer(500))
    assert.equal((await send({ to: 'signed', msg: '签名' })).status, 200)
    const [first, second] = receiver.calls
    assert(first && second)
    assert.equal(first.headers['webhook-id'], second.headers['webhook-id'])
    assert.equal(first.headers.authorization, `Basic ${Buffer.from('user:word').toString('base64')}`)
    for (const { headers, fields } of [first, second]) {
      const texts = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
      assert.deepEqual(new Webhook(secret).verify(JSON.stringify(fields), texts), fields)
    }
    await send({ to: 'signed', msg: '签名' })
    assert.notEqual(receiver.calls.at(-1)?.headers['webhook-id'], first.headers['webhook-id'])
  })

  test('gets the body of an Apprise API where it is one', async () => {
    assert.equal((await send({ to: 'mail', msg: 'disk full' })).status, 200)
    assert.deepEqual(receiver.calls[0]?.fields, { body: 'disk full', title: 'mail', type: 'info' })
  })

  test('that is an Apprise API without services has not taken it', async () => {
    receiver.fault(answer(204))
    assert.match(await fail({ to: 'mail', msg: 'disk full' }, 502), /^refused: .* answered 204: no service has this key there$/)
  })

  test('that is an Apprise API reaches what the real Apprise does', { skip: programs.missing }, async t => {
    const service = await PlatformServer.start(() => ({}))
    const api = await PlatformServer.start(async ({ fields }) => {
      const { body, title, type } = fields
      const options = ['-t', String(title), '-b', String(body), '-n', String(type), service.url.replace('http', 'json')]
      // As the API does it: a failure of a service is 424.
      return { status: await promisify(execFile)(programs.path('apprise'), options).then(() => 200, () => 424) }
    })
    // The program takes its time to start.
    const patient = await startRelay({ config: { targets: { real: { first: [{ url: `${api.url}/notify/key`, format: 'apprise' }] } } } })
    t.after(() => Promise.all([patient.stop(), service.stop(), api.stop()]))
    const { send, fail } = callerOf(() => patient, 'real')
    assert.equal((await send({ msg: '磁盘已满 <b>90 %</b>\nsecond line' })).status, 200)
    const { title, message, type } = service.calls[0]?.fields ?? {}
    assert.deepEqual([title, message, type], ['real', '磁盘已满 <b>90 %</b>\nsecond line', 'info'])
    service.fault({ path: /^/, answer: { status: 500 } })
    assert.match(await fail({ msg: 'lost' }, 502), /^refused: .* answered 424$/)
  })

  test('is asked again where it may not have taken a message, and has told it by its ID', async () => {
    await Promise.all([{ status: 500 }, { status: 502 }, 'cut' as const, 'none' as const].map(async (answer, index) => {
      const path = new RegExp(`^/hook-${index}$`)
      receiver.fault({ path, answer })
      assert.equal((await send({ to: `hook-${index}`, msg: 'once' })).status, 200)
      const ids = receiver.callsTo(path).map(({ headers }) => headers['webhook-id'])
      assert.deepEqual([ids.length, new Set(ids).size], [2, 1])
    }))
  })

  test('says why it did not take a message, and nothing of its path, query and answer', async () => {
    const origin = receiver.url
    const cases: [answer: Fault['answer'], status: number, calls: number, said: string][] = [
      [{ status: 500 }, 504, 2, `unanswered: the message may have arrived: ${origin} answered 500`],
      [{ status: 408 }, 504, 2, `unanswered: the message may have arrived: ${origin} answered 408`],
      ['none', 504, 2, `unanswered: the message may have arrived: ${origin}: no complete answer within 1 s`],
      ['cut', 504, 2, `unanswered: the message may have arrived: ${origin}: connection closed before the answer was complete (UND_ERR_SOCKET)`],
      [{ status: 404 }, 502, 1, `refused: the platform refused the message: ${origin} answered 404`],
      [
        { status: 302, headers: { location: `${origin}/elsewhere` } }, 502, 1,
        `refused: the platform refused the message: ${origin} answered 302, a redirect, which is not followed`,
      ],
    ]
    await Promise.all(cases.map(async ([answer, status, calls, said], index) => {
      const path = new RegExp(`^/hook-${4 + index}$`)
      receiver.fault({ path, answer, times: 10 })
      assert.equal(await fail({ to: `hook-${4 + index}`, msg: 'lost' }, status), said)
      assert.equal(receiver.callsTo(path).length, calls, said)
    }))
    const id = await queue({ to: 'closed', msg: 'lost' })
    await until('its record says why', async () => (
      /http:\/\/127\.0\.0\.1:\d+: connection refused \(ECONNREFUSED\)/.test(JSON.stringify((await ask(`/deliveries/${id}`)).data))
    ))
    assert.deepEqual(relay.logs.filter(line => line.includes('confidential')), [])
  })

  test('is left alone for as long as it asks', async () => {
    for (const status of [429, 503]) {
      receiver.clear()
      receiver.fault(answer(status, { 'retry-after': '1' }))
      assert.equal((await send({ msg: 'a' })).status, 200)
      const [first, second] = receiver.calls
      assert(first && second && second.at - first.at > 900)
    }
    receiver.fault(answer(429, { 'retry-after': '40' }))
    const ids = [await queue({ msg: 'b' }), await queue({ msg: 'c' })]
    for (const id of ids) await until('it waits', async () => JSON.stringify((await ask(`/deliveries/${id}`)).data).includes('"rate-limited"'))
    assert.equal(receiver.calls.length, 3)
  })

  test('is no target, either, where the name has no such place', async () => {
    for (const to of ['http:group:hook/2', 'http:group:nobody/1', 'http:private:x']) {
      const { status, msg } = await send({ to, msg: 'a' })
      assert.deepEqual([status, msg], [400, 'an HTTP address is reached by its name only'])
    }
  })
})
