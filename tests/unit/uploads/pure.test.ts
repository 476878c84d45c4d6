import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { Base64Decoder } from '../../../src/uploads/base64'
import { defaultRetention, isExpired } from '../../../src/uploads/retention'
import { sign, verify } from '../../../src/uploads/signature'

describe('isExpired', () => {
  test('keeps a file for exactly 24 hours unless told otherwise', () => {
    assert.equal(defaultRetention, 86_400_000)
    assert.ok(!isExpired(1_000, 1_000 + 86_400_000))
    assert.ok(isExpired(1_000, 1_001 + 86_400_000))
    assert.ok(isExpired(1_000, 1_011, 10))
  })

  test('keeps a file from the future', () => {
    assert.ok(!isExpired(2_000, 1_000))
  })
})

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

describe('Base64Decoder', () => {
  test('decodes base64 broken into lines wherever its pieces end', () => {
    const data = randomBytes(100)
    const text = data.toString('base64').replace(/.{10}/g, '$&\r\n')
    for (let size = 1; size < 20; size++) {
      const decoder = new Base64Decoder()
      const decoded: Buffer[] = []
      for (let at = 0; at < text.length; at += size) decoded.push(decoder.decode(Buffer.from(text.slice(at, at + size))))
      assert.deepEqual(Buffer.concat([...decoded, decoder.end()]), data)
    }
  })

  test('decodes what lacks its padding', () => {
    const decoder = new Base64Decoder()
    assert.equal(Buffer.concat([decoder.decode(Buffer.from('YWJjZA')), decoder.end()]).toString(), 'abcd')
  })
})
