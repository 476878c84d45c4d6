import assert from 'node:assert/strict'
import { test } from 'node:test'
import { record, records, startWithClient, text } from './support'

test('greets a connection with a lifecycle event and sends heartbeats', async t => {
  const { client } = await startWithClient(t, { heartbeatInterval: 20, selfId: '424242' })
  const greeting = await client.frame(frame => frame.meta_event_type === 'lifecycle')
  assert.equal(client.frames[0], greeting)
  assert.deepEqual({ ...greeting, time: 0 }, {
    time: 0, self_id: 424242, post_type: 'meta_event', meta_event_type: 'lifecycle', sub_type: 'connect',
  })
  const beat = await client.frame(frame => frame.meta_event_type === 'heartbeat')
  assert.deepEqual(beat.status, { online: true, good: true })
  assert.equal(beat.interval, 20)
})

test('refuses what is malformed', async t => {
  const { simulator, client } = await startWithClient(t)
  const inGroup = [{ message: 5 }, {}, ...[
    { type: 'hologram', data: {} }, { type: 'text' }, { type: 'text', data: { text: 1 } }, { type: 'image', data: {} },
    { type: 'at', data: { qq: 'me' } }, { type: 'reply', data: { id: 'x' } },
  ].map(segment => ({ message: [segment, text('a')] })), { message: [text('a'), { type: 'reply', data: { id: '1' } }] }]
  for (const [action, params] of [
    ['send_group_msg', { message: 'a' }], ['send_group_msg', { group_id: 'builds', message: 'a' }], ['send_group_msg', { group_id: 0, message: 'a' }],
    ['send_private_msg', { user_id: -1, message: 'a' }], ['send_msg', { message_type: 'guild', group_id: 123456, message: 'a' }],
    ...inGroup.map(more => ['send_group_msg', { group_id: 123456, ...more }] as const),
    ['upload_group_file', { group_id: 123456, file: '/etc/hostname' }], ['upload_private_file', { user_id: 10001, name: 'a' }],
    ['get_group_msg_history', { group_id: 123456, count: 0 }],
  ] as const) {
    const { status, retcode, data } = await client.call(action, params)
    assert.deepEqual({ status, retcode, data }, { status: 'failed', retcode: 1400, data: null }, JSON.stringify(params))
  }
  for (const message of [[], '', [text('')], [{ type: 'reply', data: { id: '1' } }]]) {
    const { retcode, wording } = await client.call('send_group_msg', { group_id: 123456, message })
    assert.deepEqual({ retcode, wording }, { retcode: 1200, wording: '消息体无法解析, 请检查是否发送了不支持的消息类型' }, JSON.stringify(message))
  }
  assert.equal(simulator.ledger.length, 0)
})

test('takes CQ strings apart, or not with auto_escape', async t => {
  const { simulator, client } = await startWithClient(t)
  const message = '[CQ:at,qq=10001] 5 &amp; &#91;6&#93;'
  await client.call('send_group_msg', { group_id: 123456, message })
  await client.call('send_group_msg', { group_id: 123456, message, auto_escape: true })
  assert.deepEqual(simulator.ledger[0]?.segments, [{ type: 'at', data: { qq: '10001' } }, text(' 5 & [6]')])
  assert.equal(simulator.ledger[1]?.text, message)
})

test('takes a comma in a CQ code that no name follows for a part of the value', async t => {
  const { simulator, client } = await startWithClient(t)
  await client.call('send_group_msg', { group_id: 123456, message: '[CQ:share,url=https://a/b?x=1,2,title=a,,b]' })
  assert.deepEqual(simulator.ledger[0]?.segments, [{ type: 'share', data: { url: 'https://a/b?x=1,2', title: 'a,,b' } }])
})

test('keeps only the newest entries, calls and messages', async t => {
  const { simulator, client } = await startWithClient(t, { keep: 3 })
  for (const message of ['1', '2', '3', '4', '5']) await client.call('send_group_msg', { group_id: 123456, message })
  assert.deepEqual(simulator.ledger.map(({ seq, text }) => [seq, text]), [[3, '3'], [4, '4'], [5, '5']])
  assert.equal(simulator.calls.length, 3)
  const history = record((await client.call('get_group_msg_history', { group_id: 123456 })).data)
  assert.equal(records(history.messages).length, 3)
  simulator.clear()
  assert.equal(simulator.ledger.length + simulator.calls.length, 0)
})
