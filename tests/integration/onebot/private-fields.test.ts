import { Bot, h, MessageEncoder, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { unwrap } from '../../../src/lib/koishi'
import { isObject } from '../../../src/lib/shape'
import { Presence } from '../../../src/platform/bots'
import { announceSend, createEncoder, createSession, render } from '../../../src/platform/koishi'
import { oneBot } from '../../../src/platform/onebot/account'
import { hasRequest, recordAnswers, requestOf, wireOf } from '../../../src/platform/onebot/adapter'
import { until } from '../../support/until'
import { startPair } from './support'

/** What other packages do not promise and the relay relies on: each of these fails when a new version has it elsewhere. */
describe('the private parts of other packages', () => {
  for (const mode of ['forward', 'reverse'] as const) {
    test(`adapter-onebot and ws: the socket of a ${mode} connection`, async t => {
      const { bot } = await startPair(t, mode)
      const socket = wireOf(bot)?.socket
      assert(socket instanceof WebSocket)
      assert.equal(socket.readyState, WebSocket.OPEN)
    })

    test(`ws: the connection under the socket of a ${mode} connection, through which the calls of a turn leave together`, async t => {
      const { bot } = await startPair(t, mode)
      const connection: unknown = Reflect.get(wireOf(bot)?.socket ?? {}, '_socket')
      assert(connection instanceof Writable)
      const calls = [1, 2].map(() => requestOf(bot)('get_status', {}))
      assert.equal(connection.writableCorked, 1)
      await Promise.all(calls)
      assert.equal(connection.writableCorked, 0)
    })

    test(`adapter-onebot: the whole answer to a call over a ${mode} connection, for as long as it is open`, async t => {
      const { simulator, bot } = await startPair(t, mode)
      const request = requestOf(bot)
      const answer = await request('no_such_action', {})
      assert(isObject(answer))
      assert.equal(answer.retcode, 1404)
      assert.equal(typeof answer.message, 'string')
      simulator.fault({ action: 'get_status', fault: { kind: 'late', ms: 50 } })
      const wire = wireOf(bot)
      assert(wire)
      const { mock } = t.mock.method(wire.socket, 'send')
      await request('get_status', {})
      assert.match(mock.calls[0]?.arguments[0] ?? '', /"echo":"relay-/, 'the call is made past the adapter')
      await simulator.goOffline()
      await until('the way to make calls is gone', () => !hasRequest(bot))
      assert.throws(() => requestOf(bot), { name: 'SendError', outcome: 'unsent' })
    })
  }

  test('@cordisjs/core: who listens to an event', async t => {
    const { app, bot } = await startPair(t, 'forward')
    const account = oneBot.account(bot, Presence.of(app))
    assert(!account.isHeard)
    for (const listen of [() => app.on('send', () => undefined), () => app.platform('onebot').on('before-send', () => undefined)]) {
      const remove = listen()
      assert(account.isHeard)
      remove()
      assert(!account.isHeard)
    }
    const names: unknown[] = []
    t.after(app.on('internal/event', (_type, name) => {
      names.push(name)
    }))
    assert(account.isHeard, 'those who are told of all events count')
    const session = createSession(bot, '123456', false)
    await announceSend(account, session, [h.text('a')])
    assert(names.includes('before-send'))
  })

  test('adapter-onebot and @satorijs/core: the encoder, whose calls can be overheard', async t => {
    const { simulator, bot } = await startPair(t, 'forward')
    const { view, answers } = recordAnswers(bot)
    assert(view instanceof Bot)
    const encoder = createEncoder(view, '123456')
    assert(encoder instanceof MessageEncoder)
    encoder.session = createSession(bot, '123456', false)
    encoder.session.elements = [h('at', { id: '10001' }), h.text(' a')]
    const ids = await render(encoder)
    assert.deepEqual(ids, [String(simulator.ledger[0]?.messageId)])
    assert.deepEqual(answers.map(answer => isObject(answer) && answer.data), [{ message_id: simulator.ledger[0]?.messageId }])
    assert.deepEqual(encoder.errors, [])
  })

  test('@cordisjs/core: what is behind its tracing proxies', async t => {
    const { app, simulator, bot } = await startPair(t, 'forward')
    let inner: Bot | undefined
    app.plugin((ctx: Context) => {
      inner = ctx.bots['onebot:10000']
    })
    assert(inner)
    assert.notEqual(inner, bot)
    assert.equal(unwrap(inner), bot)
    assert.equal(unwrap(bot), bot)
    const read: unknown[] = []
    app.middleware(session => {
      read.push(session === unwrap(session), Reflect.get(unwrap(session), 'onebot'))
    }, true)
    simulator.say({ group: '123456', user: '10001', text: 'a' })
    await until('the message was heard', () => read.length === 2)
    const [isBare, event] = read
    assert.equal(isBare, false)
    assert(isObject(event))
    assert.equal(event.post_type, 'message')
  })
})
