import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, later, other, relayWith, takeOffline, type StoredRelay } from './support'

const keys = [
  { name: 'ci', key: 'the-secret-of-ci', allow: ['send', 'read'] },
  { name: 'nightly', key: 'the-secret-of-nightly' },
  { name: 'boss', key: 'the-secret-of-boss', allow: ['manage'], targets: [`group:${group}`], rate: 2 },
  { name: 'elsewhere', key: 'the-secret-of-elsewhere', targets: ['discord:group:*'] },
]

/** Comes before the master key, which every request of the tests has. */
const as = (name: string): Record<string, string> => ({ authorization: `Bearer the-secret-of-${name}` })

async function ask(relay: StoredRelay, name: string, path: string, method = 'GET'): Promise<{ status: number, text: string }> {
  const response = await relay.request(path, { method, headers: as(name) })
  return { status: response.status, text: await response.text() }
}

const idsIn = ({ text }: { text: string }): string[] => [...text.matchAll(/"id":"([^"]+)"/g)].map(([, id = '']) => id)

describe('deliveries', () => {
  test('are listed to their own callers only, whatever waits of others, also after a reload', async t => {
    const relay = await relayWith(t, { config: { keys } })
    const back = await takeOffline(relay)
    const ids: Record<string, string[]> = { ci: [], nightly: [] }
    for (let count = 0; count < 6; count++) {
      const name = count % 3 === 0 ? 'ci' : 'nightly'
      const { status, data } = await relay.post({ group_id: count % 2 === 0 ? group : other, msg: `${count}` }, { ...later, ...as(name) })
      assert.equal(status, 202)
      ids[name]?.unshift(String(data.delivery_id))
    }
    const [newest = '', oldest = ''] = ids.ci ?? []
    const look = async (): Promise<void> => {
      assert.deepEqual(idsIn(await ask(relay, 'ci', '/deliveries')), ids.ci)
      assert.deepEqual(idsIn(await ask(relay, 'ci', '/deliveries?limit=1')), [newest])
      assert.deepEqual(idsIn(await ask(relay, 'ci', `/deliveries?limit=1&before=${newest}`)), [oldest])
      assert.deepEqual(idsIn(await ask(relay, 'ci', `/deliveries?target=group:${group}`)), [oldest])
      assert.deepEqual(idsIn(await ask(relay, 'nightly', '/deliveries')), ids.nightly)
      assert.equal((await relay.list()).length, 6)
      assert.deepEqual((await relay.list('?limit=1')).map(({ key_name: name }) => name), ['nightly'])
      assert.equal((await ask(relay, 'nightly', `/deliveries/${newest}`)).status, 404)
    }
    await look()
    await relay.reload()
    await look()
    await back()
    for (const id of Object.values(ids).flat()) assert.equal((await relay.reaches(id, 'sent')).state, 'sent')
    assert.deepEqual(idsIn(await ask(relay, 'ci', '/deliveries?state=sent')), ids.ci)
  })

  test('are withdrawn and sent again by keys that may manage, as far as their targets and their rate go', async t => {
    const relay = await relayWith(t, { config: { keys, chatApiMaxRetries: 0 } })
    relay.simulator.fault({ fault: { kind: 'refuse' }, times: 3 })
    const ids: string[] = []
    for (const target of [group, other, group]) {
      const { data } = await relay.post({ group_id: target, msg: 'hello' }, { ...later, ...as('nightly') })
      ids.push((await relay.reaches(String(data.delivery_id), 'failed')).id)
    }
    const [mine = '', foreign = '', third = ''] = ids
    for (const name of ['ci', 'nightly']) {
      assert.equal((await ask(relay, name, `/deliveries/${mine}/retry`, 'POST')).status, 403)
      assert.equal((await ask(relay, name, `/deliveries/${mine}`, 'DELETE')).status, 403)
    }
    const refused = await ask(relay, 'boss', `/deliveries/${foreign}/retry`, 'POST')
    assert.equal(refused.status, 403)
    assert.match(refused.text, new RegExp(`this key may not send to group:${other}`))
    assert.equal((await ask(relay, 'boss', `/deliveries/${mine}/retry`, 'POST')).status, 202)
    assert.equal((await relay.reaches(mine, 'sent')).key_name, 'nightly')
    assert.equal((await ask(relay, 'boss', `/deliveries/${third}/retry`, 'POST')).status, 202)
    await relay.reaches(third, 'sent')
    assert.equal((await ask(relay, 'boss', `/deliveries/${third}/retry`, 'POST')).status, 409)

    await takeOffline(relay)
    const queued = await relay.queue('later')
    assert.equal((await ask(relay, 'boss', `/deliveries/${queued}`, 'DELETE')).status, 200)
    assert.equal((await ask(relay, 'boss', '/deliveries?limit=1')).status, 200)
    assert.equal((await ask(relay, 'boss', '/statusz')).status, 403)
  })

  test('are not made for what a key may not send to, which may only be known when the bot is', async t => {
    const relay = await relayWith(t, { config: { keys } })
    for (const headers of [as('elsewhere'), { ...as('elsewhere'), ...later }, { ...as('elsewhere'), 'idempotency-key': 'k' }]) {
      const { status, msg } = await relay.post({ group_id: group, msg: 'hello' }, headers)
      assert.deepEqual([status, msg], [403, `this key may not send to group:${group}`])
    }
    assert.deepEqual(await relay.list(), [])
    assert.equal(relay.texts().length, 0)
    await takeOffline(relay)
    // What is certain without a bot is said without one.
    assert.equal((await relay.post({ platform: 'onebot', group_id: group, msg: 'hello' }, as('elsewhere'))).status, 403)
    // Nor is the Idempotency-Key used up.
    assert.equal((await relay.post({ platform: 'discord', group_id: group, msg: 'other' }, { ...as('elsewhere'), 'idempotency-key': 'k' })).status, 503)
  })

  test('keep the Idempotency-Keys of callers apart, and a key that was changed is the same caller', async t => {
    const relay = await relayWith(t, { config: { keys: [...keys, { name: 'ci', key: 'the-secret-of-ci-since-today' }] } })
    const key = { 'idempotency-key': 'build-42' }
    const bodies = ['ci', 'nightly'].map(name => ({ name, body: { group_id: group, msg: `of ${name}` } }))
    for (const { name, body } of bodies) assert.equal((await relay.post(body, { ...key, ...as(name) })).headers.get('idempotent-replayed'), null)
    const master = { group_id: group, msg: 'of nobody' }
    assert.equal((await relay.post(master, key)).status, 200)
    await relay.reload()
    for (const { name, body } of [...bodies, ...bodies.slice(0, 1).map(first => ({ ...first, name: 'ci-since-today' }))]) {
      const { status, headers } = await relay.post(body, { ...key, ...as(name) })
      assert.deepEqual([status, headers.get('idempotent-replayed')], [200, 'true'])
    }
    assert.equal((await relay.post(master, { ...key, ...as('nightly') })).status, 422)
    assert.deepEqual(relay.texts(), ['of ci', 'of nightly', 'of nobody'])
    // No text that the master key can use is that of another caller.
    assert.equal((await relay.post(master, { 'idempotency-key': 'ci-build-42' })).headers.get('idempotent-replayed'), null)
  })
})
