import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Simulator } from '../../simulator'
import { Client, start } from './support'

test('takes calls alone at /api, reports events alone at /event, and does both at /', async t => {
  const simulator = await start(t, { token: 'secret' })
  const [calls, events, both] = await Promise.all(['/api', '/event/', '/'].map(path => (
    Client.connect(t, simulator.endpoint + path, { headers: { Authorization: 'Bearer secret' } })
  )))
  assert(calls && events && both)
  events.post('get_status', {})
  await simulator.until(({ connections }) => connections === 3)
  simulator.say({ user: '10001', text: 'hello' })
  for (const client of [events, both]) await client.frame(frame => frame.post_type === 'message')
  for (const client of [calls, both]) assert.equal((await client.call('get_status')).status, 'ok')
  assert.deepEqual(calls.frames.map(frame => frame.post_type), [undefined])
  assert.deepEqual(events.frames.map(frame => frame.post_type), ['meta_event', 'message'])
  assert.deepEqual(simulator.calls.map(({ action }) => action), ['get_status', 'get_status'])
})

test('serves the WebSocket at / and at /onebot/v11/ws and nowhere else, and takes the token as a header or in the address', async t => {
  const simulator = await start(t, { token: 'se cret' })
  await Client.connect(t, `${simulator.endpoint}/`, { headers: { Authorization: 'Bearer se cret' } })
  await Client.connect(t, `${simulator.endpoint}/onebot/v11/ws?access_token=se%20cret`)
  assert.equal(simulator.connections, 2)
  await assert.rejects(Client.connect(t, `${simulator.endpoint}/elsewhere`), /404/)
})

for (const profile of ['napcat', 'llbot', 'lagrange', 'gocqhttp'] as const) {
  test(`${profile} refuses who has no token, or a wrong one`, async t => {
    const simulator = await start(t, { token: 'secret', profile })
    const wrongTokens: Record<string, string>[] = [{}, { Authorization: 'Bearer wrong' }, { Authorization: 'Token secret' }]
    for (const headers of wrongTokens) {
      const connected = Client.connect(t, simulator.endpoint, { headers })
      if (profile === 'lagrange' || profile === 'gocqhttp') {
        await assert.rejects(connected, /401/)
        continue
      }
      const client = await connected
      await client.closed
      assert.deepEqual(client.frames.map(({ status, retcode }) => [status, retcode]), [['failed', 1403]])
    }
    assert.equal(simulator.connections, 0)
  })
}

test('refuses a reverse address that is not on this machine, and an account that is no number', async () => {
  for (const url of ['ws://example.com/onebot', 'http://127.0.0.1/', 'nonsense']) {
    await assert.rejects(Simulator.start({ reverse: { url } }), TypeError)
  }
  await assert.rejects(Simulator.start({ selfId: 'bot' }), TypeError)
})
