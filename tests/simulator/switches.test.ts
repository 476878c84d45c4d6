import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Simulator } from '../../simulator'
import { record, start, startWithClient } from './support'

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

test('is slow in a chat: what is sent is under way and answers later', async t => {
  const { simulator, client } = await startWithClient(t)
  await turn(simulator, { name: 'slow', on: true, ...group })
  client.post('send_group_msg', toGroup)
  await simulator.until(({ pending }) => pending.length === 1)
  assert.equal((await client.call('send_group_msg', { group_id: 654321, message: 'b' })).retcode, 0)
  assert.deepEqual(simulator.ledger.map(({ text }) => text), ['b'])
  assert.equal(simulator.pending.length, 1)
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
