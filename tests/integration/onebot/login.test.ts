import { OneBotBot } from '@koishijs/plugin-adapter-onebot'
import { Universal, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { fieldsOf } from '../../../src/lib/shape'
import { explain } from '../../../src/message/causes'
import { anyPlatform } from '../../../src/platform/other/account'
import { Presence } from '../../../src/platform/presence'
import { Bots } from '../../../src/platform/bots'
import { oneBot } from '../../../src/platform/onebot/account'
import { wireOf } from '../../../src/platform/keeper/private-fields'
import { watchLogins } from '../../../src/platform/onebot/login'
import { wireEvents } from '../../../src/platform/keeper/wire'
import type { LoadedItem } from '../../../src/platform/port'
import { listen, serve } from '../../support/listen'
import { relayFor, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { group, text } from '../../support/items'
import { addForward } from '../../support/onebot'
import { addReverse, botOf, startApp, startSimulator, untilStatus, type TestApp } from './support'
import type { SimulatorOptions } from '../../../simulator'

/** The time between two looks, in milliseconds. */
const interval = 20

/** What a kicked account is told, and what the relay makes of it. */
const words = '下线通知: 你的账号已在另一台设备登录，本设备已下线。'
const kicked = `the account is logged out (platform: "${words}")`

/** Loads the watch, and waits for the bot. */
async function watch({ app }: TestApp) {
  let port: Bots | undefined
  const fork = app.plugin({ name: 'watch', apply: (ctx: Context) => {
    const presence = Presence.of(ctx)
    watchLogins(ctx, presence, interval)
    port = new Bots(ctx, presence, [oneBot, anyPlatform])
  } })
  await untilStatus(botOf(app), Universal.Status.ONLINE)
  assert(port)
  const known = port.find('onebot:10000')
  assert(known)
  const untilHealth = (state: string, cause?: string): Promise<void> =>
    until(`the account is ${state}`, () => known.health.state === state && explain(known.health.cause, known.health.words)?.toString() === cause)
  return { account: known, port, fork, untilHealth }
}

async function startWatched(t: TestContext, mode: 'forward' | 'reverse', options: SimulatorOptions = {}) {
  const started = await startApp(t)
  if (mode === 'reverse') addReverse(started.app)
  const reverse = { url: `ws://${started.host}/onebot`, redialInterval: 50 }
  const simulator = await startSimulator(t, mode === 'reverse' ? { reverse, ...options } : options)
  if (mode === 'forward') addForward(started.app, simulator.endpoint)
  return { simulator, ...await watch(started) }
}

describe('at the front door', () => {
  const statusOf = async (relay: TestRelay): Promise<unknown> => {
    const { data } = JSON.parse(await (await relay.request('/statusz')).text()) as { data: { bots: { since: string }[] } }
    return data.bots.map(({ since, ...bot }) => ({ ...bot, since: !Number.isNaN(Date.parse(since)) }))
  }

  test('an account that is kicked is offline at once, with the words of the platform, and back with the next heartbeat', async t => {
    const relay = await relayFor(t, { simulator: { heartbeatInterval: 50 } })
    const { simulator } = relay
    const bot = { platform: 'onebot', self_id: '10000', since: true }
    simulator.turn('loggedOut', true)
    await until('the log says so', () => relay.logs.some(line => line === `message-relay info bot onebot:10000 offline: ${kicked} after 0 s online`))
    const { status, headers, body } = await relay.send({ group_id: '123456', msg: 'lost?' })
    assert.deepEqual([status, headers.get('relay-outcome'), body.msg], [503, 'unsent', `no bot is online: ${kicked}: try again later`])
    assert.deepEqual(simulator.calls.filter(({ action }) => action.startsWith('send_')), [])
    assert.deepEqual(await statusOf(relay), [{ ...bot, status: 'offline', cause: kicked }])
    assert.match(await (await relay.request('/metrics')).text(), /bots\{status="offline"\} 1/)
    assert.equal((await fetch(`${relay.url}/readyz`)).status, 503)
    const contacts = await relay.request('/contacts?bot=onebot:10000')
    assert.equal(contacts.status, 503)
    assert.match(await contacts.text(), /the account is logged out/)
    simulator.turn('loggedOut', false)
    await until('it is back', () => relay.logs.some(line => /^message-relay info bot onebot:10000 online after \d+ s offline$/.test(line)))
    assert.equal((await relay.send({ group_id: '123456', msg: 'arrives' })).status, 200)
    assert.deepEqual(await statusOf(relay), [{ ...bot, status: 'online' }])
  })

  test('the account that is online is chosen, unless the target names one', async t => {
    const relay = await relayFor(t, { simulator: { heartbeatInterval: 50 } })
    const second = await startSimulator(t, { selfId: '20002' })
    const fork = addForward(relay.app, second.endpoint, { selfId: '20002' })
    t.after(() => fork.dispose())
    await untilStatus(botOf(relay.app, '20002'), Universal.Status.ONLINE)
    relay.simulator.turn('loggedOut', true)
    await until('it is known', () => relay.logs.some(line => line.includes('logged out')))
    assert.equal((await relay.send({ to: 'group:123456', msg: 'a' })).status, 200)
    assert.equal((await relay.send({ to: 'onebot:20002:group:123456', msg: 'b' })).status, 200)
    assert.deepEqual(second.ledger.map(entry => entry.text), ['a', 'b'])
    const { status, body } = await relay.send({ to: 'onebot:10000:group:123456', msg: 'c' })
    assert.equal(status, 503)
    assert.match(body.msg, /^no bot with this platform and self_id is online: the account is logged out/)
  })
})

describe('the login of an account', () => {
  for (const mode of ['forward', 'reverse'] as const) {
    test(`is known over a ${mode} connection from heartbeats, where there is no notice`, async t => {
      const { simulator, untilHealth } = await startWatched(t, mode, { heartbeatInterval: 20 })
      simulator.transmit('{"self_id":10000,"post_type":"meta_event","meta_event_type":"heartbeat","status":{}}')
      await untilHealth('online')
      simulator.fault({ action: 'get_status', times: Infinity, fault: { kind: 'silent' } })
      simulator.turn('loggedOut', true)
      await untilHealth('offline', kicked)
      simulator.turn('loggedOut', false)
      await untilHealth('online')
    })

    test(`is asked for over a ${mode} connection without heartbeats, and again after a new connection`, async t => {
      const { simulator, account, untilHealth } = await startWatched(t, mode)
      simulator.fault({ action: 'get_status', times: Infinity, fault: { kind: 'answer', answer: { status: 'ok', retcode: 0, data: { online: false } } } })
      await untilHealth('offline', 'the account is logged out')
      await assert.rejects(account.message(group, [text('a')], 'x').send(() => assert.fail('it is not called')), { outcome: 'unsent', message: 'the account is logged out' })
      simulator.disconnectAll()
      await until('the connection is lost', () => account.health.cause === 'disconnected')
      await untilHealth('offline', 'the account is logged out')
      simulator.clearFaults()
      await untilHealth('online')
    })
  }

  test('that Lagrange reports as lost stays lost, although its heartbeats and get_status say otherwise, until it reports that it is back', async t => {
    const { simulator, account, untilHealth } = await startWatched(t, 'forward')
    const status = { app_initialized: true, app_enabled: true, app_good: true, online: true, good: true }
    const answer = { status: 'ok', retcode: 0, data: { ...status, plugins_good: true, memory: 1 } }
    simulator.fault({ action: 'get_status', times: Infinity, fault: { kind: 'answer', answer } })
    const tell = (event: object): void => simulator.transmit(JSON.stringify({ self_id: 10000, time: 1, ...event }))
    const beat = (): void => tell({ post_type: 'meta_event', meta_event_type: 'heartbeat', interval: 5_000, status })
    const [tag = '', message = ''] = words.split(': ')
    tell({ post_type: 'notice', notice_type: 'bot_offline', tag, message })
    await untilHealth('offline', kicked)
    beat()
    const before = simulator.calls.length
    await until('it is asked twice', () => simulator.calls.length >= before + 2)
    assert.equal(String(explain(account.health.cause, account.health.words)), kicked)
    tell({ post_type: 'notice', notice_type: 'bot_online', reason: 1 })
    await untilHealth('online')
    tell({ post_type: 'notice', notice_type: 'bot_offline', tag, message })
    await untilHealth('offline', kicked)
    simulator.disconnectAll()
    await untilHealth('online')
  })

  test('is asked for over HTTP', async t => {
    let online: unknown = true
    const endpoint = await serve(t, (request, response) => {
      request.resume()
      const data = request.url === '/get_login_info' ? { user_id: 10000, nickname: 'bot' } : { online }
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ status: 'ok', retcode: 0, data }))
    })
    const started = await startApp(t)
    started.app.plugin<OneBotBot.Config>(OneBotBot, { protocol: 'http', selfId: '10000', endpoint, token: '', proxyAgent: '' })
    await untilStatus(botOf(started.app), Universal.Status.ONLINE)
    const { untilHealth } = await watch(started)
    online = false
    await untilHealth('offline', 'the account is logged out')
    online = undefined
    await untilHealth('online')
  })

  test('is doubtful after an answer that names it, which means that nothing left', { timeout: 10_000 }, async t => {
    const { simulator, account, port, untilHealth } = await startWatched(t, 'forward')
    simulator.fault({ fault: { kind: 'logged-out' } })
    const send = account.message(group, [text('a')], 'x').send(() => undefined)
    const offline = new Promise<string | undefined>(resolve => {
      port.onHealth(() => resolve(explain(account.health.cause, account.health.words)?.toString()))
    })
    await assert.rejects(send, { outcome: 'unsent', causeId: 'logged-out' })
    assert.equal(account.health.state, 'online', 'the caller learns of its failure first')
    assert.match(await offline ?? '', /logged out.*1006514/)
    await untilHealth('online')
    assert.equal((await account.message(group, [text('b')], 'x').send(() => undefined)).messageIds.length, 1)
  })

  test('is asked for after two calls without an answer, although heartbeats come', async t => {
    const { simulator, account } = await startWatched(t, 'forward', { heartbeatInterval: 10 })
    const asked = (): number => simulator.calls.filter(({ action }) => action === 'get_status').length
    const before = asked()
    simulator.fault({ fault: { kind: 'swallowed' }, times: 2 })
    await account.message(group, [text('a')], 'x').send(() => undefined).catch(() => undefined)
    await new Promise(resolve => setTimeout(resolve, 3 * interval))
    assert.equal(asked(), before, 'one is not enough')
    await account.message(group, [text('b')], 'x').send(() => undefined).catch(() => undefined)
    await until('it is asked', () => asked() > before)
    simulator.fault({ fault: { kind: 'silent' }, times: 2 })
    const last = asked()
    const sends = ['c', 'd'].map(letter => account.message(group, [text(letter)], 'x').send(() => undefined).catch(() => undefined))
    await until('it is asked again', () => asked() > last)
    assert.equal(account.health.state, 'online')
    // They end with the connection: after the end of the app, the adapter would fail at that.
    simulator.disconnectAll()
    await Promise.all(sends)
  })

  test('a platform that answered before and answers nothing any more is offline', async t => {
    const { simulator, untilHealth } = await startWatched(t, 'forward')
    await until('it has answered', () => simulator.calls.some(({ action }) => action === 'get_status'))
    const silence = simulator.fault({ action: /./, times: Infinity, fault: { kind: 'silent' } })
    await untilHealth('offline', 'the platform does not answer')
    silence.remove()
    await untilHealth('online')
  })

  test('a platform that is still reading a large picture is not offline, although it answers nothing meanwhile', async t => {
    const started = await startApp(t)
    const http = createServer()
    const server = new WebSocketServer({ server: http })
    t.after(() => http.close())
    let asked = 0
    server.on('connection', socket => socket.on('message', (data: Buffer) => {
      const { action, echo } = fieldsOf(JSON.parse(data.toString()))
      if (action === 'get_status') asked++
      socket.send(JSON.stringify({ status: 'ok', retcode: 0, data: { user_id: 10000, nickname: 'a', online: true, message_id: 1 }, echo }))
    }))
    addForward(started.app, `ws://127.0.0.1:${await listen(http)}`)
    const { account } = await watch(started)
    await until('it has answered', () => asked > 0)
    const wire = wireOf(botOf(started.app))
    assert(wire)
    for (const socket of server.clients) socket.pause()
    const picture: LoadedItem = { type: 'image', src: `data:image/png;base64,${'A'.repeat(30_000_000)}`, name: 'a.png' }
    const sent = account.message(group, [picture], 'x').send(() => undefined)
    await until('it does not read', () => wire.socket.bufferedAmount > 0)
    for (let questions = 0; questions < 6; questions++) {
      const before = wire.socket.bufferedAmount
      await until('one more question waits', () => wire.socket.bufferedAmount > before)
    }
    assert.equal(account.health.state, 'online')
    for (const socket of server.clients) socket.resume()
    assert.deepEqual((await sent).messageIds, ['1'])
  })

  test('counts as there while the platform is connected and cannot tell', async t => {
    for (const answer of [{ status: 'failed', retcode: 1404, data: null }, { status: 'ok', retcode: 0, data: { online: 'no' } }, { status: 'ok', retcode: 0 }]) {
      const { simulator, account } = await startWatched(t, 'forward')
      simulator.fault({ action: 'get_status', times: Infinity, fault: { kind: 'answer', answer } })
      await until('it was asked twice', () => simulator.calls.filter(({ action }) => action === 'get_status').length >= 2)
      assert.equal(account.health.state, 'online')
    }
  })

  test('is taken from no other account', async t => {
    const { simulator, account } = await startWatched(t, 'forward')
    simulator.transmit('{"post_type":"notice","notice_type":"bot_offline","self_id":20002,"user_id":20002}')
    await account.groups?.()
    assert.equal(account.health.state, 'online')
  })

  test('is not taken from an older connection, of a OneBot that has lost the account', async t => {
    const started = await startApp(t)
    addReverse(started.app)
    const url = `ws://${started.host}/onebot`
    const old = new WebSocket(url, { headers: { 'x-self-id': '10000', 'x-client-role': 'Universal' } })
    t.after(() => old.terminate())
    old.on('message', (data: Buffer) => {
      const { echo } = fieldsOf(JSON.parse(data.toString()))
      old.send(JSON.stringify({ status: 'ok', retcode: 0, data: { user_id: 10000, nickname: 'old', online: true }, echo }))
    })
    const { account } = await watch(started)
    await startSimulator(t, { reverse: { url, redialInterval: 50 } })
    const bot = botOf(started.app)
    const before = wireOf(bot)
    await until('the other has connected', () => wireOf(bot) !== before && account.isOnline)
    old.send(JSON.stringify({ post_type: 'meta_event', meta_event_type: 'heartbeat', self_id: 10000, time: 1, status: { online: false, good: true } }))
    old.ping()
    await once(old, 'pong')
    assert.equal(account.health.state, 'online')
  })

  test('is watched no more once the plugin is unloaded', async t => {
    const before = wireEvents.listenerCount('event')
    const { simulator, fork } = await startWatched(t, 'forward')
    assert.equal(wireEvents.listenerCount('event'), before + 1)
    await until('it was asked', () => simulator.calls.some(({ action }) => action === 'get_status'))
    fork.dispose()
    assert.equal(wireEvents.listenerCount('event'), before)
    const asked = simulator.calls.length
    await new Promise(resolve => setTimeout(resolve, 10 * interval))
    assert.equal(simulator.calls.length, asked)
  })
})
