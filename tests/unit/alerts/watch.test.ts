import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Watch, type News } from '../../../src/alerts/watch'

const second = 1_000
const minute = 60 * second

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
  test('is told once when it has lasted, and once more when it has been over for a while', () => {
    const watch = new Watch({ begin: 10 * second, end: 5 * minute })
    const told = watchFor(watch, 0, 60 * minute, now => now < 20 * minute ? ['a'] : [])
    assert.deepEqual(told, [[10 * second, ['a'], []], [25 * minute - second, [], ['a']]])
  })

  test('that passes soon is not told', () => {
    const watch = new Watch({ begin: 10 * second, end: minute })
    assert.deepEqual(watchFor(watch, 0, 10 * minute, now => now % minute < 10 * second ? ['a'] : []), [])
  })

  test('that comes and goes is one', () => {
    const watch = new Watch({ begin: 10 * second, end: 5 * minute })
    const told = watchFor(watch, 0, 60 * minute, now => now < 40 * minute && now % (2 * minute) < minute ? ['a'] : [])
    assert.deepEqual(told.map(([, ...news]) => news), [[['a'], []], [[], ['a']]])
  })

  test('is told again when it comes back after it was over', () => {
    const watch = new Watch({ begin: 0, end: minute })
    const told = watchFor(watch, 0, 10 * minute, now => now === 0 || now === 5 * minute ? ['a'] : [])
    assert.deepEqual(told.map(([, ...news]) => news), [[['a'], []], [[], ['a']], [['a'], []], [[], ['a']]])
  })

  test('tells since when it has been there', () => {
    const watch = new Watch({ begin: 10 * second, end: minute })
    watch.look(['a'], 5)
    assert.deepEqual(watch.look(['a'], 5 + 10 * second).begun.map(({ since }) => since), [5])
  })

  test('is forgotten without a word where that is said', () => {
    const watch = new Watch({ begin: 0, end: minute })
    assert.equal(watch.look(['a', 'b'], 0).begun.length, 2)
    watch.forget(name => name === 'a')
    assert.deepEqual(watchFor(watch, second, 10 * minute, () => []).map(([, ...news]) => news), [[[], ['b']]])
  })
})

describe('many troubles', () => {
  test('that begin together are told together, and further ones a minute later', () => {
    const watch = new Watch({ begin: 10 * second, end: minute })
    const starts: [string, number][] = [['a', 0], ['b', 0], ['c', 2 * second], ['d', 30 * second]]
    const told = watchFor(watch, 0, 5 * minute, now => starts.filter(([, start]) => start <= now).map(([name]) => name))
    assert.deepEqual(told, [[10 * second, ['a', 'b'], []], [70 * second, ['c', 'd'], []]])
  })

  test('that end one by one are told in few words', () => {
    const watch = new Watch({ begin: 0, end: minute })
    const names = Array.from({ length: 100 }, (_, index) => String(index))
    const told = watchFor(watch, 0, 10 * minute, now => names.filter(name => Number(name) * second >= now))
    assert.equal(told.flatMap(([, , over]) => over).length, 100)
    assert(told.length <= 4, JSON.stringify(told))
  })

  test('are bounded', () => {
    const watch = new Watch({ begin: 0, end: minute })
    assert.equal(watch.look(Array.from({ length: 5_000 }, (_, index) => String(index)), 0).begun.length, 1_000)
  })
})
