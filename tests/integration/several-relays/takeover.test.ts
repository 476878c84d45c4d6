import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Simulator } from '../../../simulator'
import { until } from '../../support/until'
import { missing, MariaDb } from './mariadb'
import { look, post, relayFor, simulatorFor, spawnRelay, texts, untilState } from './support'

/** How long what a dead relay has left may lie, in milliseconds: a lease of 12 s, two looks at the queue and a slow machine. */
const soon = 20_000

/** The texts that relays have asked the platform to send, in order. */
function calls(simulator: Simulator): string[] {
  return simulator.calls.filter(({ action }) => action === 'send_group_msg').map(({ params }) => textOf(params))
}

function textOf({ message }: Record<string, unknown>): string {
  return /"text":"([^"]*)"/.exec(JSON.stringify(message))?.[1] ?? ''
}

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
    const owner = await spawnRelay(t, { ...options, timeout: 60 })
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
    const owner = await spawnRelay(t, { ...options, timeout: 60 })
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
