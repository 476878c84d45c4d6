import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, test } from 'node:test'
import { request, wireOf } from '../../../src/platform/keeper/private-fields'
import { startPair } from './support'

/** What makes calls fast and fails in silence when a new version of another package has it elsewhere: the messages arrive all the same. */
describe('the private parts of other packages', () => {
  for (const mode of ['forward', 'reverse'] as const) {
    test(`ws: the connection under the socket of a ${mode} connection, through which the calls of a turn leave together`, async t => {
      const { bot } = await startPair(t, mode)
      const connection: unknown = Reflect.get(wireOf(bot)?.socket ?? {}, '_socket')
      assert(connection instanceof Writable)
      const calls = [1, 2].map(() => request(bot, 'get_status', {}))
      assert.equal(connection.writableCorked, 1)
      await Promise.all(calls)
      assert.equal(connection.writableCorked, 0)
    })

    test(`adapter-onebot: a call over a ${mode} connection is made past the adapter`, async t => {
      const { simulator, bot } = await startPair(t, mode)
      simulator.fault({ action: 'get_status', fault: { kind: 'late', ms: 50 } })
      const wire = wireOf(bot)
      assert(wire)
      const { mock } = t.mock.method(wire.socket, 'send')
      await request(bot, 'get_status', {})
      assert.match(mock.calls[0]?.arguments[0] ?? '', /"echo":"relay-/)
    })
  }
})
