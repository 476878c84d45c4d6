import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseFileName, parseParameters } from '../../../src/uploads/multipart'

/** A header as it arrives: one character per byte. */
const bytes = (header: string) => Buffer.from(header).toString('latin1')

const table: [disposition: string, name: string | undefined][] = [
  ['form-data; name="a"', undefined],
  ['form-data; name="a"; filename="b.txt"', 'b.txt'],
  ['form-data; name="a"; filename=b.txt', 'b.txt'],
  ['form-data; filename="b.txt"; name="a"', 'b.txt'],
  ['form-data;filename = "b.txt" ;name=a', 'b.txt'],
  ['form-data; FileName="b.txt"', 'b.txt'],
  ['form-data; name="a"; filename=""', ''],
  ['form-data; name="a"; filename=', ''],
  ['attachment; filename="b.txt"', 'b.txt'],
  // A field whose own name looks like the parameter.
  ['form-data; name="x; filename=\\"evil\\""', undefined],
  ['form-data; name="filename"', undefined],
  ['form-data; xfilename="b"', undefined],
  ['form-data; filename="发票.pdf"', '发票.pdf'],
  ['form-data; filename="a;b.txt"', 'a;b.txt'],
  ['form-data; filename="a\\"b.txt"', 'a"b.txt'],
  ['form-data; filename="a%22b%0D%0A.txt"', 'a"b\r\n.txt'],
  ['form-data; filename="100%25.txt"', '100%25.txt'],
  ['form-data; filename="C:\\dir\\b.txt"', 'C:\\dir\\b.txt'],
  ['form-data; filename="a&#8238;b.txt"', 'a&#8238;b.txt'],
  ['form-data; filename="open', 'open'],
  ['form-data; filename="first"; filename="second"', 'first'],
  [`form-data; filename*=UTF-8''%E5%8F%91%E7%A5%A8.pdf`, '发票.pdf'],
  [`form-data; filename="fallback.pdf"; filename*=utf-8'zh'%E5%8F%91.pdf`, '发.pdf'],
  [`form-data; filename*=utf-8''%E5%8F%91.pdf; filename="fallback.pdf"`, '发.pdf'],
  [`form-data; filename*=koi8-r''%C1.txt; filename="fallback.txt"`, 'fallback.txt'],
  [`form-data; filename*=nonsense`, ''],
  [`form-data; filename*=UTF-8''%zz%4`, '%zz%4'],
]

describe('parseFileName', () => {
  for (const [disposition, name] of table) {
    test(`finds ${JSON.stringify(name) || 'no name'} in ${disposition}`, () => {
      assert.equal(parseFileName(bytes(disposition)), name)
    })
  }
})

describe('parseParameters', () => {
  test('reads a Content-Type', () => {
    const parameters = parseParameters('multipart/form-data; charset=utf-8; Boundary="a b;c"; x')
    assert.deepEqual([...parameters], [['charset', 'utf-8'], ['boundary', 'a b;c']])
  })

  test('takes time in proportion to the length of a hostile header', () => {
    for (const piece of [';x="', ';"', '; ', ';x=', ';x ', '\\"']) parseParameters(`form-data; a="${piece.repeat(100_000)}`)
    for (const piece of [';x="', ';"', '; ', ';x=', ';x ', '\\"']) parseParameters(`form-data${piece.repeat(100_000)}`)
  })
})
