import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addForward } from '../../support/onebot'
import { botOf, startApp, startPair, startSimulator, untilSends, untilStatus } from './support'

/** Timers that keep the process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
}

describe('the keeper', () => {
  for (const mode of ['forward', 'reverse'] as const) {
    test(`leaves no timer of a ${mode} bot that is offline behind, and takes it up again when it is loaded again`, async t => {
      const { simulator, bot, keeper, load } = await startPair(t, mode)
      await simulator.goOffline()
      await untilStatus(bot, Universal.Status.OFFLINE)
      const waiting = timers()
      keeper.dispose()
      assert.equal(timers(), waiting - 1)
      await simulator.goOnline()
      load()
      await untilSends(bot, simulator, 'again')
    })
  }

  test('that is loaded again leaves a bot stopped that a person stopped before', async t => {
    const { app, bot, keeper, load } = await startPair(t, 'forward')
    await bot.stop()
    keeper.dispose()
    const before = timers()
    load()
    assert.equal(timers(), before)
    assert.equal(app.bots.length, 1)
  })

  test('that is loaded again looks after a bot that a person started meanwhile', async t => {
    const { simulator, bot, keeper, load } = await startPair(t, 'forward')
    await bot.stop()
    keeper.dispose()
    await bot.start()
    await untilStatus(bot, Universal.Status.ONLINE)
    load()
    await untilSends(bot, simulator, 'started')
    simulator.disconnectAll()
    await untilStatus(bot, Universal.Status.OFFLINE)
    await untilSends(bot, simulator, 'again')
  })

  test('leaves the old bot alone when an adapter is loaded anew', async t => {
    const { app } = await startApp(t)
    const simulator = await startSimulator(t)
    const fork = addForward(app, simulator.endpoint)
    const old = botOf(app)
    await untilStatus(old, Universal.Status.ONLINE)
    fork.dispose()
    addForward(app, simulator.endpoint)
    const bot = botOf(app)
    assert.notEqual(bot, old)
    await untilSends(bot, simulator, 'new')
    for (const text of ['one', 'two', 'three']) {
      simulator.disconnectAll()
      await untilStatus(bot, Universal.Status.OFFLINE)
      await untilSends(bot, simulator, text)
    }
    assert.equal(simulator.connections, 1)
    assert.equal(old.status, Universal.Status.OFFLINE)
  })

  test('gives a bot up that was removed', async t => {
    const { app } = await startApp(t)
    const simulator = await startSimulator(t)
    const fork = addForward(app, simulator.endpoint)
    const bot = botOf(app)
    await untilStatus(bot, Universal.Status.ONLINE)
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    const waiting = timers()
    fork.dispose()
    assert.equal(timers(), waiting - 1)
  })
})
