import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { Base64Decoder, MultipartReader, parseFileName, parseParameters } from '../../../src/uploads/multipart'
import { boundary, multipart } from '../../support/uploads'

interface ReadPart {
  headers: Record<string, string>
  content: Buffer
}

/** Reads a body given in pieces. */
function read(pieces: Iterable<Buffer>, withBoundary = boundary): ReadPart[] {
  const parts: ReadPart[] = []
  let open: { headers: Record<string, string>, chunks: Buffer[] } | undefined
  const reader = new MultipartReader(withBoundary, {
    onPart(headers) {
      assert.equal(open, undefined, 'a part began within another')
      open = { headers: Object.fromEntries(headers), chunks: [] }
    },
    onContent(bytes) {
      assert.ok(open, 'content outside a part')
      assert.ok(bytes.length > 0)
      open.chunks.push(Buffer.from(bytes))
    },
    onPartEnd() {
      assert.ok(open, 'the end of no part')
      parts.push({ headers: open.headers, content: Buffer.concat(open.chunks) })
      open = undefined
    },
  })
  for (const piece of pieces) reader.push(piece)
  reader.end()
  return parts
}

function* slices(body: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size)
}

const contents = [
  '',
  'plain',
  '\r\n',
  '\r',
  '\n',
  '\r\n\r\n',
  `\r\n--${boundary}x`,
  `\r\n--${boundary}-`,
  `\r\n--${boundary}-x`,
  `\r\n--${boundary}\r`,
  `\r\n--${boundary}\rx`,
  `\r\n--${boundary}\r\r\n--${boundary}x`,
  `\r\n--${boundary.slice(0, 5)}\r\n--${boundary.slice(0, 7)}`,
  `\r\n-\r\n--\r\n--t\r\n--the`,
  `--${boundary}\r\n`,
  `--${boundary}--`,
  'Header: value\r\n\r\nbody',
].map(text => Buffer.from(text))

describe('MultipartReader', () => {
  test('reads the same parts wherever the chunks end', () => {
    const body = multipart(...contents.map((content, index) => ({ headers: [`X-Index: ${index} 发`], content })))
    for (let size = 1; size <= 64; size++) {
      const parts = read(slices(body, size))
      assert.deepEqual(parts.map(part => part.content.toString()), contents.map(content => content.toString()), `chunks of ${size}`)
      assert.deepEqual(parts.map(part => Buffer.from(part.headers['x-index'] ?? '', 'latin1').toString()), contents.map((_, index) => `${index} 发`))
    }
    for (let at = 0; at <= body.length; at++) {
      assert.equal(read([body.subarray(0, at), body.subarray(at)]).length, contents.length, `cut at ${at}`)
    }
  })

  test('reads binary content with short, long and self-similar boundaries', () => {
    const noise = randomBytes(200_000)
    // Content full of what a delimiter consists of.
    const dense = Buffer.from(Array.from(noise, byte => '\r\n-x'.charCodeAt(byte % 4)))
    for (const name of ['x', '-', '--', 'x--x', '-'.repeat(70), '---------------------------41184676334']) {
      for (const content of [noise, dense]) {
        const delimiter = `\r\n--${name}`
        if (content.includes(`${delimiter}\r\n`) || content.includes(`${delimiter}--`)) continue
        const body = Buffer.concat([Buffer.from(`--${name}\r\nA: b\r\n\r\n`), content, Buffer.from(`${delimiter}--`)])
        for (const size of [1000, 4093, 65536, 1e6]) {
          assert.ok(read(slices(body, size), name)[0]?.content.equals(content), `boundary ${name}, chunks of ${size}`)
        }
      }
    }
  })

  test('passes over preamble and epilogue', () => {
    const body = `preamble\r\n\r\n--the-\r\nX: y\r\n\r\n${multipart({ content: 'a' }).toString()}epilogue\r\n--${boundary}\r\n\r\nb\r\n`
    for (let size = 1; size <= body.length; size++) {
      assert.deepEqual(read(slices(Buffer.from(body), size)).map(part => part.content.toString()), ['a'])
    }
  })

  test('reads a body without parts', () => {
    assert.deepEqual(read([Buffer.from(`--${boundary}--`)]), [])
  })

  test('refuses a body that ends anywhere before its last boundary is complete', () => {
    const body = multipart({ headers: ['A: b'], content: 'x' }, { content: '' })
    const complete = body.length - '\r\n'.length
    for (let length = 0; length < complete; length++) {
      assert.throws(() => read([body.subarray(0, length)]), { code: 'bad-request', message: /last boundary/ }, `after ${length} bytes`)
    }
    assert.equal(read([body.subarray(0, complete)]).length, 2)
  })

  test('refuses malformed headers', () => {
    for (const line of [': no name', 'na me: x', 'A: b\rX', 'A\0: b']) {
      assert.throws(() => read([multipart({ headers: [line] })]), { code: 'bad-request', message: /not valid/ }, JSON.stringify(line))
    }
  })

  test('refuses a boundary that something else follows', () => {
    for (const start of [`--${boundary}x\r\n`, `--${boundary}-x`]) {
      assert.throws(() => read([Buffer.from(start), multipart({})]), { code: 'bad-request', message: /not valid/ }, JSON.stringify(start))
    }
  })

  test('bounds what stands before the first boundary, which takes more time than content', () => {
    const body = multipart({ content: 'b' })
    assert.equal(read([Buffer.from(`${'\n'.repeat(16_000)}\r\n`), body]).length, 1)
    assert.throws(() => read([Buffer.from(`${'\n'.repeat(17_000)}\r\n`), body]), { code: 'bad-request' })
  })

  test('bounds the headers of each part', () => {
    const fits = { headers: [`A: ${'x'.repeat(16_000)}`] }
    assert.equal(read([multipart(fits, fits, fits)]).length, 3)
    for (const [start, endless] of [['', 'aaaaa'], ['A: ', 'bbbbb'], ['A:', '     ']] as const) {
      const flood = Buffer.from(endless.repeat(5000))
      const head = Buffer.from(`--${boundary}\r\n${start}`)
      assert.throws(() => read([head, flood, flood]), { code: 'bad-request', message: /longer than 16384 bytes/ }, JSON.stringify(endless))
    }
  })

  test('bounds the number of headers, which take more time than their bytes', () => {
    const fits = { headers: Array<string>(32).fill('A: b') }
    assert.equal(read([multipart(fits, fits)]).length, 2)
    const flood = Buffer.from(`--${boundary}\r\n${'A: b\r\n'.repeat(33)}`)
    assert.throws(() => read([flood]), { code: 'bad-request', message: /more than 32 headers/ })
  })

  test('holds back no more than the beginning of a delimiter', () => {
    let content = 0
    const reader = new MultipartReader(boundary, { onPart: () => undefined, onPartEnd: () => undefined, onContent: ({ length }) => {
      content += length
    } })
    reader.push(Buffer.from(`--${boundary}\r\n\r\n`))
    reader.push(Buffer.from(`abc\r\n--${boundary}`))
    assert.equal(content, 3)
    reader.push(Buffer.from(`x`))
    reader.push(Buffer.from(`yz`))
    assert.equal(content, `abc\r\n--${boundary}xyz`.length)
  })
})

describe('Base64Decoder', () => {
  test('decodes base64 broken into lines wherever its pieces end', () => {
    const data = randomBytes(100)
    const text = data.toString('base64').replace(/.{10}/g, '$&\r\n')
    for (let size = 1; size < 20; size++) {
      const decoder = new Base64Decoder()
      const decoded: Buffer[] = []
      for (let at = 0; at < text.length; at += size) decoded.push(decoder.decode(Buffer.from(text.slice(at, at + size))))
      assert.deepEqual(Buffer.concat([...decoded, decoder.end()]), data)
    }
  })

  test('decodes what lacks its padding', () => {
    const decoder = new Base64Decoder()
    assert.equal(Buffer.concat([decoder.decode(Buffer.from('YWJjZA')), decoder.end()]).toString(), 'abcd')
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
  [`form-data; filename*=iso-8859-1'en'%A3%20rates.txt`, '£ rates.txt'],
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
