import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKey, askAs, read, useRelay, type Reply } from '../../support/relay'
import { post } from './support'

const keys = [
  { name: 'deploys', key: 'the-key-of-the-deploys', allow: ['hooks', 'read'] },
  { name: 'alerts', key: 'the-key-of-the-alerts', allow: ['hooks', 'read'] },
  { name: 'operator', key: 'the-key-of-the-operator', allow: ['manage'] },
]
const [deploys, alerts, operator] = keys.map(({ key }) => key)
const config = { keys, targets: { ops: 'group:123456' } }

const relay = useRelay({ config })
/** Asks for the last payload of a source, with the master key unless told otherwise. */
async function last(source: string, key = apiKey): Promise<Reply & { text: string }> {
  const reply = await askAs(relay, key, 'GET', `/payloads/${source}`)
  return { ...reply, text: JSON.stringify(reply.body) }
}

describe('the last payload of a source', () => {
  test('is there as JSON, whatever it came as, with its time, event and key', async () => {
    const since = Date.now()
    await post(relay, 'message/ops', { message: 'first' }, { key: deploys })
    await post(relay, 'message/ops', new URLSearchParams({ title: 'second', text: 'as a form' }), { key: alerts })
    const { status, data: { received_at: at, ...data } } = await last('message')
    assert.equal(status, 200)
    assert.deepEqual(data, { source: 'message', key_name: 'alerts', event: 'message', payload: { title: 'second', text: 'as a form' } })
    assert(Date.parse(String(at)) >= since && Date.parse(String(at)) <= Date.now())
    assert.equal((await last('slack')).status, 404)
  })

  test('is read in the charset that a form names, and refused where it is in none', async () => {
    const form = Buffer.from('746578743db9b9bda8caa7b0dc', 'hex')
    const send = (type: string) => fetch(`${relay.url}/hooks/message/ops`, { method: 'POST', body: form, headers: { 'x-api-key': apiKey, 'content-type': type } })
    assert.equal((await send('application/x-www-form-urlencoded; charset=GBK')).status, 200)
    assert.deepEqual((await last('message')).data.payload, { text: '构建失败' })
    const { status, msg } = await read(await send('application/x-www-form-urlencoded'))
    assert.deepEqual([status, msg], [400, 'the form is not utf-8: name its charset in the Content-Type, as in "application/x-www-form-urlencoded; charset=gbk"'])
  })

  test('has no key that came with it, and no header', async () => {
    assert(deploys)
    await fetch(`${relay.url}/hooks/message/ops?text=x&key=${deploys}`, { headers: { 'x-of-the-sender': 'a-secret-header' } })
    const { status, text, data } = await last('message')
    assert.equal(status, 200)
    assert.deepEqual(data.payload, { text: 'x' })
    assert(!text.includes(deploys) && !text.includes('a-secret-header'))
    await post(relay, 'gitee/ops', { hook_name: 'ping_hooks', password: deploys, sign: deploys }, { key: '', headers: { 'x-gitee-token': deploys } })
    assert.deepEqual((await last('gitee')).data.payload, { hook_name: 'ping_hooks' })
  })

  test('is there where it was skipped or could not be read, and not where it was only tried', async () => {
    assert.equal((await post(relay, 'grafana/ops', { not: 'of Grafana' })).status, 400)
    assert.deepEqual((await last('grafana')).data.payload, { not: 'of Grafana' })
    await post(relay, 'message/ops?events=none', { message: 'skipped' })
    assert.deepEqual((await last('message')).data.payload, { message: 'skipped' })
    await post(relay, 'message/ops?dry_run=1', { message: 'tried' })
    assert.deepEqual((await last('message')).data.payload, { message: 'skipped' })
  })

  test('is listed with those of other sources, the newest first, and makes room when too many have posted', async () => {
    const list = async (key: string | undefined = apiKey): Promise<unknown[]> => {
      const { data: { payloads } } = await askAs(relay, key, 'GET', '/payloads')
      assert(Array.isArray(payloads))
      return payloads.map(({ source, event, key_name: name }: Record<string, unknown>) => [source, event, name])
    }
    await post(relay, 'sonarr/ops', { eventType: 'Test' }, { key: deploys })
    await post(relay, 'message/ops', { message: 'x' }, { key: alerts })
    await post(relay, 'sonarr/ops', { eventType: 'Grab' }, { key: deploys })
    assert.deepEqual((await list()).slice(0, 2), [['sonarr', 'Grab', 'deploys'], ['message', 'message', 'alerts']])
    assert.deepEqual(await list(alerts), [['message', 'message', 'alerts']])
    assert.equal((await askAs(relay, apiKey, 'POST', '/templates/sonarr/preview', { template: '{{ eventType }}!' })).data.text, 'Grab!')
    for (let index = 0; index < 50; index++) await post(relay, `unknown-source-${index}/ops?dry_run=0`, { a: index }, { key: deploys })
    assert.equal((await list()).length, 50)
    assert.equal((await last('sonarr')).status, 404)
  })

  test('is shown to its own caller, and to those that may see the deliveries of all', async () => {
    await post(relay, 'message/ops', { message: 'x' }, { key: deploys })
    assert.equal((await last('message', deploys)).status, 200)
    assert.equal((await last('message', operator)).status, 200)
    const foreign = await last('message', alerts)
    assert.equal(foreign.status, 404)
    assert.equal(foreign.text, (await last('slack', alerts)).text)
  })

  test('is not kept where it is large, nor is the one before taken for it', async () => {
    await post(relay, 'message/ops', { message: 'x' })
    await post(relay, 'message/ops?dry_run=0', { message: 'x', padding: 'y'.repeat(64 * 1024) })
    assert.equal((await last('message')).status, 404)
  })

  test('is there after a restart, but never where no content is recorded: then that from before is removed', async () => {
    await post(relay, 'message/ops', { message: 'x' }, { key: deploys })
    const before = await last('message')
    await relay.reload()
    assert.deepEqual((await last('message')).data, before.data)
    await relay.reload({ ...config, recordContent: 'none' })
    assert.equal((await last('message')).status, 404)
    await post(relay, 'message/ops', { message: 'x' })
    assert.equal((await last('message')).status, 404)
    await relay.reload()
    assert.equal((await last('message')).status, 404)
  })
})
