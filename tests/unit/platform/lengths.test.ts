import assert from 'node:assert/strict'
import { test } from 'node:test'
import { most, toParts } from '../../../src/platform/discord/text'
import { divide, longestText } from '../../../src/platform/lark/content'

test('a text of the longest length is one message on Feishu, in Chinese and of many lines', () => {
  const lines = `${'值'.repeat(19)}\n`.repeat(longestText / 20)
  assert.equal(divide([{ type: 'text', text: lines }]).length, 1)
  assert.equal(divide([{ type: 'text', text: lines.repeat(2) }]).length, 2)
})

test('and on Discord', () => {
  assert.equal(toParts([{ type: 'text', text: '值'.repeat(most.characters) }]).length, 1)
  assert.equal(toParts([{ type: 'text', text: '值'.repeat(most.characters + 1) }]).length, 2)
})
