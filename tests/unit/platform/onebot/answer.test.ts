import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readReceipt } from '../../../../src/platform/onebot/answer'
import { SendError } from '../../../../src/platform/port'

describe('the answer of a OneBot implementation', () => {
  test('gives the message ID as text, also a negative one', () => {
    assert.deepEqual(readReceipt({ status: 'ok', retcode: 0, data: { message_id: -17 } }), { messageIds: ['-17'] })
    assert.deepEqual(readReceipt({ status: 'ok', retcode: 0, data: { message_id: 'a' } }), { messageIds: ['a'] })
  })

  test('gives none for a file, and none when the data is null', () => {
    assert.deepEqual(readReceipt({ status: 'ok', retcode: 0, data: { file_id: '/x' } }), { messageIds: [] })
    assert.deepEqual(readReceipt({ status: 'ok', retcode: 0, data: null }), { messageIds: [] })
  })

  /** What OneBot 11 has for a success, but for the two fields that tell of it. */
  const delivered = { data: { message_id: 7 }, message: '', wording: '' }
  const unclear: [string, unknown][] = [
    ['no retcode', { status: 'ok', ...delivered }],
    ['no retcode, failed', { status: 'failed', data: null, wording: 'no' }],
    ['a retcode that is text', { status: 'ok', retcode: '0', ...delivered }],
    ['a retcode that is another text', { status: 'failed', retcode: '100', data: null }],
    ['a retcode that is null', { status: 'ok', retcode: null, ...delivered }],
    ['a retcode that is no whole number', { status: 'failed', retcode: 0.5, data: null }],
    ['a retcode that is true', { status: 'ok', retcode: true, ...delivered }],
    ['only an echo', { echo: 1 }],
    ['nothing', {}],
    ['async', { status: 'async', retcode: 1, data: null }],
    ['async with another retcode', { status: 'async', retcode: 0, data: null }],
    ['async, by its retcode alone', { retcode: 1, data: null }],
    ['ok and failed at once', { status: 'ok', retcode: 100, data: null }],
    ['failed and ok at once', { status: 'failed', retcode: 0, ...delivered }],
    ['a status that is unknown', { status: 'done', retcode: 0, ...delivered }],
    ['a status that is no text', { status: 0, retcode: 0, ...delivered }],
    ['null', null],
    ['a number', 5],
    ['a text', 'ok'],
    ['a list', [{ status: 'ok', retcode: 0, ...delivered }]],
    ['nothing at all', undefined],
  ]
  for (const [what, answer] of unclear) {
    test(`is none when it is neither a clear yes nor a clear no: ${what}`, () => {
      assert.throws(() => readReceipt(answer), (error: unknown) => error instanceof SendError && error.outcome === 'unanswered' && error.isRetryable)
    })
  }

  test('is read by its retcode when it has no status', () => {
    for (const status of [undefined, null, '']) {
      assert.deepEqual(readReceipt({ status, retcode: 0, data: { message_id: 7 } }), { messageIds: ['7'] })
      assert.throws(() => readReceipt({ status, retcode: -1 }), (error: unknown) => error instanceof SendError && error.outcome === 'refused')
    }
  })

  test('is a no when Lagrange reports a failed upload with the retcode for async', () => {
    assert.throws(() => readReceipt({ status: 'failed', retcode: 1, data: null }), (error: unknown) => {
      return error instanceof SendError && error.outcome === 'refused' && error.wording === 'retcode 1'
    })
  })
})
