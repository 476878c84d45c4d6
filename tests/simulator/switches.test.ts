import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { WebSocketServer } from 'ws'
import type { Simulator } from '../../simulator'
import { Client, isRecord, record, records, start, startWithClient } from './support'

/** Posts to the page's switches; gives the status and the answer. */
async function turn({ pageUrl }: Simulator, body: object): Promise<[number, Record<string, unknown>]> {
  const response = await fetch(`${pageUrl}api/switch`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  })
  return [response.status, record(await response.json())]
}

const group = { type: 'group', chat: '123456' }
const toGroup = { group_id: 123456, message: 'a' }

test('refuses in one chat only, with the words of the profile, until it is turned off', async t => {
  const { simulator, client } = await startWithClient(t)
  assert.deepEqual(await turn(simulator, { name: 'refusing', on: true, ...group }), [200, { on: true }])
  assert.match(String((await client.call('send_group_msg', toGroup)).wording), /^EventChecker Failed.*"result": 1,/s)
  assert.equal((await client.call('send_msg', toGroup)).retcode, 1200)
  assert.equal((await client.call('upload_group_file', { group_id: 123456, file: 'base64://YQ==', name: 'a' })).retcode, 1200)
  assert.equal((await client.call('send_group_msg', { group_id: 654321, message: 'a' })).retcode, 0)
  assert.equal((await client.call('get_group_info', { group_id: 123456 })).retcode, 0)
  await turn(simulator, { name: 'refusing', on: false, ...group })
  assert.equal((await client.call('send_group_msg', toGroup)).retcode, 0)
  await turn(simulator, { name: 'refusing', on: true })
  assert.equal((await client.call('send_private_msg', { user_id: 10001, message: 'a' })).retcode, 1200)
})

test('mutes the bot in a group: tells so, until when, and that it is over', async t => {
  const { simulator, client } = await startWithClient(t, { clock: () => 1_800_000_000_000 })
  const mutedUntil = async (): Promise<unknown> => (
    record((await client.call('get_group_member_info', { group_id: 123456, user_id: 10000 })).data).shut_up_timestamp
  )
  await turn(simulator, { name: 'muted', on: true, seconds: 600, ...group })
  assert.match(String((await client.call('send_group_msg', toGroup)).wording), /"result": 120/)
  assert.equal(await mutedUntil(), 1_800_000_600)
  assert.deepEqual(simulator.switches, [{ name: 'muted', target: { type: 'group', id: '123456' }, until: 1_800_000_600_000 }])
  await turn(simulator, { name: 'muted', on: false, ...group })
  assert.equal((await client.call('send_group_msg', toGroup)).retcode, 0)
  assert.equal(await mutedUntil(), 0)
  const notice = { time: 1_800_000_000, self_id: 10000, post_type: 'notice', notice_type: 'group_ban', group_id: 123456, user_id: 10000, operator_id: 10001 }
  assert.deepEqual(client.frames.filter(({ notice_type: type }) => type === 'group_ban'), [
    { ...notice, sub_type: 'ban', duration: 600 }, { ...notice, sub_type: 'lift_ban', duration: 0 },
  ])
})

test('mutes everybody but admins', async t => {
  const { simulator, client } = await startWithClient(t)
  const allShut = async (): Promise<unknown> => record((await client.call('get_group_info', { group_id: 123456 })).data).group_all_shut
  assert.equal(await allShut(), 0)
  await turn(simulator, { name: 'allMuted', on: true, ...group })
  assert.match(String((await client.call('send_group_msg', toGroup)).wording), /"result": 120/)
  assert.equal(await allShut(), -1)
  simulator.setRole('123456', 'admin')
  assert.equal((await client.call('send_group_msg', toGroup)).retcode, 0)
  assert.equal(record((await client.call('get_group_member_info', { group_id: 123456, user_id: 10000 })).data).role, 'admin')
  await turn(simulator, { name: 'allMuted', on: false, ...group })
  assert.equal(await allShut(), 0)
  assert.deepEqual(
    client.frames.filter(({ notice_type: type }) => type === 'group_ban').map(({ sub_type: type, user_id: user, duration }) => [type, user, duration]),
    [['ban', 0, -1], ['lift_ban', 0, 0]],
  )
})

test('logs the account out: by notice, heartbeat and status; sends are refused, and nothing comes in', async t => {
  const { simulator, client } = await startWithClient(t, { heartbeatInterval: 20 })
  const status = async (): Promise<unknown> => record((await client.call('get_status')).data).online
  await turn(simulator, { name: 'loggedOut', on: true })
  const { user_id: user, tag, message } = await client.frame(({ notice_type: type }) => type === 'bot_offline')
  assert.deepEqual([user, typeof tag, typeof message], [10000, 'string', 'string'])
  await client.frame(({ status: heard }) => isRecord(heard) && heard.online === false)
  assert.equal(await status(), false)
  assert.match(String((await client.call('send_group_msg', toGroup)).wording), /"result": 1006514,\s+"errMsg": "网络连接异常!"/)
  simulator.say({ group: '123456', user: '10001', text: 'unheard' })
  await turn(simulator, { name: 'loggedOut', on: false })
  assert.equal(await status(), true)
  assert.equal((await client.call('send_group_msg', toGroup)).retcode, 0)
  assert.equal(simulator.connections, 1)
  assert.equal(client.frames.filter(({ post_type: type }) => type === 'message').length, 0)
  const { messages } = record((await client.call('get_group_msg_history', { group_id: 123456 })).data)
  assert.equal(records(messages).length, 2)
})

test('swallows: what is sent stands in the history without a number of the server, and nowhere else', async t => {
  const { simulator, client } = await startWithClient(t, { reportSelf: true })
  await turn(simulator, { name: 'swallowing', on: true, ...group })
  assert.match(String((await client.call('send_group_msg', toGroup)).wording), /^Timeout: NTEvent .*EventRet:\n\{\s+"result": 0,\s+"errMsg": ""\s+\}\n$/s)
  assert.equal((await client.call('upload_group_file', { group_id: 123456, file: 'base64://YQ==', name: 'a' })).retcode, 1200)
  await turn(simulator, { name: 'swallowing', on: false, ...group })
  await client.call('send_group_msg', toGroup)
  const { messages } = record((await client.call('get_group_msg_history', { group_id: 123456 })).data)
  assert.deepEqual(records(messages).map(message => message.real_seq), ['0', '0', '3'])
  assert.equal(simulator.ledger.length, 1)
  assert.equal(client.frames.filter(({ post_type: type }) => type === 'message_sent').length, 1)
  const state = record(await (await fetch(`${simulator.pageUrl}api/state`)).json())
  const [{ messages: shown } = {}] = records(state.chats)
  assert.deepEqual(records(shown).map(message => message.isSwallowed), [true, true, undefined])
})

test('is slow in a chat: what is sent is under way and answers later', async t => {
  const { simulator, client } = await startWithClient(t)
  await turn(simulator, { name: 'slow', on: true, ...group })
  client.post('send_group_msg', toGroup)
  await simulator.until(({ pending }) => pending.length === 1)
  assert.equal((await client.call('send_group_msg', { group_id: 654321, message: 'b' })).retcode, 0)
  assert.deepEqual(simulator.ledger.map(({ text }) => text), ['b'])
  assert.equal(simulator.pending.length, 1)
})

test('accepts any target while that is on', async t => {
  const { simulator, client } = await startWithClient(t)
  const send = async (): Promise<unknown> => (await client.call('send_group_msg', { group_id: 999, message: 'a' })).retcode
  assert.equal(await send(), 1200)
  await turn(simulator, { name: 'anyTarget', on: true })
  assert.equal(await send(), 0)
  await turn(simulator, { name: 'anyTarget', on: false })
  // It exists now.
  assert.equal(await send(), 0)
})

test('offline: bots lose their connection and get none, nobody is dialled, and the page stays', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.after(() => server.close())
  await once(server, 'listening')
  const simulator = await start(t, { reverse: { url: `ws://127.0.0.1:${String(record(server.address()).port)}`, redialInterval: 5 } })
  const client = await Client.connect(t, simulator.endpoint)
  await simulator.until(({ connections }) => connections === 2)
  await turn(simulator, { name: 'offline', on: true })
  await client.closed
  await assert.rejects(Client.connect(t, simulator.endpoint), /503/)
  const state = record(await (await fetch(`${simulator.pageUrl}api/state`)).json())
  assert.deepEqual([state.connected, state.switches], [false, [{ name: 'offline', target: null }]])
  assert.equal(server.clients.size, 0)
  await turn(simulator, { name: 'offline', on: false })
  const again = await Client.connect(t, simulator.endpoint)
  assert.equal((await again.call('send_group_msg', toGroup)).retcode, 0)
  await simulator.until(({ connections }) => connections === 2)
})

test('says what is wrong with a switch', async t => {
  const simulator = await start(t)
  for (const [body, error] of [
    [{ on: true }, /name must be one of anyTarget, /],
    [{ name: 'constructor', on: true }, /name must be one of/],
    [{ name: 'offline', on: 'yes' }, /true or false/],
    [{ name: 'offline', on: true, ...group }, /offline can be turned for all/],
    [{ name: 'muted', on: true }, /muted can be turned for group/],
    [{ name: 'muted', on: true, type: 'private', chat: '10001' }, /muted can be turned for group/],
    [{ name: 'muted', on: true, seconds: 0, ...group }, /seconds must be from 1 to 1728000/],
    [{ name: 'muted', on: true, seconds: 1_728_001, ...group }, /seconds must be/],
    [{ name: 'slow', on: true, seconds: 5, ...group }, /slow has no seconds/],
    [{ name: 'slow', on: true, type: 'group' }, /chat must be the id of a chat/],
    [{ name: 'slow', on: true, type: 'group', chat: '999' }, /there is no group 999/],
  ] as const) {
    const [status, answer] = await turn(simulator, body)
    assert.equal(status, 400)
    assert.match(String(answer.error), error)
  }
  assert.deepEqual(simulator.switches, [])
})
