import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { beforeEach, describe, test } from 'node:test'
import { isObject } from '../../../src/lib/shape'
import { scopes, type Scope } from '../../../src/access/scopes'
import { plainPath } from '../../support/openapi'
import { OtherBot } from '../../support/other-bot'
import { apiKey, read, useRelay, type Reply } from '../../support/relay'
import { assertFailure, Wire } from './support'

const group = '123456'
const id = '01a1f888-5efd-759b-8a19-306f0428960e'
const secretOf = (name: string): string => `the-secret-of-${name}`

let start = 0

const relay = useRelay({
  setup(app) {
    // So that a target alone does not say where a message goes.
    app.plugin(OtherBot, {})
  },
})
beforeEach(() => {
  start = relay.logs.length
})

/** An entry of the setting `keys`. */
interface Entry extends Readonly<Record<string, unknown>> {
  name: string
}

/** Loads the relay with these keys; each has its secret unless it says otherwise. */
async function load(keys: readonly Entry[], more: object = {}): Promise<void> {
  await relay.reload({ keys: keys.map(key => ({ key: secretOf(key.name), ...key })), ...more })
}

async function ask(key: string, path: string, init: RequestInit = {}): Promise<Reply> {
  return read(await fetch(relay.url + path, { ...init, headers: [['authorization', `Bearer ${key}`], ...new Headers(init.headers)] }))
}

function send(key: string, body: object, headers: Record<string, string> = {}): Promise<Reply> {
  return ask(key, '/webhook', { method: 'POST', body: JSON.stringify({ msg: 'hello', ...body }), headers })
}

const logged = (): string => relay.logs.slice(start).join('\n')
const sent = (): number => relay.simulator.ledger.length

describe('each scope and each route', () => {
  /** Which scopes a route takes; whatever route is added has to be added here. */
  const decisions: Readonly<Record<string, readonly Scope[] | 'anyone'>> = {
    'GET /healthz': 'anyone',
    'GET /readyz': 'anyone',
    'GET /media/:folder/:name': 'anyone',
    'GET /statusz': ['read'],
    'GET /metrics': ['read'],
    'POST /upload': ['upload'],
    'POST /webhook': ['send'],
    'POST /send/:targets': ['send'],
    'PUT /send/:targets': ['send'],
    'PUT /send/:targets/:name': ['send'],
    'POST /hooks/:source/:targets': ['hooks'],
    'PUT /hooks/:source/:targets': ['hooks'],
    'GET /hooks/:source/:targets': ['hooks'],
    'GET /payloads': ['read', 'manage'],
    'GET /payloads/:source': ['read', 'manage'],
    'GET /deliveries': ['read', 'manage'],
    'GET /deliveries/:id': ['read', 'manage'],
    'GET /deliveries/counts': ['read', 'manage'],
    'GET /deliveries/:id/items': ['manage'],
    'GET /deliveries/:id/items/:index': ['manage'],
    'DELETE /deliveries/:id': ['manage'],
    'POST /deliveries/:id/retry': ['manage'],
    'POST /deliveries/retry': ['manage'],
    'GET /queues': ['read', 'manage'],
    'POST /queues/:queue/resume': ['manage'],
    'DELETE /queues/:queue': ['manage'],
    'GET /keys': ['read'],
    'POST /keys': [],
    'POST /keys/:name/rotate': [],
    'DELETE /keys/:name': [],
    'GET /backup': [],
    'GET /targets': ['read'],
    'PUT /targets/:name': [],
    'DELETE /targets/:name': [],
    'GET /people': ['read'],
    'PUT /people/:name': [],
    'DELETE /people/:name': [],
    'GET /rotas': ['read'],
    'PUT /rotas/:name': [],
    'DELETE /rotas/:name': [],
    'POST /rotas/:name/swaps': [],
    'GET /incidents': ['read', 'manage'],
    'GET /incidents/:id': ['read', 'manage'],
    'POST /incidents/:id/:action': ['manage'],
    'GET /beats': ['read'],
    'GET /beats/:name': ['read'],
    'PUT /beats/:name': [],
    'DELETE /beats/:name': [],
    'POST /beats/:name/rotate': [],
    'POST /beats/:name/pause': [],
    'POST /beats/:name/resume': [],
    'POST /beats/:name': ['send'],
    'POST /beats/:name/:sign': ['send'],
    'GET /ping/:secret': 'anyone',
    'POST /ping/:secret': 'anyone',
    'GET /ping/:secret/:sign': 'anyone',
    'POST /ping/:secret/:sign': 'anyone',
    'GET /templates/:source': [],
    'PUT /templates/:source': [],
    'DELETE /templates/:source': [],
    'POST /templates/:source/preview': [],
    'GET /contacts': ['send', 'hooks', 'onebot'],
    'GET /onebot/:action': ['onebot'],
    'POST /onebot/:action': ['onebot'],
  }

  /** The routes of the plugin, as the server has them. */
  async function routes(): Promise<[method: string, path: string][]> {
    const { stack } = relay.app.server
    const paths = stack.map(({ path }) => path)
    relay.unload()
    const others = new Set(stack.map(({ path }) => path))
    await load([...scopes.map(scope => ({ name: scope, allow: [scope] })), { name: 'bound', sources: ['github'], allow: ['hooks', 'mention-all', 'read'] }])
    const found: [string, string][] = []
    for (const path of new Set(paths.filter(each => !others.has(each)).map(plainPath))) {
      const { headers } = await read(await relay.request(concrete(path), { method: 'PATCH' }))
      for (const method of (headers.get('allow') ?? '').split(', ')) if (method !== 'HEAD') found.push([method, path])
    }
    return found
  }

  const concrete = (path: string): string => path.replace(/:\w+/g, id)

  /** The status of an answer and its words, in whatever shape it comes. */
  async function meet(key: string, path: string, method: string): Promise<{ status: number, msg: string }> {
    const response = await fetch(relay.url + concrete(path), { method, headers: { authorization: `Bearer ${key}` } })
    // Metrics are no envelope.
    if (response.headers.get('content-type')?.startsWith('text/plain')) return { status: response.status, msg: await response.text() }
    const body: unknown = await response.json()
    assert(isObject(body))
    return { status: response.status, msg: String(body.msg ?? body.message) }
  }

  test('have a decision, and it is the one that holds', async () => {
    const found = await routes()
    assert.deepEqual(found.map(route => route.join(' ')).sort(), Object.keys(decisions).sort())
    for (const [method, path] of found) {
      const decision = decisions[`${method} ${path}`]
      for (const scope of scopes) {
        const { status, msg } = await meet(secretOf(scope), path, method)
        const isAllowed = decision === 'anyone' || decision?.includes(scope)
        assert.equal(status === 403, !isAllowed, `${scope}: ${method} ${path} ${status}`)
        if (status === 403) assert.match(msg, new RegExp(`^this key may not do this: it lacks the permission ${[decision ?? []].flat().join('(?:, | or )')}`))
        else if (!path.startsWith('/media')) assert.notEqual(status, 401)
      }
      const { status, msg } = await meet(secretOf('bound'), path, method)
      const mayRead = decision === 'anyone' || decision?.includes('read')
      // The relay tells where the key may send before it tells that the source in the address is none.
      assert.equal(status === 403, !mayRead && path !== '/contacts', `a key for github: ${method} ${path} ${status}`)
      if (status === 403) assert.match(msg, /^this key may not do this: it .*can only send through \/hooks\/github$/)
      for (const key of ['not-any-of-the-keys', '']) {
        const { status } = await meet(key, path, method)
        // OneBot 11 tells a wrong key from none.
        const refusal = path.startsWith('/onebot') && key !== '' ? 403 : 401
        if (!path.startsWith('/media')) assert.equal(status === refusal, decision !== 'anyone', `${method} ${path} ${key}`)
      }
    }
  })

  test('that says nothing may send, upload and read, and no more', async () => {
    await load([{ name: 'ci' }])
    assert.equal((await send(secretOf('ci'), { group_id: group })).status, 200)
    assert.equal((await ask(secretOf('ci'), '/statusz')).status, 200)
    assert.equal((await ask(secretOf('ci'), '/upload', { method: 'POST' })).status, 415)
    assert.equal((await ask(secretOf('ci'), `/deliveries/${id}`, { method: 'DELETE' })).status, 403)
  })

  test('are looked at before a body is read', async () => {
    await load([{ name: 'ci', allow: ['read'] }])
    for (const [path, scope] of [['/webhook', 'send'], ['/upload', 'upload']] as const) {
      const wire = await Wire.open(relay.url)
      wire.send([`POST ${path} HTTP/1.1`, 'Host: relay', `X-API-Key: ${secretOf('ci')}`, 'Content-Length: 20000000'])
      assertFailure(await wire.answer(), 403, `this key may not do this: it lacks the permission ${scope}`)
    }
    // The folder is made with the first upload, also where that is refused.
    assert.deepEqual(await readdir(relay.uploadDir).catch(() => []), [])
  })
})

describe('a key', () => {
  test('comes from the environment as well, and no line has it', async () => {
    process.env.WEBHOOK_KEYS = JSON.stringify([{ name: 'ci', key: secretOf('ci') }, { name: 'short', key: 'too-short' }])
    try {
      await relay.reload()
    } finally {
      delete process.env.WEBHOOK_KEYS
    }
    assert.equal((await send(secretOf('ci'), { group_id: group })).status, 200)
    assert(logged().includes('keys (WEBHOOK_KEYS)'))
    assert.match(logged(), /warn keys: entry 2 \("short"\) is refused: key must be/)
    assert(!logged().includes(secretOf('ci')) && !logged().includes('too-short'), logged())
  })

  test('of one name shows when and from where it was used, to those that may manage', async () => {
    await load([
      { name: 'two', key: secretOf('old') }, { name: 'two', key: secretOf('new'), targets: ['group:1'] }, { name: 'idle' }, { name: 'watch', allow: ['read'] },
    ])
    const before = Date.now()
    assert.equal((await send(secretOf('old'), { group_id: group, messages: [{ msg: 'a' }, { msg: 'b' }] })).status, 200)
    assert.equal((await send(secretOf('new'), { group_id: group })).status, 403)
    const { body: { data } } = await ask(apiKey, '/statusz')
    assert(isObject(data) && Array.isArray(data.keys))
    const [master, two, ...others] = data.keys.filter(isObject)
    assert(master && two)
    assert.equal(master.name, null)
    const { last_used: lastUsed, ...rest } = two
    assert.deepEqual(rest, { name: 'two', last_address: '127.0.0.1', messages: 2, accepted: 2, sent: 2, failed: 0, refused: 1 })
    assert(Date.parse(String(lastUsed)) >= before && Date.parse(String(lastUsed)) <= Date.now())
    const none = { messages: 0, accepted: 0, sent: 0, failed: 0, refused: 0 }
    assert.deepEqual(others, [{ name: 'idle', ...none }, { name: 'watch', ...none }])
    assert(!JSON.stringify((await ask(secretOf('watch'), '/statusz')).body).includes('keys'))
  })

  test('is refused in the same words when it is wrong, unknown, expired or comes from elsewhere', async () => {
    await load([
      { name: 'expired', expires: '2001-01-01' }, { name: 'elsewhere', from: ['10.0.0.0/8'] }, { name: 'sentry', key: '', secret: secretOf('sentry') },
    ])
    const answers = []
    for (const key of [secretOf('nobody'), secretOf('expired'), secretOf('elsewhere'), secretOf('sentry'), `${apiKey}x`]) {
      const { status, headers, body } = await send(key, { group_id: group })
      answers.push({ status, body, challenge: headers.get('www-authenticate') })
    }
    assert.deepEqual(new Set(answers.map(answer => JSON.stringify(answer))).size, 1)
    assert.equal(answers[0]?.status, 401)
    assert.equal(sent(), 0)
  })

  test('is named in the log line of its requests, and in the record', async () => {
    await load([{ name: 'GitHub 一号' }])
    const { headers } = await send(secretOf('GitHub 一号').replace('一号', Buffer.from('一号').toString('latin1')), { group_id: group })
    const request = headers.get('x-request-id') ?? ''
    assert.match(logged(), new RegExp(`${request} POST /webhook group:${group} key "GitHub 一号" 200 sent \\d`))
    const { body } = await ask(apiKey, `/deliveries/${request}`)
    assert(JSON.stringify(body.data).includes('"key_name":"GitHub 一号"'))
    const { headers: own } = await send(apiKey, { group_id: group })
    const { body: record } = await ask(apiKey, `/deliveries/${own.get('x-request-id')}`)
    assert(!JSON.stringify(record.data).includes('key_name'))
  })
})

describe('the targets of a key', () => {
  const targets = { ops: 'group:1', elsewhere: 'other:group:2', both: ['group:3', 'private:4'] }
  const cases: [allowed: string[], body: object, status: number][] = [
    [['group:1'], { group_id: '1' }, 200],
    [['group:1'], { to: 'ops' }, 200],
    [['group:1'], { to: 'other:group:1' }, 200],
    [['group:1'], { to: 'elsewhere' }, 403],
    [['ops'], { group_id: '1' }, 200],
    // Without a platform a message goes through OneBot here.
    [['onebot:group:1'], { group_id: '1' }, 200],
    [['other:group:1'], { group_id: '1' }, 403],
    [['other:group:1'], { group_id: '1', self_id: 'me' }, 200],
    [['other:group:1'], { group_id: '1', platform: 'onebot' }, 403],
    [['o*:group:1'], { group_id: '1', platform: 'other' }, 200],
    [['elsewhere'], { to: 'elsewhere' }, 200],
  ]
  for (const [allowed, body, status] of cases) {
    test(`${allowed.join()}: ${JSON.stringify(body)} is a ${status}`, async () => {
      await load([{ name: 'ci', targets: allowed }], { targets })
      const answer = await send(secretOf('ci'), body)
      assert.equal(answer.status, status, answer.body.msg)
      if (status === 403) assert.equal(sent(), 0)
      const dry = await ask(secretOf('ci'), '/webhook?dry_run=1', { method: 'POST', body: JSON.stringify({ msg: 'hello', ...body }) })
      assert.deepEqual([dry.status, dry.body.msg], [status, answer.body.msg])
    })
  }

  test('count for all of several before anything is sent, wherever the platform is that nobody has named', async () => {
    await load([{ name: 'ci', targets: ['onebot:group:1', 'other:group:2'], allow: ['send', 'hooks'], rate: 1 }], { targets: { two: ['group:1', 'group:2'] } })
    for (const [path, body] of [
      ['/webhook', '{"to":["group:1","group:2"],"msg":"x"}'],
      ['/webhook', '{"to":"two","msg":"x"}'],
      ['/webhook', '{"to":["group:2"],"msg":"x"}'],
      ['/webhook?dry_run=1', '{"to":["group:1","group:2"],"msg":"x"}'],
      ['/send/group:1,group:2', 'x'],
      ['/hooks/message/two', 'x'],
    ] as const) {
      const { status, body: { msg } } = await ask(secretOf('ci'), path, { method: 'POST', body })
      assert.deepEqual([status, msg], [403, `this key may not send to ${path.includes('hooks') || body.includes('"two"') ? 'two' : 'group:2'}`], path)
    }
    assert.equal(sent(), 0)
    // None of them has used up the one message a minute.
    const { status, body: { data } } = await send(secretOf('ci'), { to: ['group:1'] })
    assert.deepEqual([status, isObject(data) && data.success, sent()], [200, 1, 1])
    // The platform may be in the body, which is read later.
    await load([{ name: 'ci', targets: ['other:group:1', 'other:group:2'] }])
    const init = { method: 'POST', body: '{"platform":"other","msg":"x"}', headers: { 'content-type': 'application/json' } }
    assert.equal((await ask(secretOf('ci'), '/send/group:1,group:2?dry_run=1', init)).status, 200)
  })

  test('are told in the words of the caller, so that a name does not give away what it leads to', async () => {
    await load([{ name: 'ci', targets: ['group:5'] }], { targets })
    assert.equal((await send(secretOf('ci'), { to: 'ops' })).body.msg, 'this key may not send to ops')
    assert.equal((await send(secretOf('ci'), { user_id: '10001' })).body.msg, 'this key may not send to private:10001')
    assert.equal((await send(secretOf('ci'), { to: 'nobody' })).status, 404)
  })
})

describe('the rate of a key', () => {
  test('is a 429 with Retry-After past it, items of a batch count one by one, and other keys go on', async () => {
    await load([{ name: 'ci', rate: 3 }, { name: 'other' }])
    assert.equal((await send(secretOf('ci'), { group_id: group, messages: [{ msg: 'a' }, { msg: 'b' }] })).status, 200)
    assert.equal((await send(secretOf('ci'), { group_id: group })).status, 200)
    const { status, headers, body } = await send(secretOf('ci'), { group_id: group })
    assert.equal(status, 429)
    assert.match(body.msg, /^this key has reached its message rate/)
    const wait = Number(headers.get('retry-after'))
    assert(wait >= 1 && wait <= 20, String(wait))
    assert.equal((await send(secretOf('other'), { group_id: group })).status, 200)
    assert.equal((await send(apiKey, { group_id: group })).status, 200)
    assert.equal((await ask(secretOf('ci'), '/statusz')).status, 200)
    assert.equal(sent(), 4)
  })

  test('is not used up by what is refused', async () => {
    await load([{ name: 'ci', rate: 1, targets: ['group:1'] }])
    assert.equal((await send(secretOf('ci'), { group_id: '2' })).status, 403)
    assert.equal((await send(secretOf('ci'), { group_id: '1', msg: '' })).status, 400)
    assert.equal((await send(secretOf('ci'), { group_id: '1' })).status, 200)
  })
})

describe('the address of a caller', () => {
  const from = (address: string) => [{ name: 'ci', from: [address] }]
  const forwarded = (entries: string) => send(secretOf('ci'), { group_id: group }, { 'x-forwarded-for': entries })

  test('is that of the socket, and nothing that the caller writes counts', async () => {
    await load(from('10.1.2.3'))
    for (const entries of ['10.1.2.3', '10.1.2.3, 127.0.0.1', '127.0.0.1, 10.1.2.3']) assert.equal((await forwarded(entries)).status, 401)
    await load(from('127.0.0.0/8'))
    assert.equal((await forwarded('10.1.2.3')).status, 200)
  })

  test('is the entry that the outermost trusted proxy added', async () => {
    await load(from('10.1.2.3'), { trustedProxies: 2 })
    assert.equal((await forwarded('10.1.2.3, 172.16.0.1')).status, 200)
    assert.equal((await forwarded('192.0.2.1, 10.1.2.3, 172.16.0.1')).status, 200)
    assert.equal((await forwarded('10.1.2.3:4711, 172.16.0.1')).status, 200)
    // What stands further left was written by the caller.
    assert.equal((await forwarded('10.1.2.3, 192.0.2.1, 172.16.0.1')).status, 401)
    assert.equal((await forwarded('10.1.2.3, 10.1.2.3, 192.0.2.1, 172.16.0.1')).status, 401)
    // Not through both proxies.
    assert.equal((await forwarded('10.1.2.3')).status, 401)
    assert.equal((await forwarded('unknown, 172.16.0.1')).status, 401)
  })

  test('is not known where a request came through fewer proxies, and that of the socket where it came through none', async () => {
    await load(from('127.0.0.0/8'), { trustedProxies: 2 })
    assert.equal((await forwarded('127.0.0.1')).status, 401)
    assert.equal((await send(secretOf('ci'), { group_id: group })).status, 200)
    assert.equal((await forwarded('127.0.0.9, 172.16.0.1')).status, 200)
  })

  test('stands in the log where a request is refused', async () => {
    await load(from('10.1.2.3'), { trustedProxies: 1 })
    await forwarded('10.9.9.9, 192.0.2.77')
    assert.match(logged(), /POST \/webhook from 192\.0\.2\.77 401 unauthorized: the key "ci" may not be used from there/)
  })
})

test('what is refused is logged once a minute for each address, and keeps nobody away who has a right key', async () => {
  await load([{ name: 'ci', allow: ['read'] }], { trustedProxies: 1 })
  for (let count = 0; count < 50; count++) {
    const headers = { 'x-forwarded-for': `192.0.2.${count % 2}` }
    assert.equal((await send('wrong', { group_id: group }, headers)).status, 401)
    assert.equal((await send(secretOf('ci'), { group_id: group }, headers)).status, 403)
    assert.equal((await ask(secretOf('ci'), '/statusz', { headers })).status, 200)
    assert.equal((await fetch(`${relay.url}/healthz`, { method: 'POST', headers })).status, 405)
  }
  assert.equal(logged().match(/ 405 /g), null)
  assert.equal(logged().match(/ from 192\.0\.2\.\d 40/g)?.length, 2)
})

test('a key is changed under load without a refused request', async () => {
  const old = { name: 'ci', key: secretOf('old') }
  const next = { name: 'ci', key: secretOf('next') }
  await relay.reload({ keys: [old] })
  let current = old.key
  let isOver = false
  const statuses: number[] = []
  const callers = Array.from({ length: 8 }, async (_, caller) => {
    while (!isOver) statuses.push((await send(current, { group_id: String(caller + 1) })).status)
  })
  const answered = async (more: number): Promise<void> => {
    const { length } = statuses
    while (statuses.length < length + more) await new Promise(resolve => setImmediate(resolve))
  }
  await answered(40)
  await relay.update({ keys: [old, next] })
  await answered(40)
  current = next.key
  // Those under way still have the old one.
  await answered(40)
  await relay.update({ keys: [next] })
  await answered(40)
  isOver = true
  await Promise.all(callers)
  assert(statuses.length >= 160)
  assert.deepEqual([...new Set(statuses)], [200])
  assert.equal((await send(old.key, { group_id: group })).status, 401)
})
