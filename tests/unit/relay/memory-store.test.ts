import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../src/errors'
import { MemoryRecords } from '../../../src/relay/memory-store'
import type { DeliveryRecord } from '../../../src/relay/delivery'

/** A delivery that was sent, but for what is said otherwise. */
function createRecord(changes: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return {
    id: uuid(), state: 'sent', mode: 'single', deferred: false, target: { kind: 'group', id: '123456' }, bot: 'onebot:10000',
    createdAt: 1_780_000_000_000, updatedAt: 1_780_000_000_123, expiresAt: null, attempts: 1,
    results: [{ success: true, messageIds: ['-12'] }], sending: null, key: null, fingerprint: null, ...changes,
  }
}

/** Adds so many, which are packed some time or other. */
function fill(memory: MemoryRecords, count: number, changes?: Partial<DeliveryRecord>): DeliveryRecord[] {
  return Array.from({ length: count }, () => {
    const record = createRecord(changes)
    memory.add(record)
    return record
  })
}

describe('deliveries in memory', () => {
  test('are all there, the last ten thousand of them, as they were', () => {
    const memory = new MemoryRecords()
    const records = fill(memory, 20_050)
    for (const index of [10_050, 15_000, 19_899, 20_000, 20_049]) assert.deepEqual(memory.get(records[index]?.id ?? ''), records[index])
    assert.equal(memory.get(records[0]?.id ?? ''), undefined)
    const listed = memory.list({ limit: 100_000 })
    assert(listed.length >= 10_000 && listed.length < 10_200, String(listed.length))
    assert.deepEqual(listed, records.slice(-listed.length).reverse())
  })

  test('keep whatever a delivery can hold', () => {
    const memory = new MemoryRecords()
    const record = createRecord({
      state: 'failed', mode: 'batch', deferred: true, target: { kind: 'private', id: '群 / \u2028%09' }, bot: 'a\tb\nc:é', expiresAt: 5,
      attempts: 12,
      results: [{ success: true, messageIds: [] }, undefined, { success: false, error: new RelayError('refused', 'no\t"way"\n禁言') }],
      sending: { indices: [1, 2], since: 7, others: ['-12'] }, key: 'a'.repeat(64), fingerprint: 'b'.repeat(64),
    })
    memory.add(record)
    fill(memory, 200)
    assert.notEqual(memory.get(record.id), record)
    assert.deepEqual(memory.get(record.id), record)
  })

  test('are changed wherever they are', () => {
    const memory = new MemoryRecords()
    const records = fill(memory, 150)
    for (const index of [3, 149]) {
      const record = records[index]
      assert(record)
      record.state = 'failed'
      memory.update(record)
      assert.equal(memory.get(record.id)?.state, 'failed')
    }
    assert.deepEqual(memory.list({ state: 'failed', limit: 10 }).map(({ id }) => id), [records[149]?.id, records[3]?.id])
  })

  test('stay objects while they are under way, however many come after', () => {
    const memory = new MemoryRecords()
    const slow = createRecord({ state: 'sending', results: [undefined] })
    memory.add(slow)
    fill(memory, 1_000)
    assert.equal(memory.get(slow.id), slow)
    slow.state = 'sent'
    memory.update(slow)
    fill(memory, 300)
    assert.notEqual(memory.get(slow.id), slow)
    assert.equal(memory.get(slow.id)?.state, 'sent')
  })

  test('are gone when they are let go of', () => {
    const memory = new MemoryRecords()
    const records = fill(memory, 150)
    for (const index of [3, 149]) {
      const record = records[index]
      assert(record)
      memory.forget(record)
      assert.equal(memory.get(record.id), undefined)
    }
    assert.equal(memory.list({ limit: 1_000 }).length, 148)
  })

  test('are found by state, target and age', () => {
    const memory = new MemoryRecords()
    const records = fill(memory, 250)
    const others = fill(memory, 120, { state: 'failed', target: { kind: 'group', id: '1234567' } })
    const target = { kind: 'group', id: '1234567' } as const
    assert.deepEqual(memory.list({ target, limit: 2 }).map(({ id }) => id), [others[119]?.id, others[118]?.id])
    assert.equal(memory.list({ target, state: 'sent', limit: 500 }).length, 0)
    assert.equal(memory.list({ target: { kind: 'private', id: '123456' }, limit: 500 }).length, 0)
    assert.deepEqual(memory.list({ before: others[0]?.id ?? '', limit: 1 }), [records[249]])
    assert.deepEqual(memory.list({ before: records[10]?.id ?? '', limit: 500 }), records.slice(0, 10).reverse())
  })
})
