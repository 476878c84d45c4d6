import assert from 'node:assert/strict'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { apiKey, askAs, useRelay } from '../../support/relay'
import { until } from '../../support/until'

const relay = useRelay()
const ask = (method: string, path: string, body?: object): ReturnType<typeof askAs> => askAs(relay, apiKey, method, path, body)
const data = (...names: string[]): string => join(relay.uploadDir, '../data', ...names)

describe('a backup', () => {
  test('is what a relay goes back to', async () => {
    const { key } = (await ask('POST', '/keys', { name: 'ci' })).data
    assert.equal((await ask('PUT', '/targets/night', { to: 'group:2' })).status, 201)
    const response = await relay.request('/backup')
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/vnd.sqlite3'])
    assert.match(response.headers.get('content-disposition') ?? '', /filename\*=UTF-8''relay-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.db$/)
    const backup = Buffer.from(await response.arrayBuffer())
    assert.equal(backup.length, Number(response.headers.get('content-length')))

    await ask('DELETE', '/keys/ci')
    await ask('DELETE', '/targets/night')
    await ask('POST', '/keys', { name: 'later' })
    // As docs/move.md says.
    relay.unload()
    const away = await mkdtemp(data('away-'))
    await until('the relay has ended', () => rename(data('relay.db-wal'), join(away, 'relay.db-wal')).then(() => true, () => true))
    await rename(data('relay.db'), join(away, 'relay.db'))
    await writeFile(data('relay.db'), backup)
    await relay.reload()
    const { keys } = (await ask('GET', '/keys')).data
    assert(Array.isArray(keys))
    assert.deepEqual(keys.map(({ name }: { name: string }) => name), ['ci'])
    assert.equal((await askAs(relay, String(key), 'POST', '/webhook', { to: 'night', msg: 'as before' })).status, 200)
    await rm(away, { recursive: true })
  })

  test('is one at a time, and is refused without the permission', async () => {
    const [first, second] = await Promise.all([relay.request('/backup'), relay.request('/backup')])
    assert.deepEqual([first.status, second.status].sort(), [200, 409])
    for (const response of [first, second]) await response.arrayBuffer()
    // It would make a copy, too.
    assert.equal((await relay.request('/backup', { method: 'HEAD' })).status, 405)
    await until('there is a backup again', async () => {
      const response = await relay.request('/backup')
      await response.arrayBuffer()
      return response.status === 200
    })
  })
})
