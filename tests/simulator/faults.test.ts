import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client, folder, record, records, startWithClient } from './support'

const group = { group_id: 123456, message: 'a' }

/** Resolves once everything sent before has been dealt with: calls that take no time are answered in order. */
const settled = (client: Client) => client.call('get_status')

test('refuse: nothing delivered, failure answered', async t => {
  const { simulator, client } = await startWithClient(t)
  const fault = simulator.fault({ fault: { kind: 'refuse', retcode: 1234, wording: 'no' } })
  const answer = await client.call('send_group_msg', group)
  assert.deepEqual([answer.status, answer.retcode, answer.wording], ['failed', 1234, 'no'])
  assert.equal(simulator.ledger.length, 0)
  assert.equal(fault.hits, 1)
  assert.equal((await client.call('send_group_msg', group)).status, 'ok')
  assert.equal(fault.hits, 1)
})

test('silent: neither delivered nor answered', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'silent' } })
  const echo = client.post('send_group_msg', group)
  await settled(client)
  assert.equal(simulator.ledger.length, 0)
  assert(!client.answered.includes(echo))
  assert.equal(simulator.calls.length, 2)
})

test('lost-answer: delivered, never answered', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'lost-answer' } })
  const echo = client.post('send_group_msg', group)
  await settled(client)
  assert.equal(simulator.ledger.length, 1)
  assert(!client.answered.includes(echo))
})

test('late: delivered at once, answered later', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'late', ms: 30 } })
  const echo = client.post('send_group_msg', group)
  await settled(client)
  assert.equal(simulator.ledger.length, 1)
  assert(!client.answered.includes(echo))
  const answer = await client.frame(frame => frame.echo === echo)
  assert.equal(answer.status, 'ok')
})

test('late, delivered then: delivered and answered later, and overtaken', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'late', ms: 30, delivered: 'then' } })
  const echo = client.post('send_group_msg', { ...group, message: 'late' })
  await client.call('send_group_msg', { ...group, message: 'early' })
  assert.deepEqual(simulator.ledger.map(entry => entry.text), ['early'])
  await client.frame(frame => frame.echo === echo)
  assert.deepEqual(simulator.ledger.map(entry => entry.text), ['early', 'late'])
})

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

test('late, never delivered: refused in the end', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'late', ms: 30, delivered: 'never' } })
  const echo = client.post('send_group_msg', group)
  await settled(client)
  assert(!client.answered.includes(echo))
  assert.equal((await client.frame(frame => frame.echo === echo)).status, 'failed')
  assert.equal(simulator.ledger.length, 0)
})

test('late, not answered: carried out, and nothing is said of it', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'late', ms: 30, delivered: 'then', answered: false } })
  const echo = client.post('send_group_msg', group)
  await simulator.until(({ ledger }) => ledger.length === 1)
  await settled(client)
  assert(!client.answered.includes(echo))
})

test('a history that has been forgotten begins anew, or with the newest messages', async t => {
  const { simulator, client } = await startWithClient(t)
  const texts = async () => records(record((await client.call('get_group_msg_history', { group_id: 123456 })).data).messages)
    .map(message => message.raw_message)
  for (const message of ['a', 'b', 'c']) await client.call('send_group_msg', { ...group, message })
  simulator.forgetHistory(1)
  assert.deepEqual(await texts(), ['c'])
  await client.call('send_group_msg', { ...group, message: 'd' })
  assert.deepEqual(await texts(), ['c', 'd'])
  simulator.forgetHistory()
  assert.deepEqual(await texts(), [])
  assert.equal(simulator.ledger.length, 4)
})

test('the platform has a clock of its own', async t => {
  const { simulator, client } = await startWithClient(t, { clock: () => 1_500_000_000_999 })
  await client.call('send_group_msg', group)
  assert.equal(simulator.ledger[0]?.time, 1_500_000_000_999)
  assert.equal(simulator.calls[0]?.time, 1_500_000_000_999)
  const { data } = await client.call('get_group_msg_history', { group_id: 123456 })
  assert.equal(records(record(data).messages)[0]?.time, 1_500_000_000)
})

test('timeout: outcome unknown, delivered only when asked to', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'timeout' } })
  assert.match(String((await client.call('send_group_msg', group)).message), /^Timeout: NTEvent/)
  assert.equal(simulator.ledger.length, 0)
  simulator.fault({ fault: { kind: 'timeout', delivered: true } })
  assert.match(String((await client.call('send_group_msg', group)).message), /^Timeout: NTEvent/)
  assert.equal(simulator.ledger.length, 1)
})

test('duplicate-answer: delivered once, answered twice', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'duplicate-answer' } })
  const echo = client.post('send_group_msg', group)
  await settled(client)
  assert.deepEqual(client.answered.slice(0, 2), [echo, echo])
  assert.equal(simulator.ledger.length, 1)
})

test('hold: delivered at once, answered after the next call', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'hold' } })
  const first = client.post('send_group_msg', { ...group, message: 'first' })
  await simulator.until(({ ledger }) => ledger.length === 1)
  const second = client.post('send_group_msg', { ...group, message: 'second' })
  await client.frame(frame => frame.echo === first)
  assert.deepEqual(client.answered, [second, first])
  assert.deepEqual(simulator.ledger.map(entry => entry.text), ['first', 'second'])
})

test('hold: two held answers both wait for a call that is not held', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'hold' }, times: 2 })
  const first = client.post('send_group_msg', group)
  const second = client.post('send_group_msg', group)
  const third = client.post('send_group_msg', group)
  await client.frame(frame => frame.echo === second)
  assert.deepEqual(client.answered, [third, first, second])
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

test('null-data: delivered, answered ok without data', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'null-data' } })
  const answer = await client.call('send_group_msg', group)
  assert.deepEqual([answer.status, answer.retcode, answer.data], ['ok', 0, null])
  assert.equal(simulator.ledger.length, 1)
})

test('faults strike also when bytes have to be read first', async t => {
  const { simulator, client } = await startWithClient(t)
  const path = join(await folder(t), 'a.bin')
  await writeFile(path, 'bytes')
  const upload = { group_id: 123456, file: path, name: 'a.bin' }
  simulator.fault({ fault: { kind: 'null-data' } })
  assert.equal((await client.call('upload_group_file', upload)).data, null)
  simulator.fault({ fault: { kind: 'close', when: 'delivered' } })
  client.post('upload_group_file', upload)
  await client.closed
  assert.equal(simulator.ledger.length, 2)
})

test('the first live rule that matches wins, as often as it is meant to', async t => {
  const { simulator, client } = await startWithClient(t)
  const once = simulator.fault({ fault: { kind: 'refuse', retcode: 1 } })
  const always = simulator.fault({ fault: { kind: 'refuse', retcode: 2 }, times: Infinity })
  const codes: unknown[] = []
  for (let count = 0; count < 4; count++) codes.push((await client.call('send_group_msg', group)).retcode)
  assert.deepEqual(codes, [1, 2, 2, 2])
  assert.deepEqual([once.hits, always.hits], [1, 3])
  always.remove()
  assert.equal((await client.call('send_group_msg', group)).retcode, 0)
  simulator.fault({ fault: { kind: 'refuse', retcode: 3 } })
  simulator.clearFaults()
  assert.equal((await client.call('send_group_msg', group)).retcode, 0)
})

test('rules match by action, target and predicate; by default only sends and uploads', async t => {
  const { simulator, client } = await startWithClient(t)
  const refuse = { kind: 'refuse' as const }
  simulator.fault({ fault: refuse })
  assert.equal((await client.call('get_group_list')).status, 'ok')
  assert.equal((await client.call('send_private_msg', { user_id: 10001, message: 'a' })).status, 'failed')

  simulator.fault({ fault: refuse, action: 'get_group_list' })
  assert.equal((await client.call('send_group_msg', group)).status, 'ok')
  assert.equal((await client.call('get_group_list')).status, 'failed')

  simulator.fault({ fault: refuse, action: /^get_/g, times: 2 })
  assert.equal((await client.call('get_status')).status, 'failed')
  assert.equal((await client.call('get_status')).status, 'failed')

  simulator.fault({ fault: refuse, target: '10001' })
  assert.equal((await client.call('send_group_msg', group)).status, 'ok')
  assert.equal((await client.call('send_private_msg', { user_id: '10001', message: 'a' })).status, 'failed')

  simulator.fault({ fault: refuse, match: ({ params }) => params.message === 'b' })
  assert.equal((await client.call('send_group_msg', group)).status, 'ok')
  assert.equal((await client.call('send_group_msg', { ...group, message: 'b' })).status, 'failed')
})

test('answer: delivered, answered with what was scripted', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'answer', answer: { status: 'async', retcode: 1 } } })
  const { echo, ...answer } = await client.call('send_group_msg', group)
  assert.deepEqual(answer, { status: 'async', retcode: 1 })
  assert.equal(typeof echo, 'number')
  assert.equal(simulator.ledger.length, 1)
  simulator.fault({ fault: { kind: 'answer', answer: {}, delivered: false } })
  assert.deepEqual(Object.keys(await client.call('send_group_msg', group)), ['echo'])
  assert.equal(simulator.ledger.length, 1)
})

test('late answers die with the simulator', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.fault({ fault: { kind: 'late', ms: 3_600_000 } })
  client.post('send_group_msg', group)
  await simulator.until(({ ledger }) => ledger.length === 1)
  // The test file would not end if the timer lived on.
  await simulator.close()
})
