import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test, type TestContext } from 'node:test'
import { FolderLock, renewInterval } from '../../../../src/relay/store/lock'
import { temporaryFolder } from '../../../support/folder'
import { end } from '../../../support/process'
import { SimulatedClock } from '../../../support/simulated-clock'

const source = join(__dirname, '../../../../src/relay')
const program = `
const { FolderLock } = require(${JSON.stringify(join(source, 'store/lock.ts'))})
const { systemClock } = require(${JSON.stringify(join(source, 'clock.ts'))})
const lock = new FolderLock(process.argv[1], systemClock, () => undefined)
let has = false
const look = () => console.log((has = has ? lock.isHeld() : lock.take()) ? 'taken' : String(lock.holder))
look()
process.stdin.on('data', look)
process.stdin.on('end', () => process.exit())
`

/** Another process that tries to take the lock of a folder. */
class Rival {
  readonly child: ChildProcess
  private readonly lines

  constructor(t: TestContext, folder: string) {
    this.child = spawn(process.execPath, ['--import', 'tsx', '-e', program, folder], { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: this.child.stdout ?? assert.fail() })
    this.lines = on(lines, 'line', { close: ['close'] })
    t.after(() => end(this.child, 'SIGKILL'))
  }

  get name(): RegExp {
    return new RegExp(`^process ${this.child.pid} on `)
  }

  /** What it says next: `taken`, or who has the lock. */
  async says(): Promise<string> {
    const next: IteratorResult<unknown, unknown> = await this.lines.next()
    return Array.isArray(next.value) ? String(next.value[0]) : 'ended'
  }

  looks(): Promise<string> {
    this.child.stdin?.write('\n')
    return this.says()
  }

  /** Looks until it has the lock. */
  async takes(): Promise<void> {
    while (await this.looks() !== 'taken');
  }
}

function setUp(folder = temporaryFolder()) {
  const clock = new SimulatedClock()
  const forced: string[] = []
  const lock = new FolderLock(folder, clock, () => forced.push(file))
  const file = join(folder, 'relay.lock')
  return { folder, file, clock, lock, forced }
}

/** Looks each second until the lock is taken. @returns after how long, in seconds */
async function secondsUntilTaken({ clock, lock }: ReturnType<typeof setUp>, most = 60): Promise<number> {
  for (let seconds = 0; seconds < most; seconds++) {
    if (lock.take()) return seconds
    await clock.run(1_000)
  }
  return most
}

/** The content of a lock of this process, and the same of other ones. */
function contents() {
  const { file, lock } = setUp()
  assert(lock.take())
  const own = readFileSync(file, 'utf8')
  lock.release()
  const [, start = '', host = ''] = own.split('\n')
  return { own, of: (pid: number, itsStart = start, itsHost = host) => [pid, itsStart, itsHost].join('\n') }
}

describe('the lock of a data folder', () => {
  test('belongs to a process until that is gone, also while it is stopped', async t => {
    const folder = temporaryFolder()
    const first = new Rival(t, folder)
    assert.equal(await first.says(), 'taken')
    const second = new Rival(t, folder)
    assert.match(await second.says(), first.name)
    first.child.kill('SIGSTOP')
    // Nothing renews it, for as long as anybody likes.
    utimesSync(join(folder, 'relay.lock'), 0, 0)
    assert.match(await second.looks(), first.name)
    first.child.kill('SIGCONT')
    assert.equal(await first.looks(), 'taken')
    await end(first.child, 'SIGKILL')
    await second.takes()
    assert.match(readFileSync(join(folder, 'relay.lock'), 'utf8'), new RegExp(`^${second.child.pid}\n`))
    second.child.stdin?.end()
    await once(second.child, 'close')
    assert(!existsSync(join(folder, 'relay.lock')))
  })

  test('belongs to one relay of a process, by whatever path, until that releases it', () => {
    const { folder, lock, file } = setUp()
    assert(lock.take())
    const link = join(temporaryFolder(), 'link')
    symlinkSync(folder, link)
    // As after a reload that loads the code anew.
    const path = join(source, 'store/lock.ts')
    Reflect.deleteProperty(require.cache, path)
    const again = createRequire(__filename)(path) as { FolderLock: typeof FolderLock }
    assert.notEqual(again.FolderLock, FolderLock)
    const other = new again.FolderLock(link, new SimulatedClock(), () => undefined)
    assert(!other.take())
    assert.equal(String(other.holder), 'another relay of this process')
    lock.release()
    assert(!existsSync(file))
    assert(other.take())
    assert(!lock.isHeld())
    lock.release()
    assert(other.isHeld() && existsSync(file))
    other.release()
  })

  test('is taken over within a second from a process that is gone, or whose ID another one has by now', async () => {
    const { of } = contents()
    for (const left of [of(1, '1'), of(process.ppid, '1'), of(2 ** 22 + 1)]) {
      const world = setUp()
      writeFileSync(world.file, left)
      assert.equal(await secondsUntilTaken(world), 1)
      assert.deepEqual(world.forced, [])
      world.lock.release()
    }
  })

  const strangers: [who: string, left: string][] = [
    ['a process of another machine', '7\n1\nelsewhere a b'],
    ['a process that did not write its name', ''],
    // As after a power failure on Windows or macOS: its ID is in use again.
    ['a process of which nobody knows when it started', contents().of(process.ppid, '')],
  ]
  for (const [who, left] of strangers) {
    test(`is taken by force from ${who} after 12 s without a renewal`, async () => {
      const world = setUp()
      const { file, clock, lock, forced } = world
      writeFileSync(file, left)
      assert.equal(await secondsUntilTaken(world, 11), 11)
      utimesSync(file, 1, 1)
      assert.equal(lock.take(), false)
      assert.match(String(lock.holder), left.startsWith('7\n') ? /^process 7 on elsewhere$/ : /process/)
      assert.equal(await secondsUntilTaken(world), 13)
      assert.deepEqual(forced, [file])
      assert(lock.isHeld())
      // The other machine was only cut off, and has it again.
      writeFileSync(file, left || 'x')
      await clock.run(250)
      assert(!lock.isHeld())
      lock.release()
      assert(existsSync(file))
    })
  }

  test('is not taken by force on Windows, where the files of a paused process cannot be replaced', async t => {
    const world = setUp()
    writeFileSync(world.file, '7\n1\nelsewhere a b')
    const { platform } = process
    Object.defineProperty(process, 'platform', { value: 'win32' })
    t.after(() => Object.defineProperty(process, 'platform', { value: platform }))
    assert.equal(await secondsUntilTaken(world), 60)
  })

  test('is seen to be lost within a quarter of a second, also after a renewal', async () => {
    const { file, clock, lock } = setUp()
    assert(lock.take())
    for (const look of [() => lock.isHeld(), () => lock.renew()]) {
      writeFileSync(file, 'another')
      await clock.run(250)
      assert(!look())
      rmSync(file)
    }
  })

  test('is looked at again after the machine slept', () => {
    const { file, clock, lock } = setUp()
    assert(lock.take())
    writeFileSync(file, 'another')
    clock.step(20_000)
    assert(!lock.isHeld())
  })

  test('is made again if somebody removes it, and renewed by its time', async () => {
    const { file, clock, lock } = setUp()
    assert(lock.take())
    rmSync(file)
    await clock.run(renewInterval)
    assert(lock.renew())
    const before = readFileSync(file, 'utf8')
    assert.equal(before, contents().own)
    lock.release()
  })

  test('is kept while its file cannot be read, as where another program of Windows has it open', async () => {
    const { folder, file, clock, lock } = setUp()
    assert(lock.take())
    renameSync(file, join(folder, 'elsewhere'))
    mkdirSync(file)
    await clock.run(1_000)
    assert.throws(() => lock.isHeld(), { code: 'EISDIR' })
    rmdirSync(file)
    renameSync(join(folder, 'elsewhere'), file)
    assert(lock.isHeld())
    lock.release()
  })

  test('has one listener for the end of the process, however many folders there are', () => {
    const take = (): number => {
      const { lock } = setUp()
      assert(lock.take())
      lock.release()
      return process.listenerCount('exit')
    }
    assert.equal(take(), take())
  })
})
