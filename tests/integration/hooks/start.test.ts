import assert from 'node:assert/strict'
import { test } from 'node:test'
import { relayFor } from '../../support/relay'
import { group, post, texts } from './support'

/** Whether the engine of the templates is in memory. */
function isEngineLoaded(): boolean {
  return Object.keys(require.cache).some(file => /[/\\]liquidjs[/\\]/.test(file))
}

// This is a file of its own, because whatever is loaded once in a process stays loaded.
test('the engine of the templates is loaded with the first hook, and a bot that gets none does without', async t => {
  const relay = await relayFor(t)
  assert.equal((await relay.send({ group_id: group, msg: 'a' })).status, 200)
  assert.equal(isEngineLoaded(), false)
  assert.equal((await post(relay, `message/group:${group}`, { text: 'b' })).status, 200)
  assert.equal(isEngineLoaded(), true)
  assert.deepEqual(texts(relay), ['a', 'b'])
})
