import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { apiKey, askAs, useRelay, type Reply } from '../../support/relay'
import { until } from '../../support/until'
import { left } from '../hooks/support'

const relay = useRelay()
const settings = { targets: { ops: 'group:1', far: { to: ['group:4', 'private:5'], platform: 'discord', selfId: '9', lang: 'en-US' } } }

/** A request with a key, or with the master key. */
const ask = (method: string, path: string, body?: unknown, key = apiKey): Promise<Reply> => askAs(relay, key, method, path, body)

async function list(key?: string): Promise<unknown> {
  return (await ask('GET', '/targets', undefined, key)).data.targets
}

/** Sends to a name. @returns the status, and the groups that it reached */
async function send(to: string, key?: string): Promise<[status: number, groups: unknown[]]> {
  relay.simulator.clear()
  const { status } = await ask('POST', '/webhook', { to, msg: 'hello' }, key)
  return [status, relay.simulator.ledger.map(({ target }) => target.id).sort()]
}

beforeEach(async () => {
  await relay.reload(settings)
  for (const name of ['night', 'both', 'ops', '__proto__']) await ask('DELETE', `/targets/${name}`)
})

describe('a name for targets that is made', () => {
  test('leads there at once, elsewhere when it is changed, and nowhere when it is removed', async () => {
    assert.deepEqual(await send('night'), [404, []])
    const made = await ask('PUT', '/targets/night', 'group:2')
    assert.deepEqual([made.status, made.body.data], [201, { name: 'night', to: ['group:2'], source: 'made' }])
    assert.deepEqual(await send('night'), [200, ['2']])
    const changed = await ask('PUT', '/targets/night', { to: ['group:2', 'group:3'], platform: 'onebot', lang: 'en-US' })
    assert.deepEqual([changed.status, changed.body.data], [200, { name: 'night', to: ['onebot:group:2', 'onebot:group:3'], lang: 'en-US', source: 'made' }])
    assert.deepEqual(await send('night'), [200, ['2', '3']])
    assert.equal((await ask('GET', '/deliveries?target=night')).status, 200)

    await relay.reload(settings)
    assert.deepEqual(await send('night'), [200, ['2', '3']])
    assert.deepEqual((await ask('DELETE', '/targets/night')).body.data, { name: 'night' })
    assert.deepEqual(await send('night'), [404, []])
    assert.equal((await ask('DELETE', '/targets/night')).status, 404)
    for (const change of ['made', 'changed', 'removed']) {
      assert(relay.logs.some(line => line.includes(`the target "night" was ${change} (by the master key from 127.0.0.1)`)), change)
    }
  })

  test('may be Chinese, in a path, in a key, and as a character of two parts', async () => {
    const cafe = 'café群'
    assert.equal((await ask('PUT', `/targets/${encodeURIComponent(cafe.normalize('NFD'))}`, 'group:2')).data.name, cafe)
    for (const name of [cafe, cafe.normalize('NFD')]) {
      assert.deepEqual(await send(name), [200, ['2']])
      for (const path of ['send', 'hooks/message']) assert.equal((await ask('POST', `/${path}/${encodeURIComponent(name)}`, { msg: 'a', text: 'b' })).status, 200)
      await left(relay)
      const made = await ask('POST', '/keys', { name: `k${name.length}`, targets: name })
      assert.deepEqual(await send(name, String(made.data.key)), [200, ['2']])
      assert.deepEqual(await send('group:3', String(made.data.key)), [403, []])
      await ask('DELETE', `/keys/k${name.length}`)
      assert.notDeepEqual((await ask('GET', `/deliveries?target=${encodeURIComponent(name)}`)).data.deliveries, [])
    }
    assert.deepEqual(await send('café群'.replace('c', 'ｃ')), [404, []])
    assert.equal((await ask('DELETE', `/targets/${encodeURIComponent(cafe.normalize('NFD'))}`)).status, 200)
    assert.equal((await ask('PUT', '/targets/%EF%BD%8F%EF%BD%90%EF%BD%93', 'group:2')).status, 400)
  })

  test('is skipped as a way once it is gone or leads to several chats, and that is told', async () => {
    const skipped = async (): Promise<unknown> => {
      const listed = await list()
      assert(Array.isArray(listed))
      return fieldsOf(listed.find(each => fieldsOf(each).name === 'both')).skipped
    }
    await ask('PUT', '/targets/night', 'group:2')
    await ask('PUT', '/targets/both', { first: ['night', 'group:3'] })
    assert.deepEqual([await skipped(), await send('both')], [undefined, [200, ['2']]])
    const warnings = (): number => relay.logs.filter(line => line.includes('targets: "both" does not use "night"')).length
    for (const [count, change] of [['DELETE'], ['PUT', 'group:2'], ['PUT', ['group:2', 'group:4']]].entries()) {
      const [method = '', body] = change
      assert((await ask(String(method), '/targets/night', body)).status < 300)
      assert.deepEqual([await skipped(), await send('both')], method === 'PUT' && count === 1 ? [undefined, [200, ['2']]] : [['night'], [200, ['3']]])
    }
    assert.equal(warnings(), 2)
    await relay.reload(settings)
    await until('it is told again', () => warnings() === 3)
  })

  test('leads to no more chats than a request may have', async () => {
    const chats = (count: number): string[] => Array.from({ length: count }, (_, index) => `group:${index + 1}`)
    const { status, msg } = await ask('PUT', '/targets/crowd', chats(101))
    assert.deepEqual([status, msg], [400, 'more than 100 targets: a request may not have so many, so make several names'])
    assert.equal((await ask('PUT', '/targets/crowd', { to: [...chats(100), 'group:1'] })).status, 201)
    assert.equal((await ask('PUT', '/targets/crowd', { to: chats(101).join() })).status, 400)
    assert.equal((await ask('DELETE', '/targets/crowd')).status, 200)
  })

  test('is listed beside those of the settings, which win', async () => {
    assert.deepEqual(await list(), [
      { name: 'ops', to: ['group:1'], source: 'settings' },
      { name: 'far', to: ['discord:9:group:4', 'discord:9:private:5'], lang: 'en-US', source: 'settings' },
    ])
    for (const method of ['PUT', 'DELETE']) {
      const { status, body } = await ask(method, '/targets/ops', method === 'PUT' ? 'group:2' : undefined)
      assert.deepEqual([status, body.msg], [409, 'this name is in the settings of the relay: change it there'])
    }
    await relay.reload({})
    assert.equal((await ask('PUT', '/targets/ops', 'group:2')).status, 201)
    await relay.reload(settings)
    assert.deepEqual(await send('ops'), [200, ['1']])
    const listed = await list()
    assert(Array.isArray(listed))
    assert.deepEqual(listed.at(-1), { name: 'ops', to: ['group:2'], source: 'made' })
    assert.equal((await ask('DELETE', '/targets/ops')).status, 200)
    assert.deepEqual(await send('ops'), [200, ['1']])
  })

  test('is shown to a key that may send there, and counts for a key that names it', async () => {
    await ask('PUT', '/targets/night', 'group:2')
    await ask('PUT', '/targets/both', ['group:2', 'group:3'])
    const key = String((await ask('POST', '/keys', { name: 'ci', targets: ['night'] })).data.key)
    assert.deepEqual(await list(key), [{ name: 'night', to: ['group:2'], source: 'made' }])
    assert.deepEqual(await send('night', key), [200, ['2']])
    assert.deepEqual(await send('both', key), [403, []])
    await ask('PUT', '/targets/night', ['group:2', 'group:3'])
    assert.deepEqual(await send('both', key), [200, ['2', '3']])
    await ask('DELETE', '/keys/ci')
  })

  test('is refused where it is malformed, with the name of the field', async () => {
    const cases: [name: string, value: unknown, msg: RegExp][] = [
      ['a b', 'group:1', /^a name must/], ['x'.repeat(65), 'group:1', /^a name must/], ['night', 'ops', /^to must/], ['night', [], /^to must/], ['night', 7, /^to must/],
      ['night', {}, /^to must/], ['night', 'group:*', /^to must/], ['night', { to: 'group:1', lang: 'fr' }, /^lang must/],
      ['night', { to: 'group:1', platform: 7 }, /^platform must/], ['night', { to: 'group:1', selfId: '' }, /^selfId must/],
      ['night', { to: 'group:1', policy: {} }, /no field "policy"/], ['night', { to: 'discord:group:1', platform: 'onebot' }, /^to must/],
    ]
    for (const [name, value, msg] of cases) {
      const { status, body } = await ask('PUT', `/targets/${encodeURIComponent(name)}`, value)
      assert.equal(status, 400, JSON.stringify(value))
      assert.match(body.msg, msg)
    }
    // It begins with an underscore, and is no name; nor does it change what objects are.
    assert.equal((await ask('PUT', '/targets/__proto__', 'group:2')).status, 400)
  })
})

describe('a name with ways', () => {
  const url = 'https://hook.example.com/confidential?token=confidential'
  const whole = {
    first: ['group:1', 'ops', 'discord:9:group:3', { url, secret: 'MARKER-of-the-receiver', format: 'apprise' }],
    after: 60, when_unknown: 'next', digest: 30, quiet: { from: '22:00', to: '08:30', zone: 'Asia/Shanghai' }, lang: 'en-US',
  }
  const shown = { name: 'night', ...whole, first: ['group:1', 'ops', 'discord:9:group:3', { url, secret: true, format: 'apprise' }], source: 'made' }

  test('is shown without its secret, which is kept', async () => {
    const made = await ask('PUT', '/targets/night', whole)
    assert.deepEqual([made.status, made.body.data], [201, shown])
    const { name, source, ...again } = shown
    assert.deepEqual([name, source, (await ask('PUT', '/targets/night', { ...again, after: 90 })).body.data], ['night', 'made', { ...shown, after: 90 }])
    await relay.reload(settings)
    assert.deepEqual(fieldsOf((await list() as unknown[]).at(-1)), { ...shown, after: 90 })
    assert(!relay.logs.some(line => /MARKER|confidential/.test(line)))
    for (const [value, msg] of [
      [{ first: [{ url: `${url}2`, secret: true }] }, /secret is true for an address that has no secret yet/],
      [{ first: [{ url, secret: 'whsec_x' }] }, /secret must be/], [{ first: ['night'] }, /"night" must be a name that leads to one chat/],
      [{ first: ['far'] }, /"far" must be/], [{ first: ['group:1'], to: 'group:2' }, /not both/],
    ] as const) {
      const { status, body } = await ask('PUT', '/targets/night', value)
      assert.equal(status, 400)
      assert.match(body.msg, msg)
    }
  })

  test('may be used by a key that has it, which may send to none of its ways directly', async () => {
    await ask('PUT', '/targets/night', whole)
    await ask('PUT', '/targets/both', { first: ['group:1', 'group:2'] })
    const key = String((await ask('POST', '/keys', { name: 'ci', targets: ['both'], allow: ['send', 'read'] })).data.key)
    try {
      assert.deepEqual(await send('both', key), [200, ['1']])
      for (const to of ['group:1', 'ops', 'group:2', 'night']) assert.deepEqual(await send(to, key), [403, []], to)
      assert.deepEqual((await send('both,ops', key))[0], 403)
      assert.deepEqual(await list(key), [{ name: 'both', first: ['group:1', 'group:2'], after: 120, when_unknown: 'stop', source: 'made' }])
      assert.equal((await ask('GET', '/deliveries?target=both')).status, 200)
      const first = String((await ask('POST', '/keys', { name: 'first', targets: ['group:1'], allow: ['send'] })).data.key)
      assert.deepEqual([await send('both', first), await send('group:1', first)], [[403, []], [200, ['1']]])
      await ask('DELETE', '/keys/first')
      const other = String((await ask('POST', '/keys', { name: 'all', targets: ['night'], allow: ['send', 'read'] })).data.key)
      const [seen] = await list(other) as unknown[]
      assert.deepEqual(fieldsOf(seen).first, ['group:1', 'ops', 'discord:9:group:3', { url: 'https://hook.example.com', secret: true, format: 'apprise' }])
      await ask('DELETE', '/keys/all')
    } finally {
      await ask('DELETE', '/keys/ci')
    }
  })
})
