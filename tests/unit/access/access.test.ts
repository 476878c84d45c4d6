import assert from 'node:assert/strict'
import crypto, { createHash, createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { Access } from '../../../src/access/access'
import { Rate } from '../../../src/access/caller'
import { parseKeys } from '../../../src/access/keys'
import { Refusals } from '../../../src/access/refusals'
import { counting } from './support'

const apiKey = 'the-master-key-of-all'
const minute = 60_000

function accessOf(...entries: object[]): Access {
  const usages = counting()
  const { keys } = parseKeys(entries, apiKey, new Map(), usages)
  assert.equal(keys.length, entries.length)
  return new Access(apiKey, keys, usages, () => [])
}

function accessWith(count: number): Access {
  return accessOf(...Array.from({ length: count }, (_, index) => ({ name: `key ${index}`, key: `the-secret-of-number-${index}` })))
}

/** Who has this key, or `undefined` when it is refused. */
function identify(access: Access, candidates: string[], address: string | undefined = '127.0.0.1', now?: number): string | null | undefined {
  try {
    return access.identify(candidates.map(text => Buffer.from(text)), address, now).name
  } catch (error) {
    assert(error instanceof Error && 'code' in error && error.code === 'unauthorized')
    return undefined
  }
}

describe('a caller', () => {
  test('is known by any of the keys, at any place', () => {
    const access = accessWith(100)
    const digest = createHash('sha256').update('the-secret-of-ci').digest('hex')
    const digested = accessOf({ name: 'ci', key: `sha256:${digest}` })
    assert.deepEqual(['the-secret-of-ci', digest, `sha256:${digest}`].map(key => identify(digested, [key])), ['ci', undefined, undefined])
    assert.equal(identify(access, [apiKey]), null)
    for (const index of [0, 30, 31, 32, 99]) assert.equal(identify(access, [`the-secret-of-number-${index}`]), `key ${index}`)
    assert.equal(identify(access, ['wrong', 'the-secret-of-number-3']), 'key 3')
    for (const wrong of ['', 'wrong', 'the-secret-of-number-', 'the-secret-of-number-100', `${apiKey} `]) assert.equal(identify(access, [wrong]), undefined)
    assert.equal(identify(access, []), undefined)
  })

  test('has a key until its end and from its addresses, and no longer and from no others', () => {
    const access = accessOf({ name: 'ci', key: 'the-secret-of-ci', expires: '2030-06-01T12:00:00Z', from: '127.0.0.1' })
    const end = Date.parse('2030-06-01T12:00:00Z')
    assert.equal(identify(access, ['the-secret-of-ci'], '127.0.0.1', end - 1), 'ci')
    for (const now of [end, end + 60 * minute]) assert.equal(identify(access, ['the-secret-of-ci'], '127.0.0.1', now), undefined)
    for (const address of ['127.0.0.2', '::1']) assert.equal(identify(access, ['the-secret-of-ci'], address, end - 1), undefined)
    assert.throws(() => access.identify([Buffer.from('the-secret-of-ci')], undefined, end - 1), { code: 'unauthorized' })
  })
})

describe('a signature', () => {
  const access = accessOf(
    { name: 'ci', key: 'the-key-of-the-ci-job', allow: ['send'] },
    { name: 'hook', key: 'the-key-of-the-hook', allow: ['hooks'] },
    { name: 'sentry', secret: 'the-secret-of-sentry' },
    { name: 'old', secret: 'the-secret-of-old-one', expires: '2001-01-01' },
    { name: 'near', secret: 'the-secret-of-near-one', from: ['10.0.0.0/8'] },
  )

  /** Who has signed with a secret, and how many secrets were tried. */
  function signer(secret: string): { name: string | null, tried: number } {
    const sign = (key: string): string => createHmac('sha256', key).update('body').digest('hex')
    const given = sign(secret)
    let tried = 0
    const { name } = access.verify(each => {
      tried++
      return sign(each) === given
    }, '127.0.0.1')
    return { name, tried }
  }

  test('tells whose it is, after all secrets of keys that are allowed hooks were tried', () => {
    assert.deepEqual(signer('the-secret-of-sentry'), { name: 'sentry', tried: 5 })
    assert.deepEqual(signer('the-key-of-the-hook'), { name: 'hook', tried: 5 })
    assert.deepEqual(signer(apiKey), { name: null, tried: 5 })
  })

  for (const [whose, secret] of [
    ['nobody', 'a-secret-of-nobody-at-all'], ['a key without hooks', 'the-key-of-the-ci-job'], ['one that has expired', 'the-secret-of-old-one'],
    ['one that must not come from there', 'the-secret-of-near-one'],
  ] as const) {
    test(`of ${whose} is refused`, () => {
      assert.throws(() => signer(secret), { code: 'unauthorized', message: /^wrong signature: the secret matches no key/ })
    })
  }
})

describe('refusals', () => {
  test('take the same comparisons however many keys there are and whichever is right', t => {
    const compare = t.mock.method(crypto, 'timingSafeEqual')
    const counts = [0, 1, 20, 31].flatMap(count => ['wrong', apiKey, 'the-secret-of-number-0', 'the-secret-of-number-19'].map(candidate => {
      const access = accessWith(count)
      compare.mock.resetCalls()
      identify(access, [candidate])
      return compare.mock.callCount()
    }))
    assert.deepEqual(new Set(counts), new Set([32]))
  })

  test('of one address are told of once a minute, with how many were not', () => {
    const refusals = new Refusals()
    assert.equal(refusals.add('unauthorized', 'a', 0), 0)
    assert.equal(refusals.add('unauthorized', 'b', 0), 0)
    for (let time = 1; time <= 5; time++) assert.equal(refusals.add('forbidden', 'a', time), undefined)
    assert.equal(refusals.add('unauthorized', 'a', minute - 1), undefined)
    assert.equal(refusals.add('unauthorized', 'a', minute), 6)
    assert.equal(refusals.add('unauthorized', 'a', minute + 1), undefined)
    assert.equal(refusals.add('unauthorized', 'b', 5 * minute), 0)
    assert.deepEqual(Object.fromEntries(refusals.counts), { unauthorized: 6, forbidden: 5 })
  })

  test('are told of about a thousand times a minute, from however many addresses they come', () => {
    const refusals = new Refusals()
    const told = (from: number, time: number): number =>
      Array.from({ length: 5_000 }, (_, index) => refusals.add('unauthorized', `address ${from + index}`, time)).filter(count => count !== undefined).length
    assert.equal(told(0, 0), 1001)
    assert.equal(told(5_000, 1), 0)
    // Who was told of stays silent, and a minute later there is room again.
    assert.equal(refusals.add('unauthorized', 'address 0', 2), undefined)
    assert.equal(told(20_000, minute), 1001)
    assert.equal(refusals.counts.get('unauthorized'), 15_001)
  })
})

describe('a rate', () => {
  const second = 1000

  test('gives as many at once as it holds, and then as many as come, but takes nothing when it says no', () => {
    const rate = new Rate(6)
    for (let count = 0; count < 6; count++) assert.equal(rate.take(1, 0), 0)
    for (let count = 0; count < 100; count++) assert.equal(rate.take(1, 0), 10 * second)
    assert.equal(rate.take(1, 4 * second), 6 * second)
    assert.equal(rate.take(1, 10 * second), 0)
    assert.equal(rate.take(1, 10 * second), 10 * second)
  })

  test('never holds more than comes in a minute', () => {
    const rate = new Rate(2)
    for (let count = 0; count < 2; count++) assert.equal(rate.take(1, 3600 * second), 0)
    assert.equal(rate.take(1, 3600 * second), 30 * second)
  })

  test('gives more than it holds only when it is full, and owes it afterwards', () => {
    const rate = new Rate(2)
    assert.equal(rate.take(5, 0), 0)
    assert.equal(rate.take(1, 0), 120 * second)
    assert.equal(rate.take(5, 120 * second), 30 * second)
    assert.equal(rate.take(5, 150 * second), 0)
  })
})
