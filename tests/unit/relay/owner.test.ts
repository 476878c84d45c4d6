import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { mkdir, readFile, rename, rmdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test, type TestContext } from 'node:test'
import type { OwnerRow, OwnerStore } from '../../../src/relay/journal'
import { FileLock, FileOwner, FolderError, RowOwner } from '../../../src/relay/owner'
import { Core } from '../../support/core'
import { temporaryFolder } from '../../support/folder'
import { end } from '../../support/process'
import { SimulatedClock } from '../../support/simulated-clock'

const never = new AbortController().signal

/** The row of the owner on a server that may be slow to answer, or away. */
class Table implements OwnerStore {
  row: OwnerRow | undefined
  isAway = false
  /** A relay that cannot write to the server, while others can. */
  cutOff: string | undefined

  /** @param delay how long an answer takes on its way back, in milliseconds; from 8 s on there is none in time */
  constructor(private readonly clock: SimulatedClock, public delay = 0) {}

  readOwner(): Promise<OwnerRow | undefined> {
    return this.answer(() => this.row)
  }

  swapOwner(from: OwnerRow | undefined, to: OwnerRow): Promise<boolean> {
    if (to.name === this.cutOff) return Promise.reject(new Error('away'))
    return this.answer(() => {
      if (from?.number !== this.row?.number || from?.beat !== this.row?.beat) return false
      this.row = to
      return true
    })
  }

  private answer<T>(statement: () => T): Promise<T> {
    if (this.isAway) return Promise.reject(new Error('away'))
    const result = statement()
    const { delay } = this
    return new Promise((resolve, reject) => {
      this.clock.after(Math.min(delay, 8_000), () => delay < 8_000 ? resolve(result) : reject(new Error('no answer')))
    })
  }
}

function setUp(delay = 0) {
  const clock = new SimulatedClock()
  const table = new Table(clock, delay)
  return { clock, table, active: new RowOwner(table, clock, 'first'), standby: new RowOwner(table, clock, 'second') }
}

/** Where an owner stands by: its number, once it has one. */
function waitFor(owner: RowOwner): { number: number | undefined } {
  const wait: { number: number | undefined } = { number: undefined }
  void owner.acquire(never).then(number => wait.number = number)
  return wait
}

async function acquire(owner: RowOwner, clock: SimulatedClock): Promise<number | undefined> {
  const wait = waitFor(owner)
  await clock.runUntil('it is active', () => wait.number !== undefined)
  return wait.number
}

describe('the row of the owner', () => {
  test('keeps a standby waiting for as long as it is renewed', async () => {
    const { clock, active, standby } = setUp()
    assert.equal(await acquire(active, clock), 1)
    const wait = waitFor(standby)
    await clock.run(60_000)
    assert.equal(wait.number, undefined)
    assert.equal(standby.active, 'first')
    assert(active.isFresh())
    assert(!standby.isFresh())
  })

  test('is given back at a stop, so that the next owner need not wait', async () => {
    const { clock, active, standby } = setUp()
    await acquire(active, clock)
    const wait = waitFor(standby)
    await clock.run(2_000)
    const release = active.release()
    await clock.run(1_000)
    await release
    assert(!active.isFresh())
    await clock.run(1_000)
    assert.equal(wait.number, 2)
    assert.equal(standby.active, 'second')
  })

  test('is taken over after twelve seconds without a renewal, when its owner has long stopped acting', async () => {
    const { clock, table, active, standby } = setUp()
    await acquire(active, clock)
    const wait = waitFor(standby)
    await clock.run(10_000)
    // The owner cannot reach the server any more.
    table.cutOff = 'first'
    const start = clock.now()
    await clock.runUntil('the owner stops acting', () => !active.isFresh())
    assert(clock.now() - start <= 8_000)
    assert.equal(wait.number, undefined)
    await clock.runUntil('the standby is active', () => wait.number !== undefined)
    assert(clock.now() - start <= 14_000, String(clock.now() - start))
    assert.equal(wait.number, 2)
    assert(!active.lost.aborted)
    table.cutOff = undefined
    await clock.runUntil('the owner knows', () => active.lost.aborted)
    const again = waitFor(active)
    await clock.run(30_000)
    assert.equal(again.number, undefined)
    assert(standby.isFresh())
  })

  test('is not taken over while the server is away for all', async () => {
    const { clock, table, active, standby } = setUp()
    await acquire(active, clock)
    const wait = waitFor(standby)
    await clock.run(2_000)
    table.isAway = true
    await clock.run(30_000)
    assert(!active.isFresh())
    assert(!active.lost.aborted)
    table.isAway = false
    await clock.run(1_000)
    assert(active.isFresh())
    await clock.run(30_000)
    assert.equal(wait.number, undefined)
  })

  test('is still the owner\'s where the answer to a renewal comes ten seconds late', async () => {
    const { clock, table, active } = setUp()
    await acquire(active, clock)
    await clock.run(500)
    table.delay = 10_000
    await clock.runUntil('it stops acting', () => !active.isFresh())
    table.delay = 0
    await clock.run(10_000)
    assert(active.isFresh())
    assert(!active.lost.aborted)
    assert.equal(table.row?.number, 1)
  })

  test('counts a renewal from before it was asked for', async () => {
    const { clock, table, active } = setUp()
    await acquire(active, clock)
    table.delay = 5_000
    await clock.run(3_999)
    // Its answer comes at 9 s, and counts from 4 s on.
    await clock.run(4_500)
    assert(!active.isFresh())
    await clock.run(3_400)
    assert(active.isFresh())
    await clock.run(200)
    assert(!active.isFresh())
  })

  test('is renewed before the owner acts after the machine slept', async () => {
    const { clock, active } = setUp()
    await acquire(active, clock)
    clock.step(1_900)
    assert(active.isFresh())
    clock.step(200)
    assert(!active.isFresh())
    await clock.run(1_000)
    assert(active.isFresh())
    clock.step(-60_000)
    assert(!active.isFresh())
    await clock.run(1_000)
    assert(active.isFresh())
  })

  test('is no standby\'s where the server does not answer, and says so', async () => {
    const core = new Core()
    const table = new Table(core.clock)
    table.isAway = true
    core.relay.open({ journal: core.journal, ownership: new RowOwner(table, core.clock, 'first') })
    await core.run(3_000)
    await core.run(10_000, core.submit('x'), core.submit('y', { key: 'k' }))
    assert.deepEqual(core.log, ['x store-down 5', 'y key-unknown 5'])
    assert.deepEqual(core.warnings, ['this relay cannot begin until its database answers: Error'])
    table.isAway = false
    await core.run(2_000)
    await core.run(1_000, core.submit('z'))
    assert.equal(core.log.at(-1), 'z sent')
    assert.deepEqual(core.notes, ['this relay is active now'])
  })

  test('is not waited for past the stop', async () => {
    const { clock, active, standby } = setUp()
    await acquire(active, clock)
    const stop = new AbortController()
    const wait = assert.rejects(standby.acquire(stop.signal))
    await clock.run(100)
    stop.abort()
    await wait
  })
})

const source = join(__dirname, '../../../src/relay')
const program = `
const { FileLock } = require(${JSON.stringify(join(source, 'owner.ts'))})
const { systemClock } = require(${JSON.stringify(join(source, 'clock.ts'))})
const lock = new FileLock(process.argv[1], systemClock)
console.log(lock.take() ? 'taken' : lock.holder)
process.stdin.on('data', () => console.log(lock.take() || lock.take() ? 'taken' : lock.holder))
process.stdin.on('end', () => process.exit())
`

/** Another process that tries to take the lock of a folder. */
class Rival {
  private readonly lines
  readonly pid

  constructor(t: TestContext, folder: string) {
    this.child = spawn(process.execPath, ['--import', 'tsx', '-e', program, folder], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.pid = this.child.pid ?? 0
    const lines = createInterface({ input: this.child.stdout ?? assert.fail() })
    this.lines = on(lines, 'line', { close: ['close'] })
    t.after(() => end(this.child, 'SIGKILL'))
  }

  readonly child: ChildProcess

  /** What it says next: `taken`, or who has the lock. */
  async says(): Promise<string> {
    const next: IteratorResult<unknown, unknown> = await this.lines.next()
    return Array.isArray(next.value) ? String(next.value[0]) : 'ended'
  }

  triesAgain(): Promise<string> {
    this.child.stdin?.write('\n')
    return this.says()
  }
}

describe('the lock of a folder', () => {
  test('belongs to one process until that is gone, also while it is stopped', async t => {
    const folder = temporaryFolder()
    const first = new Rival(t, folder)
    assert.equal(await first.says(), 'taken')
    assert.equal(await first.triesAgain(), 'taken')
    const second = new Rival(t, folder)
    assert.match(await second.says(), new RegExp(`^process ${first.pid} on `))
    first.child.kill('SIGSTOP')
    // Nothing renews it, for as long as anybody likes.
    await utimes(join(folder, 'relay.lock'), 0, 0)
    assert.match(await second.triesAgain(), new RegExp(`^process ${first.pid} on `))
    first.child.kill('SIGCONT')
    assert.equal(await first.triesAgain(), 'taken')
    await end(first.child, 'SIGKILL')
    assert.equal(await second.triesAgain(), 'taken')
    assert.match(await readFile(join(folder, 'relay.lock'), 'utf8'), new RegExp(`^${second.pid}\n`))
    second.child.stdin?.end()
    await once(second.child, 'close')
    await assert.rejects(readFile(join(folder, 'relay.lock')), { code: 'ENOENT' })
  })

  test('is taken over from a process whose ID another one has by now', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'relay.lock')
    const lock = new FileLock(folder, new SimulatedClock())
    assert(lock.take())
    const [, start = '', host = ''] = (await readFile(file, 'utf8')).split('\n')
    for (const [left, takesOver] of [[`1\n${start}1\n${host}`, true], [`${process.ppid}\n${start}\n${host}`, true]] as const) {
      await writeFile(file, left)
      lock.take()
      assert.equal(lock.take(), takesOver)
    }
  })

  const strangers = [
    ['a process of another machine', '7\n1\nelsewhere a b'],
    ['a process that did not write its name', ''],
    // As after a power failure on Windows or macOS: its ID is in use again.
    ['a process of which nobody knows when it started', undefined],
  ] as const
  for (const [who, left] of strangers) {
    test(`is taken over from ${who} after 12 s without a renewal`, async () => {
      const folder = temporaryFolder()
      const file = join(folder, 'relay.lock')
      new FileLock(folder, new SimulatedClock()).take()
      const content = left ?? (await readFile(file, 'utf8')).replace(/^.*\n.*/, `${process.ppid}\n`)
      await writeFile(file, content)
      const clock = new SimulatedClock()
      const owner = new FileOwner(folder, clock, { warn: () => undefined })
      let number: number | undefined
      void owner.acquire(never).then(value => number = value)
      await clock.run(11_000)
      await utimes(file, 1, 1)
      await clock.run(12_000)
      assert.equal(number, undefined)
      if (left) assert.equal(owner.active, 'process 7 on elsewhere')
      await clock.run(3_000)
      assert.equal(number, 1)
      assert(owner.isFresh())
      await clock.run(10_000)
      assert(owner.isFresh())
      // The other machine was only cut off, and has it again.
      await writeFile(file, content || 'x')
      await clock.run(5_000)
      assert(owner.lost.aborted)
      assert(!owner.isFresh())
      await owner.release()
    })
  }

  test('is kept while its file cannot be read, as where another program of Windows has it open', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'relay.lock')
    const clock = new SimulatedClock()
    const owner = new FileOwner(folder, clock, { warn: () => undefined })
    void owner.acquire(never)
    await clock.run(1_000)
    await rename(file, join(folder, 'elsewhere'))
    await mkdir(file)
    await clock.run(10_000)
    assert(!owner.isFresh())
    await rmdir(file)
    await rename(join(folder, 'elsewhere'), file)
    await clock.run(1_500)
    assert(owner.isFresh())
    assert(!owner.lost.aborted)
    await owner.release()
  })

  test('has one listener for the end of the process, however many folders there are', () => {
    const take = (): number => {
      assert(new FileLock(temporaryFolder(), new SimulatedClock()).take())
      return process.listenerCount('exit')
    }
    assert.equal(take(), take())
  })

  test('says what is wrong with a folder that cannot be used', async () => {
    const folder = temporaryFolder()
    await writeFile(join(folder, 'file'), '')
    assert.throws(() => new FileLock(join(folder, 'file/data'), new SimulatedClock()).take(), error => {
      assert(error instanceof FolderError)
      assert.match(error.message, /^cannot write to the data folder .*file\/data \(ENOTDIR\): set DATA_DIR to a folder/)
      return true
    })
  })
})
