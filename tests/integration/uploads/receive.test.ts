import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { RelayError } from '../../../src/errors'
import { until } from '../../support/until'
import { boundary, connect, head, multipart, startServer, tree, type Part } from '../../support/uploads'

const type = `multipart/form-data; boundary=${boundary}`
const field = { headers: ['Content-Disposition: form-data; name="note"'], content: 'a field' }

describe('an upload', () => {
  test('stores each part with a filename, in order, and no other part', async t => {
    const { port, directory } = await startServer(t)
    const binary = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const { status, files } = await connect(t, port).post(multipart(
      field,
      { file: 'b.bin', headers: ['Content-Type: application/octet-stream'], content: binary },
      { file: 'untyped.txt', content: 'no Content-Type' },
      { headers: ['Content-Disposition: form-data; name="blob"', 'Content-Type: image/png'], content: 'typed, but no file' },
      { file: 'empty.txt', content: '' },
      { file: '', content: 'unnamed' },
      { headers: [`Content-Disposition: form-data; name="f"; filename*=UTF-8''%E5%8F%91.txt`], content: 'extended' },
      { file: 'b.bin', content: 'same name' },
      { headers: ['Content-Type: text/plain'], content: 'no disposition' },
    ))
    assert.equal(status, 200)
    assert.deepEqual(files.map(file => file.slice(37)), ['b.bin', 'untyped.txt', 'empty.txt', 'file', '发.txt', 'b.bin'])
    for (const file of files) assert.match(file, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\/[^/]+$/)
    const stored = await Promise.all(files.map(file => readFile(join(directory, file))))
    assert.deepEqual(stored[0], binary)
    assert.deepEqual(stored.slice(1).map(String), ['no Content-Type', '', 'unnamed', 'extended', 'same name'])
    assert.equal((await tree(directory)).length, 12)
  })

  test('writes nothing outside the directory whatever the name', async t => {
    const { port, directory } = await startServer(t)
    const { post } = connect(t, port)
    for (const name of ['../../evil', '/etc/evil', '..\\..\\evil', '..', '.', 'C:\\evil', '....//evil', '%2e%2e%2fevil', 'a\0b', '\\\\host\\share\\evil']) {
      const { status, files } = await post(multipart({ file: name }))
      assert.equal(status, 200, name)
      assert.match(files[0] ?? '', /^[^/]{36}\/[\w.]+$/)
    }
    assert.deepEqual(await tree(dirname(directory)), [...await tree(directory)].map(path => `uploads/${path}`).concat('uploads').sort())
  })

  test('keeps content that resembles boundaries', async t => {
    const { port, directory } = await startServer(t, { maxFileSize: 1_000_000 })
    const content = Buffer.concat(Array.from({ length: 2000 }, (_, index) => {
      return [randomBytes(index % 50), Buffer.from(`\r\n--${boundary}`.slice(0, index % 9)), Buffer.from(`\r\n\r\n--${boundary}x`)]
    }).flat())
    const { files } = await connect(t, port).post(multipart({ file: 'a', content }, { file: 'b' }))
    assert.ok((await readFile(join(directory, files[0] ?? ''))).equals(content))
    assert.equal(await readFile(join(directory, files[1] ?? ''), 'utf8'), 'content')
  })
})

describe('a refused upload leaves nothing behind and the connection usable:', () => {
  const large = 'x'.repeat(1001)
  const cases: [what: string, body: Buffer | string, status: number, text: RegExp, type?: string][] = [
    ['a file one byte too large', multipart({ file: 'a' }, { file: 'b', content: large }, { file: 'c' }), 413, /1000 bytes/],
    ['a file far too large', multipart({ file: 'a', content: 'x'.repeat(3_000_000) }), 413, /1000 bytes/],
    ['a disallowed extension after an allowed one', multipart({ file: 'a.txt' }, { file: 'b.exe' }), 415, /only: txt, tar\.gz/],
    ['no file among the parts', multipart(field), 400, /no file/],
    ['no part', `--${boundary}--\r\n`, 400, /no file/],
    ['no body', '', 400, /last boundary/],
    ['no multipart', 'hello', 400, /last boundary/],
    ['a malformed header', multipart({ file: 'a.txt' }, { headers: ['na me: x'] }), 400, /not valid/],
    ['headers without an end', `--${boundary}\r\nA: ${'x'.repeat(100_000)}`, 400, /headers of a part/],
    ['more files than 1000', multipart(...many({ file: 'a.txt', content: '' })), 413, /1000 parts/],
    ['more fields than 1000', multipart({ file: 'a.txt' }, ...many(field)), 413, /1000 parts/],
    ['an encoding', multipart({ file: 'a.txt' }, { file: 'b.txt', headers: ['Content-Transfer-Encoding: base64'] }), 415, /transfer-encoding/],
    ['an unknown encoding', multipart({ file: 'a.txt' }, { file: 'b.txt', headers: ['Content-Transfer-Encoding: x'] }), 415, /transfer-encoding/],
    ['a last boundary that is another', multipart({ file: 'a.txt' }).subarray(0, -6), 400, /last boundary/],
    ['a preamble without an end', Buffer.alloc(1_000_000, '\r\n'), 400, /headers of a part/],
    ['multipart/related', multipart({ file: 'a.txt' }), 415, /multipart\/form-data/, `multipart/related; boundary=${boundary}`],
    ['JSON', '{}', 415, /multipart\/form-data/, 'application/json'],
    ['a type that only begins alike', '', 415, /multipart\/form-data/, `multipart/form-database; boundary=${boundary}`],
    ['no boundary', multipart({ file: 'a.txt' }), 400, /needs a boundary/, 'multipart/form-data'],
    ['another boundary', multipart({ file: 'a.txt' }), 400, /last boundary/, 'multipart/form-data; boundary=another'],
  ]
  for (const [what, body, status, text, as] of cases) {
    test(what, async t => {
      const { port, directory } = await startServer(t, { allowedExtensions: what.includes('extension') ? ['txt', 'tar.gz'] : [] })
      const { post } = connect(t, port)
      const answer = await post(body, as)
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.text, text)
      assert.ok(!answer.text.includes(directory))
      assert.deepEqual(await tree(directory), [])
      assert.equal((await post(multipart({ file: 'next.txt' }))).status, 200)
    })
  }

  test('files of exactly the limit are no reason, nor is their sum', async t => {
    const { port, directory } = await startServer(t)
    const { files } = await connect(t, port).post(multipart(...Array.from({ length: 5 }, () => ({ file: 'a', content: 'x'.repeat(1000) }))))
    assert.equal(files.length, 5)
    assert.equal((await tree(directory)).length, 10)
  })

  test('1000 files are no reason', async t => {
    const { port } = await startServer(t)
    assert.equal((await connect(t, port).post(multipart(...many({ file: 'a' }).slice(1)))).files.length, 1000)
  })

  test('a body cut short after any byte', async t => {
    const { port, directory } = await startServer(t)
    const { post } = connect(t, port)
    const body = multipart({ file: 'a' }, field, { file: 'b', headers: ['Content-Type: text/plain'], content: '' })
    for (let length = 0; length < body.length - '\r\n'.length; length++) {
      // formidable takes a form for complete that ends right behind a boundary.
      if (/--limit(?:\r\n)?$/.test(body.toString('latin1', 0, length))) continue
      const { status } = await post(body.subarray(0, length))
      assert.equal(status, 400, `after ${length} bytes`)
      assert.deepEqual(await tree(directory), [], `after ${length} bytes`)
    }
  })

  test('the answer comes while the rest is still to come, and that is left to the caller', async t => {
    const { port, left } = await startServer(t)
    const { socket, answer, post } = connect(t, port)
    const rest = Buffer.alloc(500_000)
    const start = multipart({ file: 'a', content: 'x'.repeat(2000) })
    socket.write(head(type, `Content-Length: ${start.length + rest.length}`))
    socket.write(start)
    assert.equal((await answer()).status, 413)
    assert.deepEqual(left, [true])
    socket.write(rest)
    assert.equal((await post(multipart({ file: 'next.txt' }))).status, 200)
  })

  test('nothing stays attached to the connection', async t => {
    const { port, requests } = await startServer(t)
    const { post } = connect(t, port)
    await post(multipart({ file: 'a' }))
    const [first] = requests
    assert.ok(first)
    const before = first.socket.listenerCount('close')
    for (let round = 0; round < 5; round++) await post(multipart({ file: 'a', content: round % 2 ? large : 'x' }))
    assert.equal(first.socket.listenerCount('close'), before)
  })
})

describe('a client that goes away', () => {
  const body = multipart({ file: 'a', content: 'x'.repeat(500) }, { file: 'b', content: 'y'.repeat(500) })
  for (const [what, length] of [['at once', 0], ['within the first file', 300], ['within the second', 900], ['before the last byte', body.length - 1]] as const) {
    test(`${what} leaves nothing behind`, async t => {
      const { port, directory, requests, outcomes } = await startServer(t)
      const { socket } = connect(t, port)
      socket.write(head(type, `Content-Length: ${body.length}`))
      socket.write(body.subarray(0, length))
      await until('the request has come', () => requests.length === 1)
      if (length > 0) await until('a file is being written', async () => (await tree(directory)).length > 0)
      socket.destroy()
      await until('the upload has failed', () => outcomes.length === 1)
      assert.ok(outcomes[0] instanceof RelayError && outcomes[0].code === 'bad-request')
      assert.deepEqual(await tree(directory), [])
    })
  }
})

describe('a slow client', () => {
  test('is refused when no byte comes for too long', async t => {
    const { port, directory } = await startServer(t, { idleTimeout: 50 })
    const { socket, answer, post } = connect(t, port)
    const body = multipart({ file: 'a' })
    socket.write(head(type, `Content-Length: ${body.length}`))
    socket.write(body.subarray(0, body.length - 10))
    assert.equal((await answer()).status, 408)
    assert.deepEqual(await tree(directory), [])
    socket.write(body.subarray(body.length - 10))
    assert.equal((await post(multipart({ file: 'next.txt' }))).status, 200)
  })

  test('is refused when single bytes go on for too long', async t => {
    const { port, directory } = await startServer(t, { idleTimeout: 5000, totalTimeout: 200 })
    const { socket, answer } = connect(t, port)
    socket.write(head(type, 'Content-Length: 100000'))
    socket.write(multipart({ file: 'a' }).subarray(0, -4))
    const drip = setInterval(() => socket.write('x'), 10)
    t.after(() => {
      clearInterval(drip)
    })
    assert.equal((await answer()).status, 408)
    assert.deepEqual(await tree(directory), [])
  })

  test('holds up no other one, also with others like it', async t => {
    const { port, directory } = await startServer(t)
    const body = multipart({ file: 'slow' })
    for (let client = 0; client < 5; client++) connect(t, port).socket.write(head(type, `Content-Length: ${body.length}`) + body.toString().slice(0, -10))
    await until('all have begun', async () => (await tree(directory)).length === 5)
    assert.equal((await connect(t, port).post(multipart({ file: 'next' }))).status, 200)
  })

  test('is not taken for slow as long as bytes keep coming', async t => {
    const idleTimeout = 500
    const { port } = await startServer(t, { idleTimeout })
    const { socket, answer } = connect(t, port)
    const body = multipart({ file: 'a', content: 'x'.repeat(900) })
    socket.write(head(type, `Content-Length: ${body.length}`))
    const started = Date.now()
    for (let at = 0; at < body.length; at++) {
      const isPast = Date.now() - started > 2 * idleTimeout
      socket.write(body.subarray(at, isPast ? body.length : at + 1))
      if (isPast) break
      await setTimeout(5)
    }
    assert.equal((await answer()).status, 200)
    assert.ok(Date.now() - started > idleTimeout)
  })
})

describe('a failing disk', () => {
  test('fails the upload with an ordinary error when the directory is a file', async t => {
    const { port, directory, outcomes } = await startServer(t)
    await writeFile(directory, 'in the way')
    const { post } = connect(t, port)
    assert.equal((await post(multipart({ file: 'a' }, { file: 'b' }))).status, 500)
    assert.ok(outcomes[0] instanceof Error && !(outcomes[0] instanceof RelayError))
    assert.equal(await readFile(directory, 'utf8'), 'in the way')
  })

  test('fails the upload when the directory cannot be made', async t => {
    const { port, directory, outcomes } = await startServer(t)
    await symlink(join(dirname(directory), 'missing', 'deeper'), directory)
    assert.equal((await connect(t, port).post(multipart({ file: 'a' }))).status, 500)
    assert.ok(!(outcomes[0] instanceof RelayError))
    assert.deepEqual(await tree(dirname(directory)), ['uploads'])
  })

  test('makes the directory again when someone has removed it, and writes through a link to one', async t => {
    const { port, directory } = await startServer(t)
    const elsewhere = join(dirname(directory), 'elsewhere')
    await mkdir(elsewhere)
    await symlink(elsewhere, directory)
    assert.equal((await connect(t, port).post(multipart({ file: 'a' }))).status, 200)
    assert.equal((await tree(elsewhere)).length, 2)
  })
})

function many(part: Part): Part[] {
  return Array.from({ length: 1001 }, () => part)
}
