import assert from 'node:assert/strict'
import fs from 'node:fs'
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { RelayError } from '../../../../src/errors'
import { turnEnd } from '../../../../src/lib/gather'
import type { KnownSends, UnnamedSend } from '../../../../src/platform/port'
import type { Delivery } from '../../../../src/relay/delivery/delivery'
import { SentLog } from '../../../../src/relay/store/sent-log'

const bot = 'onebot:10000'
const target = { kind: 'group', id: '123456' } as const

type Sent = Pick<Delivery, 'bot' | 'target' | 'results'>

/** A delivery that has become these messages. */
function sent(...messageIds: string[]): Sent {
  return { bot, target, results: [{ success: true, messageIds }, { success: false, error: new RelayError('refused') }] }
}

/** One that has become a message without an ID. */
function sentUnnamed(trace: UnnamedSend | string): Sent {
  return { bot, target, results: [{ success: true, messageIds: [], trace }] }
}

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'relay-sent-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'data')
}

function open(folder: string): Opened {
  const failures: unknown[] = []
  const log = new SentLog()
  log.open(folder, error => failures.push(error))
  return {
    log,
    failures,
    write(...messageIds: string[]): Promise<void> {
      log.write(sent(...messageIds), false)
      return turnEnd()
    },
    read: (): Promise<KnownSends> => log.read(bot, target),
    ids: async (): Promise<string[]> => [...(await log.read(bot, target)).messageIds],
  }
}

interface Opened {
  log: SentLog
  failures: unknown[]
  /** Notes that one has become these messages, and waits until that is written. */
  write: (...messageIds: string[]) => Promise<void>
  read: () => Promise<KnownSends>
  ids: () => Promise<string[]>
}

/** Clocks that the test sets. */
function stopClocks(t: TestContext): { pass: (time: number) => void, readonly now: number } {
  let passed = 0
  // Whole milliseconds, so that sums are exact.
  const [epoch, start] = [Date.now(), Math.round(performance.now())]
  t.mock.method(Date, 'now', () => epoch + passed)
  t.mock.method(performance, 'now', () => start + passed)
  return {
    pass(time) {
      passed += time
    },
    get now() {
      return epoch + passed
    },
  }
}

const minute = 60_000

describe('the log of what was sent', () => {
  test('is there for the next process, although this one did not end', async t => {
    const folder = await folderFor(t)
    const { log, write } = open(folder)
    await write('1', '-2')
    await write()
    await write('3')
    log.write({ ...sent('4'), target: { kind: 'private', id: '123456' } }, false)
    log.write({ ...sent('5'), bot: 'onebot:1' }, false)
    await turnEnd()
    const next = open(folder)
    await next.write('6')
    assert.deepEqual(await next.ids(), ['1', '-2', '3', '6'])
    assert.equal((await stat(join(folder, 'sent.jsonl'))).mode & 0o777, 0o600)
  })

  test('is written once for a turn of the event loop, before anybody who waits for its end goes on, and knows it before', async t => {
    const folder = await folderFor(t)
    const written = t.mock.method(fs, 'writeSync')
    syncBuiltinESMExports()
    t.after(() => {
      written.mock.restore()
      syncBuiltinESMExports()
    })
    const { log, ids } = open(folder)
    written.mock.resetCalls()
    const end = turnEnd()
    for (const id of ['1', '2', '3']) log.write(sent(id), false)
    assert.equal(written.mock.callCount(), 0)
    await end
    assert.equal(written.mock.callCount(), 1)
    log.write(sent('4'), false)
    assert.deepEqual(await ids(), ['1', '2', '3', '4'])
    log.write(sent('5'), false)
    log.close()
    assert.deepEqual(await open(folder).ids(), ['1', '2', '3', '4', '5'])
  })

  test('has what got no ID, also where the database has the IDs, once each', async t => {
    const folder = await folderFor(t)
    const { log } = open(folder)
    const unnamed = { content: 'file:abc:5', since: 1, until: 2 }
    log.write(sentUnnamed(unnamed), true)
    log.write(sentUnnamed({ ...unnamed }), true)
    log.write(sentUnnamed({ ...unnamed, until: 3 }), false)
    log.write(sentUnnamed('found'), true)
    log.write(sent('1'), true)
    await turnEnd()
    const { unnamed: known, messageIds } = await open(folder).read()
    assert.deepEqual(known, [unnamed, { ...unnamed, until: 3 }])
    assert.deepEqual([...messageIds], ['found'])
  })

  test('makes its folder for its owner only', async t => {
    const folder = join(await folderFor(t), 'data')
    open(folder)
    assert.equal((await stat(folder)).mode & 0o777, 0o700)
  })

  test('is complete since its beginning, however many processes there were', async t => {
    const folder = await folderFor(t)
    const clock = stopClocks(t)
    const { now } = clock
    assert.equal((await open(folder).read()).since, now)
    clock.pass(10 * minute)
    const { log, write, read } = open(folder)
    log.close()
    await write('1')
    log.open(folder, () => assert.fail('it can be written'))
    assert.equal((await read()).since, now)
    assert((await read()).messageIds.has('1'), 'an answer that came after the end is in it')
  })

  test('is bounded in size, and says since when it is complete', async t => {
    const folder = await folderFor(t)
    const clock = stopClocks(t)
    const beginning = clock.now
    const { write, read } = open(folder)
    const long = 'x'.repeat(100_000)
    const fill = async (name: string): Promise<void> => {
      for (let n = 0; n < 41; n++) await write(`${name} ${n} ${long}`)
    }
    for (const name of ['a', 'b']) {
      await fill(name)
      clock.pass(minute)
    }
    assert.equal((await read()).since, beginning)
    assert.equal((await read()).messageIds.size, 82)
    for (const name of ['c', 'd', 'e']) {
      clock.pass(minute)
      await fill(name)
    }
    const { since, messageIds } = await open(folder).read()
    const names = new Set([...messageIds].map(id => id.slice(0, 1)))
    assert(!names.has('a') && names.has('d') && names.has('e'), [...names].join())
    // What is not in it was sent before, also by a clock that is not quite right.
    assert(since > beginning + 2 * minute && since <= clock.now, String(since - beginning))
    const sizes = await Promise.all(['sent.older.jsonl', 'sent.jsonl'].map(async name => (await stat(join(folder, name))).size))
    assert(sizes.every(size => size < 5_000_000), sizes.join())
  })

  test('does without what is cut off or makes no sense', async t => {
    const folder = await folderFor(t)
    const file = join(folder, 'sent.jsonl')
    const { write, ids } = open(folder)
    await write('1')
    await appendFile(file, `null\n{}\n{"since":"x"}\n[1]\n[5,"${bot}","group:123456",null,{},{"content":5}]\n`)
    await write('2')
    await appendFile(file, `[${Date.now()},"${bot}","gro`)
    const next = open(folder)
    await next.write('3')
    assert.deepEqual(await next.ids(), ['1', '2', '3'])
    assert.deepEqual(await ids(), ['1', '2', '3'])
  })

  test('knows when its first line was cut off', async t => {
    const folder = await folderFor(t)
    const { now } = stopClocks(t)
    open(folder)
    await writeFile(join(folder, 'sent.jsonl'), '\n{"since":1')
    assert.equal((await open(folder).read()).since, now + minute)
  })

  test('fails nothing where it cannot be written, says so once, and is not complete then', async t => {
    const clock = stopClocks(t)
    const { write, read, failures } = open('/dev/null/data')
    for (let n = 0; n < 10; n++) {
      await write(String(n))
      clock.pass(minute)
    }
    assert.deepEqual(await read(), { since: Infinity, messageIds: new Set(), unnamed: [] })
    assert.equal(failures.length, 1)
  })

  test('comes back when its folder does, and knows what is missing', async t => {
    const folder = await folderFor(t)
    const clock = stopClocks(t)
    // A file in its place.
    await writeFile(folder, '')
    const { write, read, ids, failures } = open(folder)
    await write('1')
    await rm(folder)
    await write('2')
    assert.equal((await read()).since, Infinity, 'it is not tried at each send')
    clock.pass(minute)
    await write('3')
    assert.equal((await read()).since, clock.now + minute)
    assert.deepEqual(await ids(), ['3'])
    await rm(folder, { recursive: true })
    await write('4')
    assert.equal((await read()).since, Infinity)
    clock.pass(minute)
    await write('5')
    assert.equal((await read()).since, clock.now + minute)
    assert.deepEqual(await open(folder).ids(), ['5'])
    assert.equal((await open(folder).read()).since, clock.now + minute, 'the next process knows it, too')
    assert.equal(failures.length, 2)
  })

  test('begins anew where what it wrote was replaced by an older state', async t => {
    const folder = await folderFor(t)
    const file = join(folder, 'sent.jsonl')
    const clock = stopClocks(t)
    const { write, read } = open(folder)
    await write('1')
    const backup = await readFile(file)
    await write('2')
    await rm(file)
    await writeFile(file, backup)
    clock.pass(minute)
    await write('3')
    assert.equal((await read()).since, clock.now + minute)
  })

  test('goes on where another process with the same folder made room', async t => {
    const folder = await folderFor(t)
    const clock = stopClocks(t)
    const { now } = clock
    const [one, other] = [open(folder), open(folder)]
    await one.write('1')
    await other.write('2')
    await one.write('x'.repeat(5_000_000))
    await one.write('3')
    await other.write('4')
    clock.pass(minute)
    await other.write('5')
    const { since, messageIds } = await other.read()
    assert.equal(since, now)
    assert.deepEqual([...messageIds].filter(id => id.length === 1).sort(), ['1', '2', '3', '4', '5'])
    assert.deepEqual([...one.failures, ...other.failures], [])
  })

  test('begins anew after a disk that was full, also for the process that comes next', async t => {
    const folder = await folderFor(t)
    const clock = stopClocks(t)
    const { write, read, ids, failures } = open(folder)
    await write('1')
    const whole = fs.writeSync.bind(fs)
    // A disk with room for five bytes more.
    const full = t.mock.method(fs, 'writeSync', (descriptor: number, text: string) => whole(descriptor, text.slice(0, 5)))
    syncBuiltinESMExports()
    await write('2')
    await write('3')
    assert.equal(failures.length, 1)
    assert.equal((await read()).since, Infinity)
    full.mock.restore()
    syncBuiltinESMExports()
    clock.pass(minute)
    assert.equal((await open(folder).read()).since, clock.now, 'nothing is left that would look complete')
    await write('4')
    assert.deepEqual(await ids(), ['4'])
  })

  test('lets others have their turn while it is read', async t => {
    const folder = await folderFor(t)
    const { write, ids } = open(folder)
    for (let n = 0; n < 40_000; n++) void write(String(n))
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    const { length } = await ids()
    clearInterval(timer)
    assert.equal(length, 40_000)
    assert(turns > 5, `${turns} turns`)
  })
})
