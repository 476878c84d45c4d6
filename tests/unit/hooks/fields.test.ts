import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { address, count, date, firstLine, inOneLine, joinLines, labelled, line, linked, objects, parsed, pictureOf, textOf } from '../../../src/hooks/fields'

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

test('a text of several lines keeps them', () => {
  assert.equal(textOf(' a\n\n  b '), 'a\n\n  b')
  assert.equal(textOf(0), '0')
  assert.equal(textOf('x'.repeat(200_000)).length, 100_000)
  for (const value of [null, undefined, false, {}, ['a']]) assert.equal(textOf(value), '')
})

test('the objects of a list are the first, unless all are asked for', () => {
  const list = Array.from({ length: 60 }, () => ({}))
  assert.deepEqual([objects(list).length, objects(list, Infinity).length, objects([null, [], 'a', {}]).length, objects({ length: 1 }).length], [50, 60, 1, 0])
})

test('what is empty leaves nothing behind', () => {
  assert.equal(joinLines('a', '', 'b'), 'a\nb')
  assert.deepEqual([labelled('a', 'b'), labelled('', 'b'), labelled('a', '')], ['a: b', 'b', 'a'])
  assert.deepEqual([linked('a', 'https://b'), linked('', 'https://b'), linked('a', ''), linked('https://b', 'https://b')], ['a (https://b)', 'https://b', 'a', 'https://b'])
  assert.deepEqual([inOneLine('Host:\nnode-3'), inOneLine('主机：\nnode-3'), inOneLine('a\nb\nc')], ['Host: node-3', '主机: node-3', 'a\nb\nc'])
})

test('JSON may come as text', () => {
  assert.deepEqual([parsed('{"a":1}'), parsed({ a: 1 }), parsed('{')], [{ a: 1 }, { a: 1 }, undefined])
})

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
    assert.equal(pictureOf(type, base64), '', `${type} ${base64}`)
  }
})
