import { Bot, Context, Universal, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../../../src/lib/log'
import { restartStuck } from '../../../../src/platform/keeper/restarts'

const minute = 60_000

/** A bot that was started, and stays "connecting" as long as nobody says otherwise; by default of an adapter that has no other help. */
async function stage(t: TestContext, adapter = 'telegram') {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const app = new Context()
  const calls: string[] = []
  const logs: unknown[] = []
  app.on('bot-connect', () => void calls.push('start'))
  app.on('bot-disconnect', () => void calls.push('stop'))
  const logger: Pick<Log, 'warn'> = { warn: text => logs.push(String(text)) }
  const bot = new (class extends Bot {})(app, {}, adapter)
  await bot.start()
  const fork: ForkScope = app.plugin({ name: 'keeper', apply: (ctx: Context) => restartStuck(ctx, logger, each => each.adapterName === 'onebot') })
  calls.length = 0
  /** What is done within so much time. */
  const after = async (ms: number): Promise<string[]> => {
    t.mock.timers.tick(ms)
    for (let step = 0; step < 3; step++) await setImmediate()
    return calls.splice(0)
  }
  return { bot, fork, logs, after }
}

describe('a bot that stays "connecting"', () => {
  test('is started again, with longer and longer waits, and the log has a line for each', async t => {
    const { after, logs } = await stage(t)
    for (const wait of [1, 2, 4, 8, 10, 10]) {
      assert.deepEqual(await after(wait * minute - 1), [])
      assert.deepEqual(await after(1), ['stop', 'start'])
    }
    assert.equal(logs.length, 6)
    assert.deepEqual(logs.slice(0, 2), [60, 120].map(time => `the bot telegram is started again: it has been connecting for ${time} s`))
  })

  test('is left alone once it is online, and counts anew after that', async t => {
    const { bot, after } = await stage(t)
    assert.deepEqual(await after(minute), ['stop', 'start'])
    bot.online()
    assert.deepEqual(await after(60 * minute), [])
    bot.offline()
    await bot.start()
    await after(0)
    assert.deepEqual(await after(minute - 1), [])
    assert.deepEqual(await after(1), ['stop', 'start'])
  })

  test('is started again where its adapter gave up, and left alone where a person stopped it', async t => {
    const { bot, after, logs } = await stage(t)
    // As the WebSocket client of Koishi's adapters does: the reason comes after the status.
    bot.status = Universal.Status.OFFLINE
    bot.error = new Error('no answer')
    assert.deepEqual(await after(4_999), [])
    assert.deepEqual(await after(1), ['start'])
    assert.deepEqual(logs, ['the bot telegram is started again: it has been offline for 5 s'])
    bot.online()
    await bot.stop()
    await after(0)
    assert.deepEqual(await after(60 * minute), [])
  })

  test('is left alone where its adapter reconnects, a person stops it, another bot starts it, or something else keeps it connected', async t => {
    const { bot, after } = await stage(t)
    for (const status of [Universal.Status.RECONNECT, Universal.Status.OFFLINE, Universal.Status.DISCONNECT]) {
      bot.status = status
      assert.deepEqual(await after(60 * minute), [])
    }
    bot.hidden = true
    bot.status = Universal.Status.CONNECT
    assert.deepEqual(await after(60 * minute), [])
    t.mock.timers.reset()
    const onebot = await stage(t, 'onebot')
    assert.deepEqual(await onebot.after(60 * minute), [])
  })

  test('is left alone once it was removed, or the plugin is unloaded', async t => {
    const { bot, fork, after } = await stage(t)
    fork.dispose()
    assert.deepEqual(await after(60 * minute), [])
    t.mock.timers.reset()
    const other = await stage(t)
    await other.bot.dispose()
    assert.deepEqual(await other.after(60 * minute), ['stop'])
    assert.equal(bot.status, Universal.Status.CONNECT)
  })

  test('is not started a second time while a start is under way, and again once that has ended', async t => {
    const { bot, after } = await stage(t)
    let answer = (): void => undefined
    const adapter = { connect: () => new Promise<void>(resolve => answer = resolve), disconnect: () => Promise.resolve() }
    Object.assign(bot, { adapter })
    assert.deepEqual(await after(minute), ['stop', 'start'])
    assert.deepEqual(await after(60 * minute), [])
    answer()
    await after(0)
    assert.deepEqual(await after(2 * minute), ['stop', 'start'])
  })
})
