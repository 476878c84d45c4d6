import assert from 'node:assert/strict'
import { test } from 'node:test'
import { h } from 'koishi'
import { most, toParts } from '../../../src/platform/discord/text'
import { divide, longestText } from '../../../src/platform/lark/content'
import { toMarkup } from '../../../src/platform/satori/account'

test('a text of the longest length is one message on Feishu, in Chinese and of many lines', () => {
  const lines = `${'值'.repeat(19)}\n`.repeat(longestText / 20)
  assert.equal(divide([{ type: 'text', text: lines }]).length, 1)
  assert.equal(divide([{ type: 'text', text: lines.repeat(2) }]).length, 2)
})

test('and on Discord', () => {
  assert.equal(toParts([{ type: 'text', text: '值'.repeat(most.characters) }]).length, 1)
  assert.equal(toParts([{ type: 'text', text: '值'.repeat(most.characters + 1) }]).length, 2)
})

test('a text keeps its line breaks at both ends on Satori, and takes no time, however many blanks it has', () => {
  assert.equal(toMarkup([h.text('\n \n<a>\n b \n ')]), '<br/> <br/>&lt;a&gt;\n b <br/> ')
  assert.equal(toMarkup([h.text(' \n ')]), ' <br/> ')
  const long = `a${' '.repeat(50_000)}b`
  const { user } = process.cpuUsage()
  assert.equal(toMarkup([h.text(long)]), long)
  assert(process.cpuUsage().user - user < 1_000_000)
})
