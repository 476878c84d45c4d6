import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redialDelay } from '../../../../src/platform/onebot/connection'

test('the wait before a bot is started again begins below a second, grows, and ends at five', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 1000].map(tries => redialDelay(tries, 0)), [500, 1000, 2000, 4000, 5000, 5000])
  assert.equal(redialDelay(1000, 0.5), 3750)
  assert(redialDelay(0, 0.999_999) > 249)
})
