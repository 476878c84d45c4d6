import { h, Universal, type Context } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SimulatorOptions } from '../../../simulator'
import { KoishiPort } from '../../../src/platform/koishi'
import { OneBot } from '../../../src/platform/onebot/account'
import { chatOf, OwnMessages } from '../../../src/platform/onebot/own-messages'
import { SendError, type KnownSends } from '../../../src/platform/port'
import { file, friend, group, picture, text } from '../../support/items'
import { until } from '../../support/until'
import { attempt, deliveredId, nothing, stage } from './stage'

const toGroup = { group_id: 123456 }
const toFriend = { user_id: 10001 }

function textMessage(content: string): object[] {
  return [{ type: 'text', data: { text: content } }]
}

for (const profile of ['napcat', 'llbot', 'gocqhttp'] as const) {
  for (const messageFormat of ['array', 'string'] as const) {
    test(`finds a message whose answer was lost, in a group of ${profile} that speaks in ${messageFormat}s`, async t => {
      const { simulator, callUnanswered, find } = await stage(t, { profile, messageFormat })
      simulator.say({ group: group.id, user: '10001', text: 'a [b], & c' })
      const since = Date.now()
      await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('a [b], & c\n') })
      assert.deepEqual(await find(group, [text('a [b], & c\n')], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
    })
  }
}

test('finds a message in a private chat, and not that of its partner', async t => {
  const { simulator, callUnanswered, find } = await stage(t)
  simulator.say({ user: friend.id, text: 'a' })
  const since = Date.now()
  assert.deepEqual(await find(friend, [text('a')], since), { kind: 'inconclusive' })
  await callUnanswered('send_private_msg', { ...toFriend, message: textMessage('a') })
  assert.deepEqual(await find(friend, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' })
})

test('cannot say that a message is absent from a chat of which nothing is known', async t => {
  const { call, note, find } = await stage(t)
  const since = Date.now()
  const id = await call('send_group_msg', { ...toGroup, message: textMessage('another') })
  note(group, id)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' })
})

test('says that a message is absent where the history reaches back to one that was known before', async t => {
  const { call, note, find } = await stage(t)
  note(group, await call('send_group_msg', { ...toGroup, message: textMessage('another') }))
  // Times are compared by the millisecond.
  assert.deepEqual(await find(group, [text('a')], Date.now() + 1), { kind: 'absent' })
})

test('tells two equal messages apart: one answered, the others lost', async t => {
  const { simulator, call, callUnanswered, note, find } = await stage(t)
  const since = Date.now()
  const message = { ...toGroup, message: textMessage('a') }
  const id = await call('send_group_msg', message)
  note(group, id)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' }, 'the second one has not arrived')
  await callUnanswered('send_group_msg', message)
  await callUnanswered('send_group_msg', message)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 1)] })
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 2)] })
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' })
})

test('finds pictures and text in their order', async t => {
  const { simulator, callUnanswered, find } = await stage(t)
  const since = Date.now()
  const image = { type: 'image', data: { file: 'base64://iVBORw0KGgo=' } }
  await callUnanswered('send_group_msg', { ...toGroup, message: [...textMessage('a'), image] })
  assert.deepEqual(await find(group, [picture, text('a')], since), { kind: 'inconclusive' })
  assert.deepEqual(await find(group, [text('a'), picture], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
})

for (const [target, action, to] of [[group, 'upload_group_file', toGroup], [friend, 'upload_private_file', toFriend]] as const) {
  test(`tells two equal files apart, though uploads give no ID (${target.kind})`, async t => {
    const { account, callUnanswered, find } = await stage(t)
    const items = [file('日志.log', 'bytes')]
    const upload = { ...to, name: '日志.log', file: 'base64://Ynl0ZXM=' }
    const since = Date.now()
    const { messageIds, trace } = await account.message(target, items).send(attempt)
    assert.deepEqual(messageIds, [])
    assert(typeof trace === 'object')
    assert.deepEqual(await find(target, items, Date.now()), { kind: 'inconclusive' })
    await callUnanswered(action, upload)
    const found = await find(target, items, since)
    assert(found.kind === 'found' && typeof found.trace === 'string', 'a search sees the ID')
    assert.deepEqual(found.messageIds, [])
    assert.deepEqual(await find(target, items, since), { kind: 'inconclusive' })
  })
}

test('finds what other plugins made of a message', async t => {
  const { app, account, simulator } = await stage(t)
  app.on('before-send', session => {
    session.elements?.unshift(h.text('made: '))
  })
  const since = Date.now()
  simulator.fault({ action: 'send_group_msg', fault: { kind: 'lost-answer' } })
  const message = account.message(group, [text('a')])
  const sending = assert.rejects(message.send(attempt), { name: 'SendError', outcome: 'unanswered' })
  await simulator.until(({ ledger }) => ledger.length === 1)
  assert.deepEqual(await message.find(since, () => Promise.resolve(nothing)), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
  assert.equal(simulator.ledger[0]?.text, 'made: a')
  simulator.disconnectAll()
  await sending
})

test('says nothing of a message that only the adapter can encode', async t => {
  const { app, account, simulator } = await stage(t)
  app.on('before-send', session => {
    session.elements?.unshift(h('face', { id: '14' }))
  })
  const message = account.message(group, [text('a')])
  const { messageIds } = await message.send(attempt)
  assert.deepEqual(messageIds, [deliveredId(simulator, 0)])
  assert.deepEqual(await message.find(Date.now(), () => Promise.resolve(nothing)), { kind: 'no-history' })
})

test('finds a message again that was given up, and not one whose late answer was taken', async t => {
  const { account, find } = await stage(t)
  const since = Date.now()
  const message = account.message(group, [text('a')])
  const receipt = await message.send(attempt)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' })
  message.release(receipt)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'found', messageIds: receipt.messageIds })
})

test('tells which messages of a chat are recent', async t => {
  const { account, note, find, callUnanswered, simulator } = await stage(t)
  note(group, '5')
  const since = Date.now()
  await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('a') })
  await find(group, [text('a')], since)
  assert.deepEqual(account.recent(group), ['5', deliveredId(simulator, 0)])
  assert.deepEqual(account.recent(friend), [])
})

test('leaves to others what is known to be theirs, and does not say what became of what is older than that', async t => {
  const { call, note, find } = await stage(t)
  note(group, await call('send_group_msg', { ...toGroup, message: textMessage('before') }))
  const id = await call('send_group_msg', { ...toGroup, message: textMessage('a') })
  assert(id !== undefined)
  const since = Date.now() + 1
  // The clock of the process is ahead of what is asked for, as after a restart.
  const before = since - 60_000
  assert.deepEqual(await find(group, [text('a')], since, { ...nothing, messageIds: new Set([id]) }), { kind: 'absent' })
  assert.deepEqual(await find(group, [text('a')], before), { kind: 'inconclusive' }, 'nothing is known of the time before this process')
  assert.deepEqual(await find(group, [text('a')], before, { ...nothing, since: 0, messageIds: new Set([id]) }), { kind: 'inconclusive' })
  assert.deepEqual(await find(group, [text('a')], before, { ...nothing, since: 0 }), { kind: 'found', messageIds: [id] })
})

test('asks what is known besides only where there is an equal message', async t => {
  const { account, call } = await stage(t)
  await call('send_group_msg', { ...toGroup, message: textMessage('another') })
  const fail = (): Promise<KnownSends> => Promise.reject(new Error('no database'))
  assert.deepEqual(await account.message(group, [text('a')]).find(Date.now(), fail), { kind: 'inconclusive' })
  await call('send_group_msg', { ...toGroup, message: textMessage('a') })
  await assert.rejects(account.message(group, [text('a')]).find(Date.now(), fail), { message: 'no database' })
})

const withoutHistory: [string, SimulatorOptions][] = [['napcat', { history: false }], ['lagrange', { profile: 'lagrange' }]]
for (const [name, options] of withoutHistory) {
  test(`knows a platform without a history (${name})`, async t => {
    const { find } = await stage(t, options)
    assert.deepEqual(await find(group, [text('a')], Date.now()), { kind: 'no-history' })
  })
}

test('does not conclude from a history that is too short', async t => {
  const { simulator, find } = await stage(t)
  const since = Date.now()
  for (let n = 0; n < 50; n++) simulator.say({ group: group.id, user: '10001', text: String(n) })
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' })
})

const hours = 8 * 3_600_000

test('finds a message although the clock of the machine is hours ahead, or behind', async t => {
  for (const ahead of [hours, -hours]) {
    const { account, simulator, callUnanswered, find } = await stage(t, { clock: () => Date.now() - ahead })
    await account.message(group, [text('before')]).send(attempt)
    const since = Date.now()
    await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('a') })
    assert.deepEqual(await find(group, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 1)] })
    assert.deepEqual(await find(group, [text('b')], Date.now() + 11_000), { kind: 'absent' })
  }
})

test('does not take an older message for the one that is wanted where the clock of the machine is hours behind', async t => {
  let ahead = -hours
  const { account, simulator, call, find } = await stage(t, { clock: () => Date.now() - ahead })
  await account.message(group, [text('before')]).send(attempt)
  ahead += 60_000
  simulator.say({ group: group.id, user: '10000', selfMessage: true, text: 'a' })
  ahead -= 60_000
  // The report of it has arrived then.
  await call('get_status', {})
  assert.deepEqual(await find(group, [text('a')], Date.now() + 1), { kind: 'absent' })
})

test('does not take an older message for the one that is wanted after the machine slept, nor for one that may be it where somebody spoke since', async t => {
  const real = Date.now.bind(Date)
  let slept = 0
  t.mock.method(Date, 'now', () => real() + slept)
  const { account, simulator, call, find } = await stage(t, { clock: () => Date.now() })
  await account.message(group, [text('before')]).send(attempt)
  slept = hours / 2
  simulator.say({ group: group.id, user: '10000', selfMessage: true, text: 'a' })
  await call('get_status', {})
  slept = hours
  assert.notEqual((await find(group, [text('a')], Date.now() + 1)).kind, 'found')
  simulator.say({ group: group.id, user: '10001', text: 'b' })
  assert.deepEqual(await find(group, [text('a')], Date.now() + 1), { kind: 'absent' })
})

test('does not call a message absent that only the clock says is too old, unless it is known whose it is', async t => {
  const { account, simulator, callUnanswered, find } = await stage(t, { clock: () => Date.now() - hours })
  const since = Date.now()
  await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('a') })
  assert.deepEqual(await find(group, [text('b')], since), { kind: 'absent' })
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' })
  const known = { ...nothing, messageIds: new Set([deliveredId(simulator, 0)]) }
  assert.deepEqual(await find(group, [text('a')], since, known), { kind: 'absent' })
  await account.message(group, [text('another')]).send(attempt)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] }, 'now the clocks can be compared')
})

test('finds without a history what the platform reports, in groups and private chats', async t => {
  const { app, simulator, note, call, callUnanswered, find } = await stage(t, { history: false, reportSelf: true, messageFormat: 'string' })
  let heard = 0
  app.on('message', () => {
    heard++
  })
  const since = Date.now()
  const id = await call('send_group_msg', { ...toGroup, message: textMessage('a') })
  note(group, id)
  simulator.say({ group: group.id, user: '10001', text: 'a' })
  await call('send_private_msg', { user_id: 123456, message: textMessage('a') })
  await callUnanswered('send_private_msg', { ...toFriend, message: textMessage('a') })
  await until('the reports have arrived', () => heard === 4)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'no-history' })
  assert.deepEqual(await find(friend, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 2)] })
  assert.deepEqual(await find(friend, [text('a')], since), { kind: 'no-history' })
})

test('finds what is reported while the history is asked, and asks nothing for what was reported before', async t => {
  const { simulator, call, find } = await stage(t, { reportSelf: true })
  const since = Date.now()
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'hold' } })
  const looking = find(group, [text('a')], since)
  await simulator.until(({ calls }) => calls.some(({ action }) => action === 'get_group_msg_history'))
  simulator.say({ group: group.id, user: '10000', selfMessage: true, text: 'a', messageId: -5 })
  // The answer that was held back follows that of the next call.
  await call('send_private_msg', { ...toFriend, message: textMessage('b') })
  assert.deepEqual(await looking, { kind: 'found', messageIds: ['-5'] })
  const asked = simulator.calls.length
  assert.deepEqual(await find(friend, [text('b')], since), { kind: 'found', messageIds: [deliveredId(simulator, 0)] })
  assert.equal(simulator.calls.length, asked)
})

test('stops listening when the relay is unloaded', async t => {
  const { app } = await stage(t)
  const count = (): number => app.lifecycle._hooks['internal/session']?.length ?? 0
  const before = count()
  const fork = app.plugin((ctx: Context) => new OneBot(ctx))
  assert.equal(count(), before + 1)
  fork.dispose()
  assert.equal(count(), before)
})

test('shares what is known between what was made before a reload of the relay and what was made after it', async t => {
  const { app, account, note, find, callUnanswered, simulator } = await stage(t)
  const since = Date.now()
  note(group, '5')
  let port: KoishiPort | undefined
  app.plugin((ctx: Context) => {
    port = new KoishiPort(ctx, new OneBot(ctx))
    OwnMessages.of(ctx).note(chatOf('10000', group), ['6'])
  })
  assert.deepEqual(account.recent(group), ['5', '6'])
  assert.equal(port?.find(account.sid), account)
  await account.message(group, [text('a')]).send(attempt)
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'inconclusive' })
  await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('a') })
  assert.deepEqual(await find(group, [text('a')], since), { kind: 'found', messageIds: [deliveredId(simulator, 1)] })
})

test('throws when the connection closes during the question, without waiting for the adapter', async t => {
  const { simulator, find, bot } = await stage(t)
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'close', when: 'before' } })
  const error: unknown = await find(group, [text('a')], Date.now()).catch((thrown: unknown) => thrown)
  assert(error instanceof SendError)
  assert.deepEqual([error.outcome, error.wording], ['unanswered', 'the connection was lost'])
  assert.notEqual(bot.status, Universal.Status.ONLINE)
  await assert.rejects(find(group, [text('a')], Date.now()), { name: 'SendError', outcome: 'unsent' })
})

test('throws when the question gets no answer, or fails for once', async t => {
  const { simulator, find } = await stage(t)
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'refuse' } })
  await assert.rejects(find(group, [text('a')], Date.now()), { name: 'SendError', outcome: 'unanswered' })
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'silent' } })
  await assert.rejects(find(group, [text('a')], Date.now()), { name: 'SendError', outcome: 'unanswered' })
})
