import SQLiteDriver from 'koishi-plugin-database-sqlite'
import { Context, Logger } from 'koishi'
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../src/errors'
import { hash } from '../../../src/lib/crypto'
import type { ParsedItem } from '../../../src/message/model'
import { pause, type Clock } from '../../../src/relay/clock'
import { states, type Delivery } from '../../../src/relay/delivery/delivery'
import { inThread, NotOwner, type Journal, type ListFilter, type OwnerRow } from '../../../src/relay/journal'
import { DatabaseJournal, type JournalOptions } from '../../../src/relay/journal-database'
import { MemoryJournal } from '../../../src/relay/journal-memory'
import { lowestId, matches } from '../../../src/relay/journal'
import { UploadStore } from '../../../src/uploads/store'
import { Core } from '../../support/core'
import { SimulatedClock } from '../../support/simulated-clock'
import { until } from '../../support/until'

Logger.levels.base = Logger.SILENT

const day = 24 * 60 * 60 * 1000
const text: ParsedItem = { type: 'text', text: 'build #4711 passed' }
let seq = 0

/** A delivery of one text that was sent without a key, but for what is said otherwise. */
function deliveryOf(changes: Partial<Delivery> = {}): Delivery {
  const createdAt = changes.createdAt ?? Date.now()
  return {
    // One after another within a millisecond, as long as no time is given.
    id: changes.createdAt === undefined ? uuid() : uuid({ msecs: createdAt }), seq: ++seq, state: 'sent', mode: 'single', deferred: false, target: { kind: 'group', id: '1' }, caller: null,
    door: 'webhook', bot: 'onebot:10000', createdAt, updatedAt: createdAt, expiresAt: null, attempts: 1,
    results: [{ success: true, messageIds: ['1'] }], open: [], key: null, fingerprint: null, flow: {},
    summary: { items: [{ type: 'text', msg: 'build #4711 passed' }], calls: [], waited: 0, platformTime: 7 }, ...changes,
  }
}

/** A deferred delivery that waits. */
function queued(changes: Partial<Delivery> = {}): Delivery {
  return deliveryOf({ state: 'queued', deferred: true, results: [undefined], ...changes })
}

/** Without the stacks of its errors, which nothing compares. */
function plain(delivery: Delivery | undefined): unknown {
  return JSON.parse(JSON.stringify(delivery, (_, value: unknown) => value instanceof RelayError ? [value.code, value.message] : value))
}

function idsOf(deliveries: readonly { id: string }[]): string[] {
  return deliveries.map(({ id }) => id)
}

function optionsOf(clock: Clock): JournalOptions {
  return {
    clock, logger: new Logger('test'), files: new UploadStore(join(tmpdir(), 'relay-journal-files')), retention: 30 * day, recordLimit: 100_000,
    recordContent: 'preview',
  }
}

function openJournal(app: Context, options: JournalOptions): Promise<DatabaseJournal> {
  return new Promise(resolve => {
    app.plugin({ name: 'journal', apply: (ctx: Context) => ctx.inject(['database'], inner => resolve(new DatabaseJournal(inner, options))) })
  })
}

interface Opened {
  journal: DatabaseJournal
  app: Context
  lines: string[]
}

async function openDatabase(t: TestContext, clock: Clock, changes: Partial<JournalOptions>): Promise<Opened> {
  const app = new Context()
  const lines: string[] = []
  const log = (format: string, ...values: unknown[]): void => void lines.push(values.reduce<string>((line, value) => line.replace('%s', String(value)), format))
  const fork = app.plugin(SQLiteDriver, { path: ':memory:' })
  const opened = openJournal(app, { ...optionsOf(clock), logger: Object.assign(new Logger('test'), { info: log, warn: log }), ...changes })
  void app.start()
  const journal = await opened
  t.after(() => fork.dispose())
  await app.model.prepared()
  return { journal, app, lines }
}

type Open<J = Journal> = (t: TestContext, changes?: Partial<JournalOptions>) => Promise<J>

const openSqlite: Open<DatabaseJournal> = async (t, changes = {}) => {
  const { journal } = await openDatabase(t, new SimulatedClock(Date.now()), changes)
  return journal
}

type OpenBoth = (t: TestContext) => Promise<readonly [Journal, Journal]>

const pairs: [string, OpenBoth, { skip: string | false }][] = [
  ['in SQLite', async t => {
    const { journal, app } = await openDatabase(t, new SimulatedClock(Date.now()), {})
    return [journal, await openJournal(app, optionsOf(new SimulatedClock(Date.now())))]
  }, { skip: false }],
]

function memoryJournal(content: JournalOptions['recordContent']): MemoryJournal {
  const journal = new MemoryJournal()
  journal.keepContent(content)
  return journal
}

const servers: [string, Open<DatabaseJournal>, { skip: string | false }][] = [
  ['in SQLite', openSqlite, { skip: false }],
]
const kinds: [string, Open, { skip: string | false }][] = [
  ['in memory', (_, { recordContent = 'preview' } = {}) => Promise.resolve(memoryJournal(recordContent)), { skip: false }],
  ...servers,
]

for (const [kind, open, options] of kinds) {
  describe(`a journal ${kind}`, options, () => {
    test('gives back whatever a delivery can hold', async t => {
      const journal = await open(t)
      const delivery = deliveryOf({
        state: 'unanswered', mode: 'batch', target: { kind: 'private', id: '群 / \u2028%09' }, caller: `plugin:${'群'.repeat(64)}`, bot: 'a\tb\nc:é', attempts: 12, expiresAt: 7,
        results: [
          { success: true, messageIds: ['-2147483648', '🚀'] }, { success: true, messageIds: [], likeness: 'x' }, undefined,
          { success: false, error: new RelayError('refused', '禁言 🙊 \\ \' "') },
        ],
        open: [{ indices: [0, 2], likeness: 'y', since: 1.5, settle: 30_000, calls: 2 }], key: 'k'.repeat(64), fingerprint: 'f'.repeat(64), door: 'hooks/告警',
        summary: {
          items: [{ type: 'text', msg: '🚀 \\ \' "\u2028' }, { type: 'file', name: '报告.pdf', size: 7 }, { type: 'invalid' }], waited: 0.5, platformTime: 12.25,
          calls: [{ at: 0.5, took: 3.25, outcome: 'refused', reason: '禁言' }, { at: 4, took: 9, outcome: 'unanswered' }],
        },
      })
      if (!journal.isDurable) journal.record(delivery, [text])
      await journal.insert(delivery, [text])
      assert.deepEqual(plain(await journal.find(delivery.id)), plain(delivery))
      assert.deepEqual(plain(await journal.findByKey('k'.repeat(64))), plain(delivery))
      assert.deepEqual(await journal.items(delivery.id), [text])
      assert.equal(await journal.find(uuid()), undefined)
      assert.equal(await journal.findByKey('another'), undefined)
      assert.equal(await journal.items(uuid()), undefined)
    })

    test('shows a record at once, and after it was written', async t => {
      const journal = await open(t)
      const [sent, failed, again] = [deliveryOf(), deliveryOf({ state: 'failed' }), deliveryOf({ state: 'unanswered' })]
      for (const delivery of [sent, failed, again]) journal.record(delivery, [text])
      const check = async (): Promise<void> => {
        for (const delivery of [sent, failed, again]) assert.deepEqual(plain(await journal.find(delivery.id)), plain(delivery))
        assert.deepEqual([...await journal.withContent(idsOf([sent, failed, again]))].sort(), idsOf([failed, again]).sort())
        assert.equal(await journal.items(sent.id), undefined)
        assert.deepEqual(await journal.items(failed.id), [text])
        assert.deepEqual(idsOf(await journal.list({ limit: 9 })), idsOf([again, failed, sent]))
      }
      await check()
      await journal.flush()
      await check()
      journal.record({ ...again, state: 'failed' }, [text])
      const written = journal.flush()
      // While the earlier one is being written.
      journal.record({ ...again, state: 'sent' }, [text])
      await written
      assert.equal((await journal.find(again.id))?.state, 'sent')
      assert.deepEqual(idsOf(await journal.list({ limit: 9, states: ['unanswered'] })), [])
      assert.equal((await journal.find(again.id))?.state, 'sent')
      assert.deepEqual(await journal.withContent(idsOf([again])), [])
    })

    test('writes many long contents', async t => {
      const journal = await open(t, { recordContent: 'full' })
      const long: ParsedItem = { type: 'text', text: '长'.repeat(60_000) }
      const all = Array.from({ length: 250 }, () => deliveryOf())
      for (const delivery of all) journal.record(delivery, [long])
      await journal.flush()
      assert.equal((await journal.list({ limit: 1000 })).length, all.length)
      for (const { id } of all.slice(-3)) assert.deepEqual(await journal.items(id), [long])
    })

    for (const [content, kept] of [['none', ['queued', 'sending', 'unanswered']], ['preview', states.filter(state => state !== 'sent')], ['full', states]] as const) {
      test(`keeps content by the state where the setting is ${content}`, async t => {
        const journal = await open(t, { recordContent: content })
        for (const state of states) {
          const [recorded, saved] = [deliveryOf({ state }), queued()]
          for (const delivery of [recorded, ...journal.isDurable ? [] : [{ ...saved, state }]]) journal.record(delivery, [text])
          await journal.insert(saved, [text])
          await journal.update({ ...saved, state })
          const expected: ParsedItem[] | undefined = kept.some(each => each === state) ? [text] : undefined
          assert.deepEqual(await journal.items(recorded.id), expected, state)
          assert.deepEqual(await journal.items(saved.id), expected, state)
        }
      })
    }

    test('lists what a filter asks for, the newest or the oldest first', async t => {
      const journal = await open(t)
      const start = Date.now() - 100_000
      const pick = <T>(values: readonly T[], index: number): T => values[index % values.length] ?? assert.fail()
      const all = Array.from({ length: 300 }, (_, index) => deliveryOf({
        createdAt: start + index * 100, state: pick(states, index), target: { kind: index % 7 ? 'group' : 'private', id: String(index % 3) },
        flow: index % 4 === 3 ? {} : { thread: { name: hash('t'), mode: 'reply', done: 'replied', ids: ['7'], index: 1 } },
        caller: pick(['', 'CI', 'ci', 'É'], index) || null, door: pick(['webhook', 'hooks/a', 'hooks/b', 'hooks'], index >> 2), bot: pick(['onebot:1', 'discord:2', ''], index >> 1),
        summary: { items: [{ type: 'text', msg: pick(['Straße 100%_"\\', 'build.*', '🚀\n'], index) }], calls: [{ at: 0, took: 0, outcome: 'refused', reason: 'refused: "msg":"n.*"' }], waited: null, platformTime: 0 },
      }))
      for (const delivery of all) journal.record(delivery, [])
      const [middle] = all.slice(150)
      const filters: Omit<ListFilter, 'limit'>[] = [
        {}, { states: ['failed'] }, { states: ['sent', 'failed'] }, { states: [] }, { targets: [{ kind: 'group', id: '1' }] }, { caller: 'CI' }, { caller: 'ci', states: ['sent'] },
        { targets: [{ kind: 'private', id: '0', platform: 'discord' }, { kind: 'group', id: '2', platform: 'onebot' }] }, { door: 'hooks' }, { door: 'hooks/b' },
        { text: 'strAßE 100%_"\\' }, { text: '.*' }, { text: 'nothing' }, { text: '🚀', caller: 'É' }, { since: start + 10_000 }, { until: start + 10_000 },
        { since: start + 10_000, until: start + 20_000, states: ['unanswered'], door: 'hooks' }, { before: middle?.id }, { before: middle?.id, until: start + 20_000 },
      ].map(filter => Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)))
      for (const filter of filters) {
        for (const limit of [30, 1000]) {
          const expected = all.filter(each => matches(each, filter))
          const [oldest, newest] = [idsOf(expected).slice(0, limit), idsOf(expected).reverse().slice(0, limit)]
          assert.deepEqual(idsOf(await journal.list({ ...filter, limit })), newest, JSON.stringify(filter))
          assert.deepEqual(idsOf(await journal.list({ ...filter, limit, order: 'asc' })), oldest, JSON.stringify(filter))
        }
      }
      const group = { kind: 'group', id: '1' } as const
      const to = all.filter(({ bot, target }) => bot === 'onebot:1' && target.kind === 'group' && target.id === group.id).reverse()
      assert.notEqual(to.length, 0)
      assert.deepEqual(idsOf(await journal.list({ bot: 'onebot:1', targets: [group], limit: 20 })), idsOf(to).slice(0, 20))
      assert.deepEqual(idsOf(await journal.list({ bot: 'onebot:1', targets: [group], limit: 999 })), idsOf(to))
      const ofThread = to.toReversed().filter(({ createdAt, flow }) => createdAt >= start + 10_000 && flow.thread)
      const thread = hash('t')
      assert.notEqual(ofThread.length, 0)
      const found = await inThread(journal, thread, 'onebot:1', group, start + 10_000)
      assert.deepEqual(idsOf(found), idsOf(ofThread))
      assert.deepEqual(plain(found[0]), plain(ofThread[0]))
      const span = { since: start + 10_000, until: start + 20_000 }
      for (const more of [{}, { caller: 'CI' }, { door: 'hooks' }, { text: 'strAßE 100%_"\\' }, { text: '.*' }, { text: 'n' }, { text: 'refused', caller: 'É' }]) {
        const filter = { ...more, states: ['sent', 'failed'] as const }
        for (const [counted, range] of [[all, {}], [all.slice(100, 200), span]] as const) {
          const found = counted.filter(each => matches(each, filter))
          const counts = await journal.count({ ...filter, ...range })
          const expected = filter.states.map(each => found.filter(({ state }) => state === each).length)
          assert.deepEqual(filter.states.map(each => counts.get(each) ?? 0), expected, JSON.stringify(filter))
        }
      }
      const long = Array.from({ length: 120 }, () => deliveryOf({ flow: { thread: { name: hash('long'), mode: 'update' } } }))
      for (const delivery of long) journal.record(delivery, [])
      const ends = idsOf(await inThread(journal, hash('long'), 'onebot:10000', group, start))
      assert.deepEqual([ends.slice(0, 50), ends.slice(-50)], [idsOf(long).slice(0, 50), idsOf(long).slice(-50)])
    })
  })
}

for (const [kind, open, options] of servers) {
  describe(`a journal ${kind}, of durable deliveries,`, options, () => {
    test('writes the changes of a delivery one after another, as it was at each call', async t => {
      const journal = await open(t)
      const delivery = queued()
      const insert = journal.insert(delivery, [text])
      const changes = [1, 2, 3, 4].map(attempts => {
        delivery.attempts = attempts
        return journal.update(delivery)
      })
      await Promise.all([insert, ...changes])
      assert.equal((await journal.find(delivery.id))?.attempts, 4)
      assert.deepEqual(await journal.items(delivery.id), [text])
      await journal.update({ ...delivery, state: 'sent' })
      assert.equal(await journal.items(delivery.id), undefined)
    })

    test('takes a recorded delivery up again', async t => {
      const journal = await open(t)
      const delivery = deliveryOf({ state: 'failed' })
      journal.record(delivery, [text])
      await journal.update({ ...delivery, state: 'queued', deferred: true, key: 'again' })
      assert.equal((await journal.find(delivery.id))?.state, 'queued')
      assert.equal((await journal.findByKey('again'))?.id, delivery.id)
      assert.deepEqual(await journal.items(delivery.id), [text])
    })

    test('has a key once', async t => {
      const journal = await open(t)
      const first = queued({ key: 'one' })
      await journal.insert(first, [text])
      await assert.rejects(journal.insert(queued({ key: 'one' }), [text]))
      await journal.update({ ...first, key: null })
      assert.equal(await journal.findByKey('one'), undefined)
      const second = queued({ key: 'one' })
      await journal.insert(second, [text])
      assert.equal((await journal.findByKey('one'))?.id, second.id)
      await journal.update({ ...second, state: 'failed', key: null })
      assert.equal(await journal.findByKey('one'), undefined)
    })

    test('forgets a delivery that is cancelled, with its key', async t => {
      const journal = await open(t)
      const delivery = queued({ key: 'gone' })
      await journal.insert(delivery, [text])
      await journal.cancel(delivery.id)
      await journal.cancel(delivery.id)
      assert.equal(await journal.find(delivery.id), undefined)
      assert.equal(await journal.findByKey('gone'), undefined)
      assert.equal(await journal.items(delivery.id), undefined)
      assert.deepEqual(await journal.list({ limit: 5 }), [])
      await journal.insert(queued({ key: 'gone' }), [text])
    })
  })
}

test('a journal in a database removes the file of large content with it, also one of an earlier process', async t => {
  const kept = new Set<string>()
  const files: JournalOptions['files'] = {
    saveData: (_, name) => Promise.resolve(kept.add(name)).then(() => name), resolve: id => Promise.resolve({ path: id }),
    keepUntil: () => Promise.resolve(), remove: id => Promise.resolve(kept.delete(id)).then(() => undefined),
  }
  const clock = new SimulatedClock(Date.now())
  const { journal, app, lines } = await openDatabase(t, clock, { files })
  const large: ParsedItem = { type: 'text', text: 'x'.repeat(70_000) }
  const [found, waiting] = [deliveryOf({ state: 'unanswered' }), queued()]
  journal.record(found, [large])
  await Promise.all([journal.flush(), journal.flush(), journal.insert(waiting, [large])])
  assert.deepEqual([kept.size, lines], [2, []])
  journal.record({ ...found, state: 'sent' }, [large])
  await journal.flush()
  assert.deepEqual([...kept], [`${waiting.id}.json`])
  const next = await openJournal(app, { ...optionsOf(clock), files })
  await next.adopt(1, 0)
  await next.cancel(waiting.id)
  assert.equal(kept.size, 0)
})

describe('a journal in memory, when there is much,', () => {
  test('keeps the last deliveries, and their keys for longer', async () => {
    const journal = new MemoryJournal()
    const all = Array.from({ length: 10_050 }, (_, index) => deliveryOf({ key: `k${index}`, requestKey: `k${index}`, state: 'failed' }))
    for (const delivery of all) journal.record(delivery, [text])
    assert.equal(Math.round((await journal.list({ limit: Infinity })).length / 10), 1_000)
    const [first, last] = [all[0], all.at(-1)]
    assert(first && last)
    assert.equal(await journal.find(first.id), undefined)
    assert.deepEqual((await journal.findByKey('k0'))?.results, first.results)
    assert.equal(await journal.findByKey('k0').then(found => found?.id), first.id)
    // What was tried again under its key is free once nothing of it arrived.
    journal.record({ ...first, key: null }, [])
    assert.equal(await journal.findByKey('k0'), undefined)
    const results = Array.from({ length: 1000 }, (): Delivery['results'][number] => ({ success: true, messageIds: ['1'] }))
    for (let count = 0; count < 200; count++) journal.record(deliveryOf({ results }), [])
    const left = (await journal.list({ limit: Infinity })).length
    assert(left > 80 && left < 200, String(left))
    assert.equal((await journal.findByKey(last.key ?? ''))?.id, last.id)
  })

  test('keeps the content of the last deliveries, and that of the very last whatever its size', async () => {
    const journal = memoryJournal('full')
    const long: ParsedItem = { type: 'text', text: 'x'.repeat(10 * 1024 * 1024) }
    const all = Array.from({ length: 10 }, () => deliveryOf())
    for (const delivery of all) journal.record(delivery, [long])
    assert.deepEqual(await journal.withContent(idsOf(all)), idsOf(all.slice(-6)))
    const [last] = all
    assert(last)
    journal.record(last, Array.from({ length: 7 }, () => long))
    assert.deepEqual(await journal.withContent(idsOf(all)), [last.id])
    journal.keepContent('preview')
    assert.deepEqual(await journal.withContent(idsOf(all)), [])
    assert.equal((await journal.list({ limit: 99 })).length, 10)
  })
})

for (const [kind, open, options] of servers) {
  describe(`a database journal ${kind}`, options, () => {
    test('hands what has not ended, or ended unanswered within the day, to its next owner', async t => {
      const journal = await open(t)
      const now = Date.now()
      await journal.adopt(1, now - day)
      const waiting = Array.from({ length: 270 }, () => queued())
      const sending = queued({ state: 'sending', seq: 0 })
      const [late, old] = [deliveryOf({ state: 'unanswered' }), deliveryOf({ state: 'unanswered', updatedAt: now - day - 1 })]
      for (const delivery of [...waiting, sending]) journal.record(delivery, [text])
      for (const delivery of [late, old, deliveryOf(), deliveryOf({ state: 'failed' })]) journal.record(delivery, [])
      await journal.flush()
      assert.deepEqual(await journal.adopt(1, now - day), [])
      const left = await journal.adopt(2, now - day)
      assert.deepEqual(idsOf(left), idsOf([sending, ...waiting, late]))
      assert.deepEqual(left[0], sending)
      assert.deepEqual(await journal.adopt(2, now - day), [])
    })

    test('lets only the newest owner write, and no tombstone be replaced', async t => {
      const journal = await open(t)
      await journal.adopt(1, 0)
      const [waiting, cancelled, ended] = [queued({ key: 'a' }), queued({ key: 'b' }), deliveryOf({ state: 'failed' })]
      await journal.insert(waiting, [text])
      journal.record(ended, [text])
      await journal.cancel(cancelled.id)
      await assert.rejects(journal.insert(cancelled, [text]))
      assert.equal(await journal.find(cancelled.id), undefined)
      assert.equal(await journal.findByKey('b'), undefined)
      await journal.update(cancelled)
      assert.deepEqual(idsOf(await journal.list({ limit: 9 })), idsOf([waiting, ended].sort((a, b) => a.id < b.id ? 1 : -1)))
      assert.deepEqual(idsOf(await journal.adopt(2, 0)), [waiting.id])
      await journal.update({ ...ended, state: 'queued', deferred: true })
      // As the owner before it would.
      await journal.adopt(1, 0)
      await assert.rejects(journal.update({ ...waiting, state: 'sent' }), NotOwner)
      await assert.rejects(journal.update(ended), NotOwner)
      await assert.rejects(journal.cancel(waiting.id), NotOwner)
      await journal.update(deliveryOf())
      await journal.adopt(2, 0)
      assert.equal((await journal.find(waiting.id))?.state, 'queued')
      assert.equal((await journal.find(ended.id))?.state, 'queued')
    })

    test('replaces the row of the owner only as it was read', async t => {
      const journal = await open(t)
      assert.equal(await journal.readOwner(), undefined)
      const rows: OwnerRow[] = [1, 2, 3].map(beat => ({ number: beat, beat, name: `process ${beat}` }))
      assert.deepEqual(await Promise.all(rows.map(row => journal.swapOwner(undefined, row))), [true, false, false])
      const [first, second, third] = rows
      assert(first && second && third)
      assert.deepEqual({ ...await journal.readOwner() }, first)
      for (const stale of [second, { ...first, beat: 7 }, { ...first, number: 7 }]) {
        assert.equal(await journal.swapOwner(stale, third), false)
      }
      assert.deepEqual(await Promise.all([journal.swapOwner(first, second), journal.swapOwner(first, third)]), [true, false])
      assert.deepEqual({ ...await journal.readOwner() }, second)
    })

    test('removes what is past its retention or beyond the limit, but nothing that something depends on', async t => {
      const journal = await open(t, { retention: 10 * day, recordLimit: 300 })
      const now = Date.now()
      const at = (age: number): Partial<Delivery> => ({ createdAt: now - age, updatedAt: now - age })
      const kept = [
        queued(at(20 * day)), deliveryOf({ ...at(20 * day), updatedAt: now }), deliveryOf({ ...at(day / 2), key: 'young' }),
        queued({ ...at(day / 2), key: 'waits' }),
      ]
      const old = [deliveryOf(at(11 * day)), deliveryOf({ ...at(11 * day), key: 'old' }), deliveryOf({ ...at(11 * day), state: 'unanswered' })]
      const tombstone = queued()
      await journal.cancel(tombstone.id)
      for (const delivery of [...kept, ...old]) journal.record(delivery, [])
      await journal.flush()
      await journal.purge(now)
      assert.deepEqual(idsOf(await journal.list({ limit: 99 })).sort(), idsOf(kept).sort())
      await assert.rejects(journal.insert(tombstone, []))
      const many = Array.from({ length: 580 }, (_, index) => deliveryOf(at(1000 - index)))
      for (const delivery of many) journal.record(delivery, [])
      await journal.flush()
      await journal.purge(now)
      const [waiting, , key, waits] = kept
      const left = [waiting, key, waits, ...many.slice(-299)].filter(each => each !== undefined)
      assert.deepEqual(idsOf(await journal.list({ limit: 999 })).sort(), idsOf(left).sort())
      await journal.purge(now + 2 * day)
      // The tombstone is gone.
      await journal.insert(tombstone, [])
      await journal.purge(now + 11 * day)
      assert.equal(await journal.findByKey('young'), undefined)
    })

    test('clears content by and by where none is to be kept', async t => {
      const journal = await open(t, { recordContent: 'none' })
      const now = Date.now()
      const [young, old, waiting] = [deliveryOf({ state: 'unanswered' }), deliveryOf({ state: 'unanswered', updatedAt: now - 2 * day }), queued()]
      for (const delivery of [young, old, waiting]) journal.record(delivery, [text])
      await journal.flush()
      await journal.purge(now + day / 2)
      assert.deepEqual([...await journal.withContent(idsOf([young, old, waiting]))].sort(), idsOf([young, waiting]).sort())
    })
  })
}

for (const [kind, openBoth, options] of pairs) {
  describe(`two journals on one database ${kind}`, options, () => {
    test('are told apart by the number of their owner, however many versions the first has written', async t => {
      const [first, second] = await openBoth(t)
      await first.adopt(1, 0)
      const [waiting, ended] = [queued({ key: 'a' }), deliveryOf({ state: 'failed' })]
      await first.insert(waiting, [text])
      for (waiting.attempts = 2; waiting.attempts < 9; waiting.attempts++) await first.update(waiting)
      first.record(ended, [text])
      await first.flush()
      assert.deepEqual(idsOf(await second.adopt(2, 0)), [waiting.id])
      // The first one does not know yet.
      await assert.rejects(first.update({ ...waiting, state: 'sending' }), NotOwner)
      await assert.rejects(first.cancel(waiting.id), NotOwner)
      await second.update({ ...waiting, state: 'sent', attempts: 9 })
      await second.update({ ...ended, state: 'queued', deferred: true })
      await assert.rejects(first.update({ ...ended, attempts: 7 }), NotOwner)
      for (const journal of [first, second]) {
        assert.equal((await journal.find(waiting.id))?.attempts, 9)
        assert.equal((await journal.find(ended.id))?.state, 'queued')
      }
      // What the first one stored last is handed over as well.
      const late = queued()
      await first.insert(late, [text])
      assert.deepEqual(idsOf(await second.adopt(2, 0)), [late.id])
      await assert.rejects(first.update(late), NotOwner)
    })
  })
}

test('a purge that takes longer than its interval is not begun again meanwhile, and fails once', async () => {
  const core = new Core()
  let begun = 0
  Object.assign(core.journal, {
    purge: async () => {
      await pause(core.clock, ++begun * 150_000)
      throw new Error('no answer')
    },
  })
  await core.run(170_000)
  assert.deepEqual([begun, core.warnings.length], [1, 1])
  await core.run(60_000)
  assert.equal(begun, 2)
})

describe('a journal in a database', () => {
  for (const content of ['preview', 'none'] as const) {
    test(`drops what another setting has kept, with ${content}`, async t => {
      const { journal, app } = await openDatabase(t, new SimulatedClock(Date.now()), { recordContent: 'full' })
      const [sent, failed, waiting] = [deliveryOf(), deliveryOf({ state: 'failed' }), queued()]
      for (const delivery of [sent, failed, waiting]) journal.record(delivery, [text])
      await journal.flush()
      const next = await openJournal(app, { ...optionsOf(new SimulatedClock(Date.now())), recordContent: content })
      await next.adopt(2, 0)
      await next.purge(Date.now())
      const left = content === 'none' ? [waiting] : [failed, waiting]
      assert.deepEqual([...await next.withContent(idsOf([sent, failed, waiting]))].sort(), idsOf(left).sort())
    })
  }

  test('hands rows over whose adoption got no answer at the next one', async t => {
    const { journal, app } = await openDatabase(t, new SimulatedClock(Date.now()), {})
    const [driver] = app.model.drivers
    assert(driver)
    const waiting = queued()
    await journal.insert(waiting, [text])
    const get = driver.get.bind(driver)
    let count = 0
    driver.get = (...args) => ++count === 3 ? Promise.reject(new Error('no answer')) : get(...args)
    await assert.rejects(journal.adopt(1, 0))
    assert.deepEqual(idsOf(await journal.adopt(1, 0)), [waiting.id])
    assert.deepEqual(await journal.adopt(1, 0), [])
  })

  test('leaves a damaged row out, and says so once', async t => {
    const { journal, app, lines } = await openDatabase(t, new SimulatedClock(Date.now()), {})
    await journal.adopt(1, 0)
    const all = Array.from({ length: 60 }, (_, index) => queued({ key: `k${index}` }))
    for (const delivery of all) await journal.insert(delivery, [text])
    const damages = [{ record: '' }, { record: '{"results":7}' }, { summary: '[' }, { state: 'queue' }, { target: 'x' }, { record: '[]' }]
    for (const [index, damage] of damages.entries()) await app.database.set('message_relay_journal', { id: all[index * 9]?.id ?? '' }, damage)
    await app.database.set('message_relay_journal', { id: all[1]?.id ?? '' }, { items: '[' })
    const whole = all.filter((_, index) => index % 9 !== 0 || index > 50)
    for (let round = 0; round < 2; round++) {
      assert.deepEqual(idsOf(await journal.list({ limit: 99 })), idsOf(whole).reverse())
      assert.deepEqual(idsOf(await journal.list({ limit: 10, states: ['queued'] })), idsOf(whole).reverse().slice(0, 10))
      assert.equal(await journal.find(all[0]?.id ?? ''), undefined)
      assert.equal(await journal.findByKey('k0'), undefined)
      assert.equal(await journal.items(all[1]?.id ?? ''), undefined)
    }
    assert.deepEqual(idsOf(await journal.adopt(2, 0)), idsOf(whole))
    assert.equal(lines.length, damages.length + 1)
    for (const line of lines) assert.match(line, /^the row [-0-9a-f]{36} of the table message_relay_journal is damaged and is left out: /)
  })

  test('leaves a row with an odd number out', async t => {
    const { journal, app, lines } = await openDatabase(t, new SimulatedClock(Date.now()), {})
    await journal.adopt(1, 0)
    const ways = [{ target: { kind: 'group', id: '1' } }]
    const odd: Record<string, object> = Object.fromEntries(['-1', '0.5', '9007199254740992', '1e999', 'null'].flatMap(number => [
      `"seq": ${number}`, `"attempts": ${number}`, `"open": [{"indices": [${number}], "likeness": "", "since": 0, "settle": 0, "calls": 0}]`,
      `"flow": {"route": ${JSON.stringify({ name: '', ways, after: 0, whenUnknown: 'stop', past: [] }).slice(0, -1)}, "index": ${number}}}`,
    ].map(field => [field, {}])))
    for (const time of ['-1', '8.65e15', '1e999']) {
      for (const field of [`"createdAt": ${time}`, `"expiresAt": ${time}`, `"flow": {"sendAt": ${time}}`]) odd[field] = {}
      odd[time] = { updatedAt: Number(time) }
    }
    odd['"open": [{"indices": [1], "likeness": "", "since": 0, "settle": 0, "calls": 0}]'] = {}
    const sound = queued()
    await journal.insert(sound, [text])
    for (const [field, columns] of Object.entries(odd)) {
      const delivery = queued()
      await journal.insert(delivery, [text])
      const [row] = await app.database.get('message_relay_journal', { id: delivery.id })
      // Of two fields with one name, the last counts.
      const record = field.startsWith('"') ? `${row?.record.slice(0, -1) ?? ''}, ${field}}` : row?.record
      await app.database.set('message_relay_journal', { id: delivery.id }, { record, ...columns })
    }
    assert.deepEqual(idsOf(await journal.adopt(2, 0)), [sound.id])
    assert.equal(lines.length, Object.keys(odd).length)
  })

  test('writes records behind, many at a time, and says once when that fails', async t => {
    const clock = new SimulatedClock(Date.now())
    const { journal, app, lines } = await openDatabase(t, clock, {})
    const [driver] = app.model.drivers
    assert(driver instanceof SQLiteDriver)
    const statements: string[] = []
    let isBroken = false
    const prepare = driver.db.prepare.bind(driver.db)
    driver.db.prepare = (...args: Parameters<typeof prepare>) => {
      if (args[0].startsWith('INSERT')) {
        statements.push(args[0].slice(0, 20))
        if (isBroken) throw new Error('disk I/O error')
      }
      return prepare(...args)
    }
    const all = Array.from({ length: 600 }, () => deliveryOf())
    for (const delivery of all.slice(0, 100)) journal.record(delivery, [])
    await clock.run(400)
    assert.equal(statements.length, 0)
    await clock.run(100)
    await until('they are written', () => statements.length === 1)
    for (const delivery of all.slice(100)) journal.record(delivery, [])
    await clock.run(500)
    await until('the others are written', () => statements.length === 3)
    isBroken = true
    const last = deliveryOf()
    journal.record(last, [])
    await until('it was tried again', async () => {
      await clock.run(1_000)
      return statements.length > 4
    })
    assert.equal(lines.length, 1)
    assert.match(lines.join(), /^records cannot be written to the database, and wait in memory: disk I\/O error$/)
    assert.equal((await journal.find(last.id))?.id, last.id)
    await assert.rejects(journal.flush())
    isBroken = false
    await until('it is written', async () => {
      await clock.run(2_000)
      return (await app.database.get('message_relay_journal', { id: last.id })).length === 1
    })
    await until('the log says so', () => lines[1] === 'records are written to the database again')
    assert.deepEqual(idsOf(await journal.list({ limit: 999 })), idsOf([...all, last]).reverse())
  })

  test('waits for a statement for a limited time', async t => {
    const clock = new SimulatedClock(Date.now())
    const { journal, app } = await openDatabase(t, clock, {})
    const [driver] = app.model.drivers
    assert(driver instanceof SQLiteDriver)
    const get = driver.get.bind(driver)
    driver.get = () => new Promise(() => undefined)
    const calls = [
      () => journal.find(uuid()), () => journal.ping(), () => journal.list({ limit: 1 }), () => journal.update(queued()),
      () => journal.readOwner(),
    ]
    for (const call of calls) {
      let isOver = false
      const rejection = assert.rejects(call(), { message: 'the database did not answer in time' }).finally(() => isOver = true)
      await clock.run(7_999)
      assert(!isOver)
      await clock.run(1)
      await rejection
    }
    driver.get = get
    await journal.ping()
  })

  test('keeps texts out of the log when a statement fails', async t => {
    const { journal, app } = await openDatabase(t, new SimulatedClock(Date.now()), {})
    const [driver] = app.model.drivers
    const logged: unknown[] = []
    assert(driver)
    for (const method of ['warn', 'debug'] as const) driver.logger[method] = (...args: unknown[]) => void logged.push(...args)
    const first = queued({ key: 'k' })
    await journal.insert(first, [text])
    await assert.rejects(journal.insert(queued({ key: 'k' }), [text]))
    assert(!JSON.stringify(logged).includes('4711'), JSON.stringify(logged))
  })

  test('lists the first page of 100,000 records within 150 ms of processor time, and gives others a turn meanwhile', async t => {
    const { journal, app } = await openDatabase(t, new SimulatedClock(Date.now()), {})
    const start = Date.now() - 200_000
    journal.record(deliveryOf({ createdAt: start - 1, caller: 'CI' }), [])
    await journal.flush()
    const [driver] = app.model.drivers
    assert(driver instanceof SQLiteDriver)
    driver.db.exec([
      'WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 100000)',
      'INSERT INTO message_relay_journal (id, state, target, caller, door, updatedAt, version, summary, record)',
      `SELECT '${lowestId(start).slice(0, 9)}' || printf('%04x-7000-8000-%012x', n / 50, n), iif(n % 1000, 'sent', 'failed'), 'group:' || (n % 50),`,
      `iif(n % 3, caller, NULL), iif(n % 10, 'webhook', 'hooks/' || (n % 4)), updatedAt, version, summary, record`,
      'FROM counter, message_relay_journal',
    ].join(' '))
    const filters: Omit<ListFilter, 'limit'>[] = [
      {}, { states: ['failed'] }, { states: ['sent'] }, { targets: [{ kind: 'group', id: '7' }] }, { caller: 'CI' }, { door: 'hooks' }, { text: '4711' },
      { states: ['unanswered'] }, { caller: 'nobody' }, { states: ['failed'], door: 'hooks' }, { states: ['sent', 'failed'] },
      { caller: 'CI', states: ['failed'] }, { before: lowestId(start).slice(0, 9) + '0400' },
    ]
    for (const filter of filters) {
      const times: number[] = []
      for (let round = 0; round < 3; round++) {
        const began = process.cpuUsage()
        await journal.list({ ...filter, limit: 100 })
        times.push(process.cpuUsage(began).user / 1000)
      }
      assert(Math.min(...times) < 150, `${JSON.stringify(filter)}: ${Math.round(Math.min(...times))} ms`)
    }
    for (const filter of [{ text: 'nothing' }, { door: 'onebot' }, { door: 'onebot', caller: 'CI' }]) {
      let turns = 0
      let turn = setImmediate(function next() {
        turns++
        turn = setImmediate(next)
      })
      assert.deepEqual(await journal.list({ ...filter, limit: 100 }), [])
      clearImmediate(turn)
      assert(turns > 50, `${JSON.stringify(filter)}: others got ${turns} turns`)
    }
  })
})
