import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeHeader, parsePairs } from '../../../src/lib/bytes'
import { escapeControls, faultOfJson, parseJson } from '../../../src/lib/json'

describe('percent-encoded bytes', () => {
  test('are decoded strictly in their charset', () => {
    const cases: [source: string, charset: string, pairs: [string, string][] | undefined][] = [
      ['a=b+c%21&=&&d&e=f=g', 'utf-8', [['a', 'b c!'], ['', ''], ['d', ''], ['e', 'f=g']]],
      ['%E6%9E%84=%e5%bb%BA', 'utf-8', [['构', '建']]],
      ['a=%B9%B9%BD%A8', 'gbk', [['a', '构建']]],
      // The second byte of a character may be a letter, which most encoders leave as it is.
      ['a=%A7A%A6n', 'big5', [['a', '你好']]],
      ['a=%E9', 'latin1', [['a', 'é']]],
      ['a=100%&b=%zz%4&c=%%41', 'utf-8', [['a', '100%'], ['b', '%zz%4'], ['c', '%A']]],
      ...['a=%B9%B9', 'a=%E6%9E', '%FF=a', 'a=%ED%A0%80'].map((source): [string, string, undefined] => [source, 'utf-8', undefined]),
      ['a=%81', 'gbk', undefined], ['a=b', 'made-up', undefined],
    ]
    for (const [source, charset, pairs] of cases) {
      const parsed = parsePairs(Buffer.from(source), charset)
      assert.deepEqual(parsed && [...parsed], pairs, source)
    }
  })
})

test('the bytes of a header are text', () => {
  for (const [value, text] of [
    ['构建', '构建'], ['=?UTF-8?B?5p6E5bu6?=', '构建'], ['=?gb2312?b?ubm9qA==?=', '构建'], ['=?utf-8?q?=E6=9E=84_100%?= 1', '构 100% 1'],
    ['=?UTF-8*zh?Q?=E6=9E=84?=\r\n =?UTF-8?Q?=E5=BB=BA?=', '构建'], ['=?made-up?Q?a?=', '=?made-up?Q?a?='], ['=?utf-8?q?=FF?=', '=?utf-8?q?=FF?='],
  ] as const) assert.equal(decodeHeader(Buffer.from(value).toString('latin1')), text)
  assert.deepEqual(['\xb9\xb9\xbd\xa8', 'caf\xe9'].map(decodeHeader), ['构建', 'café'])
})

describe('JSON that is malformed', () => {
  const escaped = (text: string): unknown => parseJson(escapeControls(text))

  test('has the raw control characters of its strings escaped, and nothing else', () => {
    const all = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('')
    assert.deepEqual(escaped(`{\n\t"${all}": ["\\"\n\\\\\t", "C:\\\r\n构"]\r\n}`), { [all]: ['"\n\\\t', 'C:\\\r\n构'] })
    assert.equal(escapeControls('{\n"a\\n": 1 \x01}'), '{\n"a\\n": 1 \x01}')
    for (const text of ['{"a":"\n",}', '{"a":"\n', '["\n" "b"]', '{"a":\x0b"\n"}']) assert.equal(escaped(text), undefined, text)
  })

  test('says where it goes wrong, and why', () => {
    const cases: [text: string, line: number, column: number, why: string][] = [
      ['', 1, 1, 'end'], ['{"a":"b', 1, 8, 'end'], ['[1,\n{"a":2}', 2, 8, 'end'], ['{"a":"b\nc"}', 1, 8, 'control'], ['{\n "a":\n"\t"}', 3, 2, 'control'],
      ['{"a":"say "hi" now"}', 1, 12, 'escape'], ['{"a":"C:\\dir"}', 1, 10, 'escape'], ['{a: 1}', 1, 2, 'quotes'], ['{\'a\': 1}', 1, 2, 'quotes'],
      ['{"a":True}', 1, 6, 'quotes'], ['\'{"a":1}\'', 1, 1, 'quotes'], ['{\\"a\\": 1}', 1, 2, 'quotes'], ['{"a":1,}', 1, 8, 'other'], ['a=1', 1, 1, 'other'],
      ['{"a":1} {', 1, 9, 'other'], ['{"a":"构"}}}', 1, 12, 'end'], ['{"a":01}', 1, 6, 'quotes'], ['{"a":-1.5e3,"b":tru}', 1, 17, 'quotes'],
    ]
    for (const [text, ...expected] of cases) {
      const { line, column, why } = faultOfJson(text, false)
      assert.deepEqual([line, column, why], expected, text)
      assert.equal(parseJson(text), undefined)
    }
    assert.deepEqual(faultOfJson('{"a":"b\nc"', true), { line: 2, column: 3, why: 'end' })
  })

  test('takes little longer than JSON, whatever a hostile body holds', () => {
    for (const piece of ['"', '\x01', '"\x01"', '\n', '"\\"', '%', 'a=%41a&', '=?a?b?', '=?a?q?=\t']) {
      const text = `"${piece.repeat(500_000 / piece.length)}`
      const started = performance.now()
      escapeControls(text)
      faultOfJson(text, true)
      parsePairs(Buffer.from(text), 'utf-8')
      decodeHeader(text.slice(0, 16_000))
      assert(performance.now() - started < 3000, piece)
    }
  })
})
