import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault, FaultRule } from '../../simulator'
import { Client, record, records, startWithClient, type Frame } from './support'

const group = { group_id: 123456, message: 'a' }

/** Resolves once everything sent before has been dealt with: calls that take no time are answered in order. */
const settled = (client: Client) => client.call('get_status')

const ok = { status: 'ok' }
const kinds: [fault: Fault, delivered: number, answers: Frame[]][] = [
  [{ kind: 'refuse', retcode: 1234, wording: 'no' }, 0, [{ status: 'failed', retcode: 1234, wording: 'no' }]],
  [{ kind: 'silent' }, 0, []],
  [{ kind: 'lost-answer' }, 1, []],
  [{ kind: 'timeout' }, 0, [{ status: 'failed' }]],
  [{ kind: 'timeout', delivered: true }, 1, [{ status: 'failed' }]],
  [{ kind: 'duplicate-answer' }, 1, [ok, ok]],
  [{ kind: 'null-data' }, 1, [{ ...ok, retcode: 0, data: null }]],
  [{ kind: 'answer', answer: { status: 'async', retcode: 1 } }, 1, [{ status: 'async', retcode: 1 }]],
  [{ kind: 'answer', answer: {}, delivered: false }, 0, [{ status: undefined }]],
  // Delivered at once, and answered after this test.
  [{ kind: 'late', ms: 3_600_000 }, 1, []],
  [{ kind: 'late', ms: 3_600_000, delivered: 'then' }, 0, []],
]
for (const [fault, delivered, answers] of kinds) {
  test(`${JSON.stringify(fault)}: ${delivered} delivered, ${answers.length} answers; the next call is spared`, async t => {
    const { simulator, client } = await startWithClient(t)
    const rule = simulator.fault({ fault })
    const echo = client.post('send_group_msg', group)
    await settled(client)
    assert.equal(simulator.ledger.length, delivered)
    const given = client.frames.filter(frame => frame.echo === echo)
    const [names = []] = answers.map(answer => Object.keys(answer))
    assert.deepEqual(given.map(frame => Object.fromEntries(names.map(name => [name, frame[name]]))), answers)
    assert.equal((await client.call('send_group_msg', group)).status, 'ok')
    assert.equal(rule.hits, 1)
    // The test file would not end if a timer lived on.
    await simulator.close()
  })
}

for (const [fault, delivered, status] of [
  [{ kind: 'late', ms: 30 }, ['late', 'early'], 'ok'], [{ kind: 'late', ms: 30, delivered: 'then' }, ['early', 'late'], 'ok'],
  [{ kind: 'late', ms: 30, delivered: 'never' }, ['early'], 'failed'],
] as const) {
  test(`${JSON.stringify(fault)}: answered later, and overtaken`, async t => {
    const { simulator, client } = await startWithClient(t)
    simulator.fault({ fault })
    const echo = client.post('send_group_msg', { ...group, message: 'late' })
    await client.call('send_group_msg', { ...group, message: 'early' })
    assert(!client.answered.includes(echo))
    assert.equal((await client.frame(frame => frame.echo === echo)).status, status)
    assert.deepEqual(simulator.ledger.map(entry => entry.text), delivered)
  })
}

test('late, delivered then: delivered although the connection that brought the call is gone, text and file', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'late', ms: 50, delivered: 'then' }, times: 2 })
  client.post('send_group_msg', { ...group, message: 'late' })
  client.post('upload_group_file', { group_id: 123456, file: 'base64://YQ==', name: 'a.txt' })
  await simulator.until(({ calls }) => calls.length === 2)
  simulator.disconnectAll()
  const later = await Client.connect(t, simulator.endpoint)
  const history = async () => records(record((await later.call('get_group_msg_history', { group_id: 123456 })).data).messages)
  assert.deepEqual(await history(), [], 'the history shows nothing that has not been carried out')
  assert.deepEqual(simulator.pending.map(({ action }) => action), ['send_group_msg', 'upload_group_file'])
  await simulator.until(({ ledger }) => ledger.length === 2)
  assert.equal((await history()).length, 2)
  assert.deepEqual(simulator.pending, [])
  assert.deepEqual(later.answered.length, 2, 'nobody else gets the answers')
})

test('late, not answered: carried out, and nothing is said of it', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'late', ms: 30, delivered: 'then', answered: false } })
  const echo = client.post('send_group_msg', group)
  await simulator.until(({ ledger }) => ledger.length === 1)
  await settled(client)
  assert(!client.answered.includes(echo))
})

for (const [when, delivered, answered] of [['before', 0, false], ['delivered', 1, false], ['answered', 1, true]] as const) {
  test(`close ${when}: ${delivered} delivered, ${answered ? 'answered' : 'not answered'}`, async t => {
    const { simulator, client } = await startWithClient(t)
    simulator.fault({ fault: { kind: 'close', when } })
    const echo = client.post('send_group_msg', group)
    await client.closed
    assert.equal(simulator.ledger.length, delivered)
    assert.equal(client.answered.includes(echo), answered)
    assert.equal(simulator.connections, 0)
  })
}

test('rules match by action, target and predicate; by default only sends and uploads', async t => {
  const { simulator, client } = await startWithClient(t)
  const toUser = { user_id: '10001', message: 'a' }
  const rules: [rule: Omit<FaultRule, 'fault'>, spared: [string, object], ...struck: [string, object][]][] = [
    [{}, ['get_group_list', {}], ['send_private_msg', toUser]],
    [{ action: 'get_group_list' }, ['send_group_msg', group], ['get_group_list', {}]],
    [{ action: /^get_/g, times: 2 }, ['send_group_msg', group], ['get_status', {}], ['get_status', {}]],
    [{ target: '10001' }, ['send_group_msg', group], ['send_private_msg', toUser]],
    [{ match: ({ params }) => params.message === 'b' }, ['send_group_msg', group], ['send_group_msg', { ...group, message: 'b' }]],
  ]
  for (const [rule, spared, ...struck] of rules) {
    simulator.fault({ fault: { kind: 'refuse' }, ...rule })
    assert.equal((await client.call(...spared)).status, 'ok')
    for (const call of struck) assert.equal((await client.call(...call)).status, 'failed')
  }
})

test('a history that has been forgotten begins anew, or with the newest messages', async t => {
  const { simulator, client } = await startWithClient(t)
  const texts = async () => records(record((await client.call('get_group_msg_history', { group_id: 123456 })).data).messages)
    .map(message => message.raw_message)
  for (const message of ['a', 'b', 'c']) await client.send('123456', message)
  simulator.forgetHistory(1)
  assert.deepEqual(await texts(), ['c'])
  await client.send('123456', 'd')
  assert.deepEqual(await texts(), ['c', 'd'])
  simulator.forgetHistory()
  assert.deepEqual(await texts(), [])
  assert.equal(simulator.ledger.length, 4)
})
