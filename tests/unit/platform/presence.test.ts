import { Bot, Context, Universal } from 'koishi'
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Presence } from '../../../src/platform/presence'
import type { Health } from '../../../src/platform/port'

class TestBot extends Bot {
  override start(): Promise<void> {
    return Promise.resolve()
  }
}

function start(t: TestContext) {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000 })
  const app = new Context()
  const bot = new TestBot(app, {}, 'onebot')
  bot.selfId = '1'
  const presence = Presence.of(app)
  const changes: Health[] = []
  presence.subscribe((_, health) => changes.push(health))
  return { bot, presence, changes }
}

test('the health of a bot says what it is, since when and why', t => {
  const { bot, presence, changes } = start(t)
  assert.deepEqual(presence.health(bot), { state: 'offline', since: 1_000, cause: 'disconnected' })
  t.mock.timers.setTime(2_000)
  bot.status = Universal.Status.CONNECT
  bot.status = Universal.Status.RECONNECT
  t.mock.timers.setTime(3_000)
  bot.online()
  presence.report(bot, { cause: 'kicked' })
  t.mock.timers.setTime(4_000)
  presence.report(bot, { cause: 'silent' })
  presence.report(bot, { cause: 'silent' })
  bot.offline(new Error('connect ECONNREFUSED'))
  // Koishi tells the status before it has the error.
  assert.deepEqual(presence.health(bot), { state: 'offline', since: 3_000, cause: 'disconnected', words: 'connect ECONNREFUSED' })
  t.mock.timers.setTime(5_000)
  // The fault stays true when the bot connects again.
  bot.online()
  assert(!presence.isOnline(bot))
  presence.report(bot, undefined)
  assert(presence.isOnline(bot))
  assert.deepEqual(changes, [
    { state: 'connecting', since: 1_000, cause: 'connecting' },
    { state: 'online', since: 3_000 },
    { state: 'offline', since: 3_000, cause: 'kicked' },
    { state: 'offline', since: 3_000, cause: 'silent' },
    { state: 'offline', since: 3_000, cause: 'disconnected' },
    { state: 'offline', since: 3_000, cause: 'silent' },
    { state: 'online', since: 5_000 },
  ])
})

test('a bot that is removed is offline, and after a reload of the plugin those who wait are told what they have missed', async () => {
  const app = new Context()
  const bot = new TestBot(app, {}, 'onebot')
  let presence: Presence | undefined
  const load = () => app.plugin(ctx => void (presence = Presence.of(ctx)))
  let fork = load()
  const told: string[] = []
  presence?.subscribe((changed, { state }) => told.push(changed === bot ? state : 'another'))
  for (const change of [() => bot.online(), () => bot.offline(), () => bot.online()]) {
    const [first, { length }] = [presence, told]
    fork.dispose()
    change()
    assert.equal(told.length, length)
    fork = load()
    assert.equal(presence, first)
  }
  assert.deepEqual(told, ['online', 'offline', 'online'])
  await bot.dispose()
  assert.deepEqual(told.slice(3), ['offline'])
})

test('an adapter for an older Koishi breaks nothing but itself', t => {
  const { bot, presence } = start(t)
  Object.assign(bot, { _status: 'online' })
  assert.deepEqual(presence.health(bot), { state: 'offline', since: 1_000, cause: 'old-adapter' })
})
