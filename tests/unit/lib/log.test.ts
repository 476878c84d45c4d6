import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeError, describePlace, printable, Tally } from '../../../src/lib/log'

describe('foreign text in the log', () => {
  test('keeps to one line and to its direction', () => {
    assert.equal(printable('发票 é 😀 %s'), '发票 é 😀 %s')
    for (const character of ['\n', '\r', '\u001b', '\u009b', '\u0000', '\u2028', '\u2029', '\u202e', '\u200b', '\ud800']) {
      assert.equal(printable(`a${character}b`), 'a\ufffdb')
    }
  })
})

describe('an unexpected error in the log', () => {
  const error = new TypeError('secret\n    at forged (place)')

  test('has its text in one line, cut, and its stack below', () => {
    const [first, second] = describeError(error).split('\n')
    assert.equal(first, 'TypeError: secret\ufffd    at forged (place)')
    assert.match(second ?? '', /^ {4}at .*log\.test\.ts/)
    assert.equal(describeError(new Error('x'.repeat(500))).split('\n', 1)[0]?.length, 200)
  })

  test('is known by class and place alone where its text must not be shown', () => {
    assert.match(describePlace(error), /^"TypeError" at ".*log\.test\.ts.*"$/)
    assert.equal(describePlace(Object.assign(new Error('x'), { stack: '' })), '"Error" at "unknown"')
  })

  test('that is no error is told by its type', () => {
    assert.equal(describeError('secret'), 'string')
    assert.equal(describePlace(undefined), 'undefined')
  })
})

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
