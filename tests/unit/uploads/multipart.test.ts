import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { MultipartReader } from '../../../src/uploads/multipart'
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

  test('bounds the headers of each part', () => {
    const fits = { headers: [`A: ${'x'.repeat(16_000)}`] }
    assert.equal(read([multipart(fits, fits, fits)]).length, 3)
    for (const [start, endless] of [['', 'A: b\r\n'], ['', 'aaaaa'], ['A: ', 'bbbbb'], ['A:', '     ']] as const) {
      const flood = Buffer.from(endless.repeat(5000))
      const head = Buffer.from(`--${boundary}\r\n${start}`)
      assert.throws(() => read([head, flood, flood]), { code: 'bad-request', message: /longer than 16384 bytes/ }, JSON.stringify(endless))
    }
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
