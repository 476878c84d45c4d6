import { Logger } from 'koishi'
import SQLiteDriver from 'koishi-plugin-database-sqlite'
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/folder'
import { until } from '../../support/until'
import { group, later, relayWith, takeOffline } from './support'

const hello = { group_id: group, msg: 'hello' }

test('loading the relay again leaves the logger of the database as it was', async t => {
  const relay = await relayWith(t)
  const [driver] = relay.app.model.drivers
  assert(driver)
  relay.unload()
  driver.logger.warn('a statement about message_relay_journal')
  assert(relay.logs.some(line => line.includes('a statement about message_relay_journal')))
  assert.equal(driver.logger.warn.name, new Logger('x').warn.name)
})

test('a database that goes and comes back is used again, and meanwhile its absence is told', async t => {
  const path = join(temporaryFolder(), 'koishi.db')
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

test('stopping the relay gives a deferred message that is leaving some time to be answered, and begins no other', async t => {
  const relay = await relayWith(t)
  relay.simulator.fault({ fault: { kind: 'late', ms: 1_000, delivered: 'then' } })
  const [leaving, next] = [await relay.queue('leaving'), await relay.queue('next')]
  await relay.reaches(leaving, 'sending')
  await relay.app.parallel('exit', 'SIGTERM')
  const rows = await relay.app.database.get('message_relay_journal', { id: [leaving, next] }, ['state'])
  assert.deepEqual(rows.map(({ state }) => state), ['sent', 'queued'])
  assert.deepEqual(relay.texts(), ['leaving'])
})
