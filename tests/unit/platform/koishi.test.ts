import { Bot, Context, h, Universal } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { Presence } from '../../../src/platform/bots'
import { KoishiPort } from '../../../src/platform/koishi'
import { OneBot } from '../../../src/platform/onebot/account'
import { SendError } from '../../../src/platform/port'
import { group, picture, text } from '../../support/items'

/** A bot as adapters make them, without a message encoder. */
class TestBot extends Bot {
  readonly sent: [channelId: string, content: h.Fragment][] = []
  ids = ['1']

  override start(): Promise<void> {
    return Promise.resolve()
  }

  override sendMessage(channelId: string, content: h.Fragment): Promise<string[]> {
    this.sent.push([channelId, content])
    return Promise.resolve(this.ids)
  }
}

interface Added {
  status?: Universal.Status
  hidden?: boolean
}

/** An app without bots so far, and a port to it. */
function start() {
  const app = new Context()
  const port = new KoishiPort(app, Presence.of(app), new OneBot(app))
  const add = (platform: string, selfId: string, { status = Universal.Status.ONLINE, hidden = false }: Added = {}): TestBot => {
    const bot = new TestBot(app, {}, platform)
    bot.selfId = selfId
    bot.hidden = hidden
    bot.status = status
    return bot
  }
  return { app, port, add }
}

const offline = { status: Universal.Status.OFFLINE }

function isUnsent(pattern: RegExp) {
  return (error: unknown) => error instanceof RelayError && error.code === 'unsent' && pattern.test(error.message)
}

test('chooses a OneBot bot before others, and else the first that is online and not hidden', () => {
  const { port, add } = start()
  assert.throws(() => port.choose({}), isUnsent(/no bot is online/))
  assert(!port.isOnline)
  add('mail', '1', { hidden: true })
  add('discord', '1', offline)
  assert.throws(() => port.choose({}), isUnsent(/no bot is online/))
  add('telegram', '1')
  add('discord', '2')
  assert.equal(port.choose({}).sid, 'telegram:1')
  add('onebot', '1', offline)
  assert.equal(port.choose({}).sid, 'telegram:1')
  add('onebot', '2')
  assert.equal(port.choose({}).sid, 'onebot:2')
  assert(port.isOnline)
})

test('chooses the bot that was asked for, even a hidden one', () => {
  const { port, add } = start()
  add('onebot', '1')
  add('onebot', '2')
  add('telegram', '2')
  add('mail', '3', { hidden: true })
  assert.equal(port.choose({ selfId: '2' }).sid, 'onebot:2')
  assert.equal(port.choose({ platform: 'telegram' }).sid, 'telegram:2')
  assert.equal(port.choose({ platform: 'mail', selfId: '3' }).sid, 'mail:3')
  assert.throws(() => port.choose({ platform: 'telegram', selfId: '1' }), isUnsent(/this platform and self_id/))
})

test('chooses for later a bot that is offline, where none is online', () => {
  const { port, add } = start()
  assert.throws(() => port.chooseLater({}), isUnsent(/no bot is online/))
  add('telegram', '1', offline)
  add('onebot', '1', offline)
  assert.equal(port.chooseLater({}).sid, 'onebot:1')
  const telegram = add('telegram', '2')
  assert.equal(port.chooseLater({}).sid, 'telegram:2')
  telegram.status = Universal.Status.OFFLINE
  assert.throws(() => port.chooseLater({ platform: 'mail' }), isUnsent(/this platform and self_id/))
})

test('has one account for a bot, also after a reload of the plugin', () => {
  const { app, port, add } = start()
  add('telegram', '1', offline)
  const account = port.find('telegram:1')
  assert(account)
  assert(!account.isOnline)
  assert.equal(port.find('telegram:1'), account)
  assert.equal(new KoishiPort(app, Presence.of(app), new OneBot(app)).find('telegram:1'), account)
  const again = add('telegram', '1')
  assert(port.find('telegram:1')?.isOnline, 'where two have the ID, it is the one that is online')
  again.status = Universal.Status.OFFLINE
  assert.equal(port.find('telegram:1'), account)
  assert.equal(port.find('telegram:2'), undefined)
})

test('takes a bot for what it is once its platform is known', () => {
  const { port, add } = start()
  const bot = add('satori', '1')
  port.choose({}).checkIds({ kind: 'group', id: 'abc' }, [])
  bot.platform = 'onebot'
  assert.throws(() => port.choose({}).checkIds({ kind: 'group', id: 'abc' }, []), { code: 'bad-request' })
})

test('knows the form of the IDs of OneBot only', () => {
  const { port, add } = start()
  add('onebot', '1')
  add('telegram', '1')
  for (const id of ['0', '012', 'abc', '1'.repeat(21), '-1', '1.5']) {
    assert.throws(() => port.choose({}).checkIds({ kind: 'group', id }, []), /^RelayError: group_id must be a number/)
    assert.throws(() => port.choose({}).checkIds({ kind: 'private', id }, []), /^RelayError: user_id must be a number/)
    port.choose({ platform: 'telegram' }).checkIds({ kind: 'group', id }, [])
  }
  port.choose({}).checkIds({ kind: 'group', id: '12345678901234567890' }, [])
})

test('mentions nobody through OneBot whose ID is no number', () => {
  const { port, add } = start()
  add('onebot', '1')
  add('telegram', '1')
  const group = { kind: 'group', id: '1' } as const
  for (const userId of ['0x0', '.0', '0e5', 'everyone']) {
    assert.throws(() => port.choose({}).checkIds(group, [{ type: 'at', userId }]), /^RelayError: the ID of a mention must be a number/)
    port.choose({ platform: 'telegram' }).checkIds(group, [{ type: 'at', userId }])
  }
  port.choose({}).checkIds(group, [{ type: 'at', userId: '1' }, { type: 'at', userId: null }])
})

test('takes nothing for an ID that would lead elsewhere in an address', () => {
  const { port, add } = start()
  add('discord', '1')
  for (const id of ['1/../2', '../users/@me', '..', '1/./2', '1/%2E%2e/2', '1/.%2e', '1\\..\\2']) {
    assert.throws(() => port.choose({}).checkIds({ kind: 'group', id }, []), /^RelayError: this is no ID of a group/, id)
  }
  for (const id of ['-1001', '#general', 'C-any.thing#1 x', '...', '!room:example.org', 'cid6KeBB/LoveMJOG+XoYKF5x7A==', 'a.b@example.org']) {
    port.choose({}).checkIds({ kind: 'private', id }, [])
  }
})

test('sends through a bot without an encoder, and knows no history of it', async () => {
  const { port, add } = start()
  const bot = add('telegram', '1')
  const account = port.choose({})
  const message = account.message(group, [text('<b>a</b>'), picture])
  let begun = 0
  assert.deepEqual(await message.send(() => begun++), { messageIds: ['1'] })
  assert.equal(begun, 1)
  assert.deepEqual(bot.sent, [[group.id, [h.text('<b>a</b>'), h('img', { src: 'data:image/png;base64,iVBORw0KGgo=' })]]])
  assert.equal(await message.history(50), undefined)
  assert.equal(message.reports, undefined)
  bot.ids = ['']
  assert.deepEqual(await message.send(() => undefined), { messageIds: [] })
  bot.ids = []
  await assert.rejects(message.send(() => undefined), (error: unknown) => error instanceof SendError && error.outcome === 'suppressed')
})
