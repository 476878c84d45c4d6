import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { fieldsOf, isObject, type JsonObject } from '../../../src/lib/shape'
import { apiKey, askAs, read, useRelay, type Reply } from '../../support/relay'
import { until } from '../../support/until'

const group = '123456'
const relay = useRelay()

/** A request with a key, or with the master key. */
const ask = (method: string, path: string, body?: unknown, key = apiKey): Promise<Reply> => askAs(relay, key, method, path, body)

/** Makes a key; returns it. */
async function make(entry: object): Promise<string> {
  const reply = await ask('POST', '/keys', entry)
  assert.equal(reply.status, 201, reply.body.msg)
  return String(reply.data.key)
}

async function list(key?: string): Promise<JsonObject[]> {
  const { keys } = (await ask('GET', '/keys', undefined, key)).data
  assert(Array.isArray(keys))
  return keys.filter(isObject)
}

/** The status of a message to a group. */
async function send(key: string, to = group): Promise<number> {
  return (await ask('POST', '/webhook', { to: `group:${to}`, msg: 'hello' }, key)).status
}

beforeEach(async () => {
  for (const { name, source } of await list()) if (source === 'made') await ask('DELETE', `/keys/${encodeURIComponent(String(name))}`)
})

describe('a key that is made', () => {
  test('works at once, may what it was made for, and is listed without its secret', async () => {
    const reply = await ask('POST', '/keys', { name: '构建', targets: [`group:${group}`], allow: 'send', rate: 600, from: ['127.0.0.0/8'], expires: '2099-12-31T00:00Z' })
    assert.equal(reply.status, 201)
    const { key, ...view } = reply.data
    assert(typeof key === 'string' && key.length >= 32)
    assert.equal(await send(key), 200)
    assert.equal(await send(key, '654321'), 403)
    assert.equal((await ask('GET', '/statusz', undefined, key)).status, 403)
    assert.equal((await ask('POST', '/keys', { name: 'another' }, key)).status, 403)

    const [shown] = await list()
    const { last_used_at: used, ...rest } = shown ?? {}
    const unused = { accepted: 0, sent: 0, failed: 0, refused: 0 }
    assert.deepEqual(rest, { ...view, accepted: 1, sent: 1, refused: 3 })
    assert.deepEqual({ ...rest, ...unused, created_at: '' }, {
      name: '构建', targets: [`group:${group}`], allow: ['send'], rate: 600, from: ['127.0.0.0/8'], expires: '2099-12-31T00:00:00.000Z', source: 'made', created_at: '', ...unused,
    })
    assert(Date.now() - Date.parse(String(used)) < 60_000)
    const folder = join(relay.uploadDir, '../data')
    const names = (await readdir(folder)).filter(each => each.startsWith('relay.db') && !each.endsWith('.lock'))
    const kept = Buffer.concat(await Promise.all(names.map(name => readFile(join(folder, name)))))
    assert(!kept.includes(key))
    assert(kept.includes(createHash('sha256').update(key).digest('hex')))
    assert(!relay.logs.some(line => line.includes(key)))
    assert(relay.logs.some(line => line.includes('201 the key "构建" was made (by the master key from 127.0.0.1)')))
  })

  test('is there after a restart, and after a removal it is not', async () => {
    const [stays, goes] = [await make({ name: 'stays' }), await make({ name: 'goes' })]
    await ask('DELETE', '/keys/goes')
    assert.equal(await send(goes), 401)
    await relay.reload()
    assert.deepEqual([await send(stays), await send(goes)], [200, 401])
    assert.equal((await ask('DELETE', '/keys/goes')).status, 404)
  })

  test('has been used since its first use, also after a restart', async () => {
    const key = await make({ name: 'ci' })
    assert.deepEqual([await send(key), await send(key)], [200, 200])
    const used = async (): Promise<unknown> => {
      const { keys } = (await ask('GET', '/statusz')).data
      assert(Array.isArray(keys))
      return keys.find(each => fieldsOf(each).name === 'ci')
    }
    const before = await used()
    const { last_used, ...rest } = fieldsOf(before)
    assert.deepEqual(rest, { name: 'ci', last_address: '127.0.0.1', messages: 2, accepted: 2, sent: 2, failed: 0, refused: 0 })
    await relay.reload()
    assert.deepEqual([await used(), (await list())[0]?.last_used_at], [before, last_used])
  })

  test('tells what became of its messages: of each item, of those in digests, and by now where one was sent again', async () => {
    await relay.reload({ targets: { often: { to: `group:${group}`, digest: 1 } }, chatApiMaxRetries: 0 })
    const key = await make({ name: 'ci', targets: `group:${group}` })
    const counts = async (): Promise<unknown[]> => {
      const [{ accepted, sent, failed, refused } = {}] = await list()
      return [accepted, sent, failed, refused]
    }
    const post = async (body: object, more: { query?: string, headers?: object } = {}): Promise<Reply> => read(await fetch(
      `${relay.url}/webhook${more.query ?? ''}`,
      { method: 'POST', headers: { 'x-api-key': key, ...more.headers }, body: JSON.stringify({ group_id: group, ...body }) },
    ))
    assert.deepEqual(await counts(), [0, 0, 0, 0])
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const { status, headers } = await post({ msg: 'a' })
    assert.deepEqual([status, await counts()], [502, [1, 0, 1, 0]])
    assert.equal((await post({ messages: [{ msg: 'b' }, { type: 'image' }] })).status, 200)
    assert.deepEqual(await counts(), [3, 1, 2, 0])
    for (let index = 0; index < 2; index++) assert.equal((await post({ msg: 'c' }, { headers: { 'idempotency-key': 'c' } })).status, 200)
    assert.equal((await post({ msg: 'd' }, { query: '?dry_run=1' })).status, 200)
    assert.equal((await post({ msg: 'e', platform: 'telegram' })).status, 503)
    assert.equal(await send(key, '654321'), 403)
    assert.deepEqual(await counts(), [5, 2, 3, 1])
    assert.equal((await ask('POST', `/deliveries/${headers.get('x-request-id')}/retry`)).status, 202)
    await until('it was sent again', async () => String(await counts()) === '5,3,2,1')
    for (const msg of ['f', 'g', 'h']) await post({ group_id: undefined, to: 'often', msg })
    await until('the digest has left', async () => String(await counts()) === '8,6,2,1')
    assert.equal(relay.simulator.ledger.filter(({ text }) => /g[^]*h/.test(text)).length, 1)
    await relay.reload()
    assert.deepEqual(await counts(), [8, 6, 2, 1])
    const { keys } = (await ask('GET', '/statusz')).data
    assert(Array.isArray(keys))
    // The digest is no message of the master key, under which the relay keeps it.
    const [master] = keys.map(fieldsOf).filter(({ name }) => name === null)
    assert(master && Number(master.accepted) === Number(master.sent) + Number(master.failed))
  })

  test('is named in the log of a start where it ends within a week', async () => {
    await make({ name: 'soon', expires: new Date(Date.now() + 86_400_000).toISOString() })
    await relay.reload()
    await until('the log tells', () => relay.logs.some(line => line.includes('the key "soon" expires at')), 10_000)
  })

  test('may do nothing more in a request that is under way when it is removed', async () => {
    const key = await make({ name: 'ci' })
    let finish = (): void => undefined
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from(`{"to": "group:${group}",`))
        finish = () => {
          controller.enqueue(Buffer.from('"msg": "too late"}'))
          controller.close()
        }
      },
    })
    const pending = fetch(`${relay.url}/webhook`, { method: 'POST', body, duplex: 'half', headers: { 'x-api-key': key } })
    await until('the request has come', async () => 'last_used_at' in ((await list())[0] ?? {}))
    await ask('DELETE', '/keys/ci')
    finish()
    assert.equal((await read(await pending)).status, 403)
    assert.deepEqual(relay.simulator.ledger, [])
  })

  test('sends to what its names lead to', async () => {
    await relay.reload({ targets: { ops: `group:${group}` } })
    const key = await make({ name: 'ci', targets: 'ops' })
    assert.deepEqual([await send(key), await send(key, '654321')], [200, 403])
    // The name is gone with the settings, and the key covers nothing.
    await relay.reload()
    assert.equal(await send(key), 403)
    assert.equal((await list()).length, 1)
  })

  test('checks signatures with a secret of its own', async () => {
    const { secret, allow, key } = (await ask('POST', '/keys', { name: 'github', signs: true })).data
    assert(typeof secret === 'string' && secret !== key)
    assert.deepEqual(allow, ['hooks'])
    const chosen = 'a-secret-of-the-sender'
    assert.deepEqual((await ask('POST', '/keys', { name: 'gitea', secret: chosen })).data.allow, ['send', 'upload', 'read', 'hooks'])
    const body = JSON.stringify({ zen: 'Keep it logically awesome.', hook_id: 1 })
    const sign = (by: string): string => `sha256=${createHmac('sha256', by).update(body).digest('hex')}`
    const post = async (by: string): Promise<number> => (await fetch(`${relay.url}/hooks/github/group:${group}`, {
      method: 'POST', body, headers: { 'x-github-event': 'ping', 'x-hub-signature-256': sign(by), 'content-type': 'application/json' },
    })).status
    assert.deepEqual([await post(secret), await post(chosen)], [200, 200])
    assert.equal(await post(String(key)), 401)
    const second = String((await ask('POST', '/keys/github/rotate')).data.secret)
    await relay.reload()
    assert.deepEqual([await post(secret), await post(second)], [401, 200])
    const third = String((await ask('POST', '/keys/github/rotate', { grace: 3600 })).data.secret)
    await relay.reload()
    assert.deepEqual([await post(second), await post(third)], [200, 200])
    for (const name of ['github', 'gitea']) await ask('DELETE', `/keys/${name}`)
    assert.deepEqual([await post(second), await post(third)], [401, 401])
  })
})

describe('while the file of the relay cannot be used', () => {
  test('a made key and a made name are a 503 with its reason, and what the settings have goes on', async () => {
    const made = await make({ name: 'ci' })
    await ask('PUT', '/targets/night', 'group:2')
    const fixed = 'the-key-of-the-settings'
    const [path, away] = ['relay.db', 'away.db'].map(name => join(relay.uploadDir, '../data', name)) as [string, string]
    relay.unload()
    await until('the relay has ended', async () => !(await readdir(dirname(path))).includes('relay.lock'))
    await rename(path, away)
    await mkdir(path)
    await relay.reload({ keys: [{ name: 'fixed', key: fixed }] })
    const told = 'relay.db or relay.db-wal in the data folder of the relay is a folder: move it away'
    const refusals: [method: string, path: string, body?: unknown, key?: string][] = [
      ['POST', '/webhook', { to: `group:${group}`, msg: 'x' }, made], ['POST', '/webhook', { to: 'night', msg: 'x' }, fixed],
      ['POST', '/keys', { name: 'more' }], ['POST', '/keys/ci/rotate'], ['DELETE', '/keys/ci'], ['PUT', '/targets/day', 'group:3'], ['DELETE', '/targets/night'],
      ['GET', '/payloads'], ['GET', '/backup'],
    ]
    for (const refused of refusals) {
      const { status, error, msg } = await ask(...refused)
      assert.deepEqual([status, error.id, msg], [503, 'store-down', told], JSON.stringify(refused))
    }
    assert.deepEqual([await send(fixed), await send(apiKey), (await list()).map(({ name }) => name)], [200, 200, ['fixed']])
    await rmdir(path)
    await rename(away, path)
    await relay.reload()
    assert.equal(await send(made, '2'), 200)
    await ask('DELETE', '/targets/night')
  })

  test('files of an earlier release are named in the log', async () => {
    const told = (): boolean => relay.logs.some(line => line.includes('keys.json in the data folder: this release does not read it; make the keys and targets anew'))
    assert(!told())
    await writeFile(join(relay.uploadDir, '../data/keys.json'), '{}')
    await relay.reload()
    assert(told())
  })
})

describe('a rotated key', () => {
  test('is another one, and the old one counts no more, or for its time of grace', async () => {
    const first = await make({ name: 'ci', targets: `group:${group}` })
    const second = String((await ask('POST', '/keys/ci/rotate', {})).data.key)
    assert.deepEqual([await send(first), await send(second)], [401, 200])
    const third = String((await ask('POST', '/keys/ci/rotate', { grace: 3600 })).data.key)
    assert.deepEqual([await send(first), await send(second), await send(third)], [401, 200, 200])
    assert.equal(await send(third, '654321'), 403)
    await relay.reload()
    assert.deepEqual([await send(first), await send(second), await send(third)], [401, 200, 200])
    assert.equal((await list()).length, 1)
    await ask('POST', '/keys/ci/rotate', { grace: 0.01 })
    await until('the grace is over', async () => await send(third) === 401)
    await ask('DELETE', '/keys/ci')
    assert.equal(await send(third), 401)
  })

  test('is none where the one before has expired', async () => {
    await make({ name: 'ci', expires: new Date(Date.now() + 50).toISOString() })
    await until('it has expired', async () => (await ask('POST', '/keys/ci/rotate')).status === 409)
  })

  test('shares its rate with the one before', async () => {
    const first = await make({ name: 'ci', rate: 2 })
    assert.deepEqual([await send(first), await send(first)], [200, 200])
    const second = String((await ask('POST', '/keys/ci/rotate', { grace: 60 })).data.key)
    assert.deepEqual([await send(first), await send(second)], [429, 429])
    const { keys } = (await ask('GET', '/statusz')).data
    assert(Array.isArray(keys))
    assert.deepEqual(keys.filter(each => fieldsOf(each).name === 'ci').map(each => fieldsOf(each).messages), [2])
  })
})

describe('a change that is refused', () => {
  test('names the field', async () => {
    const cases: [entry: object, msg: RegExp][] = [
      [{}, /^name is required$/], [{ name: 'a b' }, /^name must/], [{ name: 'a/b' }, /^name must/], [{ name: 'a:b' }, /^name must/], [{ name: '..' }, /^name must/],
      [{ name: 'x'.repeat(65) }, /^name must/], [{ name: 'console' }, /"console"/], [{ name: 'ci', key: 'a-key-of-my-own-choice' }, /^key must/],
      [{ name: 'ci', allow: ['admin'] }, /^allow must/], [{ name: 'ci', allow: [] }, /^allow must/], [{ name: 'ci', targets: ['nobody'] }, /^targets must/],
      [{ name: 'ci', expires: 'soon' }, /^expires must/], [{ name: 'ci', expires: '2020-12-31' }, /^expires is over/], [{ name: 'ci', rate: 0 }, /^rate must/], [{ name: 'ci', from: 'home' }, /^from must/],
      [{ name: 'ci', signs: 1 }, /^signs must/], [{ name: 'ci', signs: true, allow: ['send'] }, /^a secret for signatures needs hooks/],
      [{ name: 'ci', secret: 'the-secret-of-sentry', allow: ['send'] }, /^a secret for signatures needs hooks/],
      [{ name: 'ci', signs: true, secret: 'the-secret-of-sentry' }, /only one of them/], [{ name: 'ci', secret: 'short' }, /^secret must/],
      [{ name: 'ci', more: 1 }, /no field "more"/],
    ]
    for (const [entry, msg] of cases) {
      const reply = await ask('POST', '/keys', entry)
      assert.equal(reply.status, 400, JSON.stringify(entry))
      assert.match(reply.body.msg, msg)
    }
    assert.equal((await relay.request('/keys', { method: 'POST', body: 'name=ci' })).status, 400)
    assert.equal((await ask('POST', '/keys', { name: 'ci', targets: ['group:1'.repeat(20_000)] })).status, 413)
    assert.deepEqual(await list(), [])
    for (const body of [{ grace: -1 }, { grace: 604_801 }, { grace: '1' }, { graceful: 60 }]) assert.equal((await ask('POST', '/keys/ci/rotate', body)).status, 400)
    assert.equal((await ask('POST', '/keys/ci/rotate')).status, 404)
  })

  test('is a 409 for a secret that some key or secret already has, as long as it counts', async () => {
    const master = 'the-master-key-itself'
    const change = (path: string, body?: object): Promise<Reply> => ask('POST', path, body, master)
    await relay.reload({ apiKey: master, keys: [{ name: 'fixed', key: 'the-key-of-the-settings', secret: 'the-secret-of-the-settings' }] })
    const made = (await change('/keys', { name: 'ci', secret: 'the-secret-of-the-maker' })).data
    const rotated = (await change('/keys/ci/rotate', { grace: 3600 })).data
    const used = [master, 'the-key-of-the-settings', 'the-secret-of-the-settings', made.key, ' the-secret-of-the-maker', rotated.key, rotated.secret]
    for (const secret of used) {
      assert.deepEqual(await change('/keys', { name: 'other', secret }).then(({ status, error }) => [status, error.id]), [409, 'conflict'], String(secret))
    }
    assert.deepEqual((await list(master)).map(({ name }) => name), ['fixed', 'ci'])
    assert.equal((await change('/keys/ci/rotate')).status, 200)
    assert.equal((await change('/keys', { name: 'other', secret: 'the-secret-of-the-maker' })).status, 201)
    await relay.reload()
  })

  test('is none because of a field that is null: that means absent', async () => {
    assert.equal((await ask('POST', '/keys', { name: 'nulls', key: null, signs: null, secret: null, rate: null })).status, 201)
    assert.equal((await ask('POST', '/keys/nulls/rotate', { grace: null })).status, 200)
    assert.equal((await ask('DELETE', '/keys/nulls')).status, 200)
  })

  test('keeps what the settings have, whose names win', async () => {
    const made = await make({ name: 'ci' })
    const fixed = 'the-key-of-the-settings'
    await relay.reload({ keys: [{ name: 'ci', key: fixed, allow: 'read' }, { name: 'ops', key: 'the-key-of-the-others' }] })
    assert.deepEqual([await send(made), await send(fixed)], [401, 403])
    assert.deepEqual((await list()).map(({ name, source }) => [name, source]), [['ci', 'settings'], ['ops', 'settings'], ['ci', 'made']])
    assert.equal((await ask('POST', '/keys', { name: 'ops' })).status, 409)
    for (const [method, path] of [['DELETE', '/keys/ops'], ['POST', '/keys/ops/rotate']] as const) {
      const { status, body } = await ask(method, path)
      assert.deepEqual([status, body.msg], [409, 'this key is in the settings of the relay: change it there'])
    }
    // A key that may read sees itself.
    assert.deepEqual((await list(fixed)).map(({ name }) => name), ['ci', 'ci'])
    assert.equal((await ask('DELETE', '/keys/ci')).status, 200)
    await relay.reload()
  })

  for (const name of ['ci', 'renamed']) {
    test(`leaves the others alone when the settings take a key over as ${name}`, async () => {
      const [moved, other] = [await make({ name: 'ci' }), await make({ name: 'other' })]
      await relay.reload({ keys: [{ name, key: moved }] })
      assert.deepEqual([await send(moved), await send(other)], [200, 200])
      assert.equal((await ask('DELETE', '/keys/ci')).status, 200)
      assert.equal(await send(moved), 200)
      await relay.reload()
    })
  }

  test('is one for a name that is taken, also by one of two at once', async () => {
    const replies = await Promise.all(Array.from({ length: 5 }, (_, index) => ask('POST', '/keys', { name: index < 3 ? 'ci' : `other-${index}` })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 201, 201, 409, 409])
    assert.equal((await list()).length, 3)
  })
})
