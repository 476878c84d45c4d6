import { Universal, type Bot, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { Presence } from '../../../src/platform/presence'
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

/** Waits until it tells that the bot is online, or that it is not. */
function whenTold(presence: Presence, bot: Bot, isOnline: boolean): Promise<void> {
  return new Promise(resolve => {
    const end = presence.subscribe((changed, { state }) => {
      if (changed !== bot || (state === 'online') !== isOnline) return
      end()
      resolve()
    })
  })
}

describe('presence', () => {
  test('tells when the bot goes and comes', async t => {
    const { presence, simulator, bot } = await start(t)
    const gone = whenTold(presence, bot, false)
    simulator.disconnectAll()
    await gone
    assert.notEqual(bot.status, Universal.Status.ONLINE)
    await whenTold(presence, bot, true)
    assert.equal(bot.status, Universal.Status.ONLINE)
  })

  test('takes a bot that is removed for one that goes', async t => {
    const { app, presence, bot } = await start(t)
    const { endpoint } = await startSimulator(t, { selfId: '10001' })
    const fork = addForward(app, endpoint, { selfId: '10001' })
    const other = botOf(app, '10001')
    await untilStatus(other, Universal.Status.ONLINE)
    const gone = whenTold(presence, other, false)
    fork.dispose()
    await gone
    assert(presence.isOnline(bot))
  })

  test('goes on for those who wait when the plugin is loaded again, and catches up with what they missed', async t => {
    const { app, presence, simulator, bot, unload } = await start(t)
    const called: string[] = []
    presence.subscribe((bot, { state }) => called.push(`${bot.sid} ${state}`))
    unload()
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    assert.equal(called.length, 0)
    const fork = app.plugin((ctx: Context) => assert.equal(Presence.of(ctx), presence))
    assert.deepEqual(called, ['onebot:10000 offline'])
    fork.dispose()
    await simulator.goOnline()
    await untilStatus(bot, Universal.Status.ONLINE)
    assert.deepEqual(called, ['onebot:10000 offline'])
    app.plugin((ctx: Context) => assert.equal(Presence.of(ctx), presence))
    assert.deepEqual(called, ['onebot:10000 offline', 'onebot:10000 online'])
  })
})
