import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { listen } from '../../support/listen'
import { addForward } from '../../support/onebot'
import { until } from '../../support/until'
import { botOf, countStatus, soon, startApp, startCable, startPair, startSimulator, untilSends, untilStatus } from './support'

describe('a forward connection', { concurrency: 4 }, () => {
  for (const code of [undefined, 1012]) {
    test(`comes back after the other side closed it ${code === undefined ? 'abruptly' : `with ${code}`}`, async t => {
      const { simulator, bot, logs } = await startPair(t, 'forward')
      simulator.disconnectAll(code)
      await untilStatus(bot, Universal.Status.OFFLINE)
      await untilSends(bot, simulator, 'again')
      assert.equal(simulator.connections, 1)
      assert.deepEqual(logs, ['the bot onebot:10000 is not connected: trying until it is', 'the bot onebot:10000 is back'])
    })
  }

  test('comes back after a restart that outlasts the tries of the adapter, and tells of it once', async t => {
    const { app, simulator, bot, logs } = await startPair(t, 'forward', { retryTimes: 1, retryInterval: 10 })
    const failures = countStatus(app, bot, Universal.Status.RECONNECT)
    await simulator.goOffline()
    await until('three dials have failed', () => failures() >= 4, soon)
    await simulator.goOnline()
    await untilSends(bot, simulator, 'again')
    assert.equal(simulator.connections, 1)
    assert.equal(logs.length, 2)

    // The next outage begins with a short wait again.
    const lost = Date.now()
    simulator.disconnectAll()
    await untilStatus(bot, Universal.Status.OFFLINE)
    await untilSends(bot, simulator, 'soon')
    assert(Date.now() - lost < 2_000)
  })

  test('comes about when the other side is up only after the bot', async t => {
    const { app } = await startApp(t)
    const [first, second] = [await startSimulator(t), await startSimulator(t, { selfId: '10001' })]
    await Promise.all([first.goOffline(), second.goOffline()])
    addForward(app, first.endpoint, { retryTimes: 0 })
    addForward(app, second.endpoint, { retryInterval: 5_000, selfId: '10001' })
    const bots = [botOf(app), botOf(app, '10001')] as const
    const failures = bots.map(bot => countStatus(app, bot, Universal.Status.OFFLINE))
    await until('dials have failed', () => failures.every(count => count() >= 1), soon)
    await Promise.all([first.goOnline(), second.goOnline()])
    await untilSends(bots[0], first, 'at last')
    await untilSends(bots[1], second, 'at last')
  })

  test('is made anew when the login over it failed', async t => {
    const { app } = await startApp(t)
    const simulator = await startSimulator(t)
    simulator.fault({ action: 'get_login_info', fault: { kind: 'refuse' }, times: 2 })
    addForward(app, simulator.endpoint)
    await untilSends(botOf(app), simulator, 'at last')
    assert.equal(simulator.connections, 1)
  })

  test('is cut when its login failed and the other side does not let it be closed', async t => {
    const { app } = await startApp(t)
    const simulator = await startSimulator(t)
    const cable = await startCable(t, simulator.port)
    simulator.fault({ action: 'get_login_info', fault: { kind: 'refuse' } })
    addForward(app, cable.endpoint)
    const bot = botOf(app)
    app.on('bot-status-updated', () => {
      if (bot.status === Universal.Status.OFFLINE && cable.connections() === 1) cable.cut()
    })
    await untilSends(bot, simulator, 'at last')
    assert.equal(cable.connections(), 2)
  })

  test('stays closed when a person stopped the bot, until a person starts it', async t => {
    const { app, simulator, bot, logs } = await startPair(t, 'forward')
    const other = await startSimulator(t, { selfId: '10001' })
    addForward(app, other.endpoint, { selfId: '10001' })
    const control = botOf(app, '10001')
    await untilStatus(control, Universal.Status.ONLINE)

    await bot.stop()
    assert.equal(bot.status, Universal.Status.OFFLINE)
    // As long as another one takes to come back three times, it would have come back itself.
    for (const text of ['one', 'two', 'three']) {
      other.disconnectAll()
      await untilStatus(control, Universal.Status.OFFLINE)
      await untilSends(control, other, text)
    }
    assert.equal(bot.status, Universal.Status.OFFLINE)
    assert.equal(simulator.connections, 0)
    assert(logs.every(line => line.includes('10001')))

    await bot.start()
    await untilSends(bot, simulator, 'started')
    simulator.disconnectAll()
    await untilStatus(bot, Universal.Status.OFFLINE)
    await untilSends(bot, simulator, 'supervised')
  })

  test('comes back when a person stops the bot and starts it at once', async t => {
    const { simulator, bot } = await startPair(t, 'forward')
    await bot.stop()
    // The old connection is still being closed, and its end takes the request function of the new one away.
    await bot.start()
    await until('it was dialled', () => simulator.calls.filter(call => call.action === 'get_login_info').length === 2)
    await untilSends(bot, simulator, 'again')
    assert.equal(simulator.connections, 1)
  })

  test('is not dialled twice when the one before it ends during the dial', async t => {
    const { app } = await startApp(t)
    const simulator = await startSimulator(t)
    const cable = await startCable(t, simulator.port)
    addForward(app, cable.endpoint)
    const bot = botOf(app)
    await untilStatus(bot, Universal.Status.ONLINE)
    // Longer than the wait before a try.
    cable.slow(1_000)
    await bot.stop()
    await bot.start()
    await untilStatus(bot, Universal.Status.OFFLINE)
    await untilSends(bot, simulator, 'again')
    assert.equal(cable.connections(), 2)
  })

  test('stays closed when a person stopped the bot during a dial', async t => {
    const { simulator, bot } = await startPair(t, 'forward')
    await bot.stop()
    await until('the connection is closed', () => simulator.connections === 0)
    simulator.clear()
    // The adapter does not cancel the dial: it opens, and the bot goes online.
    await Promise.all([bot.start(), bot.stop()])
    await until('the dial came through', () => simulator.calls.some(call => call.action === 'get_login_info'))
    await until('it was closed again', () => simulator.connections === 0)
    assert.equal(bot.status, Universal.Status.OFFLINE)
  })

  test('that nobody answers is given up in time', async t => {
    const { app } = await startApp(t)
    const held: Socket[] = []
    let closed = 0
    const silent = createServer(socket => {
      held.push(socket.resume().on('close', () => closed++))
    })
    t.after(() => {
      for (const socket of held) socket.destroy()
      silent.close()
    })
    addForward(app, `ws://127.0.0.1:${await listen(silent)}`)
    await until('it was dialled again', () => held.length === 2, 2 * soon)
    assert.equal(closed, 1)
  })

  test('that was cut without a word is noticed and made anew', async t => {
    const { app } = await startApp(t, 50)
    const simulator = await startSimulator(t)
    const cable = await startCable(t, simulator.port)
    addForward(app, cable.endpoint)
    const bot = botOf(app)
    await untilStatus(bot, Universal.Status.ONLINE)
    const offline = countStatus(app, bot, Universal.Status.OFFLINE)
    const answers = cable.answers()
    await until('a ping was answered', () => cable.answers() > answers)
    cable.cut()
    await until('it was noticed', () => offline() === 1, soon)
    await untilSends(bot, simulator, 'again')
    assert.equal(cable.connections(), 2)
  })
})
