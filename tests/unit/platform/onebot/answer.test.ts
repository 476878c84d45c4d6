import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readAnswer } from '../../../../src/platform/onebot/answer'
import { SendError } from '../../../../src/platform/port'

describe('the answer of a OneBot implementation', () => {
  test('gives the message ID as text, also a negative one', () => {
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: { message_id: -17 } }), { messageIds: ['-17'] })
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: { message_id: 'a' } }), { messageIds: ['a'] })
  })

  test('gives none for a file, and none when the data is null', () => {
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: { file_id: '/x' } }), { messageIds: [] })
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: null }), { messageIds: [] })
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
        assert.deepEqual(readAnswer(answer), { messageIds: [] })
        return
      }
      assert.throws(() => readAnswer(answer), (error: unknown) => error instanceof SendError
        && error.outcome === outcome && error.isAboutTarget === aboutTarget)
    })
  }
})
