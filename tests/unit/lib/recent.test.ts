import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Recent } from '../../../src/lib/recent'

test('keeps what was used last, in the order of use', () => {
  const recent = new Recent<number>(3)
  for (const [key, value] of [['a', 1], ['b', 2], ['c', 3]] as const) recent.set(key, value)
  assert.equal(recent.get('a'), 1)
  recent.set('b', 20)
  recent.set('d', 4)
  assert.deepEqual(recent.entries(), [['a', 1], ['b', 20], ['d', 4]])
  assert(!recent.has('c'))
  assert.equal(recent.get('c'), undefined)
})

test('forgets what was not used for too long', () => {
  const recent = new Recent<number>(10, 100)
  recent.set('a', 1, 1_000)
  recent.set('b', 2, 1_000)
  assert.equal(recent.get('a', 1_100), 1)
  assert.equal(recent.get('b', 1_101), undefined)
  assert.deepEqual(recent.entries(), [['a', 1]])
  recent.delete('a')
  assert.deepEqual(recent.entries(), [])
})
