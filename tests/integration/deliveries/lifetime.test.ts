import assert from 'node:assert/strict'
import { test } from 'node:test'
import { relayWith } from './support'

test('stopping the relay gives a deferred message that is leaving some time to be answered, and begins no other', async t => {
  const relay = await relayWith(t)
  relay.simulator.fault({ fault: { kind: 'late', ms: 1_000, delivered: 'then' } })
  const [leaving, next] = [await relay.queue('leaving'), await relay.queue('next')]
  await relay.reaches(leaving, 'sending')
  await relay.app.parallel('exit', 'SIGTERM')
  assert.deepEqual(relay.texts(), ['leaving'])
  await relay.reload()
  assert.deepEqual([(await relay.show(leaving)).state, relay.texts()[1]], ['sent', undefined])
  await relay.reaches(next, 'sent')
})
