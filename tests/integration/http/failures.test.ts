import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { temporaryFolder } from '../../support/folder'
import { read, startRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { multipart } from './support'

let relay: TestRelay
/** A file where a folder is expected: what not even root can write to. */
const occupied = join(temporaryFolder(), 'occupied')

before(async () => {
  await writeFile(occupied, '')
  relay = await startRelay({ config: { uploadDir: occupied } })
})
after(() => relay.stop())

test('an upload that cannot be stored is a 500 that tells nothing of the machine, and the log has the reason', async () => {
  const { status, headers, body } = await read(await relay.request('/upload', {
    method: 'POST', body: multipart([['a.txt', 'abc']]), headers: { 'content-type': 'multipart/form-data; boundary=limit' },
  }))
  assert.equal(status, 500)
  assert.deepEqual(body, { code: 500, msg: 'internal error: see the log of the bot for this request ID', data: null, error: { id: 'internal' } })
  const lines = relay.logs.filter(line => line.includes(headers.get('x-request-id') ?? '-'))
  assert.equal(lines.length, 2)
  assert.match(lines[0] ?? '', /warn .* POST \/upload - 500 internal/)
  assert.match(lines[1] ?? '', /(?:ENOTDIR|EEXIST).*\n {4}at /)
})

test('an upload directory that cannot be looked through is a warning with the reason', async () => {
  await until('it is logged', () => relay.logs.some(line => line.includes('failed to clean up the upload directory') && line.includes('ENOTDIR')))
})

test('a key that cannot be written is told in one line, the relay does not run, and the bot does', async () => {
  const start = relay.logs.length
  await relay.reload({ apiKey: '', dataDir: join(occupied, 'data') })
  const lines = relay.logs.slice(start).filter(line => line.includes(' error '))
  assert.equal(lines.length, 1, lines.join('\n'))
  assert.match(lines[0] ?? '', /^message-relay error the relay cannot start: .*api-key \(ENOTDIR\); set WEBHOOK_API_KEY, or DATA_DIR .*$/)
  const response = await relay.request('/healthz')
  await response.body?.cancel()
  assert.equal(response.status, 404)
  await relay.reload()
  assert.equal((await read(await relay.request('/healthz'))).status, 200)
})
