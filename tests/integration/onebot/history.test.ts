import { h, Universal } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SendError, type HistoryPage, type Message } from '../../../src/platform/port'
import { file, friend, group, text } from '../../support/items'
import { until } from '../../support/until'
import { begin, deliveredId, stage } from './stage'

const toGroup = { group_id: 123456 }
const toFriend = { user_id: 10001 }

function textMessage(content: string): object[] {
  return [{ type: 'text', data: { text: content } }]
}

/** The IDs of the equal messages in a history. */
function equalIn(page: HistoryPage | undefined): string[] {
  assert(page?.isReadable)
  return page.own.flatMap(({ id, isEqual }) => isEqual ? [id] : [])
}

function reported(message: Message): string[] {
  return (message.reports?.() ?? []).map(({ id }) => id)
}

for (const profile of ['napcat', 'llbot', 'gocqhttp'] as const) {
  for (const messageFormat of ['array', 'string'] as const) {
    test(`the history of ${profile}, which speaks in ${messageFormat}s, shows a message whose answer was lost`, async t => {
      const { account, simulator, callUnanswered } = await stage(t, { profile, messageFormat })
      simulator.say({ group: group.id, user: '10001', text: 'a [b], & c' })
      await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('another') })
      await callUnanswered('send_group_msg', { ...toGroup, message: textMessage('a [b], & c\n') })
      const page = await account.message(group, [text('a [b], & c\n')], 'x').history?.(50)
      assert.deepEqual(equalIn(page), [deliveredId(simulator, 1)])
      assert.equal(page?.own.length, 2)
      assert(Math.abs(page.oldest - Date.now()) < 60_000)
    })
  }
}

test('a private chat has a history of its own', async t => {
  const { account, simulator, callUnanswered } = await stage(t)
  simulator.say({ user: friend.id, text: 'a' })
  await callUnanswered('send_private_msg', { ...toFriend, message: textMessage('a') })
  assert.deepEqual(equalIn(await account.message(friend, [text('a')], 'x').history?.(50)), [deliveredId(simulator, 0)])
  assert.deepEqual(await account.message(group, [text('a')], 'x').history?.(50), { own: [], oldest: Infinity, isReadable: true })
})

for (const target of [group, friend]) {
  test(`a history shows an uploaded file, whose answer has no ID (${target.kind})`, async t => {
    const { account } = await stage(t)
    const message = account.message(target, [file('日志.log', 'bytes')], 'x')
    assert.deepEqual(await message.send(begin), { messageIds: [] })
    assert.equal(equalIn(await message.history?.(50)).length, 1)
    assert.equal(equalIn(await account.message(target, [file('日志.log', 'other bytes')], 'x').history?.(50)).length, 0)
  })
}

test('a history shows what other plugins made of a message', async t => {
  const { app, account, simulator } = await stage(t, { reportSelf: true })
  app.on('before-send', session => {
    session.elements?.unshift(h.text('made: '))
  })
  const message = account.message(group, [text('a')], 'x')
  const { likeness } = message
  const receipt = await message.send(begin)
  assert.equal(simulator.ledger[0]?.text, 'made: a')
  assert.deepEqual(equalIn(await message.history?.(50)), receipt.messageIds)
  assert.deepEqual(reported(message), receipt.messageIds)
  assert.equal(message.likeness, likeness)
  assert.deepEqual(equalIn(await account.message(group, [text('a')], 'x').history?.(50)), [])
})

test('nothing shows a message that only the adapter can encode', async t => {
  const { app, account, simulator } = await stage(t, { reportSelf: true })
  app.on('before-send', session => {
    session.elements?.unshift(h('face', { id: '14' }))
  })
  const message = account.message(group, [text('a')], 'x')
  assert.deepEqual(await message.send(begin), { messageIds: [deliveredId(simulator, 0)] })
  assert.equal(await message.history?.(50), undefined)
  assert.deepEqual(reported(message), [])
})

test('reports come without a history, from groups and private chats', async t => {
  const { app, account, simulator, call, callUnanswered } = await stage(t, { history: false, reportSelf: true, messageFormat: 'string' })
  let heard = 0
  app.on('message', () => {
    heard++
  })
  const before = performance.now()
  const id = await call('send_group_msg', { ...toGroup, message: textMessage('a') })
  simulator.say({ group: group.id, user: '10001', text: 'a' })
  await callUnanswered('send_private_msg', { ...toFriend, message: textMessage('a') })
  await until('the reports have arrived', () => heard === 3)
  const [report, ...others] = account.message(group, [text('a')], 'x').reports?.() ?? []
  assert(report && report.heardAt >= before && report.heardAt <= performance.now())
  assert.equal(report.id, id)
  assert.deepEqual(others, [])
  assert.deepEqual(reported(account.message(friend, [text('a')], 'x')), [deliveredId(simulator, 1)])
})

test('a look-up throws when the connection closes, without waiting for the adapter, and when there is none', async t => {
  const { account, simulator, bot } = await stage(t)
  const message = account.message(group, [text('a')], 'x')
  simulator.fault({ action: 'get_group_msg_history', fault: { kind: 'close', when: 'before' } })
  const error: unknown = await message.history?.(50).catch((thrown: unknown) => thrown)
  assert(error instanceof SendError)
  assert.deepEqual([error.outcome, String(error.wording)], ['unanswered', 'the connection was lost'])
  assert.notEqual(bot.status, Universal.Status.ONLINE)
  await assert.rejects(async () => message.history?.(50), { name: 'SendError', outcome: 'unsent' })
})

test('a look-up throws when it gets no answer, or fails for once', async t => {
  const { account, simulator } = await stage(t)
  for (const [kind, outcome] of [['refuse', 'refused'], ['silent', 'unanswered']] as const) {
    simulator.fault({ action: 'get_group_msg_history', fault: { kind } })
    await assert.rejects(async () => account.message(group, [text('a')], 'x').history?.(50), { name: 'SendError', outcome })
  }
})
