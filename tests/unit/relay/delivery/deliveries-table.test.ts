import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../../src/errors'
import { day } from '../../../../src/lib/time'
import type { ParsedItem } from '../../../../src/message/model'
import { states } from '../../../../src/relay/delivery/delivery'
import { fileStorage } from '../../../../src/relay/store/file-storage'
import { temporaryFolder } from '../../../support/folder'
import { deliveryOf, idsOf, plain, queued, stored, text } from './stored'
import { clauses, say, words } from '../../../../src/texts/text'

describe('the table of deliveries', () => {
  test('gives back whatever a delivery can hold, also after the file was opened again', async t => {
    const lines: unknown[] = []
    const log = (...line: unknown[]): void => void lines.push(line)
    const storage = fileStorage({ dataDir: temporaryFolder(), logger: { info: log, warn: log, error: log } })
    const open = () => storage.open(new AbortController().signal)
    const delivery = deliveryOf({
      state: 'unanswered', mode: 'batch', target: { kind: 'private', id: '群 / \u2028%09' }, caller: `plugin:${'群'.repeat(64)}\0`, bot: 'a\tb\nc:é', attempts: 12, expiresAt: 7,
      results: [
        { success: true, messageIds: ['-2147483648', '🚀'] }, { success: true, messageIds: [], likeness: 'x\0' }, undefined,
        { success: false, error: new RelayError('refused', words('禁言 🙊 \\ \' "')) },
      ],
      open: [{ indices: [0, 2], likeness: 'y', since: 1.5, settle: 30_000, calls: 2 }], key: 'k'.repeat(64), fingerprint: 'f'.repeat(64), door: 'hooks/告警',
      summary: {
        items: [{ type: 'text', msg: '🚀 \\ \' "\u2028\ud800' }, { type: 'file', name: '报告.pdf', size: 7 }, { type: 'invalid' }], waited: 0.5, platformTime: 12.25,
        calls: [{ at: 0.5, took: 3.25, outcome: 'refused', reason: clauses(words('禁言'), say('no-bot-online')) }, { at: 4, took: 9, outcome: 'unanswered' }],
      },
    })
    const long: ParsedItem = { type: 'text', text: `${'长'.repeat(60_000)}\0` }
    const first = await open()
    const { save } = await stored('preview', first)
    save([delivery], [text, long])
    await first.close()
    const second = await open()
    t.after(() => second.close())
    const { table } = await stored('preview', second)
    assert.deepEqual(plain(table.find(delivery.id)), plain(delivery))
    assert.deepEqual(plain(table.findByKey('k'.repeat(64))), plain(delivery))
    assert.deepEqual([table.items(delivery.id), lines], [[text, long], []])
    assert.deepEqual([table.find(uuid()), table.findByKey('another'), table.items(uuid())], [undefined, undefined, undefined])
  })

  for (const [content, kept] of [['none', ['queued', 'sending', 'unanswered']], ['preview', states.filter(state => state !== 'sent')], ['full', states]] as const) {
    test(`keeps content by the state where the setting is ${content}`, async () => {
      const { store, table, save } = await stored(content)
      for (const state of states) {
        const [written, changed] = [deliveryOf({ state }), queued()]
        save([written, changed], [text])
        store.commit(writer => table.update(writer, { ...changed, state }))
        const isKept = kept.some(each => each === state)
        for (const { id } of [written, changed]) {
          assert.deepEqual([table.items(id), table.withContent([id])], isKept ? [[text], [id]] : [undefined, []], state)
        }
      }
    })
  }

  test('has an Idempotency-Key once, and again when it was freed or its delivery withdrawn', async () => {
    const { store, table, save } = await stored()
    const [first, second, third] = [queued({ key: 'one' }), queued({ key: 'one' }), queued({ key: 'one' })]
    save([first], [text])
    assert.throws(() => save([second], [text]))
    store.commit(writer => table.update(writer, { ...first, key: null, target: { kind: 'group', id: '2' }, bot: 'onebot:2' }))
    assert.deepEqual([table.findByKey('one'), table.find(first.id)?.target.id, table.find(first.id)?.bot], [undefined, '2', 'onebot:2'])
    save([second], [text])
    assert.equal(table.findByKey('one')?.id, second.id)
    store.commit(writer => table.remove(writer, second.id))
    assert.deepEqual([table.find(second.id), table.items(second.id)], [undefined, undefined])
    save([third], [text])
    assert.equal(table.findByKey('one')?.id, third.id)
  })

  test('hands over what has not ended, or ended unanswered within the day', async () => {
    const { table, save } = await stored()
    const now = Date.now()
    const left = [queued(), queued({ state: 'sending' }), deliveryOf({ state: 'unanswered' })]
    save([...left, deliveryOf({ state: 'unanswered', updatedAt: now - day - 1 }), deliveryOf(), deliveryOf({ state: 'failed' }), deliveryOf({ state: 'expired' })])
    assert.deepEqual(idsOf(table.left(now - day)).sort(), idsOf(left).sort())
  })

  test('leaves a damaged row out, and says so once', async () => {
    const { store, table, lines, save } = await stored()
    const all = Array.from({ length: 60 }, (_, index) => queued({ key: `k${index}` }))
    save(all, [text])
    const open = '"open":[{"indices":[1],"likeness":"","since":1,"settle":1,"calls":1}]'
    const damages = [
      ['record', `'""'`], ['record', `'{"results":7}'`], ['summary', `'['`], ['state', `'queue'`], ['target', `'x'`], ['record', `replace(record, '"open":[]', '${open}')`],
      ['updated_at', '1e999'],
    ] as const
    store.commit(writer => {
      for (const [index, [column, value]] of damages.entries()) writer.run(`UPDATE deliveries SET ${column} = ${value} WHERE id = ?`, all[index * 9 % 60]?.id ?? '')
      writer.run(`UPDATE deliveries SET items = '[' WHERE id = ?`, all[1]?.id ?? '')
    })
    const whole = all.filter((_, index) => index % 9 !== 0)
    for (let round = 0; round < 2; round++) {
      assert.deepEqual(idsOf(await table.list({ limit: 99 })), idsOf(whole).reverse())
      const waiting = await table.list({ limit: 10, states: ['queued'] })
      assert.deepEqual(idsOf(waiting), idsOf(whole).reverse().slice(0, 10))
      assert.deepEqual([table.find(all[0]?.id ?? ''), table.findByKey('k0'), table.items(all[1]?.id ?? '')], [undefined, undefined, undefined])
    }
    assert.deepEqual(idsOf(table.left(0)).sort(), idsOf(whole).sort())
    assert.equal(lines.length, damages.length + 1)
    for (const line of lines) assert.match(line, /^the record [-0-9a-f]{36} is damaged and is left out: /)
  })

  test('has the ends of a long thread', async () => {
    const { table, save } = await stored()
    const start = Date.now() - 1_000
    const long = Array.from({ length: 120 }, (_, index) => deliveryOf({ createdAt: start + index, flow: { thread: { name: 'long', mode: 'update' } } }))
    save([...long, deliveryOf(), deliveryOf({ bot: 'onebot:2', flow: { thread: { name: 'long', mode: 'update' } } })])
    const found = (since: number): string[] => idsOf(table.inThread('long', 'onebot:10000', { kind: 'group', id: '1' }, since))
    assert.deepEqual(found(start), idsOf([...long.slice(0, 50), ...long.slice(-50)]))
    assert.deepEqual(found(start + 60), idsOf(long.slice(60)))
  })
})
