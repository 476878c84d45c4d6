import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../src/errors'
import type { Delivery } from '../../../src/relay/delivery'
import { SentLog } from '../../../src/relay/sent-log'

const bot = 'onebot:10000'
const target = { kind: 'group', id: '123456' } as const

/** A delivery that has become these messages. */
function sent(...messageIds: string[]): Delivery {
  return {
    id: uuid(), state: 'sent', mode: 'single', deferred: false, target, bot, createdAt: 0, updatedAt: 0, expiresAt: null, attempts: 1,
    results: [{ success: true, messageIds }, { success: false, error: new RelayError('refused') }], inDoubt: null, key: null, fingerprint: null,
  }
}

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'relay-sent-'))
  t.after(() => rm(folder, { recursive: true }))
  return join(folder, 'data')
}

function open(folder: string) {
  const failures: unknown[] = []
  const log = new SentLog()
  return { log, read: log.open(folder, error => failures.push(error)), failures }
}

describe('the log of what was sent', () => {
  test('is there for the next process, although this one did not end', async t => {
    const folder = await folderFor(t)
    const { log } = open(folder)
    log.write(sent('1', '-2'))
    log.write(sent())
    log.write(sent('3'))
    const entries = [{ bot, target, messageIds: ['1', '-2'] }, { bot, target, messageIds: ['3'] }]
    assert.deepEqual(open(folder).read, entries)
    assert.equal((await stat(join(folder, 'sent.jsonl'))).mode & 0o777, 0o600)
  })

  test('makes its folder for its owner only', async t => {
    const folder = join(await folderFor(t), 'data')
    open(folder)
    assert.equal((await stat(folder)).mode & 0o777, 0o700)
  })

  test('is bounded: it holds the last minute, and at most one more', async t => {
    const folder = await folderFor(t)
    let now = 1_780_000_000_000
    t.mock.method(Date, 'now', () => now)
    const { log } = open(folder)
    for (const id of ['1', '2', '3', '4', '5', '6']) {
      log.write(sent(id))
      now += 35_000
    }
    assert.deepEqual(open(folder).read.map(({ messageIds }) => messageIds), [['6']])
    now -= 35_000
    assert.deepEqual(open(folder).read.map(({ messageIds }) => messageIds), [['5'], ['6']])
    const kept = await Promise.all(['sent.older.jsonl', 'sent.jsonl'].map(name => readFile(join(folder, name), 'utf8')))
    assert.equal(kept.join('').split('\n').length - 1, 4)
  })

  test('does without what is cut off or makes no sense', async t => {
    const folder = await folderFor(t)
    const { log } = open(folder)
    log.write(sent('1'))
    await appendFile(join(folder, 'sent.jsonl'), `null\n{}\n[1]\n[${Date.now()},5,"group:1","x"]\n[${Date.now()},"onebot:1","nobody","x"]\n`)
    log.write(sent('2'))
    await appendFile(join(folder, 'sent.jsonl'), `[${Date.now()},"onebot:1","gro`)
    assert.deepEqual(open(folder).read.map(({ messageIds }) => messageIds), [['1'], ['2']])
  })

  test('fails nothing where it cannot be written, and says so once', () => {
    const { log, read, failures } = open('/dev/null/data')
    log.write(sent('1'))
    log.write(sent('2'))
    assert.deepEqual(read, [])
    assert.equal(failures.length, 1)
  })

  test('ends when it is closed', async t => {
    const folder = await folderFor(t)
    const { log, failures } = open(folder)
    log.close()
    log.write(sent('1'))
    assert.deepEqual(open(folder).read, [])
    assert.deepEqual(failures, [])
  })
})
