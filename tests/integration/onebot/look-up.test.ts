import { Universal, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SimulatorOptions } from '../../../simulator'
import { contentOfMessage } from '../../../src/platform/onebot/content'
import { lookUpContent } from '../../../src/platform/onebot/history'
import { Sightings } from '../../../src/platform/onebot/sightings'
import { SendError } from '../../../src/platform/port'
import { until } from '../../support/until'
import { deliveredId, file, friend, group, picture, stage, text } from './history'

const toGroup = { group_id: 123456 }
const toFriend = { user_id: 10001 }

function textMessage(content: string): object[] {
  return [{ type: 'text', data: { text: content } }]
}

for (const profile of ['napcat', 'llbot', 'gocqhttp'] as const) {
  for (const messageFormat of ['array', 'string'] as const) {
    test(`finds a message whose answer was lost, in a group of ${profile} that speaks in ${messageFormat}s`, async t => {
      const { simulator, callUnanswered, lookUp } = await stage(t, { profile, messageFormat })
      simulator.say({ group: group.id, user: '10001', text: 'a [b], & c' })
      const since = Date.now()
      await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('a [b], & c\n') })
      assert.deepEqual(await lookUp(group, [text('a [b], & c\n')], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
    })
  }
}

test('finds a message in a private chat, and not that of its partner', async t => {
  const { simulator, callUnanswered, lookUp } = await stage(t)
  simulator.say({ user: friend.id, text: 'a' })
  const since = Date.now()
  assert.deepEqual(await lookUp(friend, [text('a')], since), { kind: 'absent' })
  await callUnanswered('send_private_msg', { ...toFriend, message: textMessage('a') })
  assert.deepEqual(await lookUp(friend, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'absent' })
})

test('says that a message is absent which never arrived', async t => {
  const { call, sightings, bot, lookUp } = await stage(t)
  const since = Date.now()
  const id = await call('send_group_msg', { ...toGroup, message: textMessage('another') })
  sightings.account(bot, group, [id ?? ''])
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'absent' })
})

test('tells two equal messages apart: one answered, the others lost', async t => {
  const { simulator, bot, call, callUnanswered, sightings, lookUp } = await stage(t)
  const since = Date.now()
  const message = { ...toGroup, message: textMessage('a') }
  const id = await call('send_group_msg', message)
  assert(id)
  sightings.account(bot, group, [id])
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'absent' }, 'the second one has not arrived')
  await callUnanswered('send_group_msg', message)
  await callUnanswered('send_group_msg', message)
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 1)] })
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 2)] })
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'absent' })
})

test('finds pictures and text in their order', async t => {
  const { simulator, callUnanswered, lookUp } = await stage(t)
  const since = Date.now()
  const image = { type: 'image', data: { file: 'base64://iVBORw0KGgo=' } }
  await callUnanswered('send_group_msg', { ...toGroup, message: [...textMessage('a'), image] })
  assert.deepEqual(await lookUp(group, [picture, text('a')], since), { kind: 'absent' })
  assert.deepEqual(await lookUp(group, [text('a'), picture], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
})

for (const [target, action, to] of [[group, 'upload_group_file', toGroup], [friend, 'upload_private_file', toFriend]] as const) {
  test(`tells two equal files apart, though uploads give no ID (${target.kind})`, async t => {
    const { bot, call, callUnanswered, sightings, lookUp } = await stage(t)
    const items = [file('日志.log', 'bytes')]
    const upload = { ...to, name: '日志.log', file: 'base64://Ynl0ZXM=' }
    const since = Date.now()
    await call(action, upload)
    sightings.account(bot, target, [], { items, since })
    assert.deepEqual(await lookUp(target, items, Date.now()), { kind: 'absent' })
    await callUnanswered(action, upload)
    assert.deepEqual(await lookUp(target, items, since), { kind: 'found', messageIds: [] })
    assert.deepEqual(await lookUp(target, items, since), { kind: 'absent' })
  })
}

test('finds what other plugins made of a message', async t => {
  const { simulator, bot, sightings, callUnanswered } = await stage(t)
  const since = Date.now()
  const message = [{ type: 'at', data: { qq: '10001' } }, ...textMessage('a')]
  await callUnanswered('send_group_msg', { ...toGroup, message })
  const finding = await lookUpContent(bot, group, contentOfMessage(message) ?? [], since, sightings)
  assert.deepEqual(finding, { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
})

const withoutHistory: [string, SimulatorOptions][] = [['napcat', { history: false }], ['lagrange', { profile: 'lagrange' }]]
for (const [name, options] of withoutHistory) {
  test(`knows a platform without a history (${name})`, async t => {
    const { lookUp } = await stage(t, options)
    assert.deepEqual(await lookUp(group, [text('a')], Date.now()), { kind: 'no-history' })
  })
}

test('does not conclude from a history that is too short', async t => {
  const { simulator, lookUp } = await stage(t)
  const since = Date.now()
  for (let n = 0; n < 50; n++) simulator.say({ group: group.id, user: '10001', text: String(n) })
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'no-history' })
})

test('finds without a history what the platform reports, in groups and private chats', async t => {
  const { app, simulator, bot, sightings, call, callUnanswered, lookUp } = await stage(t, { history: false, reportSelf: true, messageFormat: 'string' })
  let heard = 0
  app.on('message', () => {
    heard++
  })
  const since = Date.now()
  const id = await call('send_group_msg', { ...toGroup, message: textMessage('a') })
  sightings.account(bot, group, [id ?? ''])
  simulator.say({ group: group.id, user: '10001', text: 'a' })
  await call('send_private_msg', { user_id: 123456, message: textMessage('a') })
  await callUnanswered('send_private_msg', { ...toFriend, message: textMessage('a') })
  await until('the reports have arrived', () => heard === 4)
  assert.deepEqual(await lookUp(group, [text('a')], since), { kind: 'no-history' })
  assert.deepEqual(await lookUp(friend, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 2)] })
  assert.deepEqual(await lookUp(friend, [text('a')], since), { kind: 'no-history' })
})

test('finds what is reported while the history is asked, and asks nothing for what was reported before', async t => {
  const { simulator, call, lookUp } = await stage(t, { reportSelf: true })
  const since = Date.now()
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'hold' } })
  const looking = lookUp(group, [text('a')], since)
  await simulator.until(({ calls }) => calls.some(({ action }) => action === 'get_group_msg_history'))
  simulator.say({ group: group.id, user: '10000', selfMessage: true, text: 'a', messageId: -5 })
  // The answer that was held back follows that of the next call.
  await call('send_private_msg', { ...toFriend, message: textMessage('b') })
  assert.deepEqual(await looking, { kind: 'found', messageIds: ['-5'] })
  const asked = simulator.calls.length
  assert.deepEqual(await lookUp(friend, [text('b')], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
  assert.equal(simulator.calls.length, asked)
})

test('stops listening when the relay is unloaded', async t => {
  const { app } = await stage(t)
  const count = (): number => app.lifecycle._hooks['internal/session']?.length ?? 0
  const before = count()
  const fork = app.plugin((ctx: Context) => new Sightings(ctx))
  assert.equal(count(), before + 1)
  fork.dispose()
  assert.equal(count(), before)
})

test('throws when the connection closes during the question, without waiting for the adapter', async t => {
  const { simulator, lookUp, bot } = await stage(t)
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'close', when: 'before' } })
  const error: unknown = await lookUp(group, [text('a')], Date.now()).catch((thrown: unknown) => thrown)
  assert(error instanceof SendError)
  assert.deepEqual([error.outcome, error.wording], ['unanswered', 'the connection was lost'])
  assert.notEqual(bot.status, Universal.Status.ONLINE)
  await assert.rejects(lookUp(group, [text('a')], Date.now()), { name: 'SendError', outcome: 'unsent' })
})

test('throws when the question gets no answer, or fails for once', async t => {
  const { simulator, lookUp } = await stage(t)
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'refuse' } })
  await assert.rejects(lookUp(group, [text('a')], Date.now()), { name: 'SendError', outcome: 'unanswered' })
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'silent' } })
  await assert.rejects(lookUp(group, [text('a')], Date.now()), { name: 'SendError', outcome: 'unanswered' })
})
