import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { day } from '../../../../src/lib/time'
import { Purge } from '../../../../src/relay/delivery/purge'
import { SimulatedClock } from '../../../support/simulated-clock'
import { deliveryOf, idsOf, queued, stored, text, type Stored } from './stored'

const now = Date.now()
const old = now - 40 * day
const forEver = new AbortController().signal

function purge({ store, table }: Stored, changes: { recordLimit?: number, recordContent?: 'none' | 'preview' | 'full', stop?: AbortSignal } = {}): Promise<void> {
  return new Purge({ clock: new SimulatedClock(now), retention: 30 * day, recordLimit: 1e6, recordContent: 'full', stop: forEver, store, ...changes }, table).run()
}

describe('a purge', () => {
  test('removes what ended before the retention, however much, but neither what waits nor an Idempotency-Key of the last day', async () => {
    const data = await stored()
    const ended = Array.from({ length: 600 }, () => deliveryOf({ createdAt: old }))
    const kept = [queued({ createdAt: old }), deliveryOf({ createdAt: old, updatedAt: now - day }), deliveryOf({ createdAt: now - day / 2, key: 'k' }), deliveryOf()]
    data.save([...ended, deliveryOf({ createdAt: old, key: 'old' }), ...kept])
    await purge(data)
    assert.deepEqual(idsOf(await data.table.list({ limit: 9_000 })).sort(), idsOf(kept).sort())
  })

  test('removes the oldest beyond the limit, but neither what waits nor an Idempotency-Key of the last day', async () => {
    const data = await stored()
    const all = Array.from({ length: 700 }, (_, index) => deliveryOf({ createdAt: now - 10_000 + index }))
    const kept = [queued({ createdAt: now - 20_000 }), deliveryOf({ createdAt: now - 20_000, key: 'k' })]
    data.save([...all, ...kept])
    await purge(data, { recordLimit: 100 })
    assert.deepEqual(idsOf(await data.table.list({ limit: 9_000 })).sort(), idsOf([...all.slice(-100), ...kept]).sort())
  })

  for (const [content, left] of [['full', [0, 1, 2, 3, 4]], ['preview', [1, 2, 3, 4]], ['none', [2, 4]]] as const) {
    test(`drops what another setting has kept, with ${content}, also of more rows than are read at once`, async () => {
      const data = await stored('full')
      const all = [deliveryOf(), deliveryOf({ state: 'failed' }), deliveryOf({ state: 'unanswered' }), deliveryOf({ state: 'unanswered', updatedAt: now - 2 * day }), queued()]
      data.save([...Array.from({ length: 2_500 }, () => deliveryOf({ createdAt: now - day })), ...all], [text])
      await purge(data, { recordContent: content })
      const ids = idsOf(await data.table.list({ limit: 9_000 }))
      assert.deepEqual(data.table.withContent(idsOf(all)).sort(), left.map(index => all[index]?.id).sort())
      assert.deepEqual([ids.length, data.table.withContent(ids).length], [2_505, content === 'full' ? 2_505 : left.length])
    })
  }

  test('ends with its relay', async () => {
    const data = await stored()
    data.save(Array.from({ length: 600 }, () => deliveryOf({ createdAt: old })))
    await purge(data, { stop: AbortSignal.abort() })
    assert.equal((await data.table.list({ limit: 9_000 })).length, 600)
  })
})
