import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { matchesGlob } from '../../../src/lib/words'
import { Random } from '../../faults/random'

/** The same by definition: a star takes nothing, or one character and is still there. */
function matchesByDefinition(pattern: string, text: string): boolean {
  if (pattern === '') return text === ''
  if (pattern.startsWith('*')) {
    return matchesByDefinition(pattern.slice(1), text) || (text !== '' && matchesByDefinition(pattern, text.slice(1)))
  }
  return text !== '' && text.startsWith(pattern.charAt(0)) && matchesByDefinition(pattern.slice(1), text.slice(1))
}

describe('a pattern', () => {
  const cases: [pattern: string, text: string, matches: boolean][] = [
    ['', '', true], ['', 'a', false], ['*', '', true], ['*', 'any thing', true], ['abc', 'abc', true], ['abc', 'abcd', false], ['abc', 'ABC', false],
    ['a*', 'a', true], ['a*', 'ba', false], ['*a', 'ba', true], ['*a', 'ab', false], ['a*a', 'a', false], ['a*a', 'aa', true],
    ['ab*ba', 'aba', false], ['a*b*c', 'a-b-c', true], ['a*b*c', 'acb', false], ['**', '', true], ['a**b', 'ab', true],
    ['.*', 'ab', false], ['[ab]', 'a', false], ['a?', 'ab', false], ['release/*', 'release/1/2', true], ['群*', '群一', true],
  ]
  for (const [pattern, text, matches] of cases) {
    test(`${JSON.stringify(pattern)} ${matches ? 'fits' : 'does not fit'} ${JSON.stringify(text)}`, () => {
      assert.equal(matchesGlob(pattern, text), matches)
    })
  }

  test('fits what it fits by definition, whatever both are', () => {
    const random = new Random(10)
    let matched = 0
    for (let count = 0; count < 20_000; count++) {
      const pattern = Array.from({ length: random.between(0, 6) }, () => random.pick(['a', 'b', '*', ':'])).join('')
      const text = Array.from({ length: random.between(0, 7) }, () => random.pick(['a', 'b', ':'])).join('')
      const expected = matchesByDefinition(pattern, text)
      assert.equal(matchesGlob(pattern, text), expected, `${pattern} ${text}`)
      if (expected) matched++
    }
    assert(matched > 1000 && matched < 19_000)
  })

  test('takes no time to speak of, however many stars it has', () => {
    const start = performance.now()
    assert(!matchesGlob('*a'.repeat(500) + 'b', 'a'.repeat(100_000)))
    assert(performance.now() - start < 1000)
  })
})
