import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { failFiles } from '../../support/data-file'
import { temporaryFolder } from '../../support/folder'
import { read, relayFor, type Reply, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { later, relayWith } from '../deliveries/support'
import { post } from '../hooks/support'

const hello = { group_id: '1', msg: 'hello' }
const ready = async (relay: TestRelay): Promise<Reply> => read(await relay.request('/readyz'))

describe('GET /readyz', () => {
  test('says that the data file is damaged, as everything does that needs it; a plain message is sent all the same', async t => {
    const dataDir = temporaryFolder()
    writeFileSync(join(dataDir, 'relay.db'), 'this is no SQLite file\n'.repeat(1000))
    const relay = await relayFor(t, { config: { dataDir } })
    await until('it says so', async () => (await ready(relay)).msg.startsWith('not ready: relay.db in the data folder of the relay is no data file'))
    // An earlier request with the key may have been carried out.
    for (const [headers, outcome] of [[{ 'idempotency-key': 'a' }, undefined], [later, 'unsent']] as const) {
      const { status, error } = await relay.send(hello, headers)
      assert.deepEqual([status, error.id, error.outcome], [503, 'store-down', outcome])
    }
    assert.equal((await relay.send(hello)).status, 200)
    const hook = await post(relay, 'slack/group:3', { text: 'hello' }, { isHasty: true })
    assert.deepEqual([hook.status, hook.headers.get('retry-after')], [503, '30'])
    assert.equal(relay.simulator.ledger.length, 1)
  })

  test('says that the data file cannot be written from the first failed write, until a write succeeds', async t => {
    const relay = await relayWith(t)
    await until('it is ready', async () => (await ready(relay)).status === 200)
    const restore = failFiles('run')
    assert.equal((await relay.post(hello, later)).status, 503)
    assert.equal((await relay.post(hello)).status, 200)
    await until('it is not ready', async () => (await ready(relay)).status === 503)
    restore()
    await until('it is ready', async () => (await ready(relay)).status === 200)
  })

  test('says that another relay has the folder, whose place is taken when it ends', async t => {
    const [first, second] = [await relayFor(t), await relayWith(t, { config: { dataDir: temporaryFolder() } })]
    await second.reload({ dataDir: first.dataDir })
    await until('it stands by', async () => (await second.ask('/statusz')).data.standby_for === 'another relay of this process')
    assert.equal((await ready(second)).msg, 'not ready: this relay stands by, because another process uses its data folder')
    const refused = await second.post(hello)
    assert.deepEqual([refused.status, refused.error.id, refused.headers.get('retry-after')], [503, 'standby', '5'])
    first.unload()
    await until('it is ready', async () => (await ready(second)).status === 200)
    assert.equal((await second.post(hello, later)).status, 202)
  })
})
