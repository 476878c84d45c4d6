import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { address, count, date, firstLine, line } from '../../../src/hooks/fields'
import { excerpt } from '../../../src/hooks/markup'

describe('a line', () => {
  test('is one line of plain text', () => {
    assert.equal(line(' a\r\n\tb\u0000\u001b[31m\u202e c\u2028d '), 'a b [31m c d')
    assert.equal(line('👨‍👩‍👧 é'), '👨‍👩‍👧 é')
    assert.equal(line(12), '12')
    for (const value of [null, undefined, true, {}, [], ['a']]) assert.equal(line(value), '')
  })

  test('is cut, but not through a character', () => {
    assert.equal(line('abcdef', 6), 'abcdef')
    assert.equal(line('abcdefg', 6), 'abcde…')
    assert.equal(line('abcd😀fg', 6), 'abcd…')
    assert.equal(line('\ud800'), '\ufffd')
  })

  test('is the first of several', () => {
    assert.equal(firstLine('\n first \n\nsecond'), 'first')
    assert.equal(firstLine({}), '')
  })
})

describe('an excerpt of Markdown', () => {
  for (const [markdown, text] of [
    ['**bold** and `code` and ~~gone~~', 'bold and code and gone'],
    ['# Title\n\n> said\n', 'Title\nsaid'],
    ['![a](https://example.com/a.png)[the page](https://example.com)', 'the page'],
    ['<details><summary>More</summary>\n<!-- not\nseen -->x', 'More\nx'],
    ['| a | b |\n|---|---|\n| 1 | 2 |\nafter', 'after'],
    ['a < b, snake_case and 2 * 3 * 4', 'a < b, snake_case and 2 * 3 * 4'],
    ['1\n2\n3\n4', '1\n2\n3 …'],
    ['[CQ:at,qq=all] @all', '[CQ:at,qq=all] @all'],
    ['<!-- never ends', ''],
  ] as const) {
    test(`of ${JSON.stringify(markdown)}`, () => {
      assert.equal(excerpt(markdown), text)
    })
  }

  test('is bounded, and made in no time of whatever comes', () => {
    const start = performance.now()
    for (const piece of ['x', '<', '![', '[a](', '<a ', '<!--', '**', '|\n', '> ', '# ', '\n']) {
      assert(excerpt(piece.repeat(1024 * 1024)).length <= 200, piece)
    }
    assert(performance.now() - start < 2000)
  })
})

describe('an address', () => {
  test('is a link that fits into a line', () => {
    for (const link of ['https://example.com/a?b=c#d', 'http://prometheus:9090/graph?g0.expr=up', 'https://例子.example/路']) assert.equal(address(link), link)
  })
  for (const wrong of ['', 'javascript:alert(1)', 'file:///etc/passwd', 'https://a b', 'https://a\nb', 'https://a\u202eb', 'https:///a', `https://${'a'.repeat(2048)}`, {}, 1]) {
    test(`is not ${JSON.stringify(wrong).slice(0, 40)}`, () => {
      assert.equal(address(wrong), '')
    })
  }
})

test('a count is whole and not negative', () => {
  assert.deepEqual([3, '12', -1, 1.5, 1e300, 'x', null, {}].map(count), [3, 12, 0, 0, 0, 0, 0, 0])
})

test('a date is one that means a time', () => {
  assert.equal(date('2026-03-02T09:51:03+08:00'), '2026-03-02T01:51:03.000Z')
  for (const wrong of ['0001-01-01T00:00:00Z', 'soon', '', 'x'.repeat(100), null, 1]) assert.equal(date(wrong), '')
})
