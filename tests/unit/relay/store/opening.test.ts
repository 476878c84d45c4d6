import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, test, type TestContext } from 'node:test'
import { RelayError } from '../../../../src/errors'
import { isNumber, objectOf } from '../../../../src/lib/shape'
import { systemClock, type Clock } from '../../../../src/relay/clock'
import { Connection } from '../../../../src/relay/store/connection'
import { fileStorage } from '../../../../src/relay/store/file-storage'
import type { Storage, Store } from '../../../../src/relay/store/store'
import { temporaryFolder } from '../../../support/folder'
import { end } from '../../../support/process'
import { SimulatedClock } from '../../../support/simulated-clock'
import { until } from '../../../support/until'
import { Other } from './other'
import type { Text } from '../../../../src/texts/text'

const forEver = new AbortController().signal

/** A folder, and a relay that opens it. */
class Place {
  readonly log: string[] = []
  readonly storage: Storage
  readonly file: string

  constructor(private readonly t: TestContext, readonly folder = temporaryFolder(), readonly clock: Clock = systemClock) {
    const note = (line: Text): void => void this.log.push(String(line))
    this.storage = fileStorage({ dataDir: folder, logger: { info: note, warn: note, error: note }, clock })
    this.file = join(folder, 'relay.db')
  }

  async open(): Promise<Store> {
    const store = await this.storage.open(forEver)
    this.t.after(() => store.close())
    return store
  }

  /** Makes a file with so many rows, and closes it. */
  async fill(rows = 3_000): Promise<void> {
    const store = await this.open()
    add(store, 0, rows)
    await store.close()
  }
}

function add(store: Store, from: number, to: number): void {
  store.commit(writer => {
    for (let at = from; at < to; at++) writer.run('INSERT INTO payloads VALUES (?, ?, ?)', String(at), at, 'x'.repeat(1_000))
  })
}

const isCount = objectOf({ count: isNumber })
const count = (store: Store): number | undefined => store.first(isCount, 'SELECT count(*) AS count FROM payloads')?.count
const read = (store: Store): unknown => store.all(objectOf({ size: isNumber }), 'SELECT sum(length(entry)) AS size FROM payloads GROUP BY at % 100')
const failureOf = (store: Store): string => store.failure?.message ?? ''
const isDown = (error: unknown): boolean => error instanceof RelayError && error.code === 'store-down'

/** What a file has; nothing if it cannot be read. */
function contentOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    return Buffer.of()
  }
}

/** As another user than root, who may do everything. */
function asAnybody(t: TestContext): void {
  if (process.geteuid?.() !== 0) return
  process.seteuid?.(65_534)
  t.after(() => process.seteuid?.(0))
}

describe('a file that cannot be used', () => {
  const damagePages = (path: string): void => {
    const content = readFileSync(path)
    for (let page = 3; page * 4_096 < content.length; page += 5) randomBytes(4_096).copy(content, page * 4_096)
    writeFileSync(path, content)
  }
  // Which faults are seen at the start depends on whether the file is checked: after an end that left a log behind.
  const leaveLog = (path: string): void => writeFileSync(`${path}-wal`, randomBytes(10_000))
  const cases: [what: string, spoil: (path: string, t: TestContext) => void, words: RegExp][] = [
    ['is no database', path => writeFileSync(path, randomBytes(20_000)), /is no data file of a relay, and was left as it is/],
    ['has lost its beginning', path => {
      const content = readFileSync(path).fill(0, 0, 100)
      writeFileSync(path, content)
    }, /is no data file of a relay, and was left as it is/],
    ['has damaged pages', path => {
      damagePages(path)
      leaveLog(path)
    }, /is damaged, and was left as it is: restore a backup, or move relay\.db and relay\.db-wal away/],
    ['was cut', path => {
      truncateSync(path, 100_000)
      leaveLog(path)
    }, /is damaged, and was left as it is/],
    ['is of a newer release', path => {
      const connection = new Connection(path)
      connection.value('PRAGMA locking_mode = EXCLUSIVE')
      connection.value('PRAGMA user_version = 9999')
      connection.close()
    }, /written by a newer release of the relay: install that release again/],
    ['is a folder', path => {
      rmSync(path)
      mkdirSync(path)
    }, /relay\.db or relay\.db-wal in the data folder of the relay is a folder: move it away/],
    ['belongs to somebody else', (path, t) => {
      chmodSync(path, 0o400)
      chmodSync(join(path, '..'), 0o777)
      asAnybody(t)
    }, /may not write to its data folder, or to a file in it: give folder and files to the user/],
  ]
  for (const [what, spoil, words] of cases) {
    test(`as it ${what} is told, left as it is, and opened once it was moved away`, { skip: process.platform === 'win32' }, async t => {
      const clock = new SimulatedClock()
      const place = new Place(t, undefined, clock)
      const { folder, file } = place
      await place.fill()
      spoil(file, t)
      const before = [file, `${file}-wal`].map(contentOf)
      const store = await place.open()
      const failure = store.failure ?? assert.fail()
      assert(isDown(failure))
      assert.match(failure.message, words)
      assert(!failure.message.includes(folder))
      for (const use of [() => count(store), () => add(store, 0, 1)]) assert.throws(use, error => error === failure)
      await assert.rejects(store.flushed(), error => error === failure)
      await assert.rejects(store.backup(), error => error === failure)
      assert.deepEqual([file, `${file}-wal`].map(contentOf), before)
      assert(!existsSync(join(folder, 'relay.lock')))
      const repeated = await place.open()
      assert.equal(repeated.failure?.message, failure.message)
      assert.equal(place.log.length, 1)
      assert(place.log[0]?.startsWith(`nothing can be stored in ${folder}: ${failure.message}`))
      await clock.run(20_000)
      assert(!store.over.aborted)
      renameSync(file, join(folder, 'elsewhere'))
      rmSync(`${file}-wal`, { force: true })
      await clock.run(5_000)
      assert(store.over.aborted)
      const next = await place.open()
      assert.equal(failureOf(next), '')
      assert.equal(count(next), 0)
    })
  }

  test('is noticed while it is read, and told at the next opening', async t => {
    const place = new Place(t)
    await place.fill()
    damagePages(place.file)
    const store = await place.open()
    assert.equal(failureOf(store), '')
    const before = readFileSync(place.file)
    assert.throws(() => read(store), isDown)
    assert(store.over.aborted)
    assert.match(failureOf(store), /is damaged, and was left as it is/)
    const next = await place.open()
    assert.match(failureOf(next), /is damaged, and was left as it is/)
    assert(before.equals(readFileSync(place.file)))
    assert.equal(place.log.length, 1)
  })
})

describe('a folder that cannot be used', () => {
  const cases: [what: string, spoil: (folder: string, t: TestContext) => void, words: RegExp, repair: (folder: string) => void][] = [
    ['is a file', folder => {
      rmdirSync(folder)
      writeFileSync(folder, '')
    }, /is a file, or inside of one: set dataDir to a folder/, folder => rmSync(folder)],
    ['may not be written', (folder, t) => {
      chmodSync(folder, 0o555)
      asAnybody(t)
    }, /may not write to its data folder/, folder => {
      process.seteuid?.(0)
      chmodSync(folder, 0o777)
    }],
  ]
  for (const [what, spoil, words, repair] of cases) {
    test(`as it ${what} is told, and used as soon as that has changed`, { skip: process.platform === 'win32' }, async t => {
      const clock = new SimulatedClock()
      const place = new Place(t, undefined, clock)
      spoil(place.folder, t)
      const store = await place.open()
      assert.match(store.failure?.message ?? '', words)
      await clock.run(10_000)
      assert(!store.over.aborted)
      repair(place.folder)
      await clock.run(5_000)
      assert(store.over.aborted)
      assert.equal((await place.open()).failure, undefined)
    })
  }

  test('is tried again each minute, whatever is the matter', async t => {
    const clock = new SimulatedClock()
    const place = new Place(t, undefined, clock)
    mkdirSync(`${place.file}-wal`)
    const store = await place.open()
    assert(isDown(store.failure))
    await clock.run(65_000)
    assert(store.over.aborted)
  })
})

describe('a folder that somebody has', () => {
  test('is waited for, which is logged, and taken when that process is killed', async t => {
    const place = new Place(t)
    const other = await Other.start(t, place.folder)
    assert.equal(await other.says(), 'open')
    await other.does({ kind: 'store', at: 1, bytes: 10 })
    const opening = place.open()
    await until('the wait is logged', () => place.log.length > 0)
    const owner = String(place.storage.owner)
    assert.match(owner, new RegExp(`^process ${other.child.pid} on `))
    await end(other.child, 'SIGKILL')
    assert.equal(count(await opening), 1)
    assert.deepEqual(place.log, [`this relay stands by: ${owner} works its data; it takes over when that one ends`, 'this relay is active now'])
    assert.equal(place.storage.owner, undefined)
  })

  test('is had at once when the other relay of the process closes it', async t => {
    const place = new Place(t)
    const first = await place.open()
    const clock = new SimulatedClock()
    const reloaded = new Place(t, place.folder, clock)
    const opening = reloaded.open()
    add(first, 0, 10)
    await clock.run(1_000)
    assert.equal(String(reloaded.storage.owner), 'another relay of this process')
    await first.close()
    await clock.run(100)
    assert.equal(count(await opening), 10)
    assert.deepEqual(reloaded.log, [])
  })

  test('is not waited for any more after a stop', async t => {
    const place = new Place(t)
    await place.open()
    const stop = new AbortController()
    const opening = place.storage.open(stop.signal)
    await delay(10)
    stop.abort()
    await assert.rejects(opening)
    assert.equal(place.storage.owner, undefined)
  })
})

describe('a folder whose owner may only be paused', { skip: process.platform === 'win32' }, () => {
  const stranger = '7\n1\nelsewhere a b'

  /** Opens a folder as its lock goes stale. */
  async function takeOver(place: Place, clock: SimulatedClock): Promise<Store> {
    let store: Store | undefined
    void place.open().then(opened => store = opened)
    await until('it is open', async () => {
      await clock.run(1_000)
      return store !== undefined
    })
    return store ?? assert.fail()
  }

  test('is worked on as a copy, which the old owner does not damage when it goes on', async t => {
    const clock = new SimulatedClock()
    const place = new Place(t, undefined, clock)
    const { folder, file } = place
    // An owner that was paused after it had looked at its lock.
    const old = new Connection(file)
    old.value('PRAGMA locking_mode = EXCLUSIVE')
    old.value('PRAGMA journal_mode = WAL')
    old.migrate()
    const write = (from: number, to: number): void => old.transaction(() => {
      for (let at = from; at < to; at++) old.run('INSERT INTO payloads VALUES (?, ?, ?)', String(at), at, 'x'.repeat(1_000))
    })
    write(0, 1_000)
    writeFileSync(join(folder, 'relay.lock'), stranger)
    const store = await takeOver(place, clock)
    assert.equal(place.log.length, 2)
    assert.equal(count(store), 1_000)
    for (let turn = 1; turn <= 5; turn++) {
      write(turn * 1_000, turn * 1_000 + 900)
      add(store, turn * 1_000, turn * 1_000 + 500)
    }
    old.value('PRAGMA wal_checkpoint(TRUNCATE)')
    await store.close()
    const next = new Connection(file)
    next.value('PRAGMA locking_mode = EXCLUSIVE')
    assert.equal(next.value('PRAGMA integrity_check'), 'ok')
    assert.equal(next.value('SELECT count(*) FROM payloads'), 3_500)
    next.close()
    assert.deepEqual(['copy', 'next', 'copy-wal'].filter(suffix => existsSync(`${file}.${suffix}`)), [])
  })

  test('is copied again if the copying process was killed, and adopted if only that was missing', async t => {
    const place = new Place(t)
    const { file } = place
    await place.fill(1_000)
    copyFileSync(file, `${file}.next`)
    // What the copy takes the place of, with a log that would damage it.
    writeFileSync(`${file}-wal`, randomBytes(10_000))
    truncateSync(file, 100_000)
    const adopted = await place.open()
    assert.equal(count(adopted), 1_000)
    await adopted.close()
    assert(!existsSync(`${file}.next`))
    writeFileSync(`${file}.copy`, 'the half of it')
    mkdirSync(`${file}.copy.lock`)
    const store = await place.open()
    assert.equal(count(store), 1_000)
    assert(!existsSync(`${file}.copy`) && !existsSync(`${file}.copy.lock`))
  })

  test('is told to be damaged if no copy of it is whole', async t => {
    const clock = new SimulatedClock()
    const place = new Place(t, undefined, clock)
    await place.fill()
    truncateSync(place.file, 100_000)
    writeFileSync(join(place.folder, 'relay.lock'), stranger)
    const store = await takeOver(place, clock)
    assert.match(failureOf(store), /is damaged, and was left as it is/)
    assert.equal(statSync(place.file).size, 100_000)
  })
})
