import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { safeName } from '../../../src/lib/file-name'
import { parseFileName, parseParameters } from '../../../src/uploads/multipart'
import { isAllowed, isFolderName, isTemporaryName, parseExtensions, parseFileId, temporaryName } from '../../../src/uploads/names'

const uuid = '0b1f7d6e-1d3c-4b52-8f3c-0a2b4c6d8e0f'

describe('names on disk', () => {
  test('of temporary files are told from those of all others, also of uploaded ones', () => {
    const name = temporaryName(uuid)
    assert.ok(isTemporaryName(name))
    for (const other of [safeName(name), `${name}x`, `x${name}`, temporaryName(uuid.toUpperCase()), uuid]) {
      assert.ok(!isTemporaryName(other), other)
    }
  })

  test('of folders are UUIDs of version 4 in lower case', () => {
    assert.ok(isFolderName(uuid))
    for (const other of [uuid.toUpperCase(), uuid.replace('-4', '-1'), `${uuid} `, '']) assert.ok(!isFolderName(other), other)
  })

  test('make a file ID, and nothing that was not cleaned does', () => {
    assert.deepEqual(parseFileId(`${uuid}/a b.png`), { folder: uuid, name: 'a b.png' })
    for (const name of ['', '.', '..', 'a/b', 'a\\b', 'a.', ' a', 'nul', 'a%2e']) assert.equal(parseFileId(`${uuid}/${name}`), undefined, name)
    for (const id of ['a.png', `/${uuid}/a.png`, `x/a.png`]) assert.equal(parseFileId(id), undefined, id)
  })
})

describe('the allowed extensions', () => {
  test('are read without case, blanks, leading dots, empty entries and repetitions', () => {
    assert.deepEqual(parseExtensions([' .PNG', ' jpg ', '', '..gif', ' tar . gz ', 'png', '']), ['png', 'jpg', 'gif', 'tar.gz'])
    assert.deepEqual(parseExtensions(['png,.jpg', 'gif']), ['png', 'jpg', 'gif'])
    for (const list of [[], [''], [' ', ''], [' . , ']]) assert.deepEqual(parseExtensions(list), [])
  })

  test('are asked for as a whole, the last of several or all of them, and are all where there is none in the list', () => {
    const list = parseExtensions(['png', 'tar.gz'])
    for (const name of ['a.tar.gz', 'A.PnG']) assert.ok(isAllowed(name, list), name)
    for (const name of ['a.gz', 'a.xtar.gz', 'a.tar', 'png', 'a.apng', 'a.png.exe', 'tar.gz']) assert.ok(!isAllowed(name, list), name)
    assert.ok(isAllowed('a.tar.gz', ['gz']))
    for (const name of ['a.exe', 'a', 'file']) assert.ok(isAllowed(name, []))
  })
})

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
  [`form-data; filename*=koi8-r''%C1.txt; filename="fallback.txt"`, 'а.txt'],
  [`form-data; filename*=GBK''%B1%A8%B8%E6.pdf`, '报告.pdf'],
  [`form-data; filename*=big5'zh'%A7A%A6n.txt`, '你好.txt'],
  [`form-data; filename*=made-up''%C1.txt; filename="fallback.txt"`, 'fallback.txt'],
  [`form-data; filename*=UTF-8''%FF.txt; filename="fallback.txt"`, 'fallback.txt'],
  [`form-data; filename*=UTF-8''%B1%A8.txt`, '报.txt'],
  ['form-data; filename="=?GBK?B?saiw5g==?=.txt"', '报版.txt'],
  [`form-data; filename*=nonsense`, ''],
  [`form-data; filename*=UTF-8''%zz%4`, '%zz%4'],
]

test('the name of a file is found in its Content-Disposition', () => {
  for (const [disposition, name] of table) assert.equal(parseFileName(bytes(disposition)), name, disposition)
  assert.equal(parseFileName('form-data; filename="\xb9\xb9\xbd\xa8.txt"'), '构建.txt')
  assert.equal(parseFileName('form-data; filename="caf\xe9"'), 'café')
})

test('a Content-Type is read, in time in proportion to the length of a hostile one', () => {
  const parameters = parseParameters('multipart/form-data; charset=utf-8; Boundary="a b;c"; x')
  assert.deepEqual([...parameters], [['charset', 'utf-8'], ['boundary', 'a b;c']])
  for (const piece of [';x="', ';"', '; ', ';x=', ';x ', '\\"']) {
    for (const start of ['form-data; a="', 'form-data']) parseParameters(start + piece.repeat(100_000))
  }
})
