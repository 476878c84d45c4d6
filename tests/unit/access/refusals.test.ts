import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Refusals } from '../../../src/access/refusals'

const minute = 60_000

describe('refusals', () => {
  test('of one address are told of once a minute, with how many were not', () => {
    const refusals = new Refusals()
    assert.equal(refusals.add('unauthorized', 'a', 0), 0)
    assert.equal(refusals.add('unauthorized', 'b', 0), 0)
    for (let time = 1; time <= 5; time++) assert.equal(refusals.add('forbidden', 'a', time), undefined)
    assert.equal(refusals.add('unauthorized', 'a', minute - 1), undefined)
    assert.equal(refusals.add('unauthorized', 'a', minute), 6)
    assert.equal(refusals.add('unauthorized', 'a', minute + 1), undefined)
    assert.equal(refusals.add('unauthorized', 'b', 5 * minute), 0)
    assert.deepEqual(Object.fromEntries(refusals.counts), { unauthorized: 6, forbidden: 5 })
  })

  test('are told of about a thousand times a minute, from however many addresses they come', () => {
    const refusals = new Refusals()
    const told = (from: number, time: number): number => {
      let count = 0
      for (let index = 0; index < 5_000; index++) if (refusals.add('unauthorized', `address ${from + index}`, time) !== undefined) count++
      return count
    }
    assert.equal(told(0, 0), 1001)
    assert.equal(told(5_000, 1), 0)
    // Who was told of stays silent, and a minute later there is room again.
    assert.equal(refusals.add('unauthorized', 'address 0', 2), undefined)
    assert.equal(told(20_000, minute), 1001)
    assert.equal(refusals.counts.get('unauthorized'), 15_001)
  })
})
