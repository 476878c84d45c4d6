import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/folder'
import { record, records, startWithClient, text, type Client, type Frame } from './support'

const event = (client: Client, id: number): Promise<Frame> => client.frame(frame => frame.message_id === id && 'post_type' in frame)

test('a member speaks in a group', async t => {
  const { simulator, client } = await startWithClient(t)
  const id = simulator.say({ group: '123456', user: '10001', text: ' hello [你好] ' })
  const { time, ...rest } = await event(client, id)
  assert(Number.isInteger(time))
  assert.deepEqual(rest, {
    self_id: 10000, user_id: 10001, message_id: id, message_seq: id, real_id: id, real_seq: '1', message_type: 'group', group_id: 123456,
    sender: { user_id: 10001, nickname: '小明', card: '', role: 'member' }, raw_message: 'hello &#91;你好&#93;', font: 14,
    sub_type: 'normal', message: [text(' hello [你好] ')], message_format: 'array', post_type: 'message',
  })
})

test('the history has both sides, oldest first, with whole seconds and files', async t => {
  const { simulator, client } = await startWithClient(t)
  const path = join(temporaryFolder(), 'a.log')
  await writeFile(path, '12345')
  simulator.say({ group: '123456', user: '10001', text: 'question' })
  const answer = record((await client.call('send_group_msg', { group_id: 123456, message: 'answer' })).data)
  await client.call('upload_group_file', { group_id: 123456, file: path, name: '日志.log' })
  simulator.say({ group: '654321', user: '10001', text: 'elsewhere' })
  const { messages } = record((await client.call('get_group_msg_history', { group_id: 123456 })).data)
  const list = records(messages)
  assert.deepEqual(list.map(message => [message.real_seq, record(message.sender).user_id]), [['1', 10001], ['2', 10000], ['3', 10000]])
  assert(list.every(({ time }) => Number.isInteger(time) && Math.abs(Number(time) - Date.now() / 1000) < 60))
  assert.deepEqual(list[1]?.message, [text('answer')])
  assert.equal(list[1].message_id, answer.message_id)
  const [file] = records(list[2]?.message)
  assert.equal(file?.type, 'file')
  const data = record(file.data)
  assert.deepEqual([data.file, data.name, data.file_size], ['日志.log', '日志.log', '5'])
  assert.match(String(data.file_id), /./)
})

test('the history can be cut by count, id and sequence number', async t => {
  const { simulator, client } = await startWithClient(t)
  const ids = Array.from({ length: 30 }, (_, index) => simulator.say({ user: '10001', text: String(index) }))
  const read = async (params: object): Promise<unknown[]> => {
    const { data } = await client.call('get_friend_msg_history', { user_id: 10001, ...params })
    return records(record(data).messages).map(message => record(record(records(message.message)[0]).data).text)
  }
  assert.equal((await read({})).length, 20)
  assert.deepEqual(await read({ count: 2 }), ['28', '29'])
  assert.deepEqual(await read({ count: 2, message_seq: ids[10] }), ['9', '10'])
  assert.deepEqual(await read({ count: 2, message_seq: 5 }), ['3', '4'])
  assert.deepEqual(await read({ count: 1, message_seq: 0 }), ['29'])
})
