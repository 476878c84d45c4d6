import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { relayWith, takeOffline } from '../deliveries/support'
import { apiKey, read } from '../../support/relay'

describe('GET /contacts', () => {
  test('names the groups and friends of the bot', async t => {
    const relay = await relayWith(t)
    for (const at of ['/contacts', '/contacts?bot=onebot:10000']) {
      const { status, data } = await relay.ask(at)
      assert.equal(status, 200)
      assert.equal(data.bot, 'onebot:10000')
      assert(JSON.stringify(data.groups).includes('{"id":"123456","name":"'), JSON.stringify(data))
      assert(JSON.stringify(data.friends).includes('{"id":"10001","name":"'), JSON.stringify(data))
    }
  })

  test('shows a key those that it may send to', async t => {
    const relay = await relayWith(t)
    await relay.reload({ apiKey, keys: [{ name: 'one', key: 'the-secret-of-one', targets: ['group:123456'] }] })
    const response = await fetch(`${relay.url}/contacts`, { headers: { authorization: 'Bearer the-secret-of-one' } })
    const { data } = await response.json() as { data: { groups: { id: string }[], friends: object[] } }
    assert.deepEqual([data.groups.map(({ id }) => id), data.friends], [['123456'], []])
  })

  test('says what is wrong with the bot', async t => {
    const relay = await relayWith(t)
    assert.deepEqual([(await relay.ask('/contacts?bot=10000')).status, (await relay.ask('/contacts?bot=onebot:1')).status], [400, 503])
    await takeOffline(relay)
    const { status, body } = await read(await relay.request('/contacts'))
    // Nothing became a delivery.
    assert.deepEqual([status, body.data], [503, null])
  })
})
