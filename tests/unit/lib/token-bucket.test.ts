import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TokenBucket } from '../../../src/lib/token-bucket'

const second = 1000

describe('a token bucket', () => {
  test('gives as many at once as it holds, and then as many as come', () => {
    const bucket = new TokenBucket(6, 0)
    for (let count = 0; count < 6; count++) assert.equal(bucket.take(1, 0), 0)
    assert.equal(bucket.take(1, 0), 10 * second)
    assert.equal(bucket.take(1, 4 * second), 6 * second)
    assert.equal(bucket.take(1, 10 * second), 0)
    assert.equal(bucket.take(1, 10 * second), 10 * second)
  })

  test('never holds more than comes in a minute', () => {
    const bucket = new TokenBucket(2, 0)
    for (let count = 0; count < 2; count++) assert.equal(bucket.take(1, 3600 * second), 0)
    assert.equal(bucket.take(1, 3600 * second), 30 * second)
  })

  test('takes nothing when it says no', () => {
    const bucket = new TokenBucket(2, 0)
    assert.equal(bucket.take(2, 0), 0)
    for (let count = 0; count < 100; count++) assert.equal(bucket.take(1, 0), 30 * second)
    assert.equal(bucket.take(1, 30 * second), 0)
  })

  test('gives more than it holds only when it is full, and owes it afterwards', () => {
    const bucket = new TokenBucket(2, 0)
    assert.equal(bucket.take(5, 0), 0)
    assert.equal(bucket.take(1, 0), 120 * second)
    assert.equal(bucket.take(5, 120 * second), 30 * second)
    assert.equal(bucket.take(5, 150 * second), 0)
  })
})
