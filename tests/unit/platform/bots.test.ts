import { Bot, Context, h, Universal } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { anyPlatform } from '../../../src/platform/other/account'
import { Presence } from '../../../src/platform/presence'
import { elementsText } from '../../../src/platform/incoming'
import { Bots } from '../../../src/platform/bots'
import { oneBot } from '../../../src/platform/onebot/account'
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
  const port = new Bots(app, Presence.of(app), [oneBot, anyPlatform])
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

test('chooses for later a bot that is offline, where none is online', () => {
  const { port, add } = start()
  assert.throws(() => port.choose({}, true), isUnsent(/no bot is online/))
  add('telegram', '1', offline)
  add('onebot', '1', offline)
  assert.equal(port.choose({}, true).sid, 'onebot:1')
  const telegram = add('telegram', '2')
  assert.equal(port.choose({}, true).sid, 'onebot:1')
  assert.equal(port.choose({ platform: 'telegram' }, true).sid, 'telegram:2')
  telegram.status = Universal.Status.OFFLINE
  assert.throws(() => port.choose({ platform: 'mail' }, true), isUnsent(/this platform and self_id/))
})

test('chooses for later no bot without an ID, as nobody could tell afterwards whose the delivery is', () => {
  const { port, add } = start()
  const bot = add('telegram', '', offline)
  assert.throws(() => port.choose({}, true), isUnsent(/no bot is online/))
  for (const selector of [{ platform: 'telegram' }, { platform: 'telegram', selfId: '1' }]) assert.throws(() => port.choose(selector, true), isUnsent(/^no bot with this platform/))
  bot.selfId = '1'
  assert.equal(port.choose({}, true).sid, 'telegram:1')
  bot.status = Universal.Status.ONLINE
  add('onebot', '', offline)
  for (const mayWait of [false, true]) assert.throws(() => port.choose({}, mayWait), isUnsent(/no OneBot bot is online/), 'its groups are not those of Telegram')
  add('onebot', '1', offline)
  assert.equal(port.choose({}, true).sid, 'onebot:1')
})

test('gives a bot the ID that its platform knows before the login', () => {
  const app = new Context()
  const early = new TestBot(app, {}, 'discord')
  const port = new Bots(app, Presence.of(app), [oneBot, { ...anyPlatform, selfId: ({ adapterName }) => `id-of-${adapterName}` }])
  const late = new TestBot(app, {}, 'mail')
  assert.deepEqual([early.sid, late.sid], ['discord:id-of-discord', 'mail:id-of-mail'])
  assert.equal(port.choose({ platform: 'discord' }, true).sid, 'discord:id-of-discord')
  early.selfId = '7'
  assert.equal(port.find('discord:7')?.selfId, '7')
})

test('has one account for a bot, also after a reload of the plugin', () => {
  const { app, port, add } = start()
  add('telegram', '1', offline)
  const account = port.find('telegram:1')
  assert(account)
  assert(!account.isOnline)
  assert.equal(port.find('telegram:1'), account)
  assert.equal(new Bots(app, Presence.of(app), [oneBot, anyPlatform]).find('telegram:1'), account)
  const again = add('telegram', '1')
  assert(port.find('telegram:1')?.isOnline, 'where two have the ID, it is the one that is online')
  again.status = Universal.Status.OFFLINE
  assert.equal(port.find('telegram:1'), account)
  assert.equal(port.find('telegram:2'), undefined)
})

test('tells a bot of OneBot by its adapter: a Satori server may call a platform so as well', () => {
  const { port, add } = start()
  const bot = add('satori', '1')
  const unnamed = port.choose({})
  bot.platform = 'onebot'
  assert.notEqual(port.choose({}), unnamed, 'its platform is known only now')
  assert.equal(port.choose({ platform: 'onebot' }).sid, 'onebot:1')
  port.choose({}).check({ kind: 'group', id: 'abc' }, [])
})

test('knows the form of the IDs of OneBot only, those of mentions among them', () => {
  const { port, add } = start()
  add('onebot', '1')
  add('telegram', '1')
  const [onebot, telegram] = [port.choose({}), port.choose({ platform: 'telegram' })]
  for (const id of ['0', '012', 'abc', '1'.repeat(21), '-1', '1.5', '1e3', '+1', ' 1', '１２３', '#']) {
    assert.throws(() => onebot.check({ kind: 'group', id }, []), /^RelayError: group:.*: a QQ group number has 1 to 20 digits/)
    assert.throws(() => onebot.check({ kind: 'private', id }, []), /^RelayError: private:.*: a QQ number has 1 to 20 digits/)
    telegram.check({ kind: 'group', id }, [])
  }
  for (const userId of ['0x0', '.0', '0e5', '@a:example.org']) {
    assert.throws(() => onebot.check(group, [{ type: 'at', userId }]), /^RelayError: the ID of a mention must be a number/)
    telegram.check(group, [{ type: 'at', userId }])
  }
  for (const userId of ['everyone', 'here', '1> <!channel', '1 2', '"']) {
    assert.throws(() => telegram.check(group, [{ type: 'at', userId }]), /^RelayError: the ID of a mention is not that of a user/)
  }
  onebot.check({ kind: 'group', id: '12345678901234567890' }, [{ type: 'at', userId: '1' }, { type: 'at', userId: null }])
})

test('takes nothing for an ID that would lead elsewhere in an address', () => {
  const { port, add } = start()
  add('discord', '1')
  for (const id of ['1/../2', '../users/@me', '..', '1/./2', '1/%2E%2e/2', '1/.%2e', '1\\..\\2']) {
    assert.throws(() => port.choose({}).check({ kind: 'group', id }, []), /^RelayError: group:.*: this is not the ID of a group/, id)
  }
  for (const id of ['-1001', '#general', 'C-any.thing#1 x', '...', '!room:example.org', 'cid6KeBB/LoveMJOG+XoYKF5x7A==', 'a.b@example.org']) {
    port.choose({}).check({ kind: 'group', id }, [])
  }
  assert.throws(() => port.choose({}).check({ kind: 'private', id: '1' }, []), /^RelayError: the adapter of this bot knows no private chats/)
})

test('sends through a bot without an encoder, and knows no history of it', async () => {
  const { port, add } = start()
  const bot = add('telegram', '1')
  const account = port.choose({})
  const message = account.message(group, [text('<b>a</b>'), picture], 'x')
  let begun = 0
  assert.deepEqual(await message.send(() => begun++), { messageIds: ['1'] })
  assert.equal(begun, 1)
  assert.deepEqual(bot.sent, [[group.id, [h.text('<b>a</b>'), h('img', { src: 'data:image/png;base64,iVBORw0KGgo=', title: 'a.png', file: 'a.png' })]]])
  assert.equal(await message.history?.(50), undefined)
  assert(!message.reports)
  bot.ids = ['']
  assert.deepEqual(await message.send(() => undefined), { messageIds: [] })
  bot.ids = []
  await assert.rejects(message.send(() => undefined), (error: unknown) => error instanceof SendError && error.outcome === 'unanswered')
})

describe('the text of elements', () => {
  const cases: [what: string, markup: string, expected: string][] = [
    ['is that of its text elements, unescaped', '#ping &lt;b&gt; &amp;amp;', '#ping <b> &amp;'],
    ['is that within styles', '<b>#pi<i>ng</i></b> <code>x</code>', '#ping x'],
    ['shows mentions by account', '<at id="7" name="x"/> <at type="all"/> <at type="here"/> <at role="9"/>', '@7 @all @here @9'],
    ['leaves out a quotation with all that is in it', '<quote id="3">old <b>text</b></quote>#ping x', '#ping x'],
    ['leaves out pictures and faces, and puts nothing in their place', '#ping<img src="a"/>x<face id="1"><img src="b"/></face>', '#pingx'],
    ['leaves out what a forwarded message says', '<message forward>#ping x</message>', ''],
    ['has the line breaks that were typed', 'a<br/>b<br/><br/>c', 'a\nb\n\nc'],
    ['has a line for each paragraph', '<p>a</p><p>b<br/></p><p>c</p>d', 'a\nb\nc\nd'],
    ['has no line break around a single paragraph', '<p>#ping x</p>', '#ping x'],
    ['shows a link by its text, or else its address', '<a href="http://a/">x</a> <a href="http://b/"/>', 'x http://b/'],
  ]
  for (const [what, markup, expected] of cases) test(what, () => assert.equal(elementsText(h.parse(markup)), expected))

  test('passes over unknown shapes', () => {
    const shapes = [null, 1, 'x', [], {}, { type: 1 }, { type: 'text' }, { type: 'text', attrs: { content: {} } }, { type: 'b' },
      { type: 'b', children: 1 }, { type: 'at', attrs: null }, { type: '__proto__', children: [h.text('no')] }, h.text('a')]
    assert.equal(elementsText(shapes), 'a')
    for (const elements of [undefined, null, 'x', {}]) assert.equal(elementsText(elements), '')
  })

  test('is found in 100,000 nested elements without exhausting the stack', () => {
    let element = h.text('deep')
    for (let depth = 0; depth < 100_000; depth++) element = h('b', [element])
    assert.equal(elementsText([h.text('a'), element]), 'a')
  })
})
