import { isObject, type JsonObject } from '../../../src/lib/shape'
import { untilPassing } from '../../support/running'
import assert from 'node:assert/strict'
import { type RequestListener } from 'node:http'
import { json } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { failFiles } from '../../support/data-file'
import { serve } from '../../support/listen'
import { schemaProblems } from '../../support/openapi'
import { until } from '../../support/until'
import { group, other, relayWith, takeOffline, type StoredRelay } from '../deliveries/support'

const second = 1_000
const minute = 60 * second

interface Receiver {
  url: string
  bodies: JsonObject[]
}

/** Takes what is posted, with this answer. What a chat that is gone is told by is left out: it comes beside the pauses here. */
async function receive(t: TestContext, answer: RequestListener = (_, response) => response.end()): Promise<Receiver> {
  const bodies: JsonObject[] = []
  const url = await serve(t, (request, response) => {
    void json(request).then(body => {
      assert(isObject(body))
      assert.equal(request.headers['content-type'], 'application/json')
      assert.equal(request.headers.authorization, `Basic ${Buffer.from('user:pass').toString('base64')}`)
      assert.deepEqual(schemaProblems('/components/schemas/Alert', body), [])
      if (body.alert === 'gone') {
        response.end()
        return
      }
      bodies.push(body)
      answer(request, response)
    })
  })
  return { url: `${url.replace('//', '//user:pass@')}/services/secret?token=secret`, bodies }
}

/** Has a target fail until sending to it is paused. The function returned has messages to it arrive again. */
async function pause(relay: StoredRelay, target: string): Promise<() => Promise<void>> {
  const failing = relay.simulator.fault({ fault: { kind: 'not-member' }, target, times: Infinity })
  for (let i = 0; i < 2; i++) assert.equal((await relay.post({ group_id: target, msg: 'secret text' })).status, 502)
  assert.equal((await relay.post({ group_id: target, msg: 'secret text' })).status, 503)
  return async () => {
    failing.remove()
    await untilPassing(second, 'it is sent to again', async () => (await relay.post({ group_id: target, msg: 'again' })).status === 200)
  }
}

/** The subjects of an alert as it was posted. */
function subjectsOf({ subjects }: JsonObject): JsonObject[] {
  assert(Array.isArray(subjects))
  return subjects.filter(isObject)
}

const plain = (body: JsonObject): unknown[] =>
  [body.alert, body.state, body.total, subjectsOf(body).map(({ target, bot }) => [target, bot])]
const linesOf = (relay: StoredRelay): string[] => relay.logs.filter(line => /\balert (?:paused|offline|expired)/.test(line))

describe('alertTo, as an address', () => {
  test('is told once that targets are paused, and once that they are not any more', async t => {
    const { url, bodies } = await receive(t)
    const relay = await relayWith(t, { config: { alertTo: url, chatPauseAfter: 2, chatApiMaxRetries: 0, chatApiTimeout: 2.01 } })
    const resumes = [await pause(relay, group), await pause(relay, other)]
    const before = Date.now()
    const told = (state: string): JsonObject[] => bodies.filter(body => body.alert === 'paused' && body.state === state).flatMap(subjectsOf)
    await untilPassing(second / 10, 'both are told', () => told('firing').length === 2)
    const both = [{ target: `group:${group}`, bot: 'onebot:10000' }, { target: `group:${other}`, bot: 'onebot:10000' }]
    assert.deepEqual(told('firing').map(({ target, bot }) => ({ target, bot })), both)
    // On a busy machine the first is told alone, and the second a minute later, which passes for the alerts only.
    for (const { since } of told('firing')) assert(Math.abs(Date.parse(String(since)) - before) < 2 * minute, String(since))
    assert.match(String(bodies.find(({ alert }) => alert === 'paused')?.text), /^消息转发：[^]*\ngroup:123456 \(onebot:10000\)：.*机器人.*不在.*，自 \d{4}-\d\d-\d\d \d\d:\d\d 起\n/)
    assert(!JSON.stringify(bodies).includes('secret'))

    for (const resume of resumes) await resume()
    await untilPassing(second, 'the pauses are over', () => told('resolved').length === 2)
    assert.deepEqual(told('resolved').map(({ target, bot }) => ({ target, bot })), both)
    assert.equal(told('firing').length, 2)
    await until('it is logged', () => linesOf(relay).length === bodies.length)
    assert.deepEqual(new Set(linesOf(relay).map(line => line.replace(/:\d+$/, ''))), new Set([
      'message-relay info alert paused: posted to http://127.0.0.1', 'message-relay info alert paused, over: posted to http://127.0.0.1',
    ]))
  })

  test('is told that a bot is offline, and is online again, also across a reload of the plugin', async t => {
    const { url, bodies } = await receive(t)
    const config = { alertTo: url }
    const relay = await relayWith(t, { config })
    const online = await takeOffline(relay)
    await untilPassing(minute / 10, 'it is told', () => bodies.length === 1)
    const [first] = bodies
    assert(first)
    assert.deepEqual(plain(first), ['offline', 'firing', 1, [[undefined, 'onebot:10000']]])
    await until('it is known to have arrived', () => linesOf(relay).length === 1)
    await relay.reload(config)
    await online()
    await untilPassing(second, 'it is told', () => bodies.length === 2)
    const [, last] = bodies
    assert(last)
    assert.deepEqual(plain(last), ['offline', 'resolved', 1, [[undefined, 'onebot:10000']]])
  })

  test('is told again what a reload of the plugin cut off', async t => {
    let tries = 0
    const { url, bodies } = await receive(t, (_, response) => {
      if (tries++ > 0) response.writeHead(204).end()
    })
    const config = { alertTo: url, chatPauseAfter: 2, chatApiMaxRetries: 0 }
    const relay = await relayWith(t, { config })
    await pause(relay, group)
    await untilPassing(second / 10, 'it is on its way', () => bodies.length === 1)
    await relay.reload(config)
    await untilPassing(second / 10, 'it is told', () => linesOf(relay).some(line => line.includes(': posted to')))
    assert.equal(bodies.length, 2)
    assert.deepEqual(bodies.map(body => [body.alert, body.state]), [['paused', 'firing'], ['paused', 'firing']])
  })

  test('is told that messages have expired, and that no more have for an hour', async t => {
    const { url, bodies } = await receive(t)
    const relay = await relayWith(t, { config: { alertTo: url } })
    const online = await takeOffline(relay)
    const id = await relay.queue('secret text', { expires_in: 0.5 })
    await relay.reaches(id, 'expired')
    await until('it is told', () => bodies.length === 1)
    const [first] = bodies
    assert(first)
    assert.deepEqual(plain(first), ['expired', 'firing', 1, [[`group:${group}`, 'onebot:10000']]])
    await online()
    await untilPassing(minute, 'it is told', () => bodies.length === 2)
    const [, last] = bodies
    assert(last)
    assert.deepEqual(plain(last), ['expired', 'resolved', 1, [[`group:${group}`, 'onebot:10000']]])
  })

  test('is tried again when it fails', async t => {
    let tries = 0
    const { url, bodies } = await receive(t, (_, response) => response.writeHead(tries++ === 0 ? 500 : 204).end())
    const relay = await relayWith(t, { config: { alertTo: url, chatPauseAfter: 2, chatApiMaxRetries: 0 } })
    await pause(relay, group)
    await untilPassing(second / 10, 'it arrives', () => linesOf(relay).length === 1)
    assert.match(linesOf(relay)[0] ?? '', /posted to/)
    assert.equal(bodies.length, 2)
  })
})

describe('alertTo, as a list or a target', () => {
  test('is told of its own chat by another account, and again a minute later, while the trouble lasts, what nobody took', async t => {
    const relay = await relayWith(t, { config: { alertTo: `onebot:20002:group:${group}`, chatPauseAfter: 2, chatApiMaxRetries: 0 } })
    await pause(relay, group)
    const tries = (): number => linesOf(relay).filter(line => line.includes(`alert paused group:${group} failed`)).length
    await untilPassing(second, 'it is tried', () => tries() === 1)
    await untilPassing(second, 'it is tried again', () => tries() === 2)
  })

  test('is told by a message, in a record of its own, and never of itself', async t => {
    const config = { alertTo: 'ops', targets: { ops: `group:${other}` }, chatPauseAfter: 2, chatApiMaxRetries: 0 }
    const relay = await relayWith(t, { config })
    const resume = await pause(relay, group)
    await untilPassing(second / 10, 'it is told', () => relay.simulator.ledger.length === 2)
    const [gone = '', paused = ''] = relay.texts()
    assert.match(gone, /^消息转发：以下聊天已不再接收.*：\ngroup:123456 \(onebot:10000\)：.*机器人.*不在.*，自 /)
    assert.match(paused, /^消息转发：因连续失败，已暂停向以下目标发送：\ngroup:123456 /)
    const metrics = await (await relay.request('/metrics')).text()
    assert.match(metrics, /^message_relay_deliveries_total\{door="alert",outcome="sent"\} 2$/m)

    await pause(relay, other)
    await resume()
    await untilPassing(minute / 10, 'the first is over', () => linesOf(relay).some(line => line.includes('alert paused, over')))
    assert.equal(linesOf(relay).filter(line => line.includes(`alert paused group:${other}`)).length, 1)
    assert.deepEqual(relay.texts().filter(text => text.includes('消息转发')).length, 2)
  })

  test('is told at once where the data file cannot be written', async t => {
    const relay = await relayWith(t, { config: { alertTo: 'private:10001', chatPauseAfter: 2, chatApiMaxRetries: 0 } })
    t.after(failFiles('run'))
    await pause(relay, group)
    await untilPassing(second / 10, 'it is told', () => relay.texts().some(text => text.startsWith('消息转发：')))
  })

  test('is told in the language of each target, also why', async t => {
    const targets = { home: 'private:10001', abroad: { to: 'private:10002', lang: 'en-US' } }
    const relay = await relayWith(t, { config: { alertTo: 'home,abroad', targets, chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'not-member' }, target: group })
    assert.equal((await relay.post({ group_id: group, msg: 'a' })).status, 502)
    await untilPassing(second / 10, 'both are told', () => relay.simulator.ledger.length === 2)
    const toldTo = (id: string): string => relay.simulator.ledger.find(({ target }) => target.id === id)?.text ?? ''
    assert.match(toldTo('10001'), /^消息转发：.*\ngroup:123456 \(onebot:10000\)：.*机器人.*不在.*，自 /)
    assert.match(toldTo('10002'), /^Message relay: .*\ngroup:123456 \(onebot:10000\): .*the bot is not in .*, since /)
  })

  test('comes after others that do not take it, and is told of an account that is back', async t => {
    const { url, bodies } = await receive(t)
    const away = await receive(t, (_, response) => response.writeHead(500).end())
    const alertTo = ['nobody', `onebot:10000:group:${group}`, away.url, url]
    const relay = await relayWith(t, { simulator: { heartbeatInterval: 50 }, config: { alertTo } })
    relay.simulator.turn('loggedOut', true)
    await untilPassing(second, 'it is told', () => bodies.length === 1)
    const [subject] = subjectsOf(bodies[0] ?? {})
    assert.deepEqual([bodies[0]?.alert, subject?.bot, away.bodies.length], ['offline', 'onebot:10000', 1])
    assert.match(String(subject?.reason), /^账号已掉线（下线通知: .+）$/)
    relay.simulator.turn('loggedOut', false)
    await untilPassing(second, 'it takes the message itself that it is back', () => relay.texts().length === 1)
    assert.match(relay.texts()[0] ?? '', /^消息转发：以下账号已重新上线：\nonebot:10000/)
    assert.deepEqual([bodies.length, away.bodies.length], [1, 1])
  })

  test('is told that a chat has been closed for ten minutes, why, and that it is open', async t => {
    const { url, bodies } = await receive(t)
    const relay = await relayWith(t, { config: { alertTo: [url], chatPauseAfter: 2, chatApiMaxRetries: 0 } })
    relay.simulator.mute(group, true)
    await relay.ask(`/hooks/message/group:${group}?message=waits`)
    await untilPassing(minute / 2, 'it is told', () => bodies.length === 1)
    assert.deepEqual(plain(bodies[0] ?? {}), ['held', 'firing', 1, [[`group:${group}`, 'onebot:10000']]])
    assert.equal(subjectsOf(bodies[0] ?? {})[0]?.reason, '机器人在该群被禁言')
    await pause(relay, other)
    await untilPassing(second / 10, 'a later look tells of something else', () => bodies.some(({ alert }) => alert === 'paused'))
    assert.deepEqual(bodies.map(({ alert, state }) => [alert, state]), [['held', 'firing'], ['paused', 'firing']])
    relay.simulator.mute(group, false)
    await untilPassing(minute / 2, 'it is told', () => bodies.length === 3)
    assert.deepEqual(plain(bodies[2] ?? {}), ['held', 'resolved', 1, [[`group:${group}`, 'onebot:10000']]])
  })

  test('is told that an account sends nothing, although its platform says that it is online', async t => {
    const { url, bodies } = await receive(t)
    const relay = await relayWith(t, { simulator: { heartbeatInterval: 10 }, config: { alertTo: [url] } })
    relay.simulator.fault({ fault: { kind: 'logged-out' }, times: Infinity })
    await relay.ask(`/hooks/message/group:${group}?message=waits`)
    await untilPassing(second, 'it is told', () => bodies.length === 1)
    assert.deepEqual(plain(bodies[0] ?? {}), ['held', 'firing', 1, [[`group:${group}`, 'onebot:10000']]])
    assert.equal(subjectsOf(bodies[0] ?? {})[0]?.reason, '账号已掉线，或平台无法联网')
  })

  test('is told again where the message is refused', async t => {
    const relay = await relayWith(t, { config: { alertTo: 'private:10001', chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'not-member' }, target: group })
    relay.simulator.fault({ fault: { kind: 'refuse' }, target: '10001' })
    assert.equal((await relay.post({ group_id: group, msg: 'a' })).status, 502)
    const told = (): string[] => relay.logs.flatMap(line => / alert gone private:10001 (.*)/.exec(line)?.[1] ?? [])
    await untilPassing(second, 'it is told', () => told().length === 2)
    assert.deepEqual([told().at(-1), relay.texts().length], ['sent', 1])
  })

  test('is told of the first of two chats by the other', async t => {
    const relay = await relayWith(t, { config: { alertTo: `group:${group},private:10001`, chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'not-member' }, target: group, times: Infinity })
    assert.equal((await relay.post({ group_id: group, msg: 'a' })).status, 502)
    await untilPassing(second / 10, 'it is told', () => relay.texts().length === 1)
  })

  test('that is none is a warning', async t => {
    const relay = await relayWith(t, { config: { alertTo: 'nobody' } })
    assert(relay.logs.some(line => line.startsWith('message-relay warn a receiver in alertTo is left out: ')), relay.logs.join('\n'))
  })
})

test('alertTo, as a name with several ways is told by the next way of an account that is offline', async t => {
  const texts: unknown[] = []
  const url = await serve(t, (request, response) => {
    void json(request).then(body => texts.push(isObject(body) && body.text))
    response.end()
  })
  const targets = { oncall: { first: [`group:${group}`, url] } }
  const relay = await relayWith(t, { config: { alertTo: 'oncall', targets } })
  const goOnline = await takeOffline(relay)
  await untilPassing(second, 'it is told', () => texts.length > 0)
  assert.match(String(texts[0]), /onebot:10000/)
  await goOnline()
})
