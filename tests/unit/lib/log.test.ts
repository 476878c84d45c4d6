import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeError, describePlace, printable } from '../../../src/lib/log'

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
