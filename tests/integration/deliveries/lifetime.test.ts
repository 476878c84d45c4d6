import { Logger } from 'koishi'
import SQLiteDriver from 'koishi-plugin-database-sqlite'
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { until } from '../../support/until'
import { folderFor, group, later, relayWith, releaseHeld, takeOffline } from './support'

const hello = { group_id: group, msg: 'hello' }

describe('loading the relay again', () => {
  test('goes on with what waits, once', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 1000 } })
    for (let i = 0; i < 5; i++) await relay.queue(String(i))
    await until('the first is leaving', () => relay.texts().length === 1)
    await relay.reload()
    await until('all are delivered', async () => (await relay.list('?state=sent')).length === 5)
    assert.deepEqual(relay.texts(), ['0', '1', '2', '3', '4'])
  })

  test('does not send twice what the one before is still sending, because a caller keeps it', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 2500, delivered: 'then' }, target: group })
    relay.simulator.fault({ fault: { kind: 'late', ms: 2500 }, target: '654321' })
    const caller = relay.post({ group_id: '654321', msg: 'caller' })
    const id = await relay.queue('slow')
    await relay.reaches(id, 'sending')
    await relay.reload()
    assert.equal((await caller).status, 200)
    await relay.reaches(id, 'sent')
    assert.equal(relay.simulator.calls.filter(({ action }) => action.startsWith('send_')).length, 2)
  })

  test('does not send twice what was answered while it was not loaded', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'hold' } })
    const id = await relay.queue('hello')
    await until('it is leaving', () => relay.texts().length === 1)
    relay.unload()
    await releaseHeld(relay)
    await relay.reload()
    await relay.reaches(id, 'sent')
    assert.deepEqual(relay.texts(), ['hello'])
  })

  test('keeps what callers wait for, in its order and at its interval, and without a database also keys and records', async t => {
    const relay = await relayWith(t, { path: null, config: { chatSendInterval: 0.3 } })
    const key = { 'idempotency-key': 'a' }
    relay.simulator.fault({ fault: { kind: 'late', ms: 500 } })
    const answers = [relay.post({ ...hello, msg: '1' })]
    await until('the first is leaving', () => relay.texts().length === 1)
    answers.push(relay.post({ ...hello, msg: '2' }, key))
    await until('the second waits', async () => (await relay.list('?state=queued')).length === 1)
    await relay.reload()
    answers.push(relay.post({ ...hello, msg: '3' }))
    for (const { status } of await Promise.all(answers)) assert.equal(status, 200)
    assert.deepEqual(relay.texts(), ['1', '2', '3'])
    const times = relay.simulator.calls.filter(({ action }) => action === 'send_group_msg').map(({ time }) => time)
    assert(times.every((time, index) => index === 0 || time - (times[index - 1] ?? 0) >= 295), times.join())

    await relay.reload()
    const again = await relay.post({ ...hello, msg: '2' }, key)
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual((await relay.list()).map(({ state }) => state), ['sent', 'sent', 'sent'])
    assert.equal(relay.texts().length, 3)
  })

  test('leaves the logger of the database as it was', async t => {
    const relay = await relayWith(t)
    const [driver] = relay.app.model.drivers
    assert(driver)
    relay.unload()
    driver.logger.warn('a statement about message_relay_journal')
    assert(relay.logs.some(line => line.includes('a statement about message_relay_journal')))
    assert.equal(driver.logger.warn.name, new Logger('x').warn.name)
  })

  test('many times leaves no timer that fires later', async t => {
    const relay = await relayWith(t)
    const timers = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
    const online = await takeOffline(relay)
    await relay.queue('waiting')
    await relay.reload()
    await relay.list()
    const before = timers()
    for (let i = 0; i < 5; i++) await relay.reload()
    await relay.list()
    assert(timers() <= before + 2, `${before} timers, then ${timers()}`)
    await online()
    await until('it is delivered', () => relay.texts().length === 1)
  })
})

describe('a database that is loaded and not there yet', () => {
  const keyed = { 'idempotency-key': 'a' }

  test('is not waited for much longer, and what needs it is told so', async t => {
    class Stuck extends SQLiteDriver {
      override start(): Promise<void> {
        return new Promise(() => undefined)
      }
    }
    const relay = await relayWith(t, { path: null })
    relay.app.plugin(Stuck, { path: ':memory:' })
    const [first, deferred, without] = await Promise.all([relay.post(hello, keyed), relay.post(hello, later), relay.post(hello)])
    assert.deepEqual([first.status, deferred.status, without.status], [503, 503, 200])
    assert.match(first.msg, /database/)
    assert.deepEqual(relay.texts(), ['hello'])
  })
})

describe('a database that goes and comes back', () => {
  test('is used again, and meanwhile its absence is told', async t => {
    const path = join(await folderFor(t), 'koishi.db')
    const relay = await relayWith(t, { path: null })
    assert.equal((await relay.post(hello, later)).status, 501)
    const first = relay.app.plugin(SQLiteDriver, { path })
    await until('the database is there', async () => (await relay.post(hello, later)).status === 202)
    await until('it is delivered', () => relay.texts().length === 1)
    const online = await takeOffline(relay)
    await relay.queue('waiting')
    first.dispose()
    assert.equal((await relay.post(hello, later)).status, 501)
    await online()
    assert.equal((await relay.post({ ...hello, msg: 'without' })).status, 200)
    const second = relay.app.plugin(SQLiteDriver, { path })
    await until('what waited is delivered', () => relay.texts().length === 3)
    assert.deepEqual(relay.texts(), ['hello', 'without', 'waiting'])
    second.dispose()
  })
})

describe('stopping the relay', () => {
  test('gives a deferred message that is leaving some time to be answered, and begins no other', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 1_000, delivered: 'then' } })
    const [leaving, next] = [await relay.queue('leaving'), await relay.queue('next')]
    await relay.reaches(leaving, 'sending')
    await relay.app.parallel('exit', 'SIGTERM')
    const rows = await relay.app.database.get('message_relay_journal', { id: [leaving, next] }, ['state'])
    assert.deepEqual(rows.map(({ state }) => state), ['sent', 'queued'])
    assert.deepEqual(relay.texts(), ['leaving'])
  })
})
