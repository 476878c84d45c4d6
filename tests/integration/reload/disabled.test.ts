import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, relayWith, type StoredRelay } from '../deliveries/support'
import { until } from '../../support/until'
import { sends } from '../webhook/support'
import { place } from './support'

/** What the plugin may leave behind in the app and in the process. */
function traces({ app }: StoredRelay): Record<string, number> {
  const counts: Record<string, number> = {
    routes: app.server.stack.length,
    sockets: app.server.wsStack.length,
    middlewares: app.$processor._hooks.length,
    exits: process.listenerCount('exit') + process.listenerCount('SIGTERM') + process.listenerCount('SIGINT'),
    timers: countTimers(),
  }
  for (const [name, hooks] of Object.entries(app.lifecycle._hooks)) if (hooks.length > 0) counts[`listeners for ${name}`] = hooks.length
  return counts
}

function countTimers(): number {
  return process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
}

async function assertGone(relay: StoredRelay, clean: Record<string, number>): Promise<void> {
  // A timer of something else may have ended since.
  const seen = (): Record<string, number> => {
    const counts = traces(relay)
    return { ...counts, timers: Math.max(counts.timers ?? 0, clean.timers ?? 0) }
  }
  await until('everything is gone', () => JSON.stringify(seen()) === JSON.stringify(clean)).catch((error: unknown) => {
    assert.deepEqual(seen(), clean)
    throw error
  })
}

test('the plugin disabled for good answers what is under way and what waits within five seconds, and leaves nothing', async t => {
  const config = { commandCallbackUrl: 'http://127.0.0.1:9/', chatSendInterval: 0.1, chatApiTimeout: 30 }
  // The simulator has one for its heartbeats; those of the adapter end some time after the calls that they are for.
  const timers = countTimers() + 1
  const relay = await relayWith(t, { config })
  relay.unload()
  await relay.app.lifecycle.flush()
  await until('the relay has ended', () => traces(relay)['listeners for internal/session'] === undefined)
  const clean = { ...traces(relay), timers }
  await assertGone(relay, clean)
  await relay.reload(config)
  assert.equal((await relay.post({ group_id: group, msg: 'before' })).status, 200)
  relay.simulator.fault({ fault: { kind: 'silent' }, times: Infinity })
  relay.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: Infinity })
  const { answer: open } = await place(relay, 'open')
  const { answer: waiting } = await place(relay, 'waiting')
  const { answer: keyed } = await place(relay, 'keyed', { 'idempotency-key': 'a' })
  await until('the first is at the platform', () => sends(relay).length === 2)
  const made = sends(relay).length
  const start = performance.now()
  relay.unload()
  assert.deepEqual([(await open).status, (await waiting).status, (await keyed).status], [504, 503, 503])
  const time = performance.now() - start
  assert(time < 5_000, `${time} ms`)
  assert.equal(sends(relay).length, made)
  await assertGone(relay, clean)

  relay.simulator.clearFaults()
  await relay.reload(config)
  assert.equal((await relay.post({ group_id: group, msg: 'again' }, { 'idempotency-key': 'a' })).status, 200, 'the key was not used up')
  relay.unload()
  await assertGone(relay, clean)
  assert.deepEqual(relay.texts(), ['before', 'again'])
})

describe('the plugin disabled and enabled again', () => {
  test('lets no request overtake what waits to be sent later whose body is still on its way', async t => {
    const relay = await relayWith(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 1_000 } })
    const { answer: first } = await place(relay, 'first')
    const second = await relay.queue('second')
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const writer = writable.getWriter()
    const third = relay.request('/webhook', { method: 'POST', body: readable, duplex: 'half' })
    let isHere = false
    relay.app.server._http.once('request', () => {
      isHere = true
    })
    await writer.write(Buffer.from('{"group_id":'))
    await until('it is under way', () => isHere)
    relay.unload()
    assert.equal((await first).status, 200)
    await writer.write(Buffer.from(`"${group}","msg":"third"}`))
    await writer.close()
    assert.equal((await third).status, 503)
    await relay.reload()
    await relay.reaches(second, 'sent')
    assert.deepEqual(relay.texts(), ['first', 'second'])
  })
})
