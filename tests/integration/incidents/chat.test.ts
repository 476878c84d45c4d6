import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OtherBot } from '../../support/other-bot'
import { until } from '../../support/until'
import { serveCallback } from '../commands/support'
import { bob, Desk, group, hanMei, liLei } from './support'

const taken = /^李雷 在看（\d\d:\d\d，已响 \d+ 秒）$/
const open = /^还没有人认领，已响 \d+ 秒$/

describe('a word with a quote', () => {
  for (const messageFormat of ['array', 'string'] as const) {
    test(`takes an incident, gives it back, silences and resolves it: messages as ${messageFormat}`, async t => {
      const desk = await Desk.open(t, {}, { messageFormat })
      // Nothing depends on the quoted message, for which the adapter asks.
      desk.relay.simulator.fault({ fault: { kind: 'refuse' }, action: 'get_msg', times: Infinity })
      const [id, other] = [await desk.alarm('db'), await desk.alarm('web')]
      assert.match(await desk.answer(() => desk.quote(id, '我来')), taken)
      const { segments } = desk.relay.simulator.ledger.at(-1) ?? assert.fail('an answer')
      assert.deepEqual(segments[0], { type: 'reply', data: { id: String(id) } })
      assert.match(await desk.answer(() => desk.quote(id, 'WHO', hanMei)), taken)
      const last = await desk.last()
      assert.equal(await desk.answer(() => desk.quote(last, '放弃')), '李雷 放弃，等人认领')
      assert.match(await desk.answer(() => desk.quote(id, ' 谁 ')), open)
      assert.match(await desk.answer(() => desk.quote(id, '静默 2h', hanMei)), /^静默到 .*\d\d:\d\d（韩梅梅）$/)
      const { data } = await desk.relay.send({ to: 'ops', msg: 'db again', severity: 'critical', thread: 'db' })
      assert.deepEqual(data, { skipped: 'silenced' })
      await desk.alarm('web again', { thread: 'web' })
      assert.match(await desk.answer(() => desk.quote(id, '解决')), /^李雷 已解决，持续 \d+ 秒$/)
      assert.match(await desk.answer(() => desk.quote(other, '谁')), open)
      assert.deepEqual(desk.passed, [])
    })
  }

  test('of two at once counts once, and the second is told who has it', async t => {
    const desk = await Desk.open(t)
    const id = await desk.alarm('db')
    const [first = '', second] = await desk.answers(2, () => {
      desk.quote(id, '我来')
      desk.quote(id, '我来', hanMei)
    })
    assert.match(first, taken)
    assert.equal(second, first)
  })

  test('does nothing if it quotes another message, is part of a sentence, or quotes nothing', async t => {
    const desk = await Desk.open(t)
    const [id, { simulator }] = [await desk.alarm('db'), desk.relay]
    await desk.relay.send({ to: 'ops', msg: 'no incident' })
    const [plain, said] = [await desk.last(), simulator.say({ group, user: bob, text: 'lunch?' })]
    assert.match(await desk.nothing(id, () => {
      desk.quote(plain, '我来')
      desk.quote(said, '我来')
      desk.quote(4711, '我来')
      desk.quote(id, '我来看看')
      simulator.say({ group, user: liLei, text: '我来' })
      simulator.say({ user: liLei, replyTo: id, text: '我来' })
      simulator.say({ group: '654321', user: liLei, replyTo: id, text: '我来' })
    }), open)
    await until('the other middlewares have them', () => desk.passed.length === 8)
  })

  test('does nothing for who may not act, without an answer, but for everybody where nobody is named', async t => {
    const desk = await Desk.open(t)
    const id = await desk.alarm('db')
    assert.match(await desk.nothing(id, () => desk.quote(id, '我来', bob)), open)
    assert(desk.relay.logs.some(line => / debug .*onebot:10004 may not act on /.test(line)), desk.relay.logs.join('\n'))
    const card = { sender: { user_id: Number(bob), nickname: 'Bob', card: '值班\u202eBob\n' } }
    const other = await desk.alarm('web', { to: 'open' })
    assert.match(await desk.answer(() => desk.quote(other, '我来', bob, card)), /^值班Bob 在看/)
  })

  test('does nothing for a bot, for what was said before the start, and for a second report', async t => {
    const desk = await Desk.open(t)
    const [id, { simulator, app }] = [await desk.alarm('db', { to: 'open' }), desk.relay]
    app.plugin(OtherBot, { platform: 'onebot', selfId: bob })
    assert.match(await desk.nothing(id, () => {
      desk.quote(id, '我来', bob)
      simulator.say({ group, user: '10000', selfMessage: true, replyTo: id, text: '我来' })
      desk.quote(id, '我来', '10000')
      desk.quote(id, '我来', liLei, { time: Math.floor(Date.now() / 1000) - 60 })
    }), open)
    const again = { message_id: 7, real_seq: '7' }
    assert.match(await desk.answer(() => desk.quote(id, '我来', liLei, again)), taken)
    assert.match(await desk.nothing(id, () => desk.quote(id, '我来', liLei, again)), taken)
  })

  test('acts in a private chat for the partner', async t => {
    const desk = await Desk.open(t, { targets: { boss: { to: `private:${bob}`, ack: { who: 'oncall' } } } })
    const id = await desk.alarm('db', { to: 'boss' })
    assert.match(await desk.answer(() => desk.relay.simulator.say({ user: bob, replyTo: id, text: '我来' })), /^Bob 在看/)
  })

  test('is the callback\'s alone if it is a command', async t => {
    const callback = await serveCallback(t, (_request, response) => void response.writeHead(204).end())
    const desk = await Desk.open(t, { commandCallbackUrl: callback.url })
    const id = await desk.alarm('db')
    const { simulator } = desk.relay
    simulator.say({ group, user: liLei, replyTo: id, text: '#mute 2h' })
    await until('it went on', () => desk.passed.length === 1)
    assert.match(await desk.answer(() => desk.quote(id, '谁')), open)
  })
})

describe('a word with a mention of the bot', () => {
  test('is about the only unresolved incident of the chat', async t => {
    const desk = await Desk.open(t)
    const [id, { simulator }] = [await desk.alarm('db'), desk.relay]
    const mention = (text: string): number => simulator.say({
      group, user: liLei, segments: [{ type: 'at', data: { qq: '10000' } }, { type: 'text', data: { text: ` ${text}` } }],
    })
    assert.match(await desk.answer(() => mention('我来')), taken)
    assert.match(await desk.answer(() => simulator.say({ group, user: liLei, text: '@模拟机器人 谁' })), taken)
    const other = await desk.alarm('web')
    assert.match(await desk.nothing(id, () => mention('放弃')), taken)
    await desk.answer(() => desk.quote(other, '已解决'))
    assert.equal(await desk.answer(() => mention('放弃')), '李雷 放弃，等人认领')
  })
})

describe('a reaction', () => {
  test('takes an incident, and gives it back when its owner removes it', async t => {
    const desk = await Desk.open(t)
    const id = await desk.alarm('db')
    // Older versions of NapCat have no is_add.
    assert.match(await desk.answer(() => desk.react(id, '128064', liLei, true, { is_add: undefined })), taken)
    assert.match(await desk.nothing(id, () => desk.react(id, '128064', hanMei, false)), taken)
    assert.equal(await desk.answer(() => desk.react(id, '128064', liLei, false)), '李雷 放弃，等人认领')
    // LuckyLilliaBot counts all of them.
    assert.match(await desk.answer(() => desk.react(id, '128076', hanMei, true, { likes: [{ emoji_id: '128076', count: 3 }] })), /^韩梅梅 在看/)
    await desk.answer(() => desk.quote(id, '放弃'))
    await desk.answer(() => desk.quote(id, '我来'))
    assert.match(await desk.nothing(id, () => desk.react(id, '128064', liLei, false)), taken)
  })

  test('silences it for an hour, and resolves it', async t => {
    const desk = await Desk.open(t)
    const id = await desk.alarm('db')
    assert.match(await desk.answer(() => desk.react(id, '128164')), /^静默到 .*\d\d:\d\d（李雷）$/)
    const last = await desk.last()
    assert.match(await desk.answer(() => desk.react(last, '127881', hanMei)), /^韩梅梅 已解决/)
  })

  test('does nothing with another emoji, to another message, of nobody, of who may not act, or reported again', async t => {
    const desk = await Desk.open(t)
    const [id, { simulator }] = [await desk.alarm('db'), desk.relay]
    const said = simulator.say({ group, user: bob, text: 'lunch?' })
    assert.match(await desk.nothing(id, () => {
      desk.react(id, '76')
      desk.react(said, '128064')
      desk.react(id, '128064', bob)
      desk.react(id, '128064', '10000')
      for (const user of [undefined, null, 0]) desk.react(id, '128064', liLei, true, { user_id: user })
      for (const likes of [undefined, 5, [null], [{}]]) desk.react(id, '128064', liLei, true, { likes })
      desk.react(id, '128064', liLei, true, { time: Math.floor(Date.now() / 1000) - 60 })
      desk.react(id, '128064', liLei, true, { self_id: 10009 })
    }), open)
    const time = Math.floor(Date.now() / 1000)
    assert.match(await desk.answer(() => desk.react(id, '128064', liLei, true, { time })), taken)
    await desk.answer(() => desk.quote(id, '放弃'))
    assert.match(await desk.nothing(id, () => desk.react(id, '128064', liLei, true, { time })), open)
  })

  test('of a thousand leads to few answers', async t => {
    const desk = await Desk.open(t)
    const id = await desk.alarm('db', { to: 'open' })
    const other = await desk.alarm('web')
    const { ledger } = desk.relay.simulator
    for (let user = 1; user <= 1000; user++) desk.react(id, '128064', String(20_000 + user))
    await until('the answers are there', () => ledger.length >= 12)
    desk.quote(other, '谁')
    await until('the other one is there', () => open.test(ledger.at(-1)?.text ?? ''))
    assert.equal(ledger.length, 13)
  })
})

test('unloaded, the relay hears no word and no reaction', async t => {
  const desk = await Desk.open(t)
  const id = await desk.alarm('db')
  desk.relay.unload()
  desk.quote(id, '我来')
  desk.react(id, '128064')
  await until('it went on', () => desk.passed.length === 1)
  await desk.relay.reload()
  assert.match(await desk.answer(() => desk.quote(id, '谁', liLei)), open)
})
