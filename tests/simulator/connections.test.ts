import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { Simulator } from '../../simulator'
import { Client, isRecord, start, startWithClient } from './support'

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

test('goes offline and comes back on the same port with what was said', async t => {
  const { simulator, client } = await startWithClient(t)
  await client.call('send_group_msg', { group_id: 123456, message: 'before' })
  const { port } = simulator
  await simulator.goOffline()
  await client.closed
  assert.equal(simulator.connections, 0)
  await assert.rejects(Client.connect(t, simulator.endpoint), /ECONNREFUSED/)
  await simulator.goOnline()
  assert.equal(simulator.port, port)
  const again = await Client.connect(t, simulator.endpoint)
  await again.call('send_group_msg', { group_id: 123456, message: 'after' })
  assert.deepEqual(simulator.ledger.map(entry => entry.text), ['before', 'after'])
})

test('drops the connections abruptly, or with a code, and keeps listening', async t => {
  const { simulator, client } = await startWithClient(t)
  simulator.disconnectAll()
  assert.equal(simulator.connections, 0)
  assert.equal(await client.closed, 1006)
  const second = await Client.connect(t, simulator.endpoint)
  await simulator.until(({ connections }) => connections === 1)
  simulator.disconnectAll(1012)
  assert.equal(await second.closed, 1012)
})

test('dials a reverse server, and again after every loss', async t => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  t.after(() => {
    server.close()
  })
  await once(server, 'listening')
  const address = server.address()
  assert(isRecord(address))
  const accepted: { socket: WebSocket, headers: Record<string, unknown> }[] = []
  server.on('connection', (socket, { headers }) => accepted.push({ socket, headers }))
  const simulator = await start(t, {
    selfId: '55', reverse: { url: `ws://127.0.0.1:${String(address.port)}/onebot`, token: 'abc', redialInterval: 5 },
  })
  await simulator.until(({ connections }) => connections === 1)
  assert.equal(accepted[0]?.headers['x-self-id'], '55')
  assert.equal(accepted[0].headers['x-client-role'], 'Universal')
  assert.equal(accepted[0].headers.authorization, 'Bearer abc')
  accepted[0].socket.terminate()
  await simulator.until(({ connections }) => connections === 1 && accepted.length === 2)
  // The forward server serves at the same time.
  await Client.connect(t, simulator.endpoint)
  await simulator.until(({ connections }) => connections === 2)
  await simulator.goOffline()
  assert.equal(simulator.connections, 0)
  await simulator.goOnline()
  await simulator.until(({ connections }) => connections === 1)
})

test('refuses a reverse address that is not on this machine, and an account that is no number', async () => {
  for (const url of ['ws://example.com/onebot', 'http://127.0.0.1/', 'nonsense']) {
    await assert.rejects(Simulator.start({ reverse: { url } }), TypeError)
  }
  await assert.rejects(Simulator.start({ selfId: 'bot' }), TypeError)
})
