import { Context, Logger, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { v4 as uuid } from 'uuid'
import { Clock } from '../../../src/relay/store/clock'
import { DatabaseStore } from '../../../src/relay/store/database-store'
import { queueOf } from '../../../src/relay/store/store'
import { deliveryOf, storeContract } from '../../support/store-contract'
import { until } from '../../support/until'
import { TestDriver } from './driver'
import { missing, MariaDb, type Access } from './mariadb'

Logger.levels.base = Logger.SILENT

/** The store in a database, without a relay around it. */
async function open(t: TestContext, access: Access): Promise<{ store: DatabaseStore, app: Context }> {
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(TestDriver, access)]
  const store = await new Promise<DatabaseStore>(resolve => {
    const load = (ctx: Context): unknown => ctx.inject(['database'], inner => resolve(new DatabaseStore(inner, new Clock(), uuid())))
    forks.push(app.plugin({ name: 'store', apply: load }))
    void app.start()
  })
  t.after(() => {
    for (const fork of forks.reverse()) fork.dispose()
  })
  await app.model.prepared()
  return { store, app }
}

/** How the server would make the table of deliveries. */
async function describeTable({ database }: Context): Promise<string> {
  const [driver] = database.drivers
  assert(driver instanceof TestDriver)
  const [row] = await driver.query<Record<string, string>[]>('SHOW CREATE TABLE message_relay_delivery')
  return row?.['Create Table'] ?? ''
}

describe('deliveries in MariaDB', { skip: missing }, () => {
  let server: MariaDb

  before(async () => {
    server = await MariaDb.start()
  })
  after(() => server.stop())

  storeContract(async t => (await open(t, await server.create())).store)

  test('keep items of more than 16 MiB, and many results', async t => {
    const { store } = await open(t, await server.create())
    const results = Array.from({ length: 5_000 }, (_, index) => ({ success: true as const, messageIds: [`${index}`.padStart(20, '1')] }))
    const delivery = deliveryOf({ results, attempts: 4_000_000_000 })
    const items = [{ type: 'text' as const, text: '🚀'.repeat(9 * 1024 * 1024 / 2) }, { type: 'text' as const, text: '\'"\\\n'.repeat(10) }]
    const position = 1
    await store.insert(delivery, position, items)
    const stored = await store.next(queueOf(delivery.bot, delivery.target), position)
    assert.deepEqual(stored?.delivery, delivery)
    assert.deepEqual(stored.items, items)
  })

  test('are in a table that a second relay, and the next start, leave as it is', async t => {
    const access = await server.create()
    const { app } = await open(t, access)
    const before = await describeTable(app)
    assert.match(before, /`items` longtext/)
    assert.match(before, /`results` longtext NOT NULL/)
    assert.match(before, /UNIQUE KEY `unique:key` \(`key`\)/)
    assert.match(before, /\(`state`,`queue`,`position`\)/)
    await open(t, access)
    assert.equal(await describeTable(app), before)
  })

  test('are written again after the server was restarted', async t => {
    const { store } = await open(t, await server.create())
    await server.halt('SIGKILL')
    await assert.rejects(store.ping())
    await server.resume()
    const delivery = deliveryOf()
    await until('the driver has connected again', () => store.insert(delivery, 1, []).then(() => true, () => false))
    assert.deepEqual(await store.get(delivery.id), delivery)
  })
})
