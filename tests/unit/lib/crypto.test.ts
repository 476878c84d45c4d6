import assert from 'node:assert/strict'
import { test } from 'node:test'
import { equalsSecret } from '../../../src/lib/crypto'

test('a secret equals itself, as text or as bytes, and nothing else of any length', () => {
  assert.ok(equalsSecret('ключ', 'ключ'))
  assert.ok(equalsSecret(Buffer.from('ключ'), 'ключ'))
  for (const other of ['', 'клюЧ', 'ключ ', 'клю', 'к'.repeat(1000), Buffer.from('ключ', 'latin1')]) assert.ok(!equalsSecret(other, 'ключ'))
})
