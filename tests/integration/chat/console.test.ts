import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Simulator } from '../../../simulator'
import { addForward } from '../../support/onebot'
import { until } from '../../support/until'
import { Desk, group, operator, other } from './support'

describe('the commands', () => {
  test('do not exist unless a setting says so', async t => {
    const desk = await Desk.open(t, { chatCommands: false })
    assert.equal(desk.relay.app.$commander.get('relay.status'), undefined)
  })

  test('do not exist for others: no answer, no help, no suggestion', async t => {
    const desk = await Desk.open(t, { chatOperators: [`onebot:${operator}`, `discord:${other}`] })
    const { simulator, app } = desk.relay
    simulator.say({ group, user: other, text: 'relay.status' })
    simulator.say({ user: other, text: 'relay.sub github' })
    simulator.say({ user: other, text: 'relay.statu' })
    assert.match(await desk.ask('relay.status'), /^onebot:10000 在线\n等待中 0 条$/)
    const command = app.$commander.get('relay.status')
    const seen = [operator, other].map(user => app.bots[0] && command.match(app.bots[0].session({ type: 'message', user: { id: user } })))
    assert.deepEqual(seen, [true, false])
  })

  test('warn at the start if nobody may use them', async t => {
    const desk = await Desk.open(t, { chatOperators: [] })
    assert(desk.relay.logs.some(line => line.includes('chatOperators names no account')), desk.relay.logs.join('\n'))
  })

  test('answer with a prefix, by an alias, and in private', async t => {
    const desk = await Desk.open(t, {}, {}, app => {
      Object.assign(app.root.config, { prefix: ['/'] })
    })
    desk.relay.app.$commander.get('relay.status').alias('状态')
    for (const text of ['/relay.status', '/状态']) assert.match(await desk.ask(text), /^onebot:10000 在线/)
    assert.match(await desk.ask('relay.status', {}), /^onebot:10000 在线/)
    desk.relay.simulator.say({ group, user: operator, text: 'relay.status' })
    assert.match(await desk.ask('/relay.last'), /^没有消息记录$/)
  })

  test('answer in English where the plugin has that language', async t => {
    const desk = await Desk.open(t, { language: 'en-US', targets: { ops: `group:${group}` } })
    assert.match(await desk.ask('relay.status'), /^onebot:10000 is online\n0 waiting$/)
    assert.equal(await desk.ask('relay.targets'), `This chat: onebot:group:${group}\nops → group:${group}`)
    assert.match(await desk.ask('relay.sub'), /^Add a source, such as relay.sub github events=push branch=main\nThe sources: github /)
  })

  test('are answered once where two bots hear them', async t => {
    const second = await Simulator.start({ selfId: '20002', anyTarget: true })
    t.after(() => second.close())
    const desk = await Desk.open(t)
    const { app, simulator } = desk.relay
    const fork = addForward(app, second.endpoint, { selfId: '20002' })
    t.after(() => fork.dispose())
    await until('both are there', () => app.bots.filter(({ status }) => status === Universal.Status.ONLINE).length === 2)
    const text = 'relay.sub message'
    simulator.say({ group, user: operator, text })
    second.say({ group, user: operator, text })
    const answers = (): number => simulator.ledger.length + second.ledger.length
    await until('one has answered', () => answers() === 2)
    assert.match(await desk.ask('relay.status'), /在线/)
    assert.equal(answers(), 3)
  })

  test('stop answering somebody who floods the chat', async t => {
    const desk = await Desk.open(t)
    const { simulator, send } = desk.relay
    for (let count = 0; count < 40; count++) simulator.say({ group, user: operator, text: `relay.last ${count % 20 + 1}` })
    await until('some are answered', () => simulator.ledger.length >= 20)
    await send({ to: `group:${group}`, msg: 'the last' })
    assert.equal(simulator.ledger.length, 21)
  })

  test('show what others wrote as text, never as a mention', async t => {
    const desk = await Desk.open(t)
    await desk.relay.send({ to: `group:${group}`, msg: '<at type="all"/> [CQ:at,qq=all] &lt;' })
    const [answer] = await desk.hear(1, 'relay.last')
    assert.match(answer?.text ?? '', /｜<\u200bat type="all"\/> \[CQ:at,qq=all\] &lt;\n/)
    assert.deepEqual(answer?.segments.map(({ type }) => type), ['text'])
  })
})

describe('relay.test', () => {
  test('sends to this chat, or to a name, and tells why it cannot', async t => {
    const desk = await Desk.open(t, { targets: { ops: { to: 'group:777', quiet: { from: '00:00', to: '23:59' } } } })
    const [message, answer] = await desk.hear(2, 'relay.test')
    assert.deepEqual([message?.text, message?.target.id], ['测试消息，由 onebot:10001 发起', group])
    assert.match(answer?.text ?? '', /^group:123456：已由 onebot:10000 发出，用时 \d+ 毫秒$/)
    const [named] = await desk.hear(2, 'relay.test ops')
    assert.equal(named?.target.id, '777')
    desk.relay.simulator.fault({ fault: { kind: 'not-member' }, target: '888' })
    assert.match(await desk.ask('relay.test group:888'), /^group:888：没有发出，平台拒绝了.*机器人已不在该群/)
    assert.match(await desk.ask('relay.test nobody'), /^没有办成：/)
  })
})

describe('relay.last', () => {
  test('shows a group its own messages only, and all of them in private', async t => {
    const desk = await Desk.open(t)
    await desk.relay.send({ to: 'group:777', msg: 'salaries' })
    assert.equal(await desk.ask('relay.last'), '没有消息记录')
    assert.match(await desk.ask('relay.last', {}), /^[\da-f]{8}｜\d\d:\d\d webhook → group:777｜已发送｜salaries\n/)
    for (const count of ['0', '21', 'x']) assert.equal(await desk.ask(`relay.last ${count}`), '条数须为 1 到 20 的整数')
  })
})
