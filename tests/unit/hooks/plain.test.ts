import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { renderPlainly, tidy } from '../../../src/hooks/plain'

describe('a text', () => {
  test('is made fit for a chat', () => {
    assert.equal(tidy('a  \r\nb\u0007\u202e\tc\n\n\n\nd\u2028e\ud800 '), 'a\nb  c\n\nd\ne\ufffd')
  })

  test('is made of the main fields where there is no other', () => {
    assert.equal(renderPlainly({ a: 'x', b: { c: 1 }, d: 2, e: true, f: 'y'.repeat(600), g: null }), `a: x\nd: 2\ne: true\nf: ${'y'.repeat(499)}…`)
  })
})
