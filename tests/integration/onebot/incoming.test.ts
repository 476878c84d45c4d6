import { h, Universal } from 'koishi'
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { SimulatorOptions } from '../../../simulator'
import { Incoming } from '../../../src/platform/incoming'
import { incomingOneBot } from '../../../src/platform/onebot/incoming'
import { until } from '../../support/until'
import { stage, type Stage } from './stage'

const bot = { platform: 'onebot', selfId: '10000' }

/** What is heard of what is said, in its order. */
async function listen(t: TestContext, options?: SimulatorOptions): Promise<Stage & { hear: (count: number) => Promise<Incoming[]> }> {
  const staged = await stage(t, options)
  const heard: Incoming[] = []
  staged.app.on('message', session => {
    heard.push(new Incoming(session, incomingOneBot))
  })
  const hear = async (count: number): Promise<Incoming[]> => {
    await until('it was heard', () => heard.length === count)
    return heard
  }
  return { ...staged, hear }
}

for (const messageFormat of ['array', 'string'] as const) {
  test(`reads a message as it was typed, and where it came from (${messageFormat})`, async t => {
    const { simulator, hear } = await listen(t, { messageFormat })
    simulator.say({ group: '123456', user: '10001', text: ' #a <b>&amp; [x]\n', messageId: -7 })
    simulator.say({ user: '10002', text: '#b', messageId: 8 })
    const [first, second] = await hear(2)
    assert.equal(first?.text, ' #a <b>&amp; [x]\n')
    assert.deepEqual(first.source, { bot, userId: '10001', target: { kind: 'group', id: '123456' }, messageId: '-7' })
    assert.equal(second?.text, '#b')
    assert.deepEqual(second.source, { bot, userId: '10002', target: { kind: 'private', id: '10002' }, messageId: '8' })
  })
}

test('knows its own messages, also of another device', async t => {
  const { simulator, hear } = await listen(t)
  simulator.say({ group: '123456', user: '10000', text: '#a' })
  simulator.say({ group: '123456', user: '10000', text: '#b', selfMessage: true })
  const messages = await hear(2)
  assert.deepEqual(messages.map(({ text, source }) => [text, source]), [['#a', undefined], ['#b', undefined]])
})

test('reads what is not of OneBot by its elements, and has no source for what names nobody', async t => {
  const { bot: received, hear } = await listen(t)
  const channel = { id: '5', type: Universal.Channel.Type.TEXT }
  const message = { id: '9', elements: h.parse('a<br/>b') }
  received.dispatch(received.session({ type: 'message', channel, user: { id: '7' }, message }))
  received.dispatch(received.session({ type: 'message', channel, message }))
  received.dispatch(received.session({ type: 'message', user: { id: '7' } }))
  const [first, ...others] = await hear(3)
  assert.equal(first?.text, 'a\nb')
  assert.deepEqual(first.source, { bot, userId: '7', target: { kind: 'group', id: '5' }, messageId: '9' })
  assert.deepEqual(others.map(({ text, source }) => [text, source]), [['a\nb', undefined], ['', undefined]])
})
