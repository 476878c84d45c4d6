import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sign, verify } from '../../../src/uploads/signature'

describe('signed links', () => {
  const key = Buffer.alloc(32, 7)
  const id = '0b1f7d6e-1d3c-4b52-8f3c-0a2b4c6d8e0f/a b.png'
  const signature = sign(id, 5_000, key)

  test('are verified until they end', () => {
    assert.match(signature, /^[\w-]{43}$/)
    assert.ok(verify(id, 5_000, signature, key, 4_999))
    assert.ok(!verify(id, 5_000, signature, key, 5_000))
  })

  test('hold for one file, one end and one key', () => {
    assert.ok(!verify(`${id}x`, 5_000, signature, key, 0))
    assert.ok(!verify(id, 5_001, signature, key, 0))
    assert.ok(!verify(id, 5_000, signature, Buffer.alloc(32, 8), 0))
    assert.notEqual(sign('1b', 1, key), sign('b', 11, key))
  })

  test('refuse any other text as a signature', () => {
    const changed = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1)
    for (const text of ['', 'é', changed, `${signature}=`, ` ${signature}`, signature.slice(1), signature.repeat(100)]) {
      assert.ok(!verify(id, 5_000, text, key, 0), text)
    }
    for (const end of [NaN, Infinity, -1]) assert.ok(!verify(id, end, signature, key, 0))
    assert.ok(!verify(id, NaN, sign(id, NaN, key), key, 0))
  })
})
