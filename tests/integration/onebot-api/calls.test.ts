import { Universal } from 'koishi'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { beforeEach, describe, test } from 'node:test'
import { isObject } from '../../../src/lib/shape'
import { Simulator } from '../../../simulator'
import { responseTimeout } from '../../support/adapter-timers'
import { apiKey, useRelay } from '../../support/relay'
import { until } from '../../support/until'
import { call, failureOf, group, idsOf, messageIdOf, only, readReply, seen, sends, user } from './support'

const restricted = 'the-secret-of-restricted'
const stranger = 'the-secret-of-stranger'

let start = 0

const relay = useRelay({
  config: {
    keys: [
      { name: 'restricted', key: restricted, allow: ['onebot'], targets: [`group:${group}`], rate: 1000 },
      { name: 'stranger', key: stranger },
    ],
  },
})
beforeEach(() => {
  start = relay.logs.length
})

test('a dry run shows what would be sent, and sends nothing', async () => {
  for (const action of ['send_group_msg', 'send_group_msg_async', 'send_msg']) {
    const { status, body } = await call(relay, `${action}?dry_run=1`, { group_id: group, message: 'a[CQ:at,qq=10001]', echo: 7 })
    assert.equal(status, 200)
    const { data, ...rest } = body
    assert.deepEqual(rest, { retcode: 0, status: 'ok', message: '', wording: '', echo: 7 })
    assert(isObject(data))
    assert.deepEqual([data.dry_run, data.target, data.messages], [
      true, `group:${group}`, [[{ type: 'text', msg: 'a' }, { type: 'at', user_id: '10001' }]],
    ])
  }
  failureOf(await call(relay, 'send_group_msg?dry_run=perhaps', { group_id: group, message: 'a' }), 1400)
  assert.deepEqual(sends(relay), [])
})

test('the group of a temporary chat goes with a private message, and with no other', async () => {
  const file = 'base64://Zg=='
  for (const [action, params, expected] of [
    ['send_private_msg', { user_id: user, group_id: group, message: 'a' }, Number(group)], ['send_private_msg', { user_id: user, message: 'a' }, undefined],
    ['send_msg', { message_type: 'private', user_id: user, group_id: group, message: 'a' }, Number(group)],
    ['upload_private_file', { user_id: user, group_id: group, file, name: 'a' }, Number(group)],
  ] as const) {
    assert.equal((await call(relay, action, params)).retcode, 0)
    assert.equal(relay.simulator.calls.findLast(({ params: { user_id: id } }) => id === Number(user))?.params.group_id, expected)
    assert.equal(relay.simulator.ledger.at(-1)?.target.type, 'private')
  }
})

const logged = (): string => relay.logs.slice(start).join('\n')
const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const bearer = { authorization: `Bearer ${apiKey}` }

const withKey = (init: RequestInit): RequestInit => ({ ...init, headers: { ...bearer, ...Object.fromEntries(new Headers(init.headers)) } })

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${relay.url}/onebot/${path}`, init)
}

describe('parameters', () => {
  const said = `group_id=${group}&message=a%20%26`
  const cases: [what: string, path: string, init: RequestInit, text?: string][] = [
    ['in the query', `send_group_msg?${said}`, {}],
    ['in the query of a POST', `send_group_msg?${said}`, { method: 'POST' }],
    ['behind a slash', `send_group_msg/?${said}`, {}],
    ['as JSON', 'send_group_msg', { method: 'POST', headers: json, body: JSON.stringify({ group_id: group, message: 'a &' }) }],
    ['as JSON with a charset', 'send_group_msg', {
      method: 'POST', headers: { 'content-type': 'Application/JSON; charset=utf-8' }, body: JSON.stringify({ group_id: group, message: 'a &' }),
    }],
    ['as JSON that says nothing of that', 'send_group_msg', { method: 'POST', body: Buffer.from(JSON.stringify({ group_id: group, message: 'a &' })) }],
    ['as JSON that says it is a form', 'send_group_msg', { method: 'POST', headers: form, body: JSON.stringify({ group_id: group, message: 'a &' }) }],
    ['as a form', 'send_group_msg', { method: 'POST', headers: form, body: said }],
    ['in the query in their charset', `send_group_msg?group_id=${group}&message=%B9%B9&charset=gbk`, {}, '构'],
    ['as a form in its charset', 'send_group_msg', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded; charset=gbk' }, body: `group_id=${group}&message=%B9%B9` }, '构'],
    ['as JSON with a raw line break', 'send_group_msg', { method: 'POST', headers: json, body: `{"group_id":${group},"message":"a\nb"}` }, 'a\nb'],
    ['as JSON with a raw line break that says it is a form', 'send_group_msg', { method: 'POST', headers: form, body: `{"group_id":${group},"message":"a\nb"}` }, 'a\nb'],
    ['in the query and as JSON', `send_group_msg?group_id=${group}&message=b`, { method: 'POST', headers: json, body: '{"message":"a &"}' }],
    ['in the query and as a form', `send_group_msg?group_id=1&message=a%20%26`, { method: 'POST', headers: form, body: `group_id=${group}` }],
    ['in the query where the body has null', `send_group_msg?${said}`, { method: 'POST', headers: json, body: '{"message":null}' }],
  ]
  for (const [what, path, init, expected = 'a &'] of cases) {
    test(`are taken ${what}`, async () => {
      messageIdOf(await readReply(await ask(path, withKey(init))))
      const { target, text } = only(relay.simulator.ledger)
      assert.deepEqual({ target, text }, { target: { type: 'group', id: group }, text: expected })
    })
  }

  const refused: [what: string, init: RequestInit, status: number][] = [
    ['no JSON', { headers: json, body: '{"a"' }, 400],
    ['JSON that is no object', { headers: json, body: '[]' }, 400],
    ['JSON that is too deep', { headers: json, body: '['.repeat(1000) }, 400],
    ['a form that is not UTF-8', { headers: form, body: new Uint8Array([0xff]) }, 400],
    ['a form in a charset that nobody names', { headers: form, body: 'message=%B9%B9' }, 400],
    ['a form of very many fields', { headers: form, body: 'a&'.repeat(1_000_000) }, 400],
    ['another type', { headers: { 'content-type': 'text/plain' }, body: 'a' }, 406],
    ['a form of parts', { body: new FormData() }, 406],
    ['no type', { body: new Uint8Array([0x61]) }, 406],
    ['a compressed body', { headers: { ...json, 'content-encoding': 'gzip' }, body: '{}' }, 406],
    ['a body that is too large', { headers: json, body: ' '.repeat(11_000_000) }, 413],
  ]
  for (const [what, init, status] of refused) {
    test(`are a ${status} with ${what}`, async () => {
      const reply = await readReply(await ask(`send_group_msg?group_id=${group}&message=a`, withKey({ method: 'POST', ...init })))
      assert.equal(reply.status, status)
      assert.equal(reply.retcode, 1000 + status)
      assert.equal(sends(relay).length, 0)
    })
  }
})

describe('the key', () => {
  test('may stand in the query, and no log has it', async () => {
    messageIdOf(await readReply(await ask(`send_group_msg?access_token=${apiKey}&group_id=${group}&message=a`)))
    assert.match(logged(), new RegExp(`GET /onebot/:action group:${group} 200 sent`))
    assert(!logged().includes(apiKey))
  })

  test('may stand in the query twice, where that is the same', async () => {
    assert.equal((await readReply(await ask(`get_status?access_token=${apiKey}&access_token=&access_token=${apiKey}`))).retcode, 0)
  })

  test('may stand in either header', async () => {
    for (const headers of [bearer, { 'x-api-key': apiKey }]) assert.equal((await readReply(await ask('get_status', { headers }))).retcode, 0)
  })

  const cases: [what: string, path: string, headers: Record<string, string>, status: number][] = [
    ['there is none', 'send_msg', {}, 401],
    ['it is empty', 'send_msg?access_token=', {}, 401],
    ['it is wrong', 'send_msg?access_token=wrong', {}, 403],
    ['it is wrong in the header', 'send_msg', { authorization: 'Bearer undefined' }, 403],
    ['it is not allowed this', `send_msg?access_token=${stranger}`, {}, 403],
    ['it stands there with different values', `send_msg?access_token=${apiKey}&access_token=wrong`, {}, 403],
    ['it stands there again and again', `send_msg?${Array.from({ length: 500 }, (_, index) => `access_token=${index}`).join('&')}&access_token=${apiKey}`, {}, 403],
    ['there is none, for an unknown action', 'nonsense', {}, 401],
  ]
  for (const [what, path, headers, status] of cases) {
    test(`is a ${status} where ${what}`, async () => {
      const reply = await readReply(await ask(path, { method: 'POST', headers: { ...headers, ...json }, body: '{"echo":1}' }))
      assert.equal(reply.status, status)
      const { message, wording, ...rest } = reply.body
      assert.equal(message, wording)
      assert.deepEqual(rest, { retcode: 1000 + status, status: 'failed', data: null })
      assert.equal(reply.headers.get('www-authenticate'), status === 401 ? 'Bearer' : null)
    })
  }

  test('stands in no line of the log when it is wrong, which says where it came from', async () => {
    await relay.reload()
    await ask('send_msg?access_token=a-wrong-token')
    assert.match(logged(), /GET \/onebot\/:action from 127\.0\.0\.1 403 forbidden: wrong API key/)
    assert(!logged().includes('a-wrong-token'))
  })

  test('decides where messages go', async () => {
    messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: 'a' }, restricted))
    for (const params of [{ group_id: 1001 }, { user_id: user }]) {
      assert.match(failureOf(await call(relay, 'send_msg', { ...params, message: 'b' }, restricted), 1403), /^this key may not send to/)
    }
    assert.match(failureOf(await call(relay, 'send_group_msg', { group_id: group, message: '[CQ:at,qq=all]' }, restricted), 1403), /permission mention-all/)
    assert.deepEqual(seen(relay), ['a'])
  })
})

describe('an action', () => {
  test('is a 404 where the relay has none of this name', async () => {
    for (const action of ['nonsense', '.handle_quick_operation', 'get_msg', 'set_group_kick', 'send_msg_rate_limited', 'get_status_async', 'constructor']) {
      const reply = await readReply(await ask(action, { headers: bearer }))
      assert.deepEqual([reply.status, reply.retcode], [404, 1404], action)
    }
  })

  test('is a 405 with another method, and with one that only looks', async () => {
    for (const method of ['PUT', 'HEAD']) {
      const { status, headers } = await ask(`send_group_msg?group_id=${group}&message=a`, { method, headers: bearer })
      assert.deepEqual([status, headers.get('allow')], [405, 'GET, POST'])
    }
    assert.equal(sends(relay).length, 0)
  })

  test('that sends is answered at once with _async', async () => {
    relay.simulator.fault({ fault: { kind: 'late', ms: 300, delivered: 'then' } })
    for (const action of ['send_msg_async', 'send_group_msg_async']) {
      const { text, headers } = await call(relay, action, { group_id: group, message: action, echo: 'e' })
      assert.equal(text, `{"retcode":1,"status":"async","data":{"delivery_id":"${headers.get('x-request-id') ?? ''}"},"echo":"e"}`)
    }
    assert.deepEqual(seen(relay), [])
    await relay.simulator.until(({ ledger }) => ledger.length === 2)
    assert.deepEqual(seen(relay), ['send_msg_async', 'send_group_msg_async'])
    failureOf(await call(relay, 'send_msg_async', { message: 'a' }), 1400)
  })

  test('tells about the bot and the relay', async () => {
    const manifest: unknown = JSON.parse(await readFile('package.json', 'utf8'))
    assert(isObject(manifest))
    const expected: [string, unknown][] = [
      ['get_status', { online: true, good: true }],
      ['get_version_info', { app_name: 'koishi-plugin-message-relay', app_version: manifest.version, protocol_version: 'v11' }],
      ['get_login_info', { user_id: Number(relay.simulator.selfId), nickname: relay.app.bots[0]?.user?.name }],
      ['can_send_image', { yes: true }],
      ['can_send_record', { yes: true }],
    ]
    for (const [action, data] of expected) assert.deepEqual((await call(relay, action)).body.data, data, action)
  })

  test('lists the groups that the key may send to', async () => {
    const all = (await call(relay, 'get_group_list')).body.data
    assert(Array.isArray(all) && all.length > 1)
    const { body } = await call(relay, 'get_group_list', {}, restricted)
    assert(Array.isArray(body.data))
    assert.deepEqual(body.data, all.filter((each: object) => 'group_id' in each && each.group_id === Number(group)))
    assert.equal(body.data.length, 1)
    relay.simulator.fault({ action: 'get_group_list', fault: { kind: 'refuse', wording: '没有权限' } })
    assert.equal(failureOf(await call(relay, 'get_group_list'), 1502), 'the platform refused it: 没有权限')
  })
})

describe('delete_msg', () => {
  /** The messages that the platform was asked to take back. */
  const recalled = (): unknown[] => relay.simulator.calls.filter(({ action }) => action === 'delete_msg').map(({ params }) => params.message_id)

  test('takes back what the relay has sent, whoever had it sent', async () => {
    const id = messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: 'a' }))
    assert.equal((await call(relay, 'delete_msg', { message_id: id }, restricted)).text, '{"retcode":0,"status":"ok","data":null,"message":"","wording":""}')
    const [other] = idsOf(await relay.send({ group_id: group, msg: 'b' }))
    assert.equal((await call(relay, 'delete_msg', { message_id: other })).retcode, 0)
    assert.deepEqual(recalled(), [id, Number(other)])
    // The platform has it no more.
    failureOf(await call(relay, 'delete_msg', { message_id: other }), 1502)
  })

  test('takes nothing else back', async () => {
    const elsewhere = messageIdOf(await call(relay, 'send_group_msg', { group_id: 1001, message: 'a' }))
    const foreign = relay.simulator.say({ group, user, text: 'of a member' })
    for (const [id, key] of [[elsewhere, restricted], [foreign, apiKey], [12345, apiKey]] as const) {
      assert.equal(failureOf(await call(relay, 'delete_msg', { message_id: id }, key), 1404), 'this relay has sent no such message within the last day')
    }
    failureOf(await call(relay, 'delete_msg', {}), 1400)
    assert.deepEqual(recalled(), [])
  })

  test('is unanswered where the platform does not answer', async () => {
    await relay.reload({ chatApiTimeout: 0.2 })
    const id = messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: 'a' }))
    relay.simulator.fault({ action: 'delete_msg', fault: { kind: 'silent' } })
    assert.equal(failureOf(await call(relay, 'delete_msg', { message_id: id }), 1504), 'the platform did not answer in time')
    await relay.reload()
  })
})

test('a OneBot implementation still dials /onebot by WebSocket', async () => {
  const selfId = '20000'
  const fork = relay.app.plugin<OneBotBot.Config>(OneBotBot, { protocol: 'ws-reverse', path: '/onebot', selfId, responseTimeout })
  const dialling = await Simulator.start({ selfId, reverse: { url: `${relay.url.replace('http', 'ws')}/onebot`, redialInterval: 100 } })
  try {
    await until('it is online', () => relay.app.bots.some(bot => bot.selfId === selfId && bot.status === Universal.Status.ONLINE))
    const { status } = await relay.send({ group_id: group, msg: 'through the other', self_id: selfId })
    assert.equal(status, 200)
    assert.equal(only(dialling.ledger).text, 'through the other')
    messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: 'by a call' }))
    assert.equal((await fetch(`${relay.url}/onebot`, { headers: bearer })).status, 404)
  } finally {
    fork.dispose()
    await dialling.close()
  }
})
