import { Universal, type Bot, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { Presence } from '../../../src/platform/bots'
import { addForward } from '../../support/onebot'
import { botOf, startPair, startSimulator, untilStatus, type Pair } from './support'

/** A pair and who tells of the presence of its bot. */
async function start(t: TestContext): Promise<Pair & { presence: Presence, unload: () => void }> {
  const pair = await startPair(t, 'forward')
  let presence: Presence | undefined
  const fork = pair.app.plugin((ctx: Context) => {
    presence = Presence.of(ctx)
  })
  assert(presence)
  return { ...pair, presence, unload: () => fork.dispose() }
}

function whenOffline(presence: Presence, bot: Bot): Promise<void> {
  return new Promise(resolve => void presence.once(bot, false, resolve))
}

function whenOnline(presence: Presence, bot: Bot): Promise<void> {
  return new Promise(resolve => void presence.once(bot, true, resolve))
}

describe('presence', () => {
  test('tells when the bot goes and comes, whether it is a proxy or not', async t => {
    const { app, presence, simulator, bot } = await start(t)
    const proxy = app.bots['onebot:10000']
    assert(proxy)
    const gone = Promise.all([whenOffline(presence, bot), whenOffline(presence, proxy)])
    simulator.disconnectAll()
    await gone
    assert.notEqual(bot.status, Universal.Status.ONLINE)
    const back = Promise.all([whenOnline(presence, bot), whenOnline(presence, proxy)])
    await back
    assert.equal(bot.status, Universal.Status.ONLINE)
  })

  test('takes a bot that is removed for one that goes', async t => {
    const { app, presence, bot } = await start(t)
    const { endpoint } = await startSimulator(t, { selfId: '10001' })
    const fork = addForward(app, endpoint, { selfId: '10001' })
    const other = botOf(app, '10001')
    await untilStatus(other, Universal.Status.ONLINE)
    let isOther = true
    presence.once(bot, false, () => {
      isOther = false
    })
    const gone = whenOffline(presence, other)
    fork.dispose()
    await gone
    assert(isOther)
  })

  test('calls back once, or not at all once the watch was ended', async t => {
    const { presence, simulator, bot } = await start(t)
    const called: string[] = []
    const endSecond = presence.once(bot, false, () => called.push('second'))
    endSecond()
    presence.once(bot, false, () => {
      called.push('first')
      endThird()
    })
    const endThird = presence.once(bot, false, () => called.push('third'))
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    assert.deepEqual(called, ['first'])
    presence.once(bot, false, () => called.push('at once'))
    assert.deepEqual(called, ['first', 'at once'])
  })

  test('goes on for those who wait when the plugin is loaded again, and catches up with what they missed', async t => {
    const { app, presence, simulator, bot, unload } = await start(t)
    const called: string[] = []
    presence.subscribe((bot, { state }) => called.push(`${bot.sid} ${state}`))
    presence.once(bot, false, () => called.push('offline'))
    unload()
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    assert.equal(called.length, 0)
    const fork = app.plugin((ctx: Context) => assert.equal(Presence.of(ctx), presence))
    assert.deepEqual(called, ['onebot:10000 offline', 'offline'])
    presence.once(bot, true, () => called.push('online'))
    fork.dispose()
    await simulator.goOnline()
    await untilStatus(bot, Universal.Status.ONLINE)
    assert.deepEqual(called, ['onebot:10000 offline', 'offline'])
    app.plugin((ctx: Context) => assert.equal(Presence.of(ctx), presence))
    assert.deepEqual(called, ['onebot:10000 offline', 'offline', 'onebot:10000 online', 'online'])
  })
})
