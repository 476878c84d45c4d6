import SQLiteDriver from 'koishi-plugin-database-sqlite'
import { Context, Logger } from 'koishi'
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { v4 as uuid, v7 } from 'uuid'
import { RelayError } from '../../../../src/errors'
import type { ParsedItem } from '../../../../src/message/model'
import { writeItems } from '../../../../src/message/parse'
import { aboutOf } from '../../../../src/relay/delivery/about'
import type { Delivery } from '../../../../src/relay/delivery/delivery'
import { Clock } from '../../../../src/relay/store/clock'
import { DatabaseStore } from '../../../../src/relay/store/database-store'
import { MemoryStore } from '../../../../src/relay/store/memory-store'
import { noPosition } from '../../../../src/relay/store/store'
import { deliveryOf, plain, storeContract } from '../../../support/store-contract'

Logger.levels.base = Logger.SILENT

interface Opened {
  store: DatabaseStore
  database: Context['database']
  driver: SQLiteDriver
}

async function openDatabase(t: TestContext, path = ':memory:'): Promise<Opened> {
  const app = new Context()
  const fork = app.plugin(SQLiteDriver, { path })
  const store = new Promise<DatabaseStore>(resolve => {
    app.inject(['database'], inner => resolve(new DatabaseStore(inner, new Clock(), uuid())))
  })
  await app.start()
  t.after(() => {
    fork.dispose()
  })
  const [driver] = app.model.drivers
  assert(driver instanceof SQLiteDriver)
  return { store: await store, database: app.database, driver }
}

async function openSqlite(t: TestContext): Promise<DatabaseStore> {
  return (await openDatabase(t)).store
}

/** One field of each row that a statement gives. */
function query({ db }: SQLiteDriver, sql: string, field: string): string[] {
  const statement = db.prepare(sql)
  const found: string[] = []
  while (statement.step()) found.push(String(statement.getAsObject()[field]))
  statement.free()
  return found
}

const laterIndexes = 'SELECT name FROM sqlite_master WHERE type = \'index\' AND (sql LIKE \'%caller%\' OR sql LIKE \'%door%\')'

describe('a store in memory', () => {
  storeContract(() => new MemoryStore(new Clock()))

  const sent = (): Delivery => deliveryOf({ state: 'sent', deferred: false, results: [{ success: true, messageIds: ['1'] }] })

  test('remembers the last of those that have ended, and all that have not', () => {
    const store = new MemoryStore(new Clock(), { ended: 100 })
    const waiting = deliveryOf({ deferred: false })
    store.insert(waiting, noPosition, [])
    const ended = Array.from({ length: 250 }, sent)
    for (const delivery of ended) store.insert(delivery, noPosition, [])
    assert.equal(store.get(waiting.id), waiting)
    assert.equal(store.get(ended[149]?.id ?? ''), undefined)
    assert.deepEqual(plain(store.get(ended[150]?.id ?? '')), plain(ended[150] ?? waiting))
    assert.equal(store.list({ limit: 1000 }).length, 101)
  })

  test('remembers what holds a key for longer, and puts it right when its answer comes', () => {
    const store = new MemoryStore(new Clock(), { ended: 10 })
    const keyed = deliveryOf({ deferred: false, key: 'k' })
    store.insert(keyed, noPosition, [])
    store.update(keyed, ['queued'], { state: 'unanswered' })
    for (let count = 0; count < 20; count++) store.insert(sent(), noPosition, [])
    assert.equal(store.findByKey('k')?.state, 'unanswered')
    assert(store.update(keyed, ['unanswered'], { state: 'sent', results: [{ success: true, messageIds: ['9'] }] }))
    assert.equal(store.findByKey('k')?.state, 'sent')
  })

  test('drops the oldest of those that have ended when they take too much', () => {
    const store = new MemoryStore(new Clock(), { endedLength: 100_000 })
    const large = (): Delivery => deliveryOf({
      state: 'sent', mode: 'batch', deferred: false, results: Array.from({ length: 1000 }, (_, index) => ({ success: true, messageIds: [String(index)] })),
    })
    const first = sent()
    store.insert(first, noPosition, [])
    const ended = Array.from({ length: 50 }, large)
    for (const delivery of ended) store.insert(delivery, noPosition, [])
    const kept = store.list({ limit: 1000 })
    assert(kept.length > 1 && kept.length < 10)
    assert.deepEqual(kept.map(({ id }) => id), ended.slice(-kept.length).map(({ id }) => id).reverse())
    assert.equal(store.get(first.id), undefined)
    // One that is larger than all is not kept at all, and does no harm to what follows.
    store.insert(deliveryOf({ ...large(), bot: 'x'.repeat(100_000) }), noPosition, [])
    assert.equal(store.list({ limit: 1000 }).length, 0)
    const last = Array.from({ length: 20 }, sent)
    for (const delivery of last) store.insert(delivery, noPosition, [])
    store.discard(last[0]?.id ?? '')
    assert.equal(store.list({ limit: 1000 }).length, 19)
  })

  test('drops the oldest keys when they take too much, but none of what has not ended', () => {
    const store = new MemoryStore(new Clock(), { keysLength: 10_000 })
    const waiting = deliveryOf({ deferred: false, key: 'waiting', bot: 'x'.repeat(20_000) })
    for (let count = 0; count < 100; count++) store.insert(deliveryOf({ state: 'sent', deferred: false, key: `k${count}` }), noPosition, [])
    store.insert(waiting, noPosition, [])
    assert.equal(store.findByKey('waiting'), waiting)
    assert.equal(store.findByKey('k0'), undefined)
    assert.equal(store.findByKey('k99')?.key, 'k99')
    store.releaseKey('k99')
    assert.equal(store.findByKey('k99'), undefined)
    assert.equal(store.list({ limit: 1 })[0]?.key, null)
  })

  test('keeps what was to be sent up to a length together, the newest first, and the last one whatever its length', () => {
    const store = new MemoryStore(new Clock(), { contentLength: 1000 })
    const fail = (length: number): string => {
      const delivery = deliveryOf({ state: 'failed', deferred: false })
      store.insert(delivery, noPosition, [{ type: 'text', text: 'x'.repeat(length) }])
      return delivery.id
    }
    const [first, second, third, huge, after] = [fail(400), fail(400), fail(400), fail(5000), fail(10)]
    assert.deepEqual([first, second, third, huge, after].map(id => store.hasContent(id)), [false, false, false, false, true])
    const alone = fail(5000)
    assert.deepEqual([after, alone].map(id => store.hasContent(id)), [false, true])
  })

  test('keeps several large failures until they are written', () => {
    const store = new MemoryStore(new Clock())
    const failed = [0, 1, 2].map(() => deliveryOf({ state: 'failed', deferred: false }))
    for (const delivery of failed) store.insert(delivery, noPosition, [{ type: 'text', text: 'x'.repeat(9 * 1024 * 1024) }])
    assert(failed.every(({ id }) => store.hasContent(id)))
    assert(store.isFull)
  })

  test('is full by what is not written, whether that is many, or long, or with long content', () => {
    const store = new MemoryStore(new Clock(), { ended: 100, endedLength: 100_000, contentLength: 10_000 })
    const insert = (bot: string, text: string): void =>
      store.insert(deliveryOf({ state: 'unanswered', deferred: false, bot }), noPosition, [{ type: 'text', text }])
    const fill = [(): void => insert('x'.repeat(60_000), ''), (): void => insert('', 'x'.repeat(5000)), (): void => {
      for (let count = 0; count < 30; count++) insert('', '')
    }]
    for (const insertMuch of fill) {
      assert(!store.isFull)
      insertMuch()
      assert(store.isFull)
      // What went unanswered stays here, as its answer may come.
      store.release(store.unwritten(100), () => true)
    }
    assert(!store.isFull)
    assert(store.list({ limit: 100 }).length > 30)
  })

  test('finds nothing where nothing matches', () => {
    const store = new MemoryStore(new Clock())
    for (let count = 0; count < 100; count++) store.insert(sent(), noPosition, [])
    for (const filter of [{ states: [] }, { states: ['failed' as const] }, { text: 'nothing "of" it' }, { caller: 'nobody' }, { until: 1 }, { since: Date.now() + 1000 }]) {
      assert.deepEqual(store.list({ limit: 20, ...filter }), [], JSON.stringify(filter))
    }
  })

  test('can do without one that is kept elsewhere by now', () => {
    const store = new MemoryStore(new Clock())
    const [kept, left] = [sent(), sent()]
    for (const delivery of [kept, left]) store.insert(delivery, noPosition, [])
    store.discard(left.id)
    assert.deepEqual(store.list({ limit: 10 }).map(({ id }) => id), [kept.id])
    assert.equal(store.get(left.id), undefined)
  })
})

describe('a store in SQLite', () => {
  storeContract(openSqlite)

  test('tells which messages were sent through the same bot to the same target since then, however many there are', async t => {
    const store = await openSqlite(t)
    const since = Date.now()
    const insert = (messageId: string, changes: Partial<Delivery> = {}): Promise<void> =>
      store.insert(deliveryOf({ state: 'sent', results: [{ success: true, messageIds: [messageId] }], updatedAt: since, ...changes }), noPosition, [])
    const ids = Array.from({ length: 450 }, (_, n) => String(n))
    for (const id of ids) {
      await insert(id)
      await insert('too old', { updatedAt: since - 1 })
    }
    await insert('through another bot', { bot: 'onebot:2' })
    await insert('elsewhere', { target: { kind: 'group', id: '7' } })
    await insert('1000', { state: 'sending', inDoubt: { indices: [0], since, before: ['1001'], settle: 0, calls: 1 } })
    assert.deepEqual((await store.messageIds(deliveryOf(), since)).sort(), [...ids, '1000', '1001'].sort())
    assert.deepEqual(await store.messageIds(deliveryOf({ target: { kind: 'private', id: '123456' } }), since), [])
  })

  test('takes over only what is still as its owner left it, also where that changes meanwhile', async t => {
    const { store, database } = await openDatabase(t)
    const results = [{ success: true as const, messageIds: ['1'] }]
    let changes = 0
    for (let steps = 0; steps < 60; steps++) {
      const delivery = deliveryOf({ state: 'sending' })
      await store.insert(delivery, noPosition, [])
      await database.set('message_relay_delivery', { id: delivery.id }, { owner: 'a dead one' })
      const takenOver = store.takeOver('a dead one')
      for (let step = 0; step < steps; step++) await Promise.resolve()
      const hasChanged = await store.update(delivery, ['sending'], { state: 'sent', results })
      await takenOver
      assert.equal((await store.get(delivery.id))?.state, hasChanged ? 'sent' : 'unanswered', `after ${steps} steps`)
      if (hasChanged) changes++
    }
    assert(changes > 0 && changes < 60, `${changes} of 60 changed first`)
  })

  test('keeps no content of what it takes over as failed where none is to be kept of that', async t => {
    const { store, database } = await openDatabase(t)
    store.keeps = state => state === 'unanswered'
    const [waiting, leaving] = [deliveryOf({ deferred: false }), deliveryOf({ state: 'sending' })]
    for (const delivery of [waiting, leaving]) await store.insert(delivery, noPosition, [{ type: 'text', text: 'x' }])
    await database.set('message_relay_delivery', {}, { owner: 'a dead one' })
    await store.takeOver('a dead one')
    assert.deepEqual(await store.withContent([waiting.id, leaving.id]), [leaving.id])
  })

  test('finds what a list asks for in an index, in order', async t => {
    const { store, driver } = await openDatabase(t)
    await store.insert(deliveryOf(), noPosition, [])
    for (const fields of [['caller'], ['caller', 'state'], ['caller', 'target'], ['state'], ['target'], ['target', 'state']]) {
      const conditions = fields.map(field => `${field} = 'x'`).join(' AND ')
      const sql = `EXPLAIN QUERY PLAN SELECT id FROM message_relay_delivery WHERE ${conditions} ORDER BY id DESC`
      const steps = query(driver, sql, 'detail').join()
      for (const field of fields) assert(steps.includes(`${field}=?`), steps)
      assert.doesNotMatch(steps, /TEMP B-TREE/)
    }
  })

  test('takes over a table of an earlier release, whose deliveries are those of the master key', async t => {
    const folder = await mkdtemp(join(tmpdir(), 'relay-store-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const path = join(folder, 'koishi.db')
    const { store, driver } = await openDatabase(t, path)
    const old = deliveryOf({ caller: 'ci' })
    await store.insert(old, 1, [{ type: 'text', text: 'x' }])
    const indexes = query(driver, laterIndexes, 'name')
    assert.equal(indexes.length, 4)
    for (const name of indexes) driver.db.exec(`DROP INDEX "${name}"`)
    for (const column of ['caller', 'door', 'about']) driver.db.exec(`ALTER TABLE message_relay_delivery DROP COLUMN ${column}`)

    const { store: next, driver: after } = await openDatabase(t, path)
    assert.deepEqual(plain(await next.get(old.id)), plain({ ...old, caller: null, door: '', about: aboutOf([], 'preview') }))
    const own = deliveryOf({ caller: 'ci' })
    await next.insert(own, 2, [])
    assert.deepEqual((await next.list({ limit: 5, caller: 'ci' })).map(({ id }) => id), [own.id])
    assert.deepEqual(query(after, laterIndexes, 'name'), indexes)
  })

  test('keeps what is large apart from what changes, for as long as its delivery is there', async t => {
    const { store, database } = await openDatabase(t)
    const large: ParsedItem[] = [{ type: 'text', text: 'x'.repeat(2 ** 20) }]
    const parts = async (): Promise<string[]> => (await database.get('message_relay_content', {}, ['id'])).map(({ id }) => id)
    const [discarded, withdrawn, old] = [deliveryOf(), deliveryOf(), deliveryOf({ id: v7({ msecs: 1 }), state: 'sent', updatedAt: 1 })]
    await store.insert(discarded, 1, large)
    await store.insert(withdrawn, 2, large)
    await store.insert(old, noPosition, large)
    const rows = await database.get('message_relay_delivery', {}, ['items'])
    assert(rows.every(({ items }) => items !== null && items.length < 10))
    assert.deepEqual(new Set(await parts()), new Set([discarded.id, withdrawn.id, old.id]))
    await store.discard(discarded.id)
    assert(await store.withdraw(withdrawn.id))
    await store.removeOrphans()
    await store.removeOrphans()
    assert.deepEqual(new Set(await parts()), new Set([old.id]))
    await store.purge(2)
    await store.removeOrphans()
    await store.removeOrphans()
    assert.deepEqual(await parts(), [])
  })

  test('removes content without a delivery when it is found a second time, and none that is being written', async t => {
    const { store, database } = await openDatabase(t)
    const large: ParsedItem[] = [{ type: 'text', text: 'x'.repeat(2 ** 24) }]
    const parts = (): Promise<unknown[]> => database.get('message_relay_content', {})
    await database.create('message_relay_content', { id: 'left behind', part: 0, text: '[' })
    await store.removeOrphans()
    assert.equal((await parts()).length, 1)
    const delivery = deliveryOf()
    const inserted = store.insert(delivery, 1, large).then(() => true)
    for (let isInserted = false; !isInserted;) isInserted = await Promise.race([inserted, store.removeOrphans().then(() => turn(false))])
    await store.removeOrphans()
    assert.deepEqual(await database.get('message_relay_content', { id: 'left behind' }), [])
    assert(isDeepStrictEqual((await store.getQueued(delivery.id))?.items, large))
    // What is gone all the same is told, and blocks nothing.
    await database.remove('message_relay_content', { id: delivery.id, part: 2 })
    const [item] = (await store.getQueued(delivery.id))?.items ?? []
    assert(item instanceof RelayError && item.message.startsWith('the content of this delivery is gone'))
  })

  test('removes no content that goes over to it from elsewhere meanwhile', async t => {
    const { store } = await openDatabase(t)
    const large: ParsedItem[] = [{ type: 'text', text: 'x'.repeat(2 ** 20) }]
    const delivery = deliveryOf()
    await store.content.write(delivery.id, JSON.stringify(writeItems(large)), () => Promise.resolve())
    await store.removeOrphans()
    await store.removeOrphans(async () => {
      await store.insert(delivery, 1, large)
      return []
    })
    assert(isDeepStrictEqual((await store.getQueued(delivery.id))?.items, large))
  })
})
