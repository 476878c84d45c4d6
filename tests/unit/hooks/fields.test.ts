import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parsed, pictureOf } from '../../../src/hooks/fields'

describe('JSON within a payload', () => {
  test('is read, and what is none is nothing', () => {
    assert.deepEqual([parsed('{"a":[1]}'), parsed({ a: 1 }), parsed('{'), parsed('\ud800'), parsed(undefined)], [{ a: [1] }, { a: 1 }, undefined, undefined, undefined])
  })

  test('may be no deeper and no wider than the payload itself, which takes seconds to read', () => {
    const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
    assert(Array.isArray(parsed(deep(64))))
    assert.equal(parsed(deep(65)), undefined)
    assert.equal(parsed(`[${'0,'.repeat(20_000)}0]`), undefined)
  })
})

test('a picture is made of an image type and base64, and of nothing else', () => {
  assert.equal(pictureOf('image/png', 'iVBO\nRw0K\r\n'), 'data:image/png;base64,iVBORw0K')
  for (const [type, base64] of [['image/png', ''], ['image/png', '!'], ['image/png', 7], ['image/png,x', 'AAAA'], ['text/html', 'AAAA'], ['', 'AAAA']] as const) {
    assert.equal(pictureOf(type, base64), undefined, `${type} ${base64}`)
  }
})
