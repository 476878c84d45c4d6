import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/relay/clock'

test('a timer of the system goes off at its time or after it, never before', async () => {
  const early: number[] = []
  const wait = (ms: number): Promise<void> => {
    const due = systemClock.now() + ms
    return new Promise(resolve => systemClock.after(ms, () => {
      if (systemClock.now() < due) early.push(ms)
      resolve()
    }))
  }
  for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 100 }, (_, index) => wait(1 + index / 9)))
  assert.deepEqual(early, [])
})
