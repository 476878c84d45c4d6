import { Universal, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import { Presence } from '../../src/connections/presence'
import { addForward, botOf, startPair, startSimulator, untilStatus, type Pair } from './support'

/** A pair and who tells of the presence of its bot. */
async function start(t: TestContext): Promise<Pair & { presence: Presence, unload: () => void }> {
  const pair = await startPair(t, 'forward')
  let presence: Presence | undefined
  const fork = pair.app.plugin((ctx: Context) => {
    presence = new Presence(ctx)
  })
  assert(presence)
  return { ...pair, presence, unload: () => fork.dispose() }
}

describe('presence', () => {
  test('tells at once what is so already', async t => {
    const { presence, simulator, bot } = await start(t)
    const { signal } = new AbortController()
    await presence.whenOnline(bot, signal)
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    await presence.whenOffline(bot, signal)
    assert.equal(presence.size, 0)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })

  test('tells when the bot goes and comes, whether it is a proxy or not', async t => {
    const { app, presence, simulator, bot } = await start(t)
    const { signal } = new AbortController()
    const proxy = app.bots['onebot:10000']
    assert(proxy)
    const gone = Promise.all([presence.whenOffline(bot, signal), presence.whenOffline(proxy, signal)])
    assert.equal(presence.size, 2)
    simulator.disconnectAll()
    await gone
    assert.notEqual(bot.status, Universal.Status.ONLINE)
    const back = Promise.all([presence.whenOnline(bot, signal), presence.whenOnline(proxy, signal)])
    assert.equal(presence.size, 2)
    await back
    assert.equal(bot.status, Universal.Status.ONLINE)
    assert.equal(presence.size, 0)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })

  test('takes a bot that is removed for one that goes', async t => {
    const { app, presence, bot } = await start(t)
    const { endpoint } = await startSimulator(t, { selfId: '10001' })
    const fork = addForward(app, endpoint, { selfId: '10001' })
    const other = botOf(app, '10001')
    await untilStatus(other, Universal.Status.ONLINE)
    const { signal } = new AbortController()
    let isOther = true
    void presence.whenOffline(bot, signal).then(() => {
      isOther = false
    })
    const gone = presence.whenOffline(other, signal)
    fork.dispose()
    await gone
    assert(isOther)
    assert.equal(presence.size, 1)
  })

  test('ends with the reason of the signal and leaves nothing behind', async t => {
    const { presence, simulator, bot } = await start(t)
    const reason = new Error('enough')
    const controller = new AbortController()
    const { signal } = controller
    const gone = presence.whenOffline(bot, signal)
    assert.equal(getEventListeners(signal, 'abort').length, 1)
    controller.abort(reason)
    await assert.rejects(gone, reason)
    await assert.rejects(presence.whenOffline(bot, signal), reason)
    assert.equal(presence.size, 0)
    assert.equal(getEventListeners(signal, 'abort').length, 0)

    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    const later = new AbortController()
    const back = presence.whenOnline(bot, later.signal)
    later.abort(reason)
    await assert.rejects(back, reason)
    assert.equal(presence.size, 0)
  })

  test('calls back once, or not at all once the watch was ended', async t => {
    const { presence, simulator, bot } = await start(t)
    const called: string[] = []
    const endSecond = presence.onOffline(bot, () => called.push('second'))
    endSecond()
    presence.onOffline(bot, () => {
      called.push('first')
      endThird()
    })
    const endThird = presence.onOffline(bot, () => called.push('third'))
    await simulator.goOffline()
    await untilStatus(bot, Universal.Status.OFFLINE)
    assert.deepEqual(called, ['first'])
    presence.onOffline(bot, () => called.push('at once'))
    assert.deepEqual(called, ['first', 'at once'])
  })

  test('listens no more once the plugin is disposed', async t => {
    const { app, presence, unload } = await start(t)
    const count = (): number => ['bot-status-updated', 'bot-removed'].reduce((sum, name) => sum + (app.lifecycle._hooks[name]?.length ?? 0), 0)
    const before = count()
    unload()
    assert.equal(count(), before - 2)
    assert.equal(presence.size, 0)
  })
})
