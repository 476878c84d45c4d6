import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fits, parsePatterns } from '../../../src/access/target-pattern'
import { parseNames } from '../../../src/message/names'
import { readAddress } from '../../../src/message/target'
import { Random } from '../../faults/random'

const { names } = parseNames({ ops: 'group:1', both: ['discord:group:2', 'private:3'] })

describe('the targets of a key', () => {
  test('are targets with stars or without, a star alone, or names', () => {
    assert.deepEqual(parsePatterns('group:1*', names), [{ kind: 'group', id: '1*' }])
    assert.deepEqual(parsePatterns('dis*:private:*', names), [{ platform: 'dis*', kind: 'private', id: '*' }])
    assert.deepEqual(parsePatterns('*', names), [{ kind: 'group', id: '*' }, { kind: 'private', id: '*' }])
    assert.deepEqual(parsePatterns('both', names), [{ platform: 'discord', kind: 'group', id: '2' }, { kind: 'private', id: '3' }])
    for (const text of ['', '**', 'o*', 'Ops', 'group', 'group:', '*:1', 'channel:1', 'a:b:group:1']) assert.equal(parsePatterns(text, names), undefined, text)
  })

  test('fit themselves, and what they fit without its platform they fit on some platform, whatever they are', () => {
    const random = new Random(7)
    const word = (letters: readonly string[]): string => Array.from({ length: random.between(1, 3) }, () => random.pick(letters)).join('')
    const platforms = ['a', 'b', 'ab', 'ba', 'aa', 'bb', 'aab', 'abb']
    let fitted = 0
    for (let count = 0; count < 5_000; count++) {
      const kind = random.pick(['group', 'private'])
      const [pattern] = parsePatterns(`${random.chance(0.5) ? `${random.pick(['a', 'b', 'a*', '*b', '*'])}:` : ''}${kind}:${word(['1', '2', '*'])}`, names) ?? []
      const address = readAddress(`${random.pick(platforms)}:${random.pick(['group', 'private'])}:${word(['1', '2'])}`)
      assert(pattern && address?.platform !== undefined)
      const { target, platform } = address
      assert(fits(pattern, pattern, pattern.platform?.replaceAll('*', 'x')))
      const somewhere = platforms.some(each => fits(pattern, target, each))
      assert.equal(fits(pattern, target, undefined), somewhere)
      if (fits(pattern, target, platform)) {
        fitted++
        assert(somewhere && kind === target.kind)
      }
    }
    assert(fitted > 100 && fitted < 4_000, String(fitted))
  })
})
