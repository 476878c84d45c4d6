import { Context, Logger, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../src/errors'
import { DatabaseRecords } from '../../src/outbox/database'
import type { DeliveryRecord } from '../../src/outbox/record'
import { until } from '../support/until'
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
    const load = (ctx: Context): void => ctx.inject(['database'], inner => resolve(new DatabaseRecords(inner)))
    forks.push(app.plugin({ name: 'records', apply: load }))
    void app.start()
  })
  t.after(() => {
    for (const fork of forks.reverse()) fork.dispose()
  })
  await app.model.prepared()
  return { records, app }
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
      state: 'unanswered', mode: 'batch', target: { kind: 'private', id: '八'.repeat(255) }, bot: '九'.repeat(255), createdAt: now + 0.25,
      key: 'k'.repeat(255), fingerprint: 'f'.repeat(64), attempts: 4_000_000_000, sending: { indices: [0, 2], since: now + 0.5 },
      results: [{ success: true, messageIds: ['-2147483648', '🚀'] }, undefined, { success: false, error: new RelayError('refused', '禁言 🙊 \\ \' "') }],
    })
    await records.insert(record, '巷'.repeat(255), null)
    assert.deepEqual(await records.get(record.id), record)
    const absent = delivery({ expiresAt: null, deferred: false })
    await records.insert(absent, '', null)
    assert.deepEqual(await records.get(absent.id), absent)
  })

  test('keep bodies of more than 16 MiB, and many results', async t => {
    const { records } = await open(t, await server.create())
    const results = Array.from({ length: 5_000 }, (_, index) => ({ success: true as const, messageIds: [`${index}`.padStart(20, '1')] }))
    const record = delivery({ results })
    const body = { msg: '🚀'.repeat(9 * 1024 * 1024 / 2), other: '\'"\\\n'.repeat(10) }
    await records.insert(record, 'lane', body)
    const stored = await records.nextInLane('lane', record.id)
    assert.deepEqual(stored?.record, record)
    assert.deepEqual(stored.body, body)
  })

  test('may have no key, and share none', async t => {
    const { records } = await open(t, await server.create())
    for (let count = 0; count < 3; count++) await records.insert(delivery(), 'lane', null)
    await records.insert(delivery({ key: 'one' }), 'lane', null)
    await assert.rejects(records.insert(delivery({ key: 'one' }), 'lane', null))
  })

  test('have keys of which case is a part', async t => {
    const { records } = await open(t, await server.create())
    const upper = delivery({ key: 'Build-7' })
    await records.insert(upper, 'lane', null)
    assert.equal(await records.findByKey('build-7'), undefined)
    await records.insert(delivery({ key: 'build-7' }), 'lane', null)
    assert.equal((await records.findByKey('Build-7'))?.id, upper.id)
  })

  test('are in a table that a second relay, and the next start, take as it is', async t => {
    const access = await server.create()
    const tables: string[] = []
    const target: Logger.Target = {
      levels: { base: Logger.DEBUG },
      record: ({ name, content }) => {
        if (name === 'mysql' && /^> (?:CREATE|ALTER)/.test(content) && !content.includes('FUNCTION')) tables.push(content)
      },
    }
    Logger.targets.push(target)
    t.after(() => Logger.targets.splice(Logger.targets.indexOf(target), 1))
    const { app } = await open(t, access)
    assert.equal(tables.length, 4, tables.join('\n'))
    const [driver] = app.database.drivers
    assert(driver)
    const indexes = await driver.getIndexes('message_relay_delivery')
    assert.deepEqual(indexes.map(({ keys }) => Object.keys(keys).join()).sort(), ['id', 'key', 'lane,state,id', 'state,id', 'target,id'])
    await open(t, access)
    assert.equal(tables.length, 4, tables.join('\n'))
  })

  test('are written again after the server was restarted', async t => {
    const { records } = await open(t, await server.create())
    await server.halt('SIGKILL')
    await assert.rejects(records.ping())
    await server.resume()
    const record = delivery()
    await until('the driver has connected again', () => records.insert(record, 'lane', null).then(() => true, () => false))
    assert.deepEqual(await records.get(record.id), record)
  })
})
