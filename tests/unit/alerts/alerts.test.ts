import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { toBody } from '../../../src/alerts/post'
import { kinds, writeAlert } from '../../../src/alerts/texts'
import { Watch, type News } from '../../../src/alerts/watch'

const since = new Date(2026, 10, 22, 8, 5).getTime()
const second = 1_000
const minute = 60 * second

describe('an alert', () => {
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

  test('says why, and how often it came back', () => {
    const alert = { kind: 'offline', isOver: false, subjects: [{ bot: 'onebot:1', since, reason: 'the account is logged out', times: 4 }] } as const
    assert.equal(writeAlert(alert, 'en-US').split('\n')[1], 'onebot:1: the account is logged out, since 2026-11-22 08:05 (4 more times since the last alert)')
    assert.equal(writeAlert(alert, 'zh-CN').split('\n')[1], 'onebot:1：the account is logged out，自 2026-11-22 08:05 起（上次告警后又出现 4 次）')
  })

  test('names ten as text, and how many there are besides, and a hundred as JSON', () => {
    const subjects = Array.from({ length: 250 }, (_, index) => ({ target: `group:${index}`, bot: 'onebot:1', since }))
    const lines = writeAlert({ kind: 'paused', isOver: false, subjects }, 'en-US').split('\n')
    assert.equal(lines.length, 13)
    assert.equal(lines[11], 'and 240 more')
    const body = toBody({ kind: 'expired', isOver: true, subjects }, 'en-US')
    assert.deepEqual({ ...body, subjects: body.subjects.slice(0, 1), text: '' }, {
      alert: 'expired', state: 'resolved', text: '', total: 250, subjects: [{ target: 'group:0', bot: 'onebot:1', since: new Date(since).toISOString() }],
    })
    assert.equal(body.subjects.length, 100)
  })
})

type Told = [now: number, begun: string[], over: string[]]

/** Looks each second, from one time until before another, and gives what was told with its time. */
function watchFor(watch: Watch, from: number, to: number, present: (now: number) => string[]): Told[] {
  const told: Told[] = []
  const names = (list: News['begun']): string[] => list.map(({ name }) => name)
  for (let now = from; now < to; now += second) {
    const { begun, over } = watch.look(present(now), now)
    if (begun.length + over.length > 0) told.push([now, names(begun), names(over)])
  }
  return told
}

describe('a trouble', () => {
  test('that keeps coming back is told once, and then every hour with how often', () => {
    const watch = new Watch({ begin: 30 * second, end: minute, again: 60 * minute })
    const told: [number, number[], number][] = []
    for (let now = 0; now < 180 * minute; now += second) {
      const { begun, over } = watch.look(now < 150 * minute && now % (5 * minute) < minute ? ['a'] : [], now)
      if (begun.length + over.length > 0) told.push([Math.round(now / minute), begun.map(({ times }) => times), over.length])
    }
    assert.deepEqual(told, [[1, [0], 0], [2, [], 1], [61, [12], 0], [62, [], 1], [121, [12], 0], [122, [], 1]])
  })

  test('that passed is not told again an hour later, nor is one that came back and has passed by then', () => {
    const present = (now: number): string[] => now < 2 * minute || (now >= 5 * minute && now < 7 * minute) ? ['a'] : []
    const watch = new Watch({ begin: 30 * second, end: minute, again: 60 * minute })
    assert.deepEqual(watchFor(watch, 0, 180 * minute, present), [[30 * second, ['a'], []], [3 * minute - second, [], ['a']]])
  })

  const starts: [string, number][] = [['a', 0], ['b', 0], ['c', 2 * second], ['d', 30 * second]]
  for (const [what, lengths, present, expected] of [
    ['is told once when it has lasted, and once more when it has been over for a while', [10 * second, 5 * minute],
      now => now < 20 * minute ? ['a'] : [], [[10 * second, ['a'], []], [25 * minute - second, [], ['a']]]],
    ['is over at once where that is said, and not before', [10 * minute, 0],
      now => now < 30 * minute ? ['a'] : [], [[10 * minute, ['a'], []], [30 * minute, [], ['a']]]],
    ['that passes soon is not told', [10 * second, minute], now => now % minute < 10 * second ? ['a'] : [], []],
    ['that comes and goes is one', [10 * second, 5 * minute], now => now < 40 * minute && now % (2 * minute) < minute ? ['a'] : [],
      [[10 * second, ['a'], []], [44 * minute - second, [], ['a']]]],
    ['is told again when it comes back after it was over', [0, minute], now => now === 0 || now === 5 * minute ? ['a'] : [],
      [[0, ['a'], []], [minute, [], ['a']], [5 * minute, ['a'], []], [6 * minute, [], ['a']]]],
    ['that begins together with others is told with them, and further ones a minute later', [10 * second, 60 * minute],
      now => starts.filter(([, start]) => start <= now).map(([name]) => name), [[10 * second, ['a', 'b'], []], [70 * second, ['c', 'd'], []]]],
  ] satisfies [string, [number, number], (now: number) => string[], Told[]][]) {
    test(what, () => {
      const [begin, end] = lengths
      assert.deepEqual(watchFor(new Watch({ begin, end }), 0, 60 * minute, present), expected)
    })
  }

  test('tells since when it has been there, and is forgotten without a word where that is said', () => {
    const watch = new Watch({ begin: 10 * second, end: minute })
    watch.look(['a', 'b'], 5)
    assert.deepEqual(watch.look(['a', 'b'], 5 + 10 * second).begun.map(({ since }) => since), [5, 5])
    watch.forget(name => name === 'a')
    assert.deepEqual(watchFor(watch, 20 * second, 10 * minute, () => []).map(([, ...news]) => news), [[[], ['b']]])
  })

  test('that nobody was told of is not told once it is over', () => {
    const watch = new Watch({ begin: 10 * second, end: 0 })
    const told = watchFor(watch, 0, 11 * second, () => ['a'])
    watch.markUnreported([{ name: 'a', since: 0, times: 0 }], false)
    assert.deepEqual([told, watchFor(watch, 11 * second, 5 * minute, now => now < 30 * second ? ['a'] : [])], [[[10 * second, ['a'], []]], []])
  })

  test('is one of many that end one by one, told in few words and bounded', () => {
    const watch = new Watch({ begin: 0, end: minute })
    const names = Array.from({ length: 100 }, (_, index) => String(index))
    const told = watchFor(watch, 0, 10 * minute, now => names.filter(name => Number(name) * second >= now))
    assert.equal(told.flatMap(([, , over]) => over).length, 100)
    assert(told.length <= 4, JSON.stringify(told))
    const bounded = new Watch({ begin: 0, end: minute })
    assert.equal(bounded.look(Array.from({ length: 5_000 }, (_, index) => String(index)), 0).begun.length, 1_000)
  })
})
