import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import { describe, test } from 'node:test'
import { Access } from '../../../src/access/access'
import { parseKeys } from '../../../src/access/keys'

const apiKey = 'the-master-key-of-all'
const hour = 60 * 60 * 1000

function accessWith(count: number): Access {
  const entries = Array.from({ length: count }, (_, index) => ({ name: `key ${index}`, key: `the-secret-of-number-${index}` }))
  const { keys, warnings } = parseKeys(entries, apiKey, new Map())
  assert.deepEqual([keys.length, warnings], [count, []])
  return new Access(apiKey, keys)
}

/** Who has this key, or `undefined` when it is refused. */
function identify(access: Access, ...candidates: string[]): string | null | undefined {
  try {
    return access.identify(candidates.map(text => Buffer.from(text)), () => '127.0.0.1').name
  } catch {
    return undefined
  }
}

describe('a caller', () => {
  test('is known by any of the keys, at any place', () => {
    const access = accessWith(100)
    assert.equal(identify(access, apiKey), null)
    for (const index of [0, 30, 31, 32, 99]) assert.equal(identify(access, `the-secret-of-number-${index}`), `key ${index}`)
    assert.equal(identify(access, 'wrong', 'the-secret-of-number-3'), 'key 3')
    for (const wrong of ['', 'wrong', 'the-secret-of-number-', 'the-secret-of-number-100', `${apiKey} `]) assert.equal(identify(access, wrong), undefined)
    assert.equal(identify(access), undefined)
  })

  test('has a key until its end, and no longer', () => {
    const { keys } = parseKeys([{ name: 'ci', key: 'the-secret-of-ci', expires: '2030-06-01T12:00:00Z' }], apiKey, new Map())
    const access = new Access(apiKey, keys)
    const end = Date.parse('2030-06-01T12:00:00Z')
    const candidates = [Buffer.from('the-secret-of-ci')]
    assert.equal(access.identify(candidates, () => undefined, end - 1).name, 'ci')
    for (const now of [end, end + hour]) assert.throws(() => access.identify(candidates, () => undefined, now), { code: 'unauthorized' })
  })

  test('of which the address is not known has no key that wants one', () => {
    const { keys } = parseKeys([{ name: 'ci', key: 'the-secret-of-ci', from: '127.0.0.1' }], apiKey, new Map())
    const access = new Access(apiKey, keys)
    const candidates = [Buffer.from('the-secret-of-ci')]
    assert.equal(access.identify(candidates, () => '127.0.0.1').name, 'ci')
    for (const address of [undefined, '127.0.0.2', '::1']) assert.throws(() => access.identify(candidates, () => address), { code: 'unauthorized' })
  })
})

describe('a refusal', () => {
  test('takes the same comparisons however many keys there are and whichever is right', t => {
    const compare = t.mock.method(crypto, 'timingSafeEqual')
    const counts = [0, 1, 20, 31].flatMap(count => ['wrong', apiKey, 'the-secret-of-number-0', 'the-secret-of-number-19'].map(candidate => {
      const access = accessWith(count)
      compare.mock.resetCalls()
      identify(access, candidate)
      return compare.mock.callCount()
    }))
    assert.deepEqual(new Set(counts), new Set([32]))
  })
})
