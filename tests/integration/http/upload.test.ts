import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { apiKey, read, useRelay } from '../../support/relay'
import { assertFailure, multipart, Wire } from './support'

const relay = useRelay({ config: { maxUploadSize: 1000, allowedExtensions: 'txt,png' } })

const head = ['POST /upload HTTP/1.1', 'Host: relay', `X-API-Key: ${apiKey}`]
const type = 'Content-Type: multipart/form-data; boundary=limit'

async function upload(body: Buffer, contentType = 'multipart/form-data; boundary=limit') {
  return read(await relay.request('/upload', { method: 'POST', body, headers: { 'content-type': contentType } }))
}

async function stored(): Promise<string[]> {
  return (await readdir(relay.uploadDir, { recursive: true }).catch(() => [])).filter(name => name.includes('.'))
}

test('an upload of one file is answered with its ID, twice', async () => {
  const { status, body } = await upload(multipart([['报告 1.txt', 'content']]))
  assert.equal(status, 200)
  const [id = ''] = await stored()
  assert.match(id, /^[0-9a-f-]{36}\/报告 1\.txt$/)
  assert.deepEqual(body, { code: 0, msg: 'ok', data: { files: [id], path: id } })
  assert.equal(await readFile(join(relay.uploadDir, id), 'utf8'), 'content')
  const line = relay.logs.at(-1)
  assert.match(line ?? '', /POST \/upload - 200 1 stored/)
})

// What else is refused is in tests/integration/uploads.
test('an upload is refused as the settings say, and nothing of it stays', async () => {
  for (const [status, msg, file] of [[413, /larger than 1000 bytes: the setting maxUploadSize/, ['b.txt', 'x'.repeat(1001)]], [415, /only: txt, png/, ['b.exe', 'MZ']]] as const) {
    const before = await stored()
    const reply = await upload(multipart([['a.txt', 'abc'], file]))
    assert.equal(reply.status, status)
    assert.match(reply.msg, msg)
    assert.deepEqual(await stored(), before)
  }
})

test('a full disk is answered 507, nothing stays, and the connection goes on', async t => {
  await mkdir(relay.uploadDir, { recursive: true })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', relay.uploadDir], { stdio: 'ignore' })
  } catch {
    t.skip('needs the right to mount a small disk')
    return
  }
  t.after(() => execFileSync('umount', ['-l', relay.uploadDir]))
  // Enough for the folders and the names, not for the content.
  const file = multipart([['a.txt', 'abc'], ['b.txt', 'x'.repeat(1000)]])
  const rest = join(relay.uploadDir, 'of others')
  await assert.rejects(writeFile(rest, Buffer.alloc(1_000_000)), { code: 'ENOSPC' })
  const wire = await Wire.open(relay.url)
  wire.send([...head, type, `Content-Length: ${file.length}`], file)
  assertFailure(await wire.answer(), 507, /disk of the relay is full/)
  wire.send(['PUT /send/group:1/a.txt HTTP/1.1', ...head.slice(1), 'Content-Length: 3'], 'abc')
  assertFailure(await wire.answer(), 507, /disk of the relay is full/)
  assert.deepEqual(await readdir(relay.uploadDir), ['of others'])
  await rm(rest)
  wire.send([...head, type, `Content-Length: ${file.length}`], file)
  assert.equal((await wire.answer()).status, 200)
})
