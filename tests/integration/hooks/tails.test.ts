import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKey, askAs, useRelay } from '../../support/relay'
import { group, left, texts } from './support'

/*
 * Clients that know one service, and append its path to whatever address they are given. Their keys stand where the service has them, and
 * nowhere else.
 */

const key = 'the-key-of-a-client'
const relay = useRelay({
  config: {
    keys: [{ name: 'client', key, allow: ['hooks'], targets: ['ops'] }, { name: 'send', key: 'the-key-of-the-sender', allow: ['send'] }],
    targets: { ops: `group:${group}` },
  },
})

interface Call { method?: string, headers?: Record<string, string>, form?: Record<string, string>, json?: object, body?: string }

async function call(path: string, { method, headers = {}, form, json, body }: Call): Promise<{ status: number, text: string }> {
  const sent = json ? JSON.stringify(json) : form ? new URLSearchParams(form) : body
  const init = { method: method ?? (sent === undefined ? 'GET' : 'POST'), headers: { ...json && { 'content-type': 'application/json' }, ...headers } }
  const response = await fetch(relay.url + path, { ...init, ...sent !== undefined && { body: sent } })
  await left(relay)
  return { status: response.status, text: await response.text() }
}

const bark = { title: '签到', body: '已签到' }
const slack = { form: { payload: JSON.stringify({ text: 'm' }) } }
const gotify = { title: 'vzdump', message: 'backup done', priority: 1 }
const robot = { msgtype: 'text', text: { content: 'down' } }
const github = { action: 'opened', issue: { number: 7, title: 'It broke', html_url: 'https://github.com/a/b/issues/7' }, repository: { full_name: 'a/b' }, sender: { login: 'eva' } }
const ntfyAuth = Buffer.from(`Basic ${Buffer.from(`:${key}`).toString('base64')}`).toString('base64url')

const clients: Record<string, [what: string, path: string, call: Call, said: string | RegExp][]> = {
  // Sources: caronc/apprise, plugins/NotifyGotify.py; whyour/qinglong, back/services/notify.ts; proxmox-notify, src/endpoints/gotify.rs
  'of Gotify': [
    ['has the key in its header', '/hooks/push/ops/message', { json: gotify, headers: { 'x-gotify-key': key } }, 'vzdump\nbackup done'],
    ['has the key in the parameter token', `/hooks/push/ops/message?token=${key}`, { form: { title: 't', message: 'm' } }, 't\nm'],
    ['is given an address that ends with a slash', `/hooks/push/ops//message?token=${key}`, { form: { title: 't', message: 'm' } }, 't\nm'],
    ['is given an address with a query', `/hooks/push/ops?key=${key}/message`, { json: gotify }, 'vzdump\nbackup done'],
    ['is given a query, and adds its own', `/hooks/push/ops?lang=en-US&/message?token=${key}`, { json: gotify }, 'vzdump\nbackup done'],
  ],
  // Sources: Finb/bark-server, route_push.go; louislam/uptime-kuma, notification-providers/bark.js; whyour/qinglong, sample/notify.py
  'of Bark': [
    ['has the key in the JSON', '/hooks/push/ops/push', { json: { ...bark, device_key: key } }, '签到\n已签到'],
    ['has several keys in the JSON', '/hooks/push/ops/push', { json: { ...bark, device_keys: ['another', key] } }, '签到\n已签到'],
    ['has all text in the path', '/hooks/push/ops/%E6%A0%87%E9%A2%98/a%2Fb', { headers: { 'x-api-key': key } }, '标题\na/b'],
    ['has the key and the text in the path', `/hooks/push/ops/${key}/disk+full+on+nas`, {}, 'disk full on nas'],
    ['has the key, the title and the text in the path', `/hooks/push/ops/${key}/C%2B%2B/1+1%3D2?group=ci&sound=`, {}, 'C++\n1 1=2'],
    ['has a subtitle, too', `/hooks/push/ops/${key}/title/subtitle/text`, {}, 'title\nsubtitle\ntext'],
    ['has a key of its own before them', `/hooks/push/ops/ynJ5Ft4atkMkWeo2PAvFhF/title/text?key=${key}`, {}, 'title\ntext'],
    ['posts them there, without a body', `/hooks/push/ops/${key}/title/text`, { method: 'POST' }, 'title\ntext'],
    ['has the key behind the target, and appends to it', `/hooks/push/ops/${key}/push`, { json: bark }, '签到\n已签到'],
    ['has the key alone in the path', `/hooks/push/ops/${key}`, { json: bark }, '签到\n已签到'],
  ],
  // Sources: binwiederhier/ntfy, docs/publish.md and client/client.go; louislam/uptime-kuma, server/notification-providers/ntfy.js
  'of ntfy': [
    ['puts its text', '/hooks/message/ops', { method: 'PUT', body: 'Backup done', headers: { authorization: `Bearer ${key}` } }, 'Backup done'],
    ['publishes by GET', `/hooks/message/ops/publish?message=hi&auth=${ntfyAuth}`, {}, 'hi'],
    ['posts JSON with a topic', '/hooks/message', { json: { topic: 'ops', ...gotify }, headers: { authorization: `Bearer ${key}` } }, 'vzdump\nbackup done'],
    ['posts JSON with a topic to an address with a slash', '/hooks/message/', { json: { topic: 'ops', message: 'm' }, headers: { 'x-api-key': key } }, 'm'],
  ],
  // Sources: tucnak/telebot, api.go; whyour/qinglong, sample/notify.js; gotify and Alertmanager as above
  'of Telegram': [
    ['posts JSON', `/hooks/push/ops/bot${key}/sendMessage`, { json: { chat_id: '1', text: 'alarm' } }, 'alarm'],
    ['asks by GET', `/hooks/push/ops/bot${key}/sendMessage?chat_id=1&text=alarm`, {}, 'alarm'],
    ['posts a form with doubled slashes', `//hooks//push//ops//bot${key}//sendMessage`, { form: { chat_id: '1', text: 'alarm' } }, 'alarm'],
  ],
  // Sources: easychen/pushdeer, doc/api/PushDeerOS.md; whyour/qinglong, back/services/notify.ts (Server酱, PushPlus, WxPusher)
  'of PushDeer, Server酱, PushPlus or WxPusher': [
    ['has pushkey', '/hooks/push/ops/message/push', { form: { pushkey: key, text: 't', desp: 'm', type: 'markdown' } }, 't\nm'],
    ['has pushkey in the query', `/hooks/push/ops/message/push?pushkey=${key}&text=alarm`, {}, 'alarm'],
    ['has the key in the path of a SendKey', `/hooks/push/ops/${key}.send`, { form: { title: 't', desp: 'm' } }, 't\nm'],
    ['has token', '/hooks/push/ops/send', { json: { token: key, title: 't', content: 'm' } }, 't\nm'],
    ['has appToken', '/hooks/push/ops/api/send/message', { json: { appToken: key, content: 'm', uids: [] } }, 'm'],
    ['has sptList', '/hooks/push/ops/api/send/message/simple-push', { json: { sptList: ['SPT_a', key], content: 'm', summary: 't' } }, 't\nm'],
  ],
  // Sources: caronc/apprise, plugins/NotifyMattermost.py; netdata, src/health/notifications/alarm-notify.sh.in
  'of Slack, Mattermost or Discord': [
    ['appends hooks and its token', `/hooks/slack/ops/hooks/${key}`, { json: { text: 'm', icon_url: null } }, 'm'],
    ['appends services and its token', `/hooks/slack/ops/services/T0/B0/${key}`, { json: { text: 'm' } }, 'm'],
    ['has the key behind the target', `/hooks/slack/ops/${key}`, { json: { text: 'm' } }, 'm'],
    ['posts to Slack at the address of Discord', `/hooks/discord/ops/${key}/slack`, slack, 'm'],
    ['posts to Slack at the address of Discord, behind its query', `/hooks/discord/ops?key=${key}/slack`, slack, 'm'],
    ['posts an event of GitHub to Discord', `/hooks/discord/ops/github?access_token=${key}`, { json: github, headers: { 'x-github-event': 'issues' } }, /a\/b.*#7[^]*It broke/],
    ['posts to the webhook of Discord', `/hooks/discord/ops/api/webhooks/1/${key}`, { json: { content: 'm' } }, 'm'],
  ],
  // Sources: whyour/qinglong, back/services/notify.ts (QYWX_ORIGIN, dingtalkBot, lark); wecom and dingtalk as a proxy has them
  'of WeCom, DingTalk or Feishu': [
    ['posts to WeCom', `/hooks/wecom/ops/cgi-bin/webhook/send?key=${key}`, { json: robot }, 'down'],
    ['posts to WeCom at the address for all', `/hooks/push/ops/cgi-bin/webhook/send?key=${key}`, { json: robot }, 'down'],
    ['posts to DingTalk', `/hooks/dingtalk/ops/robot/send?access_token=${key}&timestamp=1&sign=a%3D`, { json: robot }, 'down'],
    ['posts to Feishu', `/hooks/feishu/ops/open-apis/bot/v2/hook/${key}`, { json: { msg_type: 'text', content: { text: 'down' } } }, 'down'],
  ],
}

for (const [service, ways] of Object.entries(clients)) {
  describe(`a client ${service} that`, () => {
    for (const [what, path, sent, said] of ways) {
      test(what, async () => {
        const start = relay.logs.length
        const { status, text } = await call(path, sent)
        assert.ok(status === 200 || status === 204, `${status} ${text}`)
        const [told = '', ...others] = texts(relay)
        if (typeof said === 'string') assert.equal(told, said)
        else assert.match(told, said)
        assert.deepEqual(others, [])
        const kept = await Promise.all(['push', 'message', 'slack', 'discord', 'wecom', 'dingtalk', 'feishu', 'github'].map(async source => (
          JSON.stringify(await askAs(relay, apiKey, 'GET', `/payloads/${source}`))
        )))
        const records = await askAs(relay, apiKey, 'GET', '/deliveries?limit=1')
        const seen = [text, told, relay.logs.slice(start).join('\n'), ...kept, JSON.stringify(records)].join('\n')
        assert(!seen.includes(key) && !seen.includes(ntfyAuth), seen)
        assert.match(seen, /(GET|POST|PUT) \/hooks\/[\w-]+\/:targets group:123456 key "client" 20[04]/)
      })
    }
  })
}

/** A field of an answer in JSON, by its names with dots. */
const reader = (text: string) => (path: string): unknown => path.split('.').reduce<unknown>((value, name) => (
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
), JSON.parse(text))

/** What clients look for in an answer, in the sources named above and those named here. */
const checks: Record<string, [tail: string, sent: Call, isSuccess: (at: ReturnType<typeof reader>) => boolean]> = {
  'Alertmanager, by extractOk of telebot': ['bot1:a/sendMessage', { json: { chat_id: '-1001', text: 'a' } }, at => (
    at('ok') === true && Number.isInteger(at('result.message_id')) && Number.isInteger(at('result.date')) && at('result.chat.id') === -1001
  )],
  '青龙 (notify.py), with Telegram': ['bot1:a/sendMessage', { form: { chat_id: '@ops', text: 'a' } }, at => at('ok') === true],
  '青龙 (notify.ts), with Gotify': ['message?token=1', { json: gotify }, at => typeof at('id') === 'number'],
  '青龙 (notify.ts), with Bark': ['', { json: bark }, at => at('code') === 200],
  '青龙 (notify.ts), with Server酱': ['SCT1.send', { form: { title: 'a', desp: 'b' } }, at => at('errno') === 0 || at('data.errno') === 0],
  '青龙 (notify.py), with Server酱': ['SCT1.send', { form: { text: 'a', desp: 'b' } }, at => at('code') === 0],
  '青龙 (notify.ts), with PushPlus': ['send', { json: { token: '1', title: 'a', content: 'b' } }, at => at('code') === 200],
  '青龙 (notify.ts), with WxPusher': ['api/send/message', { json: { appToken: '1', content: 'b' } }, at => at('code') === 1000],
  '青龙 (notify.ts), with Synology Chat': ['', { form: { payload: JSON.stringify({ text: 'a' }) } }, at => at('success') === true],
  '青龙 (notify.ts), with iGot': ['1', { form: { title: 'a', content: 'b' } }, at => at('ret') === 0],
  '青龙 (notify.js), with ntfy': ['', { body: 'a' }, at => Boolean(at('id'))],
  'Uptime Kuma (pushdeer.js)': ['message/push', { json: { pushkey: '1', text: 'a', desp: 'b' } }, at => (
    at('error') === undefined && at('content.result.length') !== 0 && reader(String(at('content.result.0')))('success') === 'ok'
  )],
  'a client of PushDeer in Go (gopushdeer)': ['message/push?pushkey=1&text=a', {}, at => at('code') === 0],
  'ntfy (client/client.go)': ['', { body: 'a' }, at => (
    Number.isInteger(at('time')) && at('event') === 'message' && ['id', 'topic', 'message'].every(name => typeof at(name) === 'string')
  )],
}

describe('a 200 is a success, and a failure is a failure, for', () => {
  for (const [client, [tail, sent, isSuccess]] of Object.entries(checks)) {
    test(client, async () => {
      const headers = { 'x-api-key': key }
      const { status, text } = await call(`/hooks/push/ops/${tail}`, { ...sent, headers })
      assert.equal(status, 200, text)
      assert(isSuccess(reader(text)), text)
      const empty: Call = { ...sent, headers, ...sent.form && { form: {} }, ...sent.json && { json: { chat_id: '1', text: '', parse_mode: 'HTML' } }, ...sent.body !== undefined && { body: ' ' } }
      for (const [path, refused, expected] of [
        [`ops/${tail}`, { ...sent, headers: { 'x-api-key': 'wrong' } }, 401], [`group:654321/${tail}`, { ...sent, headers }, 403],
        [`nobody/${tail}`, { ...sent, headers }, 404], [`ops/${tail.replace('&text=a', '')}`, empty, 400],
      ] as const) {
        for (const source of ['push', 'message']) {
          const answer = await call(`/hooks/${source}/${path}`, refused)
          const at = reader(answer.text)
          assert.deepEqual([answer.status, at('code'), at('description')], [expected, expected, at('msg')], answer.text)
          assert.deepEqual(['ok', 'error_code', 'errcode', 'success'].map(at), [false, expected, expected, false])
          // The envelope has an object there.
          if (source === 'push') assert.equal(at('error'), at('msg'))
          assert(!['id', 'result'].some(name => at(name) !== undefined))
        }
      }
    })
  }

  test('clients of ntfy and Gotify with the envelope of message, too', async () => {
    for (const [tail, type] of [['', 'string'], ['/message', 'number']] as const) {
      const at = reader((await call(`/hooks/message/ops${tail}`, { json: gotify, headers: { 'x-api-key': key } })).text)
      assert.deepEqual(['code', 'msg', 'data.state', 'event', 'topic', 'ok'].map(at), [0, 'ok', 'queued', 'message', 'ops', true])
      assert.equal(typeof at('id'), type)
    }
  })
})

describe('what stands behind the target', () => {
  test('is a key where it is one segment, and never text', async () => {
    for (const sent of [{}, { method: 'POST' }, { json: {} }]) assert.equal((await call(`/hooks/push/ops/disk-full?key=${key}`, sent)).status, 400)
    assert.equal((await call('/hooks/push/ops/disk-full', { json: bark })).status, 401)
    assert.deepEqual(texts(relay), [])
  })

  test('is no text where the request of a client has none', async () => {
    for (const path of [`bot${key}/sendMessage`, `message/push?pushkey=${key}`, `send/${key}`, `${key}/push`]) {
      for (const sent of [{ form: { text: '' } }, ...path.endsWith('/push') ? [] : [{}]]) assert.equal((await call(`/hooks/push/ops/${path}`, sent)).status, 400, path)
    }
    assert.deepEqual(texts(relay), [])
  })

  test('is refused behind a target of a source that has no such clients, and where it is not UTF-8', async () => {
    for (const [path, status] of [[`github/ops/group:${group}`, 404], [`grafana/ops/${key}`, 401], ['push/ops/%C4%E3/%BA%C3', 400]] as const) {
      const { status: answered, text } = await call(`/hooks/${path}`, { json: { text: 'a' }, headers: path.includes(key) ? {} : { 'x-api-key': key } })
      assert.equal(answered, status, text)
      assert.match(text, /^\{/)
    }
    assert.deepEqual(texts(relay), [])
  })
})

describe('a key in the body', () => {
  test('has the rights of its key, and no others', async () => {
    for (const [device_key, target, status] of [['wrong', 'ops', 401], [key, 'group:654321', 403], ['the-key-of-the-sender', 'ops', 403], [key, 'ops', 200]] as const) {
      assert.equal((await call(`/hooks/push/${target}/push`, { json: { ...bark, device_key } })).status, status, device_key)
    }
    assert.equal((await call('/hooks/push/ops/push', { body: `{"device_key":"${key}"` })).status, 401)
    assert.deepEqual(texts(relay), ['签到\n已签到'])
  })

  test('is no part of the event, which is sent once wherever the key stands', async () => {
    const headers = { 'idempotency-key': 'tails' }
    for (const tail of [`/message?token=${key}`, `/bot${key}/sendMessage`, `?key=${key}`, `?&/message?token=${key}`, `/push?device_key=${key}`]) {
      assert.equal((await call(`/hooks/push/ops${tail}`, { json: gotify, headers })).status, 200)
    }
    assert.equal(texts(relay).length, 1)
  })
})
