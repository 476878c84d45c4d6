import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readReceipt } from '../../../../src/platform/onebot/message'
import { SendError } from '../../../../src/platform/port'

describe('the answer of a OneBot implementation', () => {
  test('gives the message ID as text, also a negative one, none for a file, and none when the data is null', () => {
    for (const [data, messageIds] of [[{ message_id: -17 }, ['-17']], [{ message_id: 'a' }, ['a']], [{ file_id: '/x' }, []], [null, []]] as const) {
      assert.deepEqual(readReceipt({ status: 'ok', retcode: 0, data }), { messageIds })
    }
  })

  /** What OneBot 11 has for a success, but for the two fields that tell of it. */
  const delivered = { data: { message_id: 7 }, message: '', wording: '' }
  const unclear: unknown[] = [
    { status: 'ok', ...delivered }, { status: 'failed', data: null, wording: 'no' }, { status: 'ok', retcode: '0', ...delivered },
    { status: 'failed', retcode: '100', data: null }, { status: 'ok', retcode: null, ...delivered }, { status: 'failed', retcode: 0.5, data: null },
    { status: 'ok', retcode: true, ...delivered }, { echo: 1 }, {}, { status: 'async', retcode: 1, data: null },
    { status: 'async', retcode: 0, data: null }, { retcode: 1, data: null }, { status: 'ok', retcode: 100, data: null }, { status: 'failed', retcode: 0, ...delivered },
    { status: 'done', retcode: 0, ...delivered }, { status: 0, retcode: 0, ...delivered }, null, 5, 'ok',
    [{ status: 'ok', retcode: 0, ...delivered }], undefined,
  ]
  for (const answer of unclear) {
    test(`is none when it is neither a clear yes nor a clear no: ${JSON.stringify(answer)}`, () => {
      assert.throws(() => readReceipt(answer), (error: unknown) => error instanceof SendError && error.outcome === 'unanswered' && error.isRetryable)
    })
  }

  test('is read by its retcode when it has no status', () => {
    for (const status of [undefined, null, '']) {
      assert.deepEqual(readReceipt({ status, retcode: 0, data: { message_id: 7 } }), { messageIds: ['7'] })
      assert.throws(() => readReceipt({ status, retcode: -1 }), (error: unknown) => error instanceof SendError && error.outcome === 'refused')
    }
  })

  test('is a no with the retcode for async when the status says failed', () => {
    assert.throws(() => readReceipt({ status: 'failed', retcode: 1, data: null }), (error: unknown) => {
      return error instanceof SendError && error.outcome === 'refused' && String(error.wording) === 'retcode 1'
    })
  })
})
