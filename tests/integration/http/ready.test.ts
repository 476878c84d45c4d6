import SQLiteDriver from 'koishi-plugin-database-sqlite'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../../support/folder'
import { read, relayFor } from '../../support/relay'
import { until } from '../../support/until'
import { FaultyDatabase } from '../../faults/database'
import { group, later, relayWith } from '../deliveries/support'
import { post } from '../hooks/support'

describe('GET /readyz with a database', () => {
  class Silent extends SQLiteDriver {
    override start(): Promise<void> {
      return new Promise(() => undefined)
    }
  }

  const cases: [what: string, driver: typeof SQLiteDriver, content: string][] = [
    ['that is malformed', SQLiteDriver, 'this is no SQLite file\n'.repeat(1000)],
    ['that never gets ready', Silent, ''],
  ]
  for (const [what, driver, content] of cases) {
    test(`${what} says that the database does not answer, as a message with a key is told`, async t => {
      const path = join(temporaryFolder(), 'koishi.db')
      writeFileSync(path, content)
      const relay = await relayFor(t)
      relay.app.plugin(driver, { path })
      const { status, body } = await read(await relay.request('/readyz'))
      assert.deepEqual([status, body.msg], [503, 'not ready: the relay cannot use its data file'])
      const asks: [group: string, headers: Record<string, string>, status: number][] = [
        ['1', { 'idempotency-key': 'a' }, 503], ['1', { prefer: 'respond-async' }, 503], ['2', {}, 200],
      ]
      for (const [group, headers, expected] of asks) assert.equal((await relay.send({ group_id: group, msg: 'hello' }, headers)).status, expected)
      const hook = await post(relay, 'slack/group:3', { text: 'hello' })
      assert.deepEqual([hook.status, hook.headers.get('retry-after')], [503, '30'])
      assert.equal(relay.simulator.ledger.length, 1)
    })
  }

  test('that arrives late says so, and then has the record of what was sent before', async t => {
    const opened = new AbortController()
    class Late extends SQLiteDriver {
      override async start(): Promise<void> {
        await once(opened.signal, 'abort')
        await super.start()
      }
    }
    const relay = await relayFor(t)
    relay.app.plugin(Late, { path: join(temporaryFolder(), 'koishi.db') })
    const { status, data } = await relay.send({ group_id: group, msg: 'hello' })
    const record = (): Promise<number> => relay.request(`/deliveries/${String(data.delivery_id)}`).then(answer => answer.status)
    assert.deepEqual([status, await record(), (await relay.request('/readyz')).status], [200, 200, 503])
    opened.abort()
    await until('it is ready', async () => (await relay.request('/readyz')).status === 200)
    assert.equal(await record(), 200)
  })

  test('that can only be read says so from the first failed write, until a write succeeds', async t => {
    const relay = await relayWith(t)
    const database = new FaultyDatabase(relay.app)
    const isReady = async (): Promise<boolean> => (await relay.request('/readyz')).status === 200
    assert(await isReady())
    database.plan([{ statement: 'create', nth: 1, times: Infinity }, { statement: 'set', nth: 1, times: Infinity }])
    assert.equal((await relay.post({ group_id: group, msg: 'x' }, later)).status, 503)
    await until('it is not ready', async () => !await isReady())
    database.plan([])
    await until('it is ready', isReady)
  })
})
