import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { backoff } from '../../../src/relay/backoff'
import { compose } from '../../../src/relay/compose'
import { readAnswer } from '../../../src/platform/onebot/answer'
import { SendError } from '../../../src/platform/port'
import { classifyThrown, cleanWording } from '../../../src/platform/failure'

describe('composing', () => {
  type Type = 'text' | 'image' | 'file' | 'video'
  const item = (type: Type, weight = 0) => ({ type, weight })
  const types = (...items: Type[]) => compose(items.map(type => item(type)), 100).map(message => message.map(({ type }) => type).join('+'))

  test('puts text and images into one message, in their order', () => {
    assert.deepEqual(types('text', 'image', 'image', 'text'), ['text+image+image+text'])
  })

  test('lets a video stand alone and keeps the order around it', () => {
    assert.deepEqual(types('text', 'video', 'image', 'text', 'video', 'video'), ['text', 'video', 'image+text', 'video', 'video'])
  })

  test('sends each file by itself, after the rest', () => {
    assert.deepEqual(types('file', 'text', 'file', 'image'), ['text+image', 'file', 'file'])
  })

  test('divides what would not fit into one frame', () => {
    const messages = compose([item('image', 60), item('image', 60), item('text'), item('image', 40), item('file', 500)], 100)
    assert.deepEqual(messages.map(message => message.map(({ weight }) => weight)), [[60], [60, 0, 40], [500]])
  })

  test('makes nothing of nothing', () => {
    assert.deepEqual(types(), [])
  })
})

describe('backing off', () => {
  test('starts at 200 ms and doubles, with up to half of it as jitter', () => {
    assert.deepEqual([1, 2, 3].map(failures => backoff(failures, 0)), [200, 400, 800])
    assert.equal(backoff(1, 0.999).toFixed(0), '300')
  })

  test('has an end', () => {
    assert.equal(backoff(50, 0), 30_000)
  })
})

describe('the answer of a OneBot implementation', () => {
  test('gives the message ID as text, also a negative one', () => {
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: { message_id: -17 } }), { messageIds: ['-17'] })
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: { message_id: 'a' } }), { messageIds: ['a'] })
  })

  test('gives none for a file, and none when the data is null', () => {
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: { file_id: '/x' } }), { messageIds: [] })
    assert.deepEqual(readAnswer({ status: 'ok', retcode: 0, data: null }), { messageIds: [] })
  })

  // OneBot guide, tables of "Answers".
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

describe('what an adapter throws', () => {
  const cases: [string, unknown, SendError['outcome']][] = [
    ['a time-out', Object.assign(new Error('Timeout with request send_group_msg'), { name: 'TimeoutError' }), 'unanswered'],
    ['no connection', new TypeError('this.bot.internal._request is not a function'), 'unsent'],
    ['a refused connection', Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } }), 'unsent'],
    ['a lost connection', Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }), 'unanswered'],
    ['an answer of 403', Object.assign(new Error('Forbidden'), { response: { status: 403 } }), 'refused'],
    ['an answer of 502', Object.assign(new Error('Bad Gateway'), { response: { status: 502 } }), 'unanswered'],
    ['a reason', new Error('chat not found'), 'refused'],
    ['several failures', Object.assign(new Error(''), { errors: [new TypeError('_request is not a function')] }), 'unsent'],
    ['a text', 'no', 'refused'],
  ]
  for (const [what, error, outcome] of cases) {
    test(`${what}: ${outcome}`, () => {
      assert.equal(classifyThrown(error).outcome, outcome)
    })
  }
})

describe('the words of a platform', () => {
  test('lose paths, links and data', () => {
    assert.equal(cleanWording('ENOENT: no such file, open \'/data/uploads/a b/c.png\''), 'ENOENT: no such file, open \'…\'')
    assert.equal(cleanWording('bad file file:///srv/x.png here'), 'bad file … here')
    assert.equal(cleanWording('cannot read C:\\Users\\me\\x.png'), 'cannot read …')
    assert.equal(cleanWording('args: base64://AAAA'), 'args: …')
  })

  test('come as one line of at most 200 characters', () => {
    assert.equal(cleanWording(' a\n b\u0000c '), 'a b c')
    assert.equal(cleanWording('x'.repeat(500))?.length, 200)
  })

  test('are absent when nothing is left', () => {
    assert.equal(cleanWording(' \n '), undefined)
  })
})
