import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { toBody } from '../../../src/alerts/post'
import { writeAlert, type Kind } from '../../../src/alerts/texts'

const since = new Date(2026, 10, 22, 8, 5).getTime()
const kinds: Kind[] = ['paused', 'offline', 'expired']

describe('the text of an alert', () => {
  for (const kind of kinds) {
    test(`about ${kind} says what, which, since when and what to do, in both languages`, () => {
      const alert = { kind, isOver: false, subjects: [{ target: 'group:1', bot: 'onebot:10000', since }, { bot: 'onebot:10001', since }] }
      const [what = '', ...english] = writeAlert(alert, 'en-US').split('\n')
      assert.match(what, /^Message relay: .+:$/)
      assert.deepEqual(english.slice(0, 2), ['group:1 (onebot:10000), since 2026-11-22 08:05', 'onebot:10001, since 2026-11-22 08:05'])
      assert.equal(english.length, 3)
      const chinese = writeAlert(alert, 'zh-CN').split('\n')
      assert.match(chinese[0] ?? '', /^消息转发：.+：$/)
      assert.equal(chinese[1], 'group:1 (onebot:10000)，自 2026-11-22 08:05 起')
      assert.equal(chinese.length, 4)
      for (const language of ['en-US', 'zh-CN'] as const) {
        assert.notEqual(writeAlert({ ...alert, isOver: true }, language).split('\n')[0], writeAlert(alert, language).split('\n')[0])
        assert.equal(writeAlert({ ...alert, isOver: true }, language).split('\n').length, 3)
      }
    })
  }

  test('names ten, and how many there are besides', () => {
    const subjects = Array.from({ length: 25 }, (_, index) => ({ target: `group:${index}`, since }))
    const lines = writeAlert({ kind: 'paused', isOver: false, subjects }, 'en-US').split('\n')
    assert.equal(lines.length, 13)
    assert.equal(lines[11], 'and 15 more')
  })
})

test('an alert as JSON', () => {
  const subjects = Array.from({ length: 250 }, (_, index) => ({ target: `group:${index}`, bot: 'onebot:1', since }))
  const body = toBody({ kind: 'expired', isOver: true, subjects }, 'en-US')
  assert.deepEqual({ ...body, subjects: body.subjects.slice(0, 1), text: '' }, {
    alert: 'expired', state: 'resolved', text: '', total: 250, subjects: [{ target: 'group:0', bot: 'onebot:1', since: new Date(since).toISOString() }],
  })
  assert.equal(body.subjects.length, 100)
})
