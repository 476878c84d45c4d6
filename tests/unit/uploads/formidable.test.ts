import { errors, Formidable, type Part } from 'formidable'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { record } from '../../docs/support/json'
import { repository } from '../../docs/support/pages'

// What src/uploads/multipart.ts uses of formidable without a promise of formidable to keep it.
const { version } = record(JSON.parse(readFileSync(join(repository, 'node_modules/formidable/package.json'), 'utf8')))
const changed = (what: string): string => `formidable ${String(version)} has changed ${what}, which src/uploads/multipart.ts uses`

const body = [
  '--x', 'Content-Disposition: form-data; name="a"; filename="b"', 'X-Own: 1', '', 'content', '--x--', '',
].join('\r\n')

function parse(
  onPart: (form: Formidable, part: Part) => Promise<void>, file?: Writable, onProgress = (bytes: number) => bytes,
): Promise<unknown> {
  const form = new Formidable({ encoding: 'binary', filename: () => 'unused', fileWriteStreamHandler: () => file })
  form.onPart = part => onPart(form, part)
  form.on('progress', onProgress)
  return form.parse(Object.assign(Readable.from([Buffer.from(body)]), {
    headers: { 'content-type': 'multipart/form-data; boundary=x', 'transfer-encoding': 'chunked' },
  }))
}

describe('formidable', () => {
  test('calls onPart with the headers, type and encoding of a part', async () => {
    const parts: Part[] = []
    await parse((_, part) => Promise.resolve(void parts.push(part)))
    const [part] = parts
    assert(parts.length === 1 && part, changed('onPart'))
    assert.deepEqual(part.headers, { 'content-disposition': 'form-data; name="a"; filename="b"', 'x-own': '1' }, changed('part.headers'))
    assert.equal(part.mimetype, null, changed('part.mimetype of a part without a type'))
    assert.equal(part.transferEncoding, 'binary', changed('part.transferEncoding'))
  })

  test('writes a part to our stream by _handlePart if we give it a type', async () => {
    const file = new PassThrough()
    const content = text(file)
    await parse(async (form, part) => {
      assert.equal(typeof form._handlePart, 'function', changed('_handlePart'))
      part.mimetype = 'application/octet-stream'
      await form._handlePart(part)
    }, file)
    assert.equal(await content, 'content', changed('_handlePart'))
  })

  test('ends with the error that _error gets, and keeps it in error', async () => {
    const error = new Error('ours')
    await assert.rejects(parse(form => {
      assert.equal(typeof form._error, 'function', changed('_error'))
      form._error(error)
      assert.equal(form.error, error, changed('error'))
      return Promise.resolve()
    }), error, changed('_error'))
  })

  test('has errors of its own, with these codes', async () => {
    for (const code of ['unknownTransferEncoding', 'missingMultipartBoundary']) assert.equal(typeof errors[code], 'number', changed(`errors.${code}`))
    const form = new Formidable({ fileWriteStreamHandler: () => undefined })
    const headers = { 'content-type': 'multipart/form-data', 'transfer-encoding': 'chunked' }
    await assert.rejects(form.parse(Object.assign(Readable.from([Buffer.from(body)]), { headers })), (error: unknown) => (
      error instanceof errors.default && 'code' in error && error.code === errors.missingMultipartBoundary
    ), changed('its errors'))
  })

  test('tells its progress', async () => {
    let received = 0
    await parse(() => Promise.resolve(), undefined, bytes => received = bytes)
    assert.equal(received, body.length, changed('the event progress'))
  })
})
