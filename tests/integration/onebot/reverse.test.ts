import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../../support/until'
import { addReverse, botOf, countStatus, startApp, startPair, startSimulator, untilSends, untilStatus } from './support'

describe('a reverse connection', { concurrency: 4 }, () => {
  test('comes back after a restart of the other side', async t => {
    const { simulator, bot } = await startPair(t, 'reverse')
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    await simulator.goOnline()
    await untilSends(bot, simulator, 'again')
    assert.equal(simulator.connections, 1)
  })

  test('is closed, so that it is made anew, when the end of its predecessor took the request function away', async t => {
    const { app, host, simulator, bot, logs } = await startPair(t, 'reverse')
    const successor = await startSimulator(t, { reverse: { url: `ws://${host}/onebot`, redialInterval: 100 } })
    await until('the successor is asked who it is', () => successor.calls.some(call => call.action === 'get_guild_service_profile'))
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    await untilSends(bot, successor, 'again')
    assert.equal(successor.connections, 1)
    assert.equal(app.bots.length, 1)
    assert.deepEqual(logs, [
      'the bot onebot:10000 has a broken connection: closing it',
      'the bot onebot:10000 is back',
    ])
  })

  test('is closed as well when its predecessor ends while the adapter logs in', async t => {
    const { app, host, simulator, bot, logs } = await startPair(t, 'reverse')
    const successor = await startSimulator(t, { reverse: { url: `ws://${host}/onebot`, redialInterval: 100 } })
    successor.fault({ action: 'get_login_info', fault: { kind: 'late', ms: 200 } })
    await until('the adapter logs in', () => successor.calls.some(call => call.action === 'get_login_info'))
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    const online = countStatus(app, bot, Universal.Status.ONLINE)
    await until('the late answer to the login brings it online without a way to make calls', () => online() === 1)
    await untilSends(bot, successor, 'again')
    assert.equal(successor.connections, 1)
    assert.equal(logs.length, 2)
  })

  test('is closed, so that it is made anew, when the login over it failed', async t => {
    const { app, host } = await startApp(t)
    addReverse(app)
    const simulator = await startSimulator(t, { reverse: { url: `ws://${host}/onebot`, redialInterval: 100 } })
    simulator.fault({ action: 'get_login_info', fault: { kind: 'refuse' }, times: 2 })
    await untilSends(botOf(app), simulator, 'at last')
    assert.equal(simulator.connections, 1)
    assert.equal(simulator.calls.filter(call => call.action === 'get_login_info').length, 3)
  })

  test('leaves the bot of another account alone', async t => {
    const { app, host, simulator, bot } = await startPair(t, 'reverse')
    addReverse(app, '10001')
    const other = await startSimulator(t, { selfId: '10001', reverse: { url: `ws://${host}/onebot`, redialInterval: 100 } })
    await untilSends(botOf(app, '10001'), other, 'other')
    other.disconnectAll()
    await untilStatus(botOf(app, '10001'), Universal.Status.OFFLINE)
    await untilSends(botOf(app, '10001'), other, 'again')
    await untilSends(bot, simulator, 'still')
    assert.equal(simulator.calls.filter(call => call.action === 'get_login_info').length, 1)
  })
})
