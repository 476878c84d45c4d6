import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../../src/errors'
import { hash } from '../../../../src/lib/crypto'
import { day } from '../../../../src/lib/time'
import type { ParsedItem } from '../../../../src/message/model'
import { DeliveriesTable } from '../../../../src/relay/delivery/deliveries-table'
import { states, type Delivery } from '../../../../src/relay/delivery/delivery'
import { lowestId, matches, type ListFilter } from '../../../../src/relay/delivery/filter'
import { Purge } from '../../../../src/relay/delivery/purge'
import { toRow } from '../../../../src/relay/delivery/row'
import type { RelayOptions } from '../../../../src/relay/options'
import { SimulatedClock } from '../../../support/simulated-clock'
import { TestFolder, TestStorage } from '../../../support/store'

const text: ParsedItem = { type: 'text', text: 'build #4711 passed' }
const group = { kind: 'group', id: '1' } as const
const folder = new TestFolder()
const { connection } = folder
const warnings: string[] = []
beforeEach(() => {
  connection.run('DELETE FROM deliveries')
  warnings.length = 0
})

function tableWith(recordContent: RelayOptions['recordContent'] = 'preview'): DeliveriesTable {
  return new DeliveriesTable(connection, { recordContent, logger: { warn: (_: string, line: string) => warnings.push(line) } })
}

const table = tableWith()
let seq = 0

/** A delivery of one text that was sent without a key, but for what is said otherwise. */
function deliveryOf(changes: Partial<Delivery> = {}): Delivery {
  const createdAt = changes.createdAt ?? Date.now()
  return {
    // One after another within a millisecond, as long as no time is given.
    id: changes.createdAt === undefined ? uuid() : uuid({ msecs: createdAt }), seq: ++seq, state: 'sent', mode: 'single', deferred: false,
    target: group, caller: null, door: 'webhook', bot: 'onebot:10000', createdAt, updatedAt: createdAt, expiresAt: null, attempts: 1,
    results: [{ success: true, messageIds: ['1'] }], open: [], key: null, fingerprint: null, flow: {},
    summary: { items: [{ type: 'text', msg: 'build #4711 passed' }], calls: [], waited: 0, platformTime: 7 }, ...changes,
  }
}

/** A deferred delivery that waits. */
function queued(changes: Partial<Delivery> = {}): Delivery {
  return deliveryOf({ state: 'queued', deferred: true, results: [undefined], ...changes })
}

function insert(deliveries: readonly Delivery[], items: readonly ParsedItem[] = [text], into = table): void {
  connection.transaction(() => deliveries.forEach(delivery => into.insert(connection, delivery, items)))
}

/** Without the stacks of its errors, which nothing compares. */
function plain(delivery: Delivery | undefined): unknown {
  return JSON.parse(JSON.stringify(delivery, (_, value: unknown) => value instanceof RelayError ? [value.code, value.message] : value))
}

const idsOf = (deliveries: readonly { id: string }[]): string[] => deliveries.map(({ id }) => id)

describe('the table of deliveries', () => {
  test('gives back whatever a delivery can hold', () => {
    const delivery = deliveryOf({
      state: 'unanswered', mode: 'batch', target: { kind: 'private', id: '群 / \u2028%09' }, caller: `plugin:${'群'.repeat(64)}\0\ufeff`,
      bot: 'a\tb\nc:é', attempts: 12, expiresAt: 7, open: [{ indices: [0, 2], likeness: 'y', since: 1.5, settle: 30_000, calls: 2 }],
      results: [
        { success: true, messageIds: ['-2147483648', '🚀'] }, { success: true, messageIds: [], likeness: 'x' }, undefined,
        { success: false, error: new RelayError('refused', '禁言 🙊 \\ \' "') },
      ],
      key: 'k'.repeat(64), fingerprint: 'f'.repeat(64), door: 'hooks/告警',
      summary: {
        items: [{ type: 'text', msg: '🚀 \\ \' "\u2028\0' }, { type: 'file', name: '报告.pdf', size: 7 }, { type: 'invalid' }], waited: 0.5, platformTime: 12.25,
        calls: [{ at: 0.5, took: 3.25, outcome: 'refused', reason: '禁言' }, { at: 4, took: 9, outcome: 'unanswered' }],
      },
    })
    insert([delivery])
    assert.deepEqual(plain(table.find(delivery.id)), plain(delivery))
    assert.deepEqual(plain(table.findByKey('k'.repeat(64))), plain(delivery))
    assert.deepEqual(table.items(delivery.id), [text])
    assert.deepEqual([table.find(uuid()), table.findByKey('another'), table.items(uuid())], [undefined, undefined, undefined])
  })

  for (const [content, kept] of [['none', ['queued', 'sending', 'unanswered']], ['preview', states.filter(state => state !== 'sent')], ['full', states]] as const) {
    test(`keeps content by the state where the setting is ${content}`, () => {
      const own = tableWith(content)
      for (const state of states) {
        const [recorded, changed] = [deliveryOf({ state }), queued()]
        insert([recorded, changed], [text], own)
        own.update(connection, { ...changed, state })
        const ids = kept.some(each => each === state) ? idsOf([recorded, changed]) : []
        assert.deepEqual(own.withContent(idsOf([recorded, changed])), ids, state)
        assert.deepEqual(own.items(changed.id), ids.length > 0 ? [text] : undefined, state)
      }
    })
  }

  test('has a key once, until its delivery gives it up or is removed', () => {
    const [first, second] = [queued({ key: 'one' }), queued({ key: 'one' })]
    insert([first])
    assert.throws(() => insert([second]), /UNIQUE/)
    table.update(connection, { ...first, key: null })
    assert.equal(table.findByKey('one'), undefined)
    insert([second])
    assert.equal(table.findByKey('one')?.id, second.id)
    table.remove(connection, second.id)
    table.remove(connection, second.id)
    assert.deepEqual([table.find(second.id), table.findByKey('one'), table.items(second.id)], [undefined, undefined, undefined])
    table.update(connection, { ...first, key: 'one', bot: 'onebot:2', target: { kind: 'private', id: '2' } })
    assert.deepEqual([table.findByKey('one')?.bot, idsOf(table.lastTo('onebot:2', { kind: 'private', id: '2' }, 9))], ['onebot:2', [first.id]])
  })

  test('refuses content that is too large to be kept', () => {
    assert.throws(() => insert([queued()], [{ type: 'text', text: 'x'.repeat(64 * 1024 * 1024) }]), { code: 'too-large' })
  })

  test('hands over what has not ended, or ended unanswered since a time', () => {
    const [waiting, sending] = [queued(), queued({ state: 'sending' })]
    const [late, old] = [deliveryOf({ state: 'unanswered' }), deliveryOf({ state: 'unanswered', updatedAt: Date.now() - day - 1 })]
    insert([waiting, sending, late, old, deliveryOf(), deliveryOf({ state: 'failed' })])
    assert.deepEqual(idsOf(table.left(Date.now() - day)).sort(), idsOf([waiting, sending, late]).sort())
    assert.deepEqual(table.left(0).find(({ id }) => id === sending.id), sending)
  })

  test('leaves a damaged row out, and says so once', async () => {
    const all = Array.from({ length: 60 }, (_, index) => queued({ key: `k${index}` }))
    insert(all)
    const damages = [['record', ''], ['record', '{"results":7}'], ['summary', '['], ['state', 'queue'], ['target', 'x'], ['record', '[]'], ['items', '[']]
    for (const [index, [column = '', value = '']] of damages.entries()) connection.run(`UPDATE deliveries SET ${column} = ? WHERE id = ?`, value, all[index * 9]?.id ?? '')
    const whole = all.filter((_, index) => index % 9 !== 0 || index > 50)
    for (let round = 0; round < 2; round++) {
      assert.deepEqual(idsOf(await table.list({ limit: 99 })), idsOf(whole).reverse())
      assert.deepEqual(idsOf(await table.list({ limit: 10, states: ['queued'] })), idsOf(whole).reverse().slice(0, 10))
      assert.deepEqual([table.find(all[0]?.id ?? ''), table.findByKey('k0'), table.items(all[54]?.id ?? '')], [undefined, undefined, undefined])
    }
    assert.deepEqual(idsOf(table.left(0)).sort(), idsOf(whole).filter(id => id !== all[27]?.id).sort())
    assert.equal(warnings.length, damages.length)
    for (const line of warnings) assert.match(line, /^the record [-0-9a-f]{36} is damaged and is left out: /)
  })

  test('leaves a row with an odd number out', () => {
    const ways = [{ target: { kind: 'group', id: '1' } }]
    const route = JSON.stringify({ name: '', ways, after: 0, whenUnknown: 'stop', past: [] }).slice(0, -1)
    const open = (index: string): string => `"open": [{"indices": [${index}], "likeness": "", "since": 0, "settle": 0, "calls": 0}]`
    const fields = ['-1', '0.5', '9007199254740992', '1e999', 'null'].flatMap(number => [
      `"seq": ${number}`, `"attempts": ${number}`, open(number), `"flow": {"route": ${route}, "index": ${number}}}`,
    ])
    const times = ['-1', '8.65e15', '1e999'].flatMap(time => [`"createdAt": ${time}`, `"expiresAt": ${time}`, `"flow": {"sendAt": ${time}}`])
    const odd = [...fields, ...times, open('1'), `"flow": {"route": ${route}, "index": 1}}`]
    for (const field of odd) {
      const delivery = queued()
      insert([delivery])
      // Of two fields with one name, the last counts.
      connection.run('UPDATE deliveries SET record = ? WHERE id = ?', `${toRow(delivery).record.slice(0, -1)}, ${field}}`, delivery.id)
    }
    for (const time of [-1, 8.65e15, Infinity]) {
      const delivery = queued()
      insert([delivery])
      connection.run('UPDATE deliveries SET updated_at = ? WHERE id = ?', time, delivery.id)
    }
    const sound = queued()
    insert([sound])
    assert.deepEqual(idsOf(table.left(0)), [sound.id])
    assert.equal(warnings.length, odd.length + 3)
  })
})

describe('a filter', () => {
  const start = Date.now() - 100_000
  const pick = <T>(values: readonly T[], index: number): T => values[index % values.length] ?? assert.fail()
  const thread = hash('t')
  const all = Array.from({ length: 300 }, (_, index) => deliveryOf({
    createdAt: start + index * 100, state: pick(states, index), target: { kind: index % 7 ? 'group' : 'private', id: String(index % 3) },
    flow: index % 4 === 3 ? {} : { thread: { name: thread, mode: 'reply', done: 'replied', ids: ['7'], index: 1 } },
    caller: pick(['', 'CI', 'ci', 'É'], index) || null, door: pick(['webhook', 'hooks/a', 'hooks/b', 'hooks'], index >> 2),
    bot: pick(['onebot:1', 'discord:2', ''], index >> 1),
    summary: {
      items: [{ type: 'text', msg: pick(['Straße 100%_"\\', 'build.*', '🚀\n'], index) }], waited: null, platformTime: 0,
      calls: [{ at: 0, took: 0, outcome: 'refused', reason: 'refused: "msg":"n.*"' }],
    },
  }))
  beforeEach(() => insert(all, []))

  test('finds what it asks for, the newest or the oldest first', async () => {
    const before = all[150]?.id ?? ''
    const filters: Omit<ListFilter, 'limit'>[] = [
      {}, { states: ['failed'] }, { states: ['sent', 'failed'] }, { states: [] }, { targets: [group] }, { caller: 'CI' }, { caller: 'ci', states: ['sent'] },
      { targets: [{ kind: 'private', id: '0', platform: 'discord' }, { kind: 'group', id: '2', platform: 'onebot' }] }, { door: 'hooks' }, { door: 'hooks/b' },
      { text: 'strAßE 100%_"\\' }, { text: '.*' }, { text: 'nothing' }, { text: '🚀', caller: 'É' }, { since: start + 10_000 }, { until: start + 10_000 },
      { since: start + 10_000, until: start + 20_000, states: ['unanswered'], door: 'hooks' }, { before }, { before, until: start + 20_000 },
      { bot: 'onebot:1', targets: [group] }, { thread, bot: 'onebot:1' },
    ]
    for (const filter of filters) {
      for (const limit of [30, 1000]) {
        const expected = idsOf(all.filter(each => matches(each, filter)))
        assert.deepEqual(idsOf(await table.list({ ...filter, limit, order: 'asc' })), expected.slice(0, limit), JSON.stringify(filter))
        assert.deepEqual(idsOf(await table.list({ ...filter, limit })), expected.reverse().slice(0, limit), JSON.stringify(filter))
      }
    }
  })

  test('counts by state', async () => {
    const filters = [
      {}, { caller: 'CI' }, { door: 'hooks' }, { text: 'strAßE 100%_"\\' }, { text: '.*' }, { text: 'n' }, { text: 'refused', caller: 'É' },
    ]
    for (const more of filters) {
      const filter = { ...more, states: ['sent', 'failed'] as const }
      for (const range of [{}, { since: start + 10_000, until: start + 20_000 }]) {
        const counts = await table.count({ ...filter, ...range })
        const expected = filter.states.map(state => all.filter(each => matches(each, { ...more, states: [state], ...range })).length)
        assert.deepEqual(filter.states.map(state => counts.get(state) ?? 0), expected, JSON.stringify(filter))
      }
    }
  })

  test('of a chat, or of a thread in it, finds the ends of what is long', () => {
    const to = all.filter(({ bot, target }) => bot === 'onebot:1' && target.kind === 'group' && target.id === '1')
    assert.deepEqual(idsOf(table.lastTo('onebot:1', group, 20)), idsOf(to).reverse().slice(0, 20))
    const found = to.filter(({ createdAt, flow }) => createdAt >= start + 10_000 && flow.thread)
    assert.notEqual(found.length, 0)
    assert.deepEqual(table.inThread(thread, 'onebot:1', group, start + 10_000), found)
    const long = Array.from({ length: 120 }, () => deliveryOf({ flow: { thread: { name: hash('long'), mode: 'update' } } }))
    insert(long, [])
    assert.deepEqual(idsOf(table.inThread(hash('long'), 'onebot:10000', group, start)), idsOf([...long.slice(0, 50), ...long.slice(-50)]))
  })
})

describe('the purge', () => {
  /** Runs it at a time in milliseconds since the epoch. */
  async function purge(wall: number, recordContent: RelayOptions['recordContent'] = 'preview'): Promise<void> {
    const { signal: stop } = new AbortController()
    const clock = new SimulatedClock(wall)
    const store = await new TestStorage(clock, folder).open(stop)
    await new Purge({ clock, retention: 10 * day, recordLimit: 300, recordContent, store, stop }, tableWith(recordContent)).run()
    await store.close()
  }

  test('removes what is past its retention or beyond the limit, but nothing that something depends on', async () => {
    const now = Date.now()
    const at = (age: number): Partial<Delivery> => ({ createdAt: now - age, updatedAt: now - age })
    const kept = [
      queued(at(20 * day)), deliveryOf({ ...at(20 * day), updatedAt: now }), deliveryOf({ ...at(day / 2), key: 'young' }),
      queued({ ...at(day / 2), key: 'waits' }),
    ]
    insert([...kept, deliveryOf(at(11 * day)), deliveryOf({ ...at(11 * day), key: 'old' }), deliveryOf({ ...at(11 * day), state: 'unanswered' })])
    await purge(now)
    assert.deepEqual(idsOf(await table.list({ limit: 99 })).sort(), idsOf(kept).sort())
    const many = Array.from({ length: 580 }, (_, index) => deliveryOf(at(1000 - index)))
    insert(many)
    await purge(now)
    const [waiting, , key, waits] = kept
    const left = [waiting, key, waits, ...many.slice(-300)].filter(each => each !== undefined)
    assert.deepEqual(idsOf(await table.list({ limit: 999 })).sort(), idsOf(left).sort())
    await purge(now + 11 * day)
    assert.equal(table.findByKey('young'), undefined)
  })

  for (const [content, left] of [['none', ['queued', 'unanswered']], ['preview', ['failed', 'queued', 'unanswered', 'unanswered']]] as const) {
    test(`drops what another setting has kept, with ${content}, and by and by what is unanswered`, async () => {
      const full = [deliveryOf(), deliveryOf({ state: 'failed' }), queued(), deliveryOf({ state: 'unanswered' }), deliveryOf({ state: 'unanswered', updatedAt: Date.now() - day })]
      insert(full, [text], tableWith('full'))
      await purge(Date.now() + 1, content)
      assert.deepEqual(table.withContent(idsOf(full)).map(id => table.find(id)?.state).sort(), left)
    })
  }
})

test('the first page of 100,000 records takes 150 ms of processor time, and others get a turn meanwhile', async () => {
  const start = Date.now() - 200_000
  insert([deliveryOf({ createdAt: start - 1, caller: 'CI' })], [])
  connection.run([
    'WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 100000)',
    'INSERT INTO deliveries (id, state, target, bot, caller, door, updated_at, summary, record)',
    `SELECT '${lowestId(start).slice(0, 9)}' || printf('%04x-7000-8000-%012x', n / 50, n), iif(n % 1000, 'sent', 'failed'), 'group:' || (n % 50), bot,`,
    `iif(n % 3, caller, NULL), iif(n % 10, 'webhook', 'hooks/' || (n % 4)), updated_at, summary, record`,
    'FROM counter, deliveries',
  ].join(' '))
  const filters: Omit<ListFilter, 'limit'>[] = [
    {}, { states: ['failed'] }, { states: ['sent'] }, { targets: [{ kind: 'group', id: '7' }] }, { caller: 'CI' }, { door: 'hooks' }, { text: '4711' },
    { states: ['unanswered'] }, { caller: 'nobody' }, { states: ['failed'], door: 'hooks' }, { states: ['sent', 'failed'] },
    { caller: 'CI', states: ['failed'] }, { before: `${lowestId(start).slice(0, 9)}0400` },
  ]
  for (const filter of filters) {
    const times: number[] = []
    for (let round = 0; round < 3; round++) {
      const began = process.cpuUsage()
      await table.list({ ...filter, limit: 100 })
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
    assert.deepEqual(await table.list({ ...filter, limit: 100 }), [])
    clearImmediate(turn)
    assert(turns > 40, `${JSON.stringify(filter)}: others got ${turns} turns`)
  }
})
