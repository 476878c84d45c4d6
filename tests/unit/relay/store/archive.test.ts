import SQLiteDriver from 'koishi-plugin-database-sqlite'
import { Context, Logger } from 'koishi'
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../../src/errors'
import { aboutOf } from '../../../../src/relay/delivery/about'
import type { Delivery } from '../../../../src/relay/delivery/delivery'
import { Archive } from '../../../../src/relay/store/archive'
import { Clock } from '../../../../src/relay/store/clock'
import { LargeContent } from '../../../../src/relay/store/large-content'
import { lastId } from '../../../../src/relay/store/listing'
import { MemoryStore } from '../../../../src/relay/store/memory-store'
import { noPosition } from '../../../../src/relay/store/store'
import { deliveryOf, plain } from '../../../support/store-contract'

Logger.levels.base = Logger.SILENT

const items = [{ type: 'text' as const, text: 'build #4711 passed' }]
const failure = [{ success: false as const, error: new RelayError('refused') }]

/** @param maxKept how much may be kept of what was to be sent, in characters */
async function open(t: TestContext, maxKept?: number): Promise<{ archive: Archive, memory: MemoryStore, driver: SQLiteDriver }> {
  const app = new Context()
  const fork = app.plugin(SQLiteDriver, { path: ':memory:' })
  await app.start()
  t.after(() => fork.dispose())
  await new Promise<void>(resolve => app.inject(['database'], () => resolve()))
  const [driver] = app.model.drivers
  assert(driver instanceof SQLiteDriver)
  return { archive: new Archive(app, new LargeContent(app, app.database), maxKept), memory: new MemoryStore(new Clock()), driver }
}

/** One that has ended and that nothing depends on. */
function ended(changes: Partial<Delivery> = {}): Delivery {
  return deliveryOf({ deferred: false, state: 'sent', expiresAt: null, results: [{ success: true, messageIds: ['1'] }], ...changes })
}

/** Makes the statements that have this word in them fail, until the function returned is called. */
function failWrites(driver: SQLiteDriver, word: string): () => void {
  return intercept(driver, word, () => {
    throw new Error('disk I/O error')
  })
}

/** Does something before each statement that has these words in it, until the function returned is called. */
function intercept({ db }: SQLiteDriver, words: string, act: () => void): () => void {
  const prepare = db.prepare.bind(db)
  db.prepare = (...args: Parameters<typeof prepare>) => {
    if (args[0].includes(words)) act()
    return prepare(...args)
  }
  return () => {
    db.prepare = prepare
  }
}

describe('the archive', () => {
  test('takes what has ended out of memory, and gives it back as it was', async t => {
    const { archive, memory } = await open(t)
    const all = Array.from({ length: 250 }, (_, index) => ended({ caller: index % 2 ? 'cí' : null, target: { kind: 'group', id: String(index % 3) } }))
    for (const delivery of all) memory.insert(delivery, noPosition, items)
    await archive.write(memory, 1000)
    assert.deepEqual(memory.list({ limit: 5 }), [])
    assert.equal(memory.unwrittenCount, 0)
    for (const delivery of all.slice(0, 3)) assert.deepEqual(plain(await archive.get(delivery.id)), plain(delivery))
    assert.deepEqual((await archive.list({ limit: 500 })).map(({ id }) => id), all.map(({ id }) => id).reverse())
  })

  test('leaves what does not fill a statement to the next time where there is one', async t => {
    const { archive, memory } = await open(t)
    for (let count = 0; count < 260; count++) memory.insert(ended(), noPosition, items)
    await archive.write(memory, 1000, 'later')
    assert.equal(memory.unwrittenCount, 10)
    await archive.write(memory, 1000, 'later')
    assert.equal(memory.unwrittenCount, 0)
  })

  test('keeps what went unanswered in memory as well, and puts it right when its answer comes late', async t => {
    const { archive, memory } = await open(t)
    const delivery = ended({ state: 'unanswered', results: [{ success: false, error: new RelayError('unanswered') }] })
    memory.insert(delivery, noPosition, items)
    await archive.write(memory, 1000)
    assert.deepEqual(await archive.items(delivery.id), items)
    assert.equal(memory.get(delivery.id)?.state, 'unanswered')
    assert(memory.update(delivery, ['unanswered'], { state: 'sent', results: [{ success: true, messageIds: ['7'] }], inDoubt: null }))
    await archive.write(memory, 1000)
    assert.equal((await archive.get(delivery.id))?.state, 'sent')
    assert.equal(await archive.items(delivery.id), undefined)
    assert.equal(memory.get(delivery.id), undefined)
    assert.equal((await archive.list({ limit: 5 })).length, 1)
  })

  test('keeps what changed while it was written for the next time', async t => {
    const { archive, memory } = await open(t)
    const delivery = ended({ state: 'unanswered' })
    memory.insert(delivery, noPosition, items)
    const written = archive.write(memory, 1000)
    memory.update(delivery, ['unanswered'], { state: 'sent' })
    await written
    assert.equal((await archive.get(delivery.id))?.state, 'sent')
  })

  test('keeps no more than so many, the newest, with what was to be sent of them', async t => {
    const { archive, memory } = await open(t)
    const all = Array.from({ length: 350 }, () => ended({ state: 'failed', results: failure }))
    for (const delivery of all) memory.insert(delivery, noPosition, items)
    await archive.write(memory, 120)
    const kept = all.slice(-120).map(({ id }) => id).reverse()
    assert.deepEqual((await archive.list({ limit: 500 })).map(({ id }) => id), kept)
    assert.deepEqual((await archive.withContent(all.map(({ id }) => id))).sort(), kept.sort())
  })

  test('keeps so much of what was to be sent and no more, whatever came and went before', async t => {
    const { archive, memory, driver } = await open(t, 2000)
    const content = [{ type: 'text' as const, text: 'x'.repeat(400) }]
    const write = async (count: number, limit: number): Promise<string[]> => {
      const all = Array.from({ length: count }, () => ended({ state: 'unanswered', results: failure }))
      for (const delivery of all) memory.insert(delivery, noPosition, content)
      await archive.write(memory, limit)
      return all.map(({ id }) => id)
    }
    const all = [...await write(4, 3), ...await write(4, 3), ...await write(4, 3)]
    assert.deepEqual((await archive.withContent(all)).sort(), all.slice(-3), 'beyond the number of records')
    while (await archive.purge(lastId));
    assert.deepEqual(await archive.withContent(all), [], 'too old')
    const [sentAgain = '', delivered = '', ...others] = await write(4, 10)
    await archive.remove(sentAgain)
    const late = memory.get(delivered)
    assert(late && memory.update(late, ['unanswered'], { state: 'sent' }))
    await archive.write(memory, 10)
    const mend = failWrites(driver, 'REPLACE')
    await assert.rejects(write(2, 10))
    for (let count = 0; count < 5; count++) await assert.rejects(archive.write(memory, 10))
    mend()
    const last = memory.list({ limit: 2 }).map(({ id }) => id)
    await archive.write(memory, 10)
    assert.deepEqual((await archive.withContent([...others, ...last])).sort(), [...others, ...last].sort(), 'sent by now, and written at last')
    const [next = ''] = await write(1, 10)
    assert.deepEqual((await archive.withContent([...others, ...last, next])).length, 4, 'too much')
  })

  test('keeps no more than so many, also where others are removed for their age meanwhile', async t => {
    const { archive, memory } = await open(t)
    const write = async (count: number, limit: number): Promise<void> => {
      for (let index = 0; index < count; index++) memory.insert(ended(), noPosition, [])
      await archive.write(memory, limit)
    }
    await write(300, 1000)
    await Promise.all([write(1, 51), archive.purge(lastId)])
    await write(100, 50)
    assert.equal((await archive.list({ limit: 500 })).length, 50)
  })

  test('goes on where the database failed, and writes nothing twice', async t => {
    const { archive, memory, driver } = await open(t)
    const large = [{ type: 'text' as const, text: 'x'.repeat(100_000) }]
    const delivery = ended({ state: 'failed', results: failure })
    memory.insert(delivery, noPosition, large)
    await archive.list({ limit: 1 })
    const mend = failWrites(driver, 'REPLACE')
    await assert.rejects(archive.write(memory, 10))
    assert(memory.unwrittenCount > 0)
    mend()
    await archive.write(memory, 10)
    assert.deepEqual(await archive.items(delivery.id), large)
    assert.equal((await archive.list({ limit: 5 })).length, 1)
  })

  test('counts once what changed while it was written, and forgets what was to be sent of it once it is delivered', async t => {
    const { archive, memory, driver } = await open(t)
    const all = Array.from({ length: 5 }, () => ended({ state: 'unanswered', results: failure }))
    for (const delivery of all) memory.insert(delivery, noPosition, items)
    const stop = intercept(driver, 'REPLACE', () => {
      stop()
      for (const delivery of all) assert(memory.update(delivery, ['unanswered'], { state: 'sent' }))
    })
    await archive.write(memory, 10)
    assert.deepEqual(await archive.withContent(all.map(({ id }) => id)), [])
    const others = Array.from({ length: 5 }, () => ended())
    for (const delivery of others) memory.insert(delivery, noPosition, [])
    await archive.write(memory, 10)
    assert.equal((await archive.list({ limit: 20 })).length, 10)
    assert.equal(memory.unwrittenCount, 0)
  })

  test('forgets what goes on elsewhere also where that is being written', async t => {
    const { archive, memory, driver } = await open(t)
    const delivery = ended({ state: 'failed', results: failure })
    memory.insert(delivery, noPosition, items)
    let removed = Promise.resolve()
    const stop = intercept(driver, 'INTO `message_relay_kept`', () => {
      stop()
      memory.discard(delivery.id)
      removed = archive.remove(delivery.id)
    })
    await archive.write(memory, 10)
    await removed
    assert.deepEqual(await archive.list({ limit: 5 }), [])
    assert.deepEqual(await archive.withContent([delivery.id]), [])
  })

  test('finds the newest by each of their properties, and by several', async t => {
    const { archive, memory } = await open(t)
    const doors = ['webhook', 'hooks/github', 'hooks/a_b', 'hooksx', 'send']
    const all = Array.from({ length: 1500 }, (_, index) => ended({
      id: uuid({ msecs: 1_000_000 + index }), door: doors[index % 5] ?? '', caller: index % 4 ? 'ci' : null, state: index % 100 ? 'sent' : 'failed',
      target: { kind: 'group', id: String(index % 7) },
      about: aboutOf([{ type: 'text', text: index % 500 === 3 ? 'A "Quoted" 50% text' : 'something else' }], 'preview'),
    }))
    for (const delivery of all) memory.insert(delivery, noPosition, items)
    const newest = all.toReversed()
    const both = async (): Promise<void> => {
      const check = async (filter: object, expected: (delivery: Delivery, index: number) => boolean): Promise<void> => {
        const found = [...memory.list({ limit: 2000, ...filter }), ...await archive.list({ limit: 2000, ...filter })]
        const ids = newest.filter(expected).map(({ id }) => id)
        assert.deepEqual(found.map(({ id }) => id), ids, JSON.stringify(filter))
        assert.deepEqual((await archive.list({ limit: 3, ...filter })).length, memory.unwrittenCount > 0 ? 0 : Math.min(ids.length, 3))
      }
      await check({ states: ['failed'] }, ({ state }) => state === 'failed')
      await check({ states: ['failed', 'sent'] }, () => true)
      await check({ states: ['failed'], targets: [{ kind: 'group', id: '3' }] }, ({ state, target }) => state === 'failed' && target.id === '3')
      await check({ targets: [{ kind: 'group', id: '3' }, { kind: 'group', id: '4' }] }, ({ target: { id } }) => id === '3' || id === '4')
      await check({ targets: [{ kind: 'private', id: '3' }] }, () => false)
      await check({ door: 'hooks' }, ({ door }) => door.startsWith('hooks/'))
      await check({ door: 'hooks/a_b', caller: 'ci' }, ({ door, caller }) => door === 'hooks/a_b' && caller === 'ci')
      await check({ door: 'hooks', states: ['failed'] }, ({ door, state }) => door.startsWith('hooks/') && state === 'failed')
      await check({ text: '"qUOTED" 50%' }, ({ about }) => about.items[0]?.msg?.startsWith('A') === true)
      await check({ text: 'q.oted' }, () => false)
      await check({ text: 'webhook' }, () => false)
      await check({ since: 1_000_500, until: 1_000_600 }, ({ id }) => id >= uuid({ msecs: 1_000_500, seq: 0, random: new Uint8Array(16) })
        && id < uuid({ msecs: 1_000_600, seq: 0, random: new Uint8Array(16) }))
    }
    await both()
    await archive.write(memory, 10_000)
    await both()
  })
})
