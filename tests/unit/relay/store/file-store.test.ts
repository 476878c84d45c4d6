import assert from 'node:assert/strict'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, test, type TestContext } from 'node:test'
import { RelayError } from '../../../../src/errors'
import { isNumber, objectOf } from '../../../../src/lib/shape'
import { systemClock, type Clock } from '../../../../src/relay/clock'
import { Connection } from '../../../../src/relay/store/connection'
import { fileStorage } from '../../../../src/relay/store/file-storage'
import { FileStore, filesIn, Reserve } from '../../../../src/relay/store/file-store'
import { FolderLock } from '../../../../src/relay/store/lock'
import type { Store } from '../../../../src/relay/store/store'
import { Syncer } from '../../../../src/relay/store/workers'
import { temporaryFolder } from '../../../support/folder'
import { SimulatedClock } from '../../../support/simulated-clock'
import { until } from '../../../support/until'
import { Other } from './other'

const forEver = new AbortController().signal
const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

async function open(t: TestContext, folder = temporaryFolder(), clock: Clock = systemClock): Promise<Store & { folder: string }> {
  const store = await fileStorage({ dataDir: folder, logger, clock }).open(forEver)
  assert.equal(store.failure, undefined)
  t.after(() => store.close())
  return Object.assign(store, { folder })
}

function add(store: Store, at: number, bytes = 10): void {
  store.commit(writer => writer.run('INSERT INTO payloads VALUES (?, ?, ?)', String(at), at, 'x'.repeat(bytes)))
}

function ask(store: Store, sql: string): number {
  return store.first(objectOf({ answer: isNumber }), sql)?.answer ?? NaN
}

const count = (store: Store): number => ask(store, 'SELECT count(*) AS answer FROM payloads')
const sizeOf = (store: { folder: string }, name: string): number => statSync(join(store.folder, name)).size
const isCode = (code: string) => (error: unknown): boolean => error instanceof RelayError && error.code === code

describe('a commit', () => {
  test('is there at once, and after the store was opened again', async t => {
    const store = await open(t)
    const folder = join(store.folder)
    add(store, 1)
    assert.equal(count(store), 1)
    await store.close()
    assert(!existsSync(join(folder, 'relay.db-wal')) && !existsSync(join(folder, 'relay.lock')))
    assert.equal(statSync(join(folder, 'relay.db')).mode & 0o077, 0)
    assert.throws(() => count(store), isCode('stopping'))
    assert.equal(count(await open(t, folder)), 1)
  })

  test('counts as a whole or not at all', async t => {
    const store = await open(t)
    assert.throws(() => store.commit(writer => {
      writer.run('INSERT INTO payloads VALUES (?, ?, ?)', 'a', 1, '{}')
      throw new Error('on second thoughts')
    }), /on second thoughts/)
    assert.throws(() => store.commit(writer => {
      writer.run('INSERT INTO payloads VALUES (?, ?, ?)', 'b', 1, '{}')
      writer.run('INSERT INTO payloads VALUES (?, ?, ?)', 'b', 1, '{}')
    }), isCode('store-down'))
    assert.equal(count(store), 0)
    // The statement that failed is good for another time.
    add(store, 2)
    assert.equal(count(store), 1)
  })

  test('neither waits for anything nor contains another one', async t => {
    const store = await open(t)
    assert.throws(() => store.commit(() => add(store, 1)), /nested/)
    const late: () => unknown = () => Promise.resolve()
    assert.throws(() => store.commit(late), /must not wait/)
    assert.equal(count(store), 0)
  })

  test('is refused once another process has the folder, and the file is left to that', async t => {
    const store = await open(t)
    add(store, 1)
    writeFileSync(join(store.folder, 'relay.lock'), '1\n1\nelsewhere')
    await delay(300)
    assert.throws(() => add(store, 2), error => isCode('store-down')(error) && String(error).includes('another process'))
    assert(store.over.aborted)
    assert.throws(() => count(store), isCode('store-down'))
    await assert.rejects(store.flushed(), isCode('store-down'))
    await store.close()
    // What a clean end would remove.
    assert(existsSync(join(store.folder, 'relay.db-wal')) && existsSync(join(store.folder, 'relay.lock')))
  })
})

describe('a flush', () => {
  test('is shared by all that wait, and begun again for what comes later', async t => {
    const store = await open(t)
    add(store, 1)
    const order: string[] = []
    const first = store.flushed().then(() => order.push('first'))
    const shared = store.flushed().then(() => order.push('shared'))
    add(store, 2)
    const next = [store.flushed(), store.flushed()]
    assert.equal(next[0], next[1])
    await next[0]?.then(() => order.push('next'))
    await Promise.all([first, shared])
    assert.deepEqual(order, ['first', 'shared', 'next'])
  })

  test('that nothing is left for resolves without a thread', async t => {
    const store = await open(t)
    let isDone = false
    void store.flushed().then(() => isDone = true)
    await Promise.resolve()
    assert(isDone)
  })

  test('comes by itself within a second', async t => {
    const clock = new SimulatedClock()
    const store = await open(t, undefined, clock)
    add(store, 1)
    await clock.run(1_000)
    let isDone = false
    await until('it is flushed', async () => {
      void store.flushed().then(() => isDone = true)
      await Promise.resolve()
      return isDone
    })
  })

  test('that failed ends the store for good', { skip: process.platform === 'win32' }, async t => {
    const clock = new SimulatedClock()
    const folder = temporaryFolder()
    const files = filesIn(folder)
    const connection = new Connection(files.file)
    connection.migrate()
    const lock = new FolderLock(folder, clock, () => undefined)
    assert(lock.take())
    const failures: string[] = []
    // The system refuses to sync this file.
    const store = new FileStore({
      files, connection, lock, clock, reserve: new Reserve(files), syncer: new Syncer('/dev/null'), noteEnd: failure => failures.push(failure.message),
    })
    t.after(() => store.close())
    add(store, 1)
    const first = store.flushed()
    add(store, 2)
    await Promise.all([first, store.flushed()].map(each => assert.rejects(each, isCode('store-down'))))
    assert(store.over.aborted)
    assert.throws(() => add(store, 3), isCode('store-down'))
    await assert.rejects(store.flushed(), isCode('store-down'))
    assert.deepEqual(failures, ['the disk of the relay does not keep what is written: check the disk'])
    // The next one can have the folder at once.
    assert(new FolderLock(folder, clock, () => undefined).take())
  })
})

test('a flush fails if another process has taken the folder: nothing may leave any more', async t => {
  const clock = new SimulatedClock()
  const store = await open(t, undefined, clock)
  add(store, 1)
  await clock.run(300)
  writeFileSync(join(store.folder, 'relay.lock'), '1\n1\nelsewhere')
  await assert.rejects(store.flushed(), isCode('store-down'))
  assert(store.over.aborted)
})

describe('an idle store', () => {
  test('moves its log into the file, and gives free pages back', async t => {
    const clock = new SimulatedClock()
    const store = await open(t, undefined, clock)
    const idle = async (): Promise<void> => {
      await store.flushed()
      await clock.run(1_000)
    }
    for (let at = 0; at < 600; at++) add(store, at, 20_000)
    await idle()
    assert(sizeOf(store, 'relay.db') > 600 * 20_000)
    store.commit(writer => writer.run('DELETE FROM payloads'))
    const free = (): number => ask(store, 'SELECT freelist_count AS answer FROM pragma_freelist_count')
    assert(free() > 2_000)
    for (let times = 0; times < 100 && free() > 1_024; times++) await idle()
    assert(free() <= 1_024)
  })

  test('has a log that does not grow without end', async t => {
    const store = await open(t)
    for (let at = 0; at < 30_000; at++) add(store, at, 1_000)
    assert(sizeOf(store, 'relay.db-wal') < 40_000_000, String(sizeOf(store, 'relay.db-wal')))
  })
})

describe('a backup', () => {
  test('is one complete file, made while the store is used on', async t => {
    const store = await open(t)
    for (let at = 0; at < 3_000; at++) add(store, at, 1_000)
    const making = store.backup()
    await assert.rejects(store.backup(), isCode('conflict'))
    let at = 3_000
    const busy = setInterval(() => add(store, at++, 1_000), 1)
    const backup = await making
    clearInterval(busy)
    assert(at > 3_001 && count(store) === at)
    await assert.rejects(store.backup(), isCode('conflict'))
    const copy = new Connection(backup.path)
    const rows = Number(copy.value('SELECT count(*) FROM payloads'))
    assert(rows >= 3_000 && rows < at)
    assert.equal(copy.value('PRAGMA integrity_check'), 'ok')
    assert.equal(copy.value('PRAGMA journal_mode'), 'delete')
    copy.close()
    await backup.done()
    assert(!existsSync(backup.path))
    await (await store.backup()).done()
  })

  test('that a killed process has left is removed at the next start', async t => {
    const folder = temporaryFolder()
    for (const name of ['relay.db.backup', 'relay.db.backup-wal']) writeFileSync(join(folder, name), 'x')
    mkdirSync(join(folder, 'relay.db.backup.lock'))
    await (await (await open(t, folder)).backup()).done()
    for (const name of ['relay.db.backup', 'relay.db.backup-wal', 'relay.db.backup.lock']) assert(!existsSync(join(folder, name)))
  })

  test('ends with the store', async t => {
    const store = await open(t)
    for (let at = 0; at < 100; at++) add(store, at)
    const making = assert.rejects(store.backup(), isCode('store-down'))
    await store.flushed()
    await delay(20)
    await store.close()
    await making
  })
})

describe('a full disk', () => {
  test('refuses what is new, lets old rows be removed, and is known to have room again', { skip: process.platform !== 'linux' }, async t => {
    const folder = temporaryFolder()
    // A file system of 24 MB that only this process sees. Where the system lets users have namespaces, that needs no rights.
    const mount = `mount -t tmpfs -o size=24m none ${folder} && head -c 8388608 /dev/zero >${folder}/relay.reserve && exec "$@"`
    const other = await Other.start(t, folder, ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', mount, 'sh'])
    assert.equal(await other.says(), 'open')
    for (let at = 0; at < 10; at++) assert.equal(await other.does({ kind: 'store', at, bytes: 100_000 }), '1')
    assert.equal(await other.does({ kind: 'fill' }), '"ENOSPC"')
    assert.equal(await other.does({ kind: 'store', at: 10, bytes: 500_000 }), 'storage-full')
    assert.equal(await other.does({ kind: 'isFull' }), 'true')
    assert.equal(await other.does({ kind: 'purge' }), '5')
    assert.equal(await other.does({ kind: 'flush' }), '"done"')
    assert.equal(await other.does({ kind: 'count' }), '5')
    assert.equal(await other.does({ kind: 'free' }), '"done"')
    await until('there is a reserve again', async () => await other.does({ kind: 'isFull' }) === 'false')
    assert.equal(await other.does({ kind: 'store', at: 10, bytes: 500_000 }), '1')
    assert.equal(await other.does({ kind: 'close' }), '"done"')
    assert.equal(await other.ends(), 0)
  })
})
