import assert from 'node:assert/strict'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { fieldsOf, isObject, listOf } from '../../../src/lib/shape'
import { apiKey, useRelay } from '../../support/relay'
import { until } from '../../support/until'
import { get, group, kinds, other, post, putTemplate, texts } from './support'

const keys = [
  { name: 'hook', key: 'the-key-of-the-hook', allow: ['hooks'], targets: [`group:${group}`] },
  { name: 'ci', key: 'the-key-of-the-ci-job', allow: ['send'] },
  { name: 'slow', key: 'the-key-of-the-slow-one', allow: ['hooks'], rate: 1 },
  { name: 'dry', key: 'the-key-of-the-dry-one', allow: ['hooks'], rate: 1, targets: [`group:${group}`] },
  { name: 'bound', key: 'the-key-of-two-sources', sources: ['deploys', 'message'] },
]

let start = 0

const relay = useRelay({ config: { chatApiMaxRetries: 0, keys, targets: { ops: `group:${group}`, all: [`group:${group}`, `group:${other}`] } } })
beforeEach(() => {
  start = relay.logs.length
})

const logged = (): string => relay.logs.slice(start).join('\n')

describe('a hook', () => {
  test('is sent, and answered with its delivery, which has the record', async () => {
    const { status, body, data, headers } = await post(relay, 'message/ops', { title: 'Backup', message: 'All volumes done' })
    assert.equal(status, 200)
    const { code, msg } = body
    assert.deepEqual({ code, msg, data }, { code: 0, msg: 'ok', data: { delivery_id: headers.get('x-request-id'), state: 'queued' } })
    assert.deepEqual(texts(relay), ['Backup\nAll volumes done'])
    const record = await relay.request(`/deliveries/${String(data.delivery_id)}`)
    assert.match(await record.text(), /"state":"sent"/)
  })

  const forms: [string, string, string | undefined, string][] = [
    ['JSON', '{"text":"a"}', 'application/json', 'a'],
    ['JSON that says it is a form', '{"text":"a"}', 'application/x-www-form-urlencoded', 'a'],
    ['JSON that says nothing', '{"text":"a"}', undefined, 'a'],
    ['a reason that belongs to no object', '{"text":"a","reason":"OOMKilled"}', 'application/json', 'a\nreason: OOMKilled'],
    ['a list with one event', '[{"text":"a"}]', 'application/json', 'a'],
    ['a list of events', '[{"name":"a"},{"name":"b"}]', 'application/json', 'events: a, b'],
    ['a form', 'title=A&text=b+c%21', 'application/x-www-form-urlencoded', 'A\nb c!'],
    ['a form with JSON in it', `payload=${encodeURIComponent('{"text":"a"}')}`, 'application/x-www-form-urlencoded', 'a'],
    ['a form without a field', 'Build failed', 'application/x-www-form-urlencoded', 'Build failed'],
    ...['disk=95%', 'disk = 95 & cpu=7', 'a=%zz', '<b>=&amp;'].map((text): [string, string, string, string] => (
      [`text that curl posts as a form: ${text}`, text, 'application/x-www-form-urlencoded', text]
    )),
    ['plain text', '[build] failed: a=b', 'text/plain', '[build] failed: a=b'],
    ['plain text that says it is JSON', 'Found new image [shop]', 'application/json', 'Found new image [shop]'],
    ['plain text that begins like JSON', '{build} failed', 'text/plain', '{build} failed'],
  ]
  for (const [what, body, type, expected] of forms) {
    test(`may come as ${what}`, async () => {
      const { status, text } = await post(relay, 'message/ops', body, { ...type !== undefined && { headers: { 'content-type': type } } })
      assert.equal(status, 200, text)
      assert.deepEqual(texts(relay), [expected])
    })
  }

  test('may come as GET where its source does, and never as HEAD', async () => {
    assert.equal((await get(relay, 'message/ops?title=Backup&text=done')).status, 200)
    assert.deepEqual(texts(relay), ['Backup\ndone'])
    const refused = await get(relay, 'slack/ops?text=a')
    assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'POST, PUT'])
    for (const [path, method, allow] of [
      ['message/ops?text=a', 'HEAD', 'GET, POST, PUT'], ['uptime-kuma/ops?msg=a', 'HEAD', 'GET, POST, PUT'],
      ['slack/ops?text=a', 'HEAD', 'POST, PUT'], ['slack/ops?text=a', 'DELETE', 'POST, PUT'],
    ] as const) {
      const { status, headers } = await get(relay, path, method)
      assert.deepEqual([status, headers.get('allow')], [405, allow], `${method} ${path}`)
    }
    assert.equal(texts(relay).length, 1)
  })

  test('may come in the query of a POST, with a body beside it or without', async () => {
    const json = { 'content-type': 'application/json' }
    for (const [path, body, headers] of [
      ['message/ops?title=Backup&text=done', undefined, {}], ['message/ops?title=Backup&text=done', '', json],
      ['message/ops?title=Backup&text=a', '{"text":"done"}', json], ['message/ops?title=Backup', new URLSearchParams({ text: 'done' }), {}],
      ['message/ops?title=Backup&text=a', 'done', { 'content-type': 'text/plain' }],
    ] as const) {
      const { status, text } = await post(relay, path, body, { body, headers })
      assert.equal(status, 200, text)
    }
    assert.deepEqual(texts(relay), Array.from({ length: 5 }, () => 'Backup\ndone'))
    const url = `${relay.url}/hooks/uptime-kuma/ops`
    assert.equal((await fetch(`${url}?msg=a`, { method: 'POST', headers: { authorization: `Bearer ${apiKey}` } })).status, 400)
  })

  test('goes to several targets, each with a state of its own', async () => {
    const { status, data } = await post(relay, 'message/all', { text: 'a' })
    assert.equal(status, 200)
    assert.deepEqual([data.total, data.success, data.failed], [2, 2, 0])
    assert(Array.isArray(data.deliveries))
    assert.deepEqual(data.deliveries.map((each: object) => ({ ...each, delivery_id: '' })), [group, other].map(id => (
      { target: `group:${id}`, delivery_id: '', success: true, state: 'queued' }
    )))
    assert.equal((await post(relay, `message/ops,group:${other}`, { text: 'b' })).data.total, 2)
  })

  test('of no source, or for no target, is a 404 that says what the address is', async () => {
    for (const [name, nearest] of [['gihub', 'github'], ['slak', 'slack'], ['GitLab', 'gitlab'], ['alertmanger2', 'alertmanager'], ['pushs', 'push']]) {
      const { status, body } = await post(relay, `${name}/ops`, { text: 'a' })
      assert.deepEqual([status, String(body.msg).startsWith(`no such source: the address is /hooks/${nearest}/<target>; `)], [404, true], name)
    }
    for (const name of ['digest', '-x', 'x'.repeat(65)]) assert.match(String((await post(relay, `${name}/ops`, { text: 'a' })).body.msg), /^no such source: the address is .*uptime-kuma, apprise, slack.*its name must be/)
    for (const method of ['GET', 'POST']) {
      for (const left of ['', '/']) {
        const response = await relay.request(`/hooks${left}`, { method })
        assert.equal(response.status, 404)
        assert.match(await response.text(), /^\{"code":404,"msg":"no such source: the address is \/hooks\/<source>\/<target>/, method)
      }
    }
    const unknown = await post(relay, 'message/nobody', { text: 'a' })
    assert.deepEqual([unknown.status, String(unknown.body.msg).startsWith('no such target')], [404, true])
    for (const left of ['message', 'message/']) {
      const { status, body: { msg } } = await post(relay, left, { text: 'a' })
      assert.deepEqual([status, String(msg).startsWith('the address ends without a target: it is /hooks/message/<target>')], [404, true])
    }
    // A list that lacks one of its targets is not the list that somebody meant.
    for (const targets of ['ops,', ',ops', `ops,,group:${other}`]) assert.equal((await post(relay, `message/${targets}`, { text: 'a' })).status, 404)
    assert.deepEqual(texts(relay), [])
    assert.equal((await post(relay, 'message/group:abc', { text: 'a' })).status, 400)
  })

  test('with a payload that is none is a 400', async () => {
    for (const [source, body] of [
      ['message', {}], ['message', { foo: null }], ['message', '[1]'], ['message', '{"text":"a'], ['message', '"a"'], ['message', '12'],
      ['gitlab', '[1'], ['uptime-kuma', {}], ['apprise', {}], ['wecom', { msgtype: 'text' }],
    ] as const) {
      const { status } = await post(relay, `${source}/ops`, body, { headers: { 'content-type': 'application/json' } })
      assert.equal(status, 400, `${source} ${JSON.stringify(body)}`)
    }
    // Only some sources take text.
    for (const [source, body] of [['message', 'text='], ['dingtalk', 'disk=95%']] as const) {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      assert.equal((await post(relay, `${source}/ops`, body, { headers })).status, 400, source)
    }
    assert.deepEqual(texts(relay), [])
  })

  test('shows with dry_run what would be sent, and sends nothing', async () => {
    const { status, data } = await post(relay, 'slack/ops?dry_run=1', { text: 'a' })
    assert.equal(status, 200)
    assert.deepEqual([data.dry_run, data.messages], [true, [[{ type: 'text', msg: 'a' }]]])
    await post(relay, 'message/ops?dry_run=1', { text: 'long '.repeat(2000) })
    assert.deepEqual(texts(relay), [])
    assert.deepEqual(await readdir(relay.uploadDir).catch(() => []), [])
  })

  test('with a key for some sources comes through these only, and the key sees its deliveries', async () => {
    await putTemplate(relay, 'deploys.liquid', 'Deployed {{ app }}')
    const key = 'the-key-of-two-sources'
    for (const [source, body] of [['deploys', { app: 'shop' }], ['message', { text: 'a' }]] as const) {
      assert.equal((await post(relay, `${source}/ops`, body, { key })).status, 200)
    }
    assert.deepEqual(texts(relay), ['Deployed shop', 'a'])
    const only = 'this key may not do this: it can only send through /hooks/deploys and /hooks/message'
    for (const path of ['apprise/ops', 'apprise/ops?dry_run=1', 'deploy/ops', 'apprise/nobody', 'apprise']) {
      const { status, body } = await post(relay, path, { title: 'a', body: 'b' }, { key })
      assert.deepEqual([status, body.msg], [403, only], path)
    }
    // The answer has the shape of the source.
    assert.deepEqual((await post(relay, 'feishu/ops', { text: 'a' }, { key })).body.msg, only)
    const sent = await fetch(`${relay.url}/send/ops`, { method: 'POST', body: 'a', headers: { 'x-api-key': key } })
    assert.deepEqual([sent.status, fieldsOf(await sent.json()).msg], [
      403, 'this key may not do this: it lacks the permission send, and can only send through /hooks/deploys and /hooks/message',
    ])
    const records = await fetch(`${relay.url}/deliveries`, { headers: { 'x-api-key': key } })
    const { deliveries } = fieldsOf(fieldsOf(await records.json()).data)
    assert(Array.isArray(deliveries))
    assert.deepEqual(deliveries.map(each => fieldsOf(each).door), ['hooks/message', 'hooks/deploys'])
  })

  test('has the same rights and the same rate with dry_run, and uses no key of an event', async () => {
    const by = { key: 'the-key-of-the-dry-one' }
    assert.equal((await post(relay, `message/group:${other}?dry_run=1`, { text: 'a' }, by)).status, 403)
    assert.equal((await post(relay, 'message/ops?dry_run=1', { text: 'a' }, by)).status, 200)
    assert.equal((await post(relay, 'message/ops?dry_run=1', { text: 'a' }, by)).status, 503)
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'dry' }
    for (const query of ['?dry_run=1', '']) assert.equal((await post(relay, `message/ops${query}`, { text: 'a' }, { headers })).status, 200)
    assert.deepEqual(texts(relay), ['a'])
  })

  test('to several targets fails as a whole with fail=any as soon as one has failed', async () => {
    const { status, body, error } = await post(relay, 'message/group:a,ops?fail=any', { text: 'a' })
    assert.deepEqual([status, body.data, error.id, error.success, error.failed], [502, null, 'failed', 1, 1])
    assert.equal((await post(relay, 'message/group:a,ops', { text: 'a' })).status, 200)
  })

  test('that makes no message is shown as the last of its source, and ends a refusal, as one with a message ends both', async () => {
    const last = async (): Promise<(readonly unknown[])[]> => {
      const { refusals, skipped } = fieldsOf(fieldsOf(await (await relay.request('/statusz')).json()).data)
      return [refusals, skipped].map(each => listOf(isObject)(each) ? each.filter(({ door }) => door === 'hooks/github').map(({ reason }) => reason) : [])
    }
    const call = (event: string, body: object, key?: string) => (
      post(relay, 'github/ops', body, { headers: { 'content-type': 'application/json', 'x-github-event': event }, ...key !== undefined && { key } })
    )
    assert.equal((await call('ping', {}, 'a-wrong-key')).status, 401)
    assert.deepEqual(await last(), [['wrong API key'], []])
    assert.equal((await call('ping', {})).status, 200)
    assert.deepEqual(await last(), [[], ['ping events produce no message']])
    const issue = { number: 7, title: 'The cart rounds twice', html_url: 'https://github.com/acme/shop/issues/7' }
    assert.equal((await call('issues', { action: 'opened', issue })).status, 200)
    assert.deepEqual([texts(relay).length, await last()], [1, [[], []]])
  })

  test('that nobody wants to read sends nothing', async () => {
    for (const [event, payload] of [
      ['ping', { zen: 'Keep it logically awesome.' }], ['star', { action: 'created' }], ['workflow_run', { action: 'queued', workflow_run: {} }],
      ['an_event_of_tomorrow', {}],
    ] as const) {
      const { status, data } = await post(relay, 'github/ops', payload, { headers: { 'content-type': 'application/json', 'x-github-event': event } })
      assert.equal(status, 200, event)
      assert.deepEqual([Object.keys(data), typeof data.skipped], [['skipped'], 'string'])
    }
    assert.deepEqual(texts(relay), [])
  })

  test('of a branch may be narrowed to branches', async () => {
    const headers = { 'content-type': 'application/json', 'x-github-event': 'push' }
    const push = (branch: string) => ({
      ref: `refs/heads/${branch}`, before: 'a'.repeat(40), after: 'b'.repeat(40), commits: [{ id: 'b'.repeat(40), message: 'Fix it' }],
      repository: { full_name: 'a/b' }, sender: { login: 'eva' },
    })
    const isTold = async (branch: string): Promise<boolean> => {
      const { data } = await post(relay, 'github/ops?branch=main,release/*', push(branch), { headers })
      return data.skipped === undefined
    }
    const told = await Promise.all(['main', 'release/2', 'release/2/a', 'mainline', 'feature/release/2'].map(isTold))
    assert.deepEqual(told, [true, true, true, false, false])
  })

  test('may tell of thousands of alerts or commits, and not of what only takes memory', async () => {
    const labels = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`label${index}`, 'value']))
    const alerts = Array.from({ length: 3000 }, (_, index) => ({
      status: 'firing', labels: { ...labels, alertname: 'HostDown', instance: `host-${index}` }, annotations: { summary: 'it is down' },
      startsAt: '2026-11-22T01:02:03Z', endsAt: '0001-01-01T00:00:00Z', generatorURL: 'http://prometheus.example.com', fingerprint: `${index}`,
    }))
    const { status, text } = await post(relay, 'alertmanager/ops', { status: 'firing', groupKey: '{}', alerts })
    assert.equal(status, 200, text)
    assert.match(texts(relay).join(), /（3000 个）[^]*还有 2992 个/)
    const flood = await post(relay, 'alertmanager/ops', `{"alerts":[${'{},'.repeat(250_000)}{}]}`)
    assert.deepEqual([flood.status, flood.body.msg], [400, 'the body has more than 250000 values'])
  })

  test('may be narrowed, and what falls out is told why', async () => {
    const down = { heartbeat: { status: 0, msg: 'timeout' }, monitor: { name: 'web' }, msg: 'm' }
    const { status, data } = await post(relay, 'uptime-kuma/ops?status=up', down)
    assert.deepEqual([status, data], [200, { skipped: 'not with a status that was asked for' }])
    assert.deepEqual((await post(relay, 'uptime-kuma/ops?events=message', down)).data, { skipped: 'not one of the events that were asked for' })
    assert.match(logged(), /skipped: not one of the events/)
    assert.equal((await post(relay, 'uptime-kuma/ops?events=heart*&status=down,up&branch=main', down)).status, 200)
    assert.equal(texts(relay).length, 1)
  })

  test('is in the language that is asked for, else in that of the bot', async () => {
    const down = { heartbeat: { status: 0, msg: 'timeout' }, monitor: { name: 'web' } }
    for (const query of ['', '?lang=en-US', '?lang=zh-CN']) await post(relay, `uptime-kuma/ops${query}`, down)
    assert.deepEqual(texts(relay), ['❌ 故障：web\ntimeout', '❌ Down: web\ntimeout', '❌ 故障：web\ntimeout'])
    assert.equal((await post(relay, 'message/ops?lang=fr', { text: 'a' })).status, 400)
    assert.equal((await post(relay, 'message/ops?lang=zh', { text: 'a' })).status, 200)
  })

  test('is read in the markup that its address names, which is no part of the payload', async () => {
    assert.equal((await post(relay, 'message/ops?format=markdown', { text: '**a** [b](https://example.com)' })).status, 200)
    assert.equal((await get(relay, `message/ops?format=html&text=${encodeURIComponent('<b>c</b>&amp;')}`)).status, 200)
    await putTemplate(relay, 'minutes.liquid', '# {{ note }}')
    assert.equal((await post(relay, 'minutes/ops?format=markdown', { note: '**d**' })).status, 200)
    assert.deepEqual(texts(relay), ['a b (https://example.com)', 'c&', 'd'])
    const { status, body } = await post(relay, 'message/ops?format=md', { text: 'a' })
    assert.deepEqual([status, body.msg], [400, 'format must be markdown, html or text'])
  })

  test('is in the language of its target, unless the address asks for another one: each of a list has its own', async t => {
    t.after(() => relay.reload())
    const down = { heartbeat: { status: 0, msg: 'timeout' }, monitor: { name: 'web' } }
    await relay.reload({
      targets: { abroad: { to: `group:${other}`, lang: 'en-US' }, home: { to: 'group:1', lang: 'zh-CN' } },
      keys: [{ name: 'three', key: 'the-key-of-three', allow: ['hooks'], rate: 3 }], language: 'en-US',
    })
    const told = (): string[] => relay.simulator.ledger.map(({ target }, index) => `${target.id} ${texts(relay)[index]}`).sort()
    const [chinese, english] = ['❌ 故障：web\ntimeout', '❌ Down: web\ntimeout']
    for (const query of ['', '?lang=zh-CN']) await post(relay, `uptime-kuma/abroad${query}`, down)
    assert.deepEqual(told(), [`${other} ${english}`, `${other} ${chinese}`].sort())
    relay.simulator.clear()
    const { data } = await post(relay, `uptime-kuma/home,abroad,group:${group}?dry_run=1`, down)
    assert(Array.isArray(data.deliveries))
    const shown = data.deliveries.map(({ messages: [[{ msg }]] }: { messages: [[{ msg: string }]] }) => msg)
    assert.deepEqual(shown, [chinese, english, english])
    const by = { key: 'the-key-of-three' }
    assert.equal((await post(relay, `uptime-kuma/home,abroad,group:${group}`, down, by)).status, 200)
    assert.deepEqual(told(), [`1 ${chinese}`, `${other} ${english}`, `${group} ${english}`].sort())
    assert.equal((await post(relay, 'uptime-kuma/home', down, by)).status, 503)
  })
})

describe('who makes a hook', () => {
  const places: [string, string, Record<string, string>][] = [
    ['a header', '', { authorization: 'Bearer the-key-of-the-hook' }],
    ['another header', '', { 'x-api-key': 'the-key-of-the-hook' }],
    ['Basic', '', { authorization: `Basic ${Buffer.from('any:the-key-of-the-hook').toString('base64')}` }],
    ['key', '?key=the-key-of-the-hook', {}],
    ['access_token', '?access_token=the-key-of-the-hook', {}],
  ]
  for (const [place, query, headers] of places) {
    test(`is told by ${place}`, async () => {
      assert.equal((await post(relay, `message/ops${query}`, '{"text":"a"}', { key: '', headers })).status, 200)
      assert.match(logged(), /POST \/hooks\/message\/:targets group:123456 key "hook" 200/)
      assert(!logged().includes('the-key-of-the-hook') && !texts(relay).join().includes('the-key-of-the-hook'))
    })
  }

  test('is refused without a right key, wherever it stands', async () => {
    const basic = `Basic ${Buffer.from('the-key-of-the-hook:').toString('base64')}`
    for (const [query, headers] of [['', {}], ['?key=wrong', {}], ['', { authorization: basic }], ['?key=', {}]] as const) {
      const { status, body } = await post(relay, `message/ops${query}`, '{"text":"a"}', { key: '', headers })
      assert.equal(status, 401, query)
      assert.equal(body.msg, 'missing or wrong API key: end the address with "?key=<key>", or send "Authorization: Bearer <key>"')
    }
    assert.match(String((await post(relay, 'github/ops', {}, { key: '' })).body.msg), /, or enter a key that signs as the secret$/)
  })

  test('is told by one key in the address, and refused where there are several', async () => {
    const right = 'the-key-of-the-hook'
    const many = Array.from({ length: 500 }, (_, index) => `key=${index}`).join('&')
    for (const query of [`key=${right}&key=wrong`, `access_token=wrong&access_token=${right}`, `${many}&key=${right}`]) {
      const { status, body } = await post(relay, `message/ops?${query}`, '{"text":"a"}', { key: '' })
      assert.equal(status, 401, query)
      assert.match(String(body.msg), /^(key|access_token) stands in the address with different values/)
    }
    assert.equal((await post(relay, `message/ops?key=${right}&key=${right}`, '{"text":"a"}', { key: '' })).status, 200)
    assert.deepEqual(texts(relay), ['a'])
  })

  test('must be allowed hooks, and the target, before its body is read', async () => {
    const huge = 'x'.repeat(11 * 1024 * 1024)
    for (const [key, target, msg] of [
      ['the-key-of-the-ci-job', 'ops', 'this key may not do this: it lacks the permission hooks'],
      ['the-key-of-the-hook', `group:${other}`, `this key may not send to group:${other}`],
      ['the-key-of-the-hook', 'all', 'this key may not send to all'],
    ] as const) {
      const { status, body } = await post(relay, `message/${target}`, huge, { key })
      assert.deepEqual([status, body.msg], [403, msg])
    }
    assert.equal((await post(relay, 'message/ops', huge)).status, 413)
  })

  test('may send no more than its rate, and is asked to come again', async () => {
    assert.equal((await post(relay, 'message/ops', { text: 'a' }, { key: 'the-key-of-the-slow-one' })).status, 200)
    const { status, headers, body } = await post(relay, 'message/ops', { text: 'b' }, { key: 'the-key-of-the-slow-one' })
    assert.equal(status, 503)
    assert(Number(headers.get('retry-after')) > 30)
    assert.equal(body.code, 503)
    assert.deepEqual(texts(relay), ['a'])
  })
})

describe('what a payload says', () => {
  const hostile = '[CQ:at,qq=all] <at id="all"/> <image url="http://127.0.0.1/"/> @everyone &amp; \u0007\u202e\u0000[CQ:image,file=/etc/passwd]'
  const shown = '[CQ:at,qq=all] <at id="all"/> <image url="http://127.0.0.1/"/> @everyone'

  test('is text, whatever it looks like', async () => {
    await post(relay, 'message/ops', { title: hostile, text: hostile })
    await post(relay, 'uptime-kuma/ops', { heartbeat: { status: 0, msg: hostile, time: hostile }, monitor: { name: hostile, url: hostile, hostname: hostile } })
    await post(relay, 'apprise/ops', { title: hostile, message: hostile, type: hostile, attachments: [{ filename: hostile, mimetype: hostile, base64: hostile }] })
    assert.deepEqual(new Set(kinds(relay)), new Set(['text']))
    for (const text of texts(relay)) {
      assert(text.includes(shown), text)

      assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u202e]/)
    }
    assert.equal(texts(relay).length, 3)
  })

  test('is refused in masses', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    assert.equal((await post(relay, 'message/ops', 'a=b&'.repeat(1_000_000), { headers: form })).status, 400)
    assert.equal((await post(relay, 'slack/ops', JSON.stringify({ text: 'a', blocks: Array.from({ length: 250_000 }, () => 1) }))).status, 400)
    assert.equal((await post(relay, 'slack/ops', '['.repeat(100_000))).status, 400)
    assert.equal((await post(relay, 'message/ops', JSON.stringify({ text: 'x'.repeat(10 * 1024 * 1024) }))).status, 413)
    for (const content of ['a', new Blob(['a'])]) {
      const parts = new FormData()
      for (let index = 0; index < 1_001; index++) parts.append(`f${index}`, content)
      const { status, body } = await post(relay, 'message/ops', parts)
      assert.deepEqual([status, body.msg], [413, 'more than 1000 parts in one form'])
    }
    assert.deepEqual(texts(relay), [])
  })
})

describe('the answer to a hook', () => {
  test('of several targets asks to come again only where that may help', async () => {
    const wrong = await post(relay, 'message/group:a,group:b', { text: 'a' })
    assert.deepEqual([wrong.status, wrong.body.code, wrong.headers.get('retry-after'), wrong.error.failed], [400, 400, null, 2])
    const robot = await post(relay, 'dingtalk/group:a,group:b', { msgtype: 'text', text: { content: 'a' } })
    assert.deepEqual([robot.status, robot.body.errcode, robot.headers.get('retry-after')], [400, 400, null])
    assert.deepEqual(texts(relay), [])
  })

  test('is in the shape that robots expect, failures too', async () => {
    const slack = await post(relay, 'slack/ops', { text: 'a' })
    assert.deepEqual([slack.status, slack.type, slack.text], [200, 'text/plain; charset=utf-8', 'ok'])
    const discord = await post(relay, 'discord/ops', { content: 'a' })
    assert.deepEqual([discord.status, discord.text], [204, ''])
    const waited = await post(relay, 'discord/ops?wait=true', { content: 'a' })
    assert.equal(waited.status, 200)
    assert.match(String(waited.body.id), /^\d{17,20}$/)
    for (const [source, body] of [
      ['dingtalk', { msgtype: 'text', text: { content: 'a' } }], ['wecom', { msgtype: 'text', text: { content: 'a' } }],
    ] as const) {
      assert.equal((await post(relay, `${source}/ops`, body)).text, '{"errcode":0,"errmsg":"ok"}')
    }
    assert.equal(
      (await post(relay, 'feishu/ops', { msg_type: 'text', content: { text: 'a' } })).text,
      '{"code":0,"msg":"success","data":{},"StatusCode":0,"StatusMessage":"success"}',
    )
    assert.deepEqual(texts(relay), ['a', 'a', 'a', 'a', 'a', 'a'])
    for (const [source, shape] of [
      ['slack', /^missing or wrong API key/], ['discord', /^\{"message":"missing.*","code":0\}$/], ['dingtalk', /^\{"errcode":401,"errmsg":"missing/],
      ['wecom', /^\{"errcode":401/], ['feishu', /^\{"code":401,"msg":"missing.*"StatusCode":401/],
    ] as const) {
      const { status, text } = await post(relay, `${source}/ops`, {}, { key: 'wrong' })
      assert.equal(status, 401)
      assert.match(text, shape)
    }
  })
})

describe('a source that nobody has described', () => {
  test('is told by its title and text, or by its fields, in any form', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const test = { series: { id: 1, title: 'Test Title' }, episodes: [{ id: 123, title: 'Test title' }], eventType: 'Test', instanceName: 'Sonarr' }
    for (const [source, body, headers] of [
      ['sonarr', test, {}], ['message', test, {}], ['flux', { message: 'failed', severity: 'error' }, {}], ['notes', 'plain text', {}],
      ['ci', 'app=shop&state=%E5%A4%B1%E8%B4%A5', form], ['ci', `payload=${encodeURIComponent('{"app":"shop"}')}`, form],
    ] as const) {
      const { status, text } = await post(relay, `${source}/ops`, body, { headers: { 'content-type': 'application/json', ...headers } })
      assert.equal(status, 200, text)
    }
    const fields = 'eventType: Test\ninstanceName: Sonarr\nseries.title: Test Title\nepisodes: Test title\nseries.id: 1'
    assert.deepEqual(texts(relay), [fields, fields, '❌ failed', 'plain text', 'state: 失败\napp: shop', 'app: shop'])
    assert.equal((await post(relay, 'sonarr/ops', {})).status, 400)
  })

  test('has events and results to select, and sends an event with an ID once', async () => {
    const health = { eventType: 'Health', level: 'warning', message: 'a' }
    for (const query of ['events=Grab', 'status=error']) {
      assert.match(String((await post(relay, `radarr/ops?${query}`, health)).data.skipped), /asked for$/)
    }
    const headers = { 'content-type': 'application/json', 'webhook-id': 'msg_1' }
    for (const query of ['events=Health&status=warn*', 'events=Health&status=warn*']) assert.equal((await post(relay, `radarr/ops?${query}`, health, { headers })).status, 200)
    assert.equal((await post(relay, 'radarr/ops', { status: 'started', app: 'shop' })).status, 200)
    assert.equal(texts(relay).length, 2)
    await putTemplate(relay, 'radarr.liquid', '{{ message }}!')
    assert.equal((await post(relay, 'radarr/ops?events=Health', health)).status, 200)
    assert.equal(texts(relay)[2], 'a!')
  })
})

describe('a template of the operator', () => {
  test('is a source of its own, with JSON or a form', async () => {
    await putTemplate(relay, 'deploys.liquid', '{{ app }} {{ version }}{% if lang == "zh-CN" %} 已部署{% endif %}')
    assert.equal((await post(relay, 'deploys/ops', { app: 'shop', version: 42 })).status, 200)
    assert.equal((await post(relay, 'deploys/ops', new URLSearchParams({ app: 'shop', version: '<43>' }))).status, 200)
    assert.deepEqual(texts(relay), ['shop 42 已部署', 'shop <43> 已部署'])
    assert.equal((await post(relay, 'deploys/ops', {}, { key: 'the-key-of-the-ci-job' })).status, 403)
    const again = await post(relay, 'deploys/ops', { app: 'shop', version: 44 }, { headers: { 'idempotency-key': '44' } })
    assert.deepEqual(await post(relay, 'deploys/ops', { app: 'shop', version: 44 }, { headers: { 'idempotency-key': '44' } }).then(({ data }) => data.delivery_id), again.data.delivery_id)
    assert.equal(texts(relay).length, 3)
    const asked = await get(relay, 'deploys/ops?app=shop')
    assert.deepEqual([asked.status, asked.headers.get('allow')], [405, 'POST, PUT'])
    assert.equal((await get(relay, 'nothing/ops?app=shop')).status, 405)
  })

  const broken: [string, string][] = [
    ['cannot be parsed', '{% if %}{{'], ['names a filter that there is not', '{{ app | nothing }}'],
    ['loops', '{% for a in (1..9999999) %}{{ a }}{% endfor %}'],
    ['loops within loops', '{% for a in (1..9999) %}{% for b in (1..9999) %}{% for c in (1..9999) %}{% endfor %}{% endfor %}{% endfor %}'],
    ['reads another file', '{% render "/etc/passwd" %}'], ['includes another', '{% include "../slack" %}'], ['doubles itself', `{% assign a = "x" %}${'{% assign a = a | append: a %}'.repeat(40)}{{ a }}`],
  ]
  for (const [what, text] of broken) {
    test(`that ${what} leaves the plain fields, and a line in the log`, async () => {
      await putTemplate(relay, 'broken.liquid', text)
      const { status, data } = await post(relay, 'broken/ops', { app: 'shop', nested: { a: 1 }, ok: true })
      assert.equal(status, 200)
      assert.deepEqual(texts(relay), ['app: shop\nnested.a: 1\nok: true'])
      assert.match(logged(), new RegExp(`warn ${String(data.delivery_id)} the template of "broken" failed`))
      assert(!logged().includes('shop'))
    })
  }

  test('that gives nothing sends nothing', async () => {
    await putTemplate(relay, 'silent.liquid', '{% if false %}a{% endif %}')
    assert.deepEqual((await post(relay, 'silent/ops', {})).data, { skipped: 'its template gives no text' })
  })

  test('reaches nothing but the view', async () => {
    await putTemplate(relay, 'reach.liquid', '[{{ constructor }}{{ a.constructor.name }}{{ a.__proto__ }}{{ process.env }}]')
    await post(relay, 'reach/ops', { a: {} })
    assert.deepEqual(texts(relay), ['[]'])
  })

  test('that is malformed is named at start', async () => {
    await putTemplate(relay, 'broken.liquid', '{% if %}')
    await putTemplate(relay, 'bad name.liquid', 'a')
    await relay.reload()
    await until('the warnings are there', () => logged().includes('template "bad name.liquid" cannot be used') && logged().includes('template "broken.liquid" cannot be used'))
    assert(!logged().includes('"deploys.liquid"'))
  })

  test('in a folder that cannot be read is not used, and the log says so', async () => {
    const folder = join(dirname(relay.uploadDir), 'data/templates')
    await rm(folder, { recursive: true, force: true })
    await writeFile(folder, '')
    await relay.reload()
    await until('the warning is there', () => logged().includes(`warn the templates in ${folder} are not used: the folder cannot be read (ENOTDIR)`))
    await rm(folder)
  })
})

describe('a picture', () => {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

  test('is shown from its bytes, or from a host that is allowed; another link stays text', async () => {
    const image = await post(relay, 'wecom/ops', { msgtype: 'image', image: { base64: pixel, md5: '' } })
    assert.equal(image.status, 200, image.text)
    assert.deepEqual(kinds(relay), ['image'])
    relay.simulator.clear()
    const link = 'http://10.0.0.1/secret.png'
    await post(relay, 'discord/ops', { content: 'a', embeds: [{ image: { url: link } }] })
    assert.deepEqual([kinds(relay), texts(relay)], [['text'], [`a\n${link}`]])
    await relay.reload({ keys, targets: { ops: `group:${group}` }, pictureHosts: ['charts.example.com'] })
    const dry = await post(relay, 'discord/ops?dry_run=1', { content: 'a', embeds: [{ image: { url: 'https://charts.example.com/1.png' } }, { image: { url: link } }] })
    assert.deepEqual(dry.data.messages, [[{ type: 'text', msg: `a\n${link}` }, { type: 'image', url: 'https://charts.example.com/1.png' }]])
  })

  test('is fetched from the host that was allowed, however its link is read', async () => {
    await relay.reload({ keys, targets: { ops: `group:${group}` }, pictureHosts: ['charts.example.com'] })
    const urls = ['http://charts.example.com\\@evil.example/x.png', 'http://charts.example.com@evil.example/x.png']
    const dry = await post(relay, 'discord/ops?dry_run=1', { content: 'a', embeds: urls.map(url => ({ image: { url } })) })
    assert.deepEqual(dry.data.messages, [[{ type: 'text', msg: `a\n${urls[1]}` }, { type: 'image', url: 'http://charts.example.com/@evil.example/x.png' }]])
  })
})
