import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { charsetOf, decodeText, kindOfName, kindOfType, mediaTypeOf, nameFor } from '../../../src/http/media-type'

describe('a Content-Type', () => {
  test('is read without its parameters and whatever its case', () => {
    const cases = [['', ''], ['Text/HTML; charset=utf-8', 'text/html'], [' image/png ;x', 'image/png'], ['nonsense', 'nonsense'], [';', '']]
    assert.deepEqual(cases.map(([header = '']) => mediaTypeOf(header)), cases.map(([, type]) => type))
  })

  test('says what bytes are, unless it says nothing of them', () => {
    const cases = [
      ['image/png', 'image'], ['IMAGE/JPEG; q=1', 'image'], ['video/mp4', 'video'], ['audio/mpeg', 'file'], ['text/plain', 'file'],
      ['imaginary/png', 'file'], ['image', 'file'], ['application/octet-stream', undefined], ['', undefined],
    ] as const
    assert.deepEqual(cases.map(([header]) => kindOfType(header)), cases.map(([, kind]) => kind))
  })

  test('names a charset, or it is UTF-8', () => {
    const cases = [['', 'utf-8'], ['text/plain', 'utf-8'], ['text/plain; charset=GBK', 'gbk'], ['a/b; x=y; Charset="Big5"', 'big5'], ['a/b; charset=', 'utf-8']]
    assert.deepEqual(cases.map(([header = '']) => charsetOf(header)), cases.map(([, charset]) => charset))
  })
})

describe('a file name', () => {
  test('says by its extension what the file is', () => {
    const cases = [
      ['a.png', 'image'], ['a.JPeG', 'image'], ['a.tar.webp', 'image'], ['a.mp4', 'video'], ['a.mov', 'video'], ['a.log', 'file'], ['png', 'file'],
      ['.png', 'file'], ['a.', 'file'], ['', 'file'], ['a.png/b', 'file'], ['a.constructor', 'file'], ['a.svg', 'file'],
      ['a.ts', 'file'], ['a.m4v', 'video'],
    ]
    assert.deepEqual(cases.map(([name = '']) => kindOfName(name)), cases.map(([, kind]) => kind))
  })

  test('is made of the kind and the type where there is none', () => {
    assert.equal(nameFor('image', 'image/jpeg'), 'image.jpg')
    assert.equal(nameFor('file', 'Application/PDF; x=y'), 'file.pdf')
    assert.equal(nameFor('file', 'application/x-made-up'), 'file')
    assert.equal(nameFor('video', ''), 'video')
    assert.equal(nameFor('file', 'constructor'), 'file')
    assert.equal(nameFor('file', 'application/octet-stream'), 'file')
    assert.equal(nameFor('video', 'video/quicktime'), 'video.mov')
    assert.equal(nameFor('file', 'audio/mpeg'), 'file.mp3')
    assert.equal(nameFor('file', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'), 'file.docx')
  })
})

describe('text', () => {
  test('is read in its charset', () => {
    assert.equal(decodeText(Buffer.from('构建 🙂'), ''), '构建 🙂')
    assert.equal(decodeText(Buffer.from('\ufeffa'), 'text/plain; charset=utf8'), 'a')
    assert.equal(decodeText(Buffer.from('b9b9bda8', 'hex'), 'text/plain; charset=gb2312'), '构建')
    assert.equal(decodeText(Buffer.from('a4a4', 'hex'), 'text/plain; charset=big5'), '中')
    assert.equal(decodeText(Buffer.from('e9', 'hex'), 'text/plain; charset=ISO-8859-1'), 'é')
    assert.equal(decodeText(Buffer.alloc(0), ''), '')
    // Which of its two orders UTF-16 has, its mark says (RFC 2781, section 4.3).
    assert.equal(decodeText(Buffer.from('fffe8467', 'hex'), 'text/plain; charset=utf-16'), '构')
    assert.equal(decodeText(Buffer.from('feff6784', 'hex'), 'text/plain; charset=UTF-16'), '构')
    assert.equal(decodeText(Buffer.from('6784', 'hex'), 'text/plain; charset=utf-16be'), '构')
  })

  test('that is none in its charset is refused, and so is a charset that is not known', () => {
    const cases: [bytes: string, type: string, msg: RegExp][] = [
      ['ff', '', /^the text is not utf-8: /], ['e69e', '', /^the text is not utf-8: /], ['eda080', '', /^the text is not utf-8: /],
      ['81', 'text/plain; charset=gbk', /^the text is not gbk: /], ['61', 'text/plain; charset=utf-16', /^the text is not utf-16le: /],
      ['61', 'text/plain; charset=utf-7', /^the charset .* is not known/], ['61', 'text/plain; charset="a b"', /^the charset .* is not known/],
    ]
    for (const [bytes, type, msg] of cases) {
      assert.throws(() => decodeText(Buffer.from(bytes, 'hex'), type), (error: unknown) =>
        error instanceof RelayError && error.code === 'bad-request' && msg.test(error.message), type)
    }
  })
})
