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

  const cases: [string, Record<string, unknown>, SendError['outcome'] | 'sent', boolean][] = [
    ['NapCat, bad parameter', { retcode: 1400, message: 'bad', wording: 'bad' }, 'refused', false],
    ['NapCat, EventChecker', { retcode: 1200, message: 'EventChecker Failed: NTEvent', wording: '' }, 'refused', false],
    ['NapCat, timeout', { retcode: 1200, wording: 'Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg' }, 'unanswered', false],
    ['NapCat, unknown action', { retcode: 1404 }, 'refused', false],
    ['LuckyLilliaBot, echo timeout', { retcode: 1200, message: 'waitForSelfEcho timeout' }, 'sent', false],
    ['Lagrange, muted', { retcode: 120 }, 'refused', true],
    ['Lagrange, 9057', { retcode: 9057 }, 'unanswered', false],
    ['Lagrange, 9000', { retcode: 9000 }, 'unanswered', false],
    ['go-cqhttp, no group', { retcode: 100, msg: 'GROUP_NOT_FOUND', wording: '群聊不存在' }, 'refused', true],
    ['go-cqhttp, empty', { retcode: 100, msg: 'EMPTY_MSG_ERROR', wording: '消息为空' }, 'refused', false],
    ['go-cqhttp, API error', { retcode: 100, msg: 'SEND_MSG_API_ERROR', wording: '请参考 go-cqhttp 端输出' }, 'unanswered', false],
  ]
  for (const [what, answer, outcome, aboutTarget] of cases) {
    test(`${what}: ${outcome}`, () => {
      if (outcome === 'sent') {
        assert.deepEqual(readReceipt(answer), { messageIds: [] })
        return
      }
      assert.throws(() => readReceipt(answer), (error: unknown) => error instanceof SendError
        && error.outcome === outcome && error.isAboutTarget === aboutTarget)
    })
  }

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
