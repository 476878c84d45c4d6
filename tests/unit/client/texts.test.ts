import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { english } from '../../../client/texts/en-US'
import { chinese } from '../../../client/texts/zh-CN'

/** The paths of all texts, those of functions with the number of their parameters. */
function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value === 'function') return [`${path}(${value.length})`]
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, `${path}.${name}`))
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

describe('the texts of the page', () => {
  test('are the same in both languages', () => {
    assert.deepEqual(pathsOf(chinese), pathsOf(english))
  })

  test('are none of them empty, and the English ones hold nothing Chinese', () => {
    for (const text of [...textsOf(english), ...textsOf(chinese)]) assert.notEqual(text.trim(), '')
    for (const text of textsOf(english)) assert.doesNotMatch(text, /\p{Script=Han}/u)
  })
})
