import Auth from '@koishijs/plugin-auth'
import { MemoryDriver } from 'koishi-plugin-database-memory'
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isObject } from '../../../src/lib/shape'
import { read, relayFor, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { ConsoleClient, startWithConsole } from './support'

describe('where the console knows its users', () => {
  let relay: TestRelay

  before(async () => {
    relay = await startWithConsole({
      config: { targets: { 'a-name-of-a-target': 'group:123456' } },
      setup(app) {
        app.plugin(MemoryDriver, {})
        app.plugin(Auth, { admin: { enabled: true, username: 'admin', password: 'password of the admin' }, authTokenExpire: 3_600_000, loginTokenExpire: 60_000 })
      },
    })
    await until('users can log in', () => 'login/password' in relay.app.console.listeners)
    await until('the admin is there', async () => (await relay.app.database.get('user', { name: 'admin' })).length > 0)
    const password = createHash('sha256').update('password of the user').digest('hex')
    await relay.app.database.create('user', { name: 'user', authority: 3, password })
  })
  after(() => relay.stop())

  const requests: [string, unknown?][] = [
    ['message-relay/about'], ['message-relay/request', { method: 'GET', path: '/statusz' }],
  ]

  for (const who of ['nobody', 'user']) {
    test(`${who} without the authority gets nothing`, async () => {
      const client = await ConsoleClient.connect(relay.url)
      if (who === 'user') {
        await client.send('login/password', who, `password of the ${who}`)
        await client.frame(({ type, body }) => type === 'data' && isObject(body) && body.key === 'user' && isObject(body.value))
      }
      for (const [type, argument] of requests) assert.deepEqual(await client.send(type, argument), { error: 'unauthorized' })
      assert(!client.received.includes('a-name-of-a-target'))
      client.close()
    })
  }

  test('an admin gets everything', async () => {
    const client = await ConsoleClient.connect(relay.url)
    await client.send('login/password', 'admin', 'password of the admin')
    assert.equal((await client.request('GET', '/statusz')).status, 200)
    assert(Array.isArray((await client.send('message-relay/about')).sources))
    client.close()
  })
})

test('where there is no console the relay loads and sends, and its bundle asks for nothing of the console', async t => {
  const relay = await relayFor(t)
  assert.equal((await relay.send({ group_id: '123456', msg: 'hello' })).status, 200)
  const { body } = await read(await relay.request('/statusz'))
  assert(!JSON.stringify(body).includes('console'))
  const bundle = await readFile(join(resolve(__dirname, '../../..'), 'lib/index.js'), 'utf8')
  assert(!/require\("@koishijs\/(?:plugin-console|console|client)"\)/.test(bundle))
})
