import assert from 'node:assert/strict'
import { test } from 'node:test'
import { relayWith } from '../deliveries/support'
import { call, failureOf, group, messageIdOf, seen } from './support'

test('_async stores a message first, which is sent when there is a bot again', async t => {
  const relay = await relayWith(t)
  await relay.simulator.goOffline()
  const { text, headers } = await call(relay, 'send_group_msg_async', { group_id: group, message: '[CQ:face,id=1] [CQ:at,qq=10001] later' })
  const id = headers.get('x-request-id') ?? ''
  assert.equal(text, `{"retcode":1,"status":"async","data":{"delivery_id":"${id}"}}`)
  assert.equal((await relay.show(id)).state, 'queued')
  await relay.simulator.goOnline()
  await relay.reaches(id, 'sent')
  assert.deepEqual(seen(relay), ['[表情] @10001 later'])
})

test('an upload of _async keeps its name', async t => {
  const relay = await relayWith(t)
  const { headers } = await call(relay, 'upload_group_file_async', { group_id: group, file: 'base64://YQ==', name: 'build.log' })
  await relay.reaches(headers.get('x-request-id') ?? '', 'sent')
  assert.deepEqual(seen(relay), ['[build.log]'])
})

test('a message that was accepted for later is taken back, also after a reload', async t => {
  const relay = await relayWith(t)
  const id = await relay.queue('stored')
  const { results } = await relay.reaches(id, 'sent')
  messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: 'in memory' }))
  await relay.reload()
  const [messageId] = [results[0]?.message_ids].flat()
  assert.equal((await call(relay, 'delete_msg', { message_id: messageId })).retcode, 0)
  assert.deepEqual(relay.simulator.calls.filter(({ action }) => action === 'delete_msg').map(({ params }) => params.message_id), [Number(messageId)])
  failureOf(await call(relay, 'delete_msg', { message_id: 1 }), 1404)
})
