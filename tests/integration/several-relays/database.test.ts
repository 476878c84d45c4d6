import { Context, Logger, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../src/errors'
import { DatabaseRecords } from '../../../src/relay/database-store'
import { writeResults, type DeliveryRecord } from '../../../src/relay/delivery'
import { laneOf } from '../../../src/platform/bots'
import { until } from '../../support/until'
import { TestDriver } from './driver'
import { missing, MariaDb, type Access } from './mariadb'

Logger.levels.base = Logger.SILENT

const now = Date.now()

function delivery(changes: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return {
    id: uuid(), state: 'queued', mode: 'single', deferred: true, target: { kind: 'group', id: '123456' }, bot: 'onebot:10000', createdAt: now,
    updatedAt: now, expiresAt: now + 1, attempts: 0, results: [undefined], sending: null, key: null, fingerprint: null, ...changes,
  }
}

/** The records in a database, without a relay around them. */
async function open(t: TestContext, access: Access): Promise<{ records: DatabaseRecords, app: Context }> {
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(TestDriver, access)]
  const records = await new Promise<DatabaseRecords>(resolve => {
    const load = (ctx: Context): unknown => ctx.inject(['database'], inner => resolve(new DatabaseRecords(inner)))
    forks.push(app.plugin({ name: 'records', apply: load }))
    void app.start()
  })
  t.after(() => {
    for (const fork of forks.reverse()) fork.dispose()
  })
  await app.model.prepared()
  return { records, app }
}

/** How the server would make the table of deliveries. */
async function describeTable({ database }: Context): Promise<string> {
  const [driver] = database.drivers
  assert(driver instanceof TestDriver)
  const [row] = await driver.query<Record<string, string>[]>('SHOW CREATE TABLE message_relay_delivery')
  return row?.['Create Table'] ?? ''
}

/** What can be compared of a record: errors have a stack. */
function plain(record: DeliveryRecord | undefined): object {
  assert(record)
  return { ...record, results: writeResults(record.results) }
}

describe('deliveries in MariaDB', { skip: missing }, () => {
  let server: MariaDb

  before(async () => {
    server = await MariaDb.start()
  })
  after(() => server.stop())

  test('come back as they were stored', async t => {
    const { records } = await open(t, await server.create())
    const record = delivery({
      state: 'sending', mode: 'batch', target: { kind: 'private', id: '八'.repeat(255) }, bot: '九'.repeat(255), createdAt: now + 0.25,
      key: 'k'.repeat(64), fingerprint: 'f'.repeat(64), attempts: 4_000_000_000, sending: { indices: [0, 2], since: now + 0.5, others: ['-7'] },
      results: [{ success: true, messageIds: ['-2147483648', '🚀'] }, undefined, { success: false, error: new RelayError('refused', '禁言 🙊 \\ \' "') }],
    })
    await records.insert(record, uuid(), null)
    assert.deepEqual(plain(await records.get(record.id)), plain(record))
    const absent = delivery({ expiresAt: null, deferred: false })
    await records.insert(absent, '', null)
    assert.deepEqual(await records.get(absent.id), absent)
  })

  test('keep bodies of more than 16 MiB, and many results', async t => {
    const { records } = await open(t, await server.create())
    const results = Array.from({ length: 5_000 }, (_, index) => ({ success: true as const, messageIds: [`${index}`.padStart(20, '1')] }))
    const record = delivery({ results })
    const body = { msg: '🚀'.repeat(9 * 1024 * 1024 / 2), other: '\'"\\\n'.repeat(10) }
    const position = uuid()
    await records.insert(record, position, body)
    const stored = await records.nextInLane(laneOf(record.bot, record.target), position)
    assert.deepEqual(stored?.record, record)
    assert.deepEqual(stored.body, body)
  })

  test('may have no key, and share none', async t => {
    const { records } = await open(t, await server.create())
    for (let count = 0; count < 3; count++) await records.insert(delivery(), uuid(), null)
    await records.insert(delivery({ key: 'one' }), uuid(), null)
    await assert.rejects(records.insert(delivery({ key: 'one' }), uuid(), null))
  })

  test('are in a table that a second relay, and the next start, leave as it is', async t => {
    const access = await server.create()
    const { app } = await open(t, access)
    const before = await describeTable(app)
    assert.match(before, /`body` longtext/)
    assert.match(before, /`results` longtext NOT NULL/)
    assert.match(before, /UNIQUE KEY `unique:key` \(`key`\)/)
    assert.match(before, /\(`state`,`lane`,`position`\)/)
    await open(t, access)
    assert.equal(await describeTable(app), before)
  })

  test('are written again after the server was restarted', async t => {
    const { records } = await open(t, await server.create())
    await server.halt('SIGKILL')
    await assert.rejects(records.ping())
    await server.resume()
    const record = delivery()
    await until('the driver has connected again', () => records.insert(record, uuid(), null).then(() => true, () => false))
    assert.deepEqual(await records.get(record.id), record)
  })
})
