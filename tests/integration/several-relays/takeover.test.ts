import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Simulator } from '../../../simulator'
import { until } from '../../support/until'
import { missing, MariaDb } from './mariadb'
import { look, post, relayFor, request, send, simulatorFor, spawnRelay, texts, untilState } from './support'

/** How long what a dead relay has left may lie, in milliseconds: a lease of 12 s, two looks at the queue and a slow machine. */
const soon = 20_000

/** The texts that relays have asked the platform to send, in order. */
function calls(simulator: Simulator): string[] {
  return simulator.calls.filter(({ action }) => action === 'send_group_msg').map(({ params }) => textOf(params))
}

function textOf({ message }: Record<string, unknown>): string {
  return /"text":"([^"]*)"/.exec(JSON.stringify(message))?.[1] ?? ''
}

/** The states of all deliveries in the database, the newest first. */
async function states(relay: { url: string }): Promise<string[]> {
  const { data } = await request(relay, '/deliveries')
  return [...JSON.stringify(data).matchAll(/"state":"(\w+)"/g)].map(([, state]) => state ?? '')
}

// What a dead relay was sending may still be carried out for as long as a call of its own may take, from when it is found to be dead.
describe('a relay that shares a database', { skip: missing, concurrency: true }, () => {
  let server: MariaDb

  before(async () => {
    server = await MariaDb.start()
  })
  after(() => server.stop())

  test('is replaced when it dies, and what it was sending is not sent again if it arrived', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 5 }
    const owner = await spawnRelay(t, { ...options, timeout: 60 })
    simulator.fault({ fault: { kind: 'lost-answer' } })
    const ids = [await post(owner, 'one'), await post(owner, 'two'), await post(owner, 'three')]
    await simulator.until(({ ledger }) => ledger.length === 1)
    const heir = await relayFor(t, options)
    owner.kill('SIGKILL')
    const died = performance.now()
    for (const id of ids) await untilState(heir, id, 'sent', 2 * soon)
    const waited = performance.now() - died
    assert.deepEqual(texts(simulator), ['one', 'two', 'three'])
    assert.deepEqual(calls(simulator), ['one', 'two', 'three'])
    assert(waited < soon, `it took ${waited} ms`)
  })

  test('is replaced when it dies, and what it was sending is sent if it did not arrive', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 5 }
    const owner = await spawnRelay(t, { ...options, timeout: 15 })
    simulator.fault({ fault: { kind: 'silent' } })
    const ids = [await post(owner, 'one'), await post(owner, 'two')]
    await simulator.until(() => calls(simulator).length === 1)
    const heir = await relayFor(t, options)
    owner.kill('SIGKILL')
    for (const id of ids) await untilState(heir, id, 'sent', 2 * soon)
    assert.deepEqual(texts(simulator), ['one', 'two'])
    assert.deepEqual(calls(simulator), ['one', 'one', 'two'])
  })

  test('that dies is replaced, and an equal message before the one it was sending is not taken for that', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 5 }
    const owner = await spawnRelay(t, { ...options, timeout: 15 })
    await untilState(owner, await post(owner, 'ping'), 'sent')
    simulator.fault({ fault: { kind: 'silent' } })
    const id = await post(owner, 'ping')
    await simulator.until(() => calls(simulator).length === 2)
    const heir = await relayFor(t, options)
    owner.kill('SIGKILL')
    await untilState(heir, id, 'sent', 2 * soon)
    assert.deepEqual(texts(simulator), ['ping', 'ping'])
  })

  test('that was paused for longer than its lease holds leaves the queue to the one that has it now', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 60 }
    const owner = await spawnRelay(t, options)
    simulator.fault({ fault: { kind: 'lost-answer' }, match: ({ params }) => textOf(params) === 'one' })
    // On its way for so long that the first relay wakes up meanwhile.
    simulator.fault({ fault: { kind: 'late', ms: 4_000, delivered: 'then' }, match: ({ params }) => textOf(params) === 'two' })
    const expected = ['one', 'two', 'three', 'four']
    const ids: string[] = []
    for (const text of expected) ids.push(await post(owner, text))
    await simulator.until(({ ledger }) => ledger.length === 1)
    owner.kill('SIGSTOP')
    const heir = await spawnRelay(t, options)
    await simulator.until(() => calls(simulator).includes('two'), 2 * soon)
    owner.kill('SIGCONT')
    for (const id of ids) await untilState(heir, id, 'sent', soon)
    assert.deepEqual(texts(simulator), expected)
    assert.deepEqual(calls(simulator), expected)
    const last = await post(owner, 'five')
    await untilState(owner, last, 'sent', soon)
    assert.deepEqual(texts(simulator), [...expected, 'five'])
    for (const id of ids) assert.equal((await look(owner, id)).state, 'sent')
  })

  test('that dies with requests of callers under way is settled within its lease', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 2 }
    const owner = await spawnRelay(t, { ...options, timeout: 60 })
    simulator.fault({ fault: { kind: 'silent' } })
    const leaving = send(owner, 'leaving', { 'idempotency-key': 'a' })
    await simulator.until(() => calls(simulator).length === 1)
    const requests = [leaving, send(owner, 'waiting', { 'idempotency-key': 'b' })]
    await until('the other one waits', async () => (await states(owner)).join() === 'queued,sending')
    const heir = await relayFor(t, options)
    owner.kill('SIGKILL')
    await Promise.allSettled(requests)
    const died = performance.now()
    const early = await send(heir, 'leaving', { 'idempotency-key': 'a' })
    assert.equal(early.status, 409)
    const wait = Number(early.headers.get('retry-after'))
    assert(wait > 1 && wait <= 12, `Retry-After: ${wait}`)
    await until('they are settled', async () => (await states(heir)).join() === 'failed,unanswered', soon)
    assert(performance.now() - died < soon)
    const { data: settled } = await request(heir, '/deliveries')
    assert.deepEqual([...JSON.stringify(settled).matchAll(/"outcome":"(\w+)"/g)].map(([, outcome]) => outcome), ['unsent', 'unanswered'])
    // What only waited never left; what was leaving may still be carried out.
    assert.equal((await send(heir, 'waiting', { 'idempotency-key': 'b' })).status, 200)
    const again = await send(heir, 'leaving', { 'idempotency-key': 'a' })
    assert.equal(again.status, 504)
    assert(Number(again.headers.get('retry-after')) > 0)
    assert.deepEqual(texts(simulator), ['waiting'])
  })

  test('that was paused while a caller waited sends nothing when it wakes up and was taken for dead', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 30 }
    const owner = await spawnRelay(t, options)
    simulator.fault({ fault: { kind: 'late', ms: 3_000, delivered: 'then' }, match: ({ params }) => textOf(params) === 'before' })
    const first = send(owner, 'before')
    await simulator.until(() => calls(simulator).length === 1)
    const requests = [first, send(owner, 'waiting', { 'idempotency-key': 'b' })]
    await until('the other one waits', async () => (await states(owner)).includes('queued'))
    owner.kill('SIGSTOP')
    const heir = await relayFor(t, options)
    await until('it is settled', async () => (await states(heir)).includes('failed'), soon)
    assert.equal((await send(heir, 'waiting', { 'idempotency-key': 'b' })).status, 200)
    owner.kill('SIGCONT')
    const [before, waiting] = await Promise.all(requests)
    assert.equal(before?.status, 200)
    assert.equal(waiting?.headers.get('relay-outcome'), 'unsent')
    assert.deepEqual(texts(simulator).sort(), ['before', 'waiting'])
  })

  test('shares the work with one whose clock is an hour ahead', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 5 }
    const owner = await relayFor(t, options)
    await spawnRelay(t, options, 60 * 60_000)
    // So slow that whoever took the queue meanwhile would find that it did not arrive, and send it again.
    simulator.fault({ fault: { kind: 'late', ms: 3_000, delivered: 'then' }, times: Infinity })
    const expected = ['one', 'two', 'three', 'four']
    const ids: string[] = []
    for (const text of expected) ids.push(await post(owner, text))
    await until('all have been sent', () => texts(simulator).length >= expected.length, 2 * soon)
    for (const id of ids) await untilState(owner, id, 'sent')
    assert.deepEqual(texts(simulator), expected)
    assert.deepEqual(calls(simulator), expected)
  })
})
