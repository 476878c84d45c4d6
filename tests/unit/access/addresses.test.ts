import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseRanges, plainAddress } from '../../../src/access/addresses'

describe('addresses', () => {
  test('are compared without what is only a way of writing them', () => {
    assert.equal(plainAddress('::ffff:10.1.2.3'), '10.1.2.3')
    assert.equal(plainAddress('::FFFF:10.1.2.3'), '10.1.2.3')
    assert.equal(plainAddress('fe80::1%eth0'), 'fe80::1')
    assert.equal(plainAddress('2001:db8::1'), '2001:db8::1')
    for (const text of ['', 'unknown', '10.1.2', '10.1.2.3.4', '10.1.2.3, 10.1.2.4', '::ffff:10.1.2']) assert.equal(plainAddress(text), undefined, text)
  })

  const cases: [ranges: string[], inside: string[], outside: string[]][] = [
    [['10.0.0.0/8'], ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0', '::1', '::a00:1']],
    [['192.0.2.7'], ['192.0.2.7'], ['192.0.2.6', '192.0.2.8']],
    [['0.0.0.0/0'], ['1.2.3.4', '255.255.255.255'], ['::1']],
    [['2001:db8::/32', '::1'], ['2001:db8::1', '2001:db8:ffff::', '::1'], ['2001:db9::', '::2', '127.0.0.1']],
    [['192.0.2.77/24'], ['192.0.2.1'], ['192.0.3.1']],
    [['::ffff:10.0.0.0/104'], ['::ffff:a01:203', '10.1.2.3'], ['11.1.2.3']],
  ]
  for (const [list, inside, outside] of cases) {
    test(`are in ${list.join()} or not`, () => {
      const isIn = parseRanges(list)
      assert(isIn)
      for (const address of inside) assert.equal(isIn(address), true, address)
      for (const address of outside) assert.equal(isIn(address), false, address)
    })
  }

  for (const text of ['', 'localhost', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0', '::/129', 'fe80::1%eth0', '*', '10.0.0.0/255.0.0.0']) {
    test(`are none in ${JSON.stringify(text)}`, () => {
      assert.equal(parseRanges(['127.0.0.1', text]), undefined)
    })
  }
})
