import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tally } from '../../../src/lib/tally'

test('a tally tells of the first at once, then of all in a minute together, and of the rest when it ends', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const told: number[] = []
  const tally = new Tally(count => told.push(count))
  tally.add()
  assert.deepEqual(told, [1])
  for (let i = 0; i < 5; i++) tally.add()
  t.mock.timers.tick(59_999)
  assert.deepEqual(told, [1])
  t.mock.timers.tick(1)
  assert.deepEqual(told, [1, 5])
  tally.add()
  t.mock.timers.tick(60_000)
  assert.deepEqual(told, [1, 5, 1])
  t.mock.timers.tick(60_000)
  assert.deepEqual(told, [1, 5, 1], 'there was nothing to tell')
  tally.add()
  assert.deepEqual(told, [1, 5, 1, 1], 'after a quiet minute the next is the first again')
  tally.add()
  tally.end()
  tally.end()
  t.mock.timers.tick(120_000)
  assert.deepEqual(told, [1, 5, 1, 1, 1])
})
