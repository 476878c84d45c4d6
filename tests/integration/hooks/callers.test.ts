import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { apiKey, startRelay, type TestRelay } from '../../support/relay'
import { pageAt } from '../../docs/support/pages'
import { group, kinds, texts } from './support'

/*
 * What programs send that post a title and a text, or that know a robot, and whether they would take the answer for a success. The requests
 * are those of their sources; what a user enters there is what docs/doors/message.md says.
 */

let relay: TestRelay
/** What a user enters where only an address can be entered. */
let address: string

before(async () => {
  relay = await startRelay({ config: { targets: { ops: `group:${group}` } } })
  address = `${relay.url}/hooks/message/ops?key=${apiKey}`
})
after(() => relay.stop())
afterEach(() => {
  relay.simulator.clear()
})

const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** Asserts that a program takes an answer for a success, and that this was delivered, as text and nothing else. */
async function assertSent(response: Response, ...expected: string[]): Promise<void> {
  assert.equal(response.status, 200, await response.text())
  assert.deepEqual(texts(relay), expected)
  assert.deepEqual(new Set(kinds(relay)), new Set(['text']))
}

// Each puts `/message` behind the address that it is given.
describe('a program that knows Gotify', () => {
  const server = (): string => {
    const entered = /`(https:\/\/relay\.example\.com\/hooks\/message\/ops[^`]*&)`/.exec(pageAt('docs/doors/message.md').text)?.[1] ?? ''
    return entered.replace('https://relay.example.com', relay.url).replace('<key>', apiKey)
  }

  // Source: louislam/uptime-kuma, server/notification-providers/gotify.js
  test('is Uptime Kuma', async () => {
    await assertSent(await fetch(`${server()}/message?token=A4ZudDRdLT40L5X`, {
      method: 'POST', headers: json, body: JSON.stringify({ message: '[Website] [🔴 Down] timeout', priority: 8, title: 'Uptime-Kuma' }),
    }), 'Uptime-Kuma\n[Website] [🔴 Down] timeout')
  })

  // Source: proxmox-notify of Proxmox VE, src/endpoints/gotify.rs
  test('is Proxmox VE, whose token may be the key', async () => {
    const body = JSON.stringify({ title: 'vzdump backup status (pve): backup successful', message: 'Details\n100: ok', priority: 1 })
    for (const [entered, token] of [[server(), 'A4ZudDRdLT40L5X'], [`${relay.url}/hooks/message/ops?`, apiKey]] as const) {
      relay.simulator.clear()
      await assertSent(await fetch(`${entered}/message`, {
        method: 'POST', headers: { ...json, 'authorization': `Bearer ${token}`, 'x-gotify-key': token }, body,
      }), 'vzdump backup status (pve): backup successful\nDetails\n100: ok')
    }
  })

  // Source: https://gotify.net/docs/pushmsg and ADD_MESSAGE_EXAMPLES.md of gotify/server
  test('is curl with a form of parts, or what posts a form', async () => {
    const parts = new FormData()
    for (const [name, value] of [['title', 'my title'], ['message', 'my message'], ['priority', '5']] as const) parts.append(name, value)
    for (const body of [parts, new URLSearchParams({ message: 'my message', title: 'my title' })]) {
      relay.simulator.clear()
      await assertSent(await fetch(`${server()}/message?token=A4ZudDRdLT40L5X`, { method: 'POST', body }), 'my title\nmy message')
    }
  })
})

// Source: home-assistant/core, homeassistant/components/rest/notify.py
describe('notify.rest of Home Assistant', () => {
  const headers = { authorization: `Bearer ${apiKey}` }
  const data = { message: 'The front door is open & nobody is in', title: 'Home Assistant', target: 'ops' }
  const resource = (): string => `${relay.url}/hooks/message/ops`
  const expected = 'Home Assistant\nThe front door is open & nobody is in'

  test('posts JSON', async () => {
    await assertSent(await fetch(resource(), { method: 'POST', headers: { ...headers, ...json }, body: JSON.stringify(data) }), expected)
  })

  test('posts a form, with parameters of its own in the address', async () => {
    const response = await fetch(`${resource()}?lang=zh-CN`, { method: 'POST', headers: { ...headers, ...form }, body: new URLSearchParams(data) })
    await assertSent(response, expected)
  })

  test('asks with GET, unless told otherwise', async () => {
    await assertSent(await fetch(`${resource()}?${new URLSearchParams(data).toString()}`, { headers }), expected)
  })

  test('proves itself by Basic', async () => {
    const basic = { authorization: `Basic ${Buffer.from(`relay:${apiKey}`).toString('base64')}` }
    await assertSent(await fetch(resource(), { method: 'POST', headers: { ...basic, ...json }, body: JSON.stringify(data) }), expected)
  })
})

// Sources: the captures that tests/fixtures/hooks/README.md names, and README.md of chmez/notification and addrum/synology-notifications
describe('a webhook of its own kind in Synology DSM', () => {
  const said = 'A new system event occurred on your nas-1 on 22-11-2026 at 03:00.\nVolume 1 is degraded'

  test('posts its parameters as JSON', async () => {
    await assertSent(await fetch(address, { method: 'POST', headers: json, body: JSON.stringify({ text: said }) }), said)
  })

  test('posts them beside parameters that it needs and nobody else', async () => {
    const body = JSON.stringify({ phone_number: '', message: said })
    await assertSent(await fetch(address, { method: 'POST', headers: json, body }), said)
  })

  test('asks with GET, with the text behind the address', async () => {
    await assertSent(await fetch(`${address}&user=na&password=na&to=na&text=${encodeURIComponent(said)}`), said)
  })
})

// Source: truenas/middleware, src/middlewared/middlewared/alert/service/slack.py and mattermost.py
describe('an alert service of TrueNAS', () => {
  const said = 'TrueNAS @ nas-1  \n  \nNew alerts:\n\n  * Pool &#x27;tank&#x27; is DEGRADED\n\n'
  const expected = 'TrueNAS @ nas-1\n\nNew alerts:\n\n  * Pool \'tank\' is DEGRADED'

  for (const [service, more] of [['Slack', {}], ['Mattermost', { username: 'nas', channel: '', icon_url: '' }]] as const) {
    test(`of the kind ${service} posts to the door of Slack`, async () => {
      const url = `${relay.url}/hooks/slack/ops?key=${apiKey}`
      await assertSent(await fetch(url, { method: 'POST', headers: json, body: JSON.stringify({ ...more, text: said }) }), expected)
    })
  }
})

describe('a program that knows DingTalk', () => {
  const said = { msgtype: 'markdown', markdown: { title: '[DOWN] Website', text: '## [DOWN] Website \n> timeout' } }

  // Sources: server/notification-providers/dingding.js of louislam/uptime-kuma, notifier/notification.go of prometheus-webhook-dingtalk
  test('puts the time and its signature behind the address, and reads errmsg or errcode', async () => {
    for (const body of [said, { ...said, at: { atMobiles: ['13800000000'], isAtAll: true } }]) {
      relay.simulator.clear()
      const url = `${relay.url}/hooks/dingtalk/ops?access_token=${apiKey}`
      const response = await fetch(`${url}&timestamp=1795165964000&sign=c2ln%2B%2F%3D%3D`, {
        method: 'POST', headers: json, body: JSON.stringify(body),
      })
      assert.equal(await response.clone().text(), '{"errcode":0,"errmsg":"ok"}')
      await assertSent(response, '[DOWN] Website\ntimeout')
    }
  })
})

// Source: louislam/uptime-kuma, server/notification-providers/webhook.js
describe('the provider "Webhook" of Uptime Kuma', () => {
  const heartbeat = { monitorID: 7, status: 0, time: '2026-11-20 09:12:44.318', msg: 'timeout', important: true, ping: null }
  const monitor = { id: 7, name: 'Shop', url: 'https://shop.example.com/health', hostname: null, port: null }
  const msg = '[Shop] [🔴 Down] timeout'
  const url = (): string => `${relay.url}/hooks/uptime-kuma/ops?key=${apiKey}&lang=en-US`
  const expected = /^❌ Down: Shop\ntimeout\n.*2026.*\nhttps:\/\/shop\.example\.com\/health$/

  test('posts JSON, or a form of parts with JSON in one of them', async () => {
    const form = new FormData()
    form.append('data', JSON.stringify({ heartbeat, monitor, msg }))
    for (const init of [{ headers: json, body: JSON.stringify({ heartbeat, monitor, msg }) }, { body: form }]) {
      assert.equal((await fetch(url(), { method: 'POST', ...init })).status, 200)
    }
    assert.equal(texts(relay).length, 2)
    for (const text of texts(relay)) assert.match(text, expected)
  })

  test('asks with GET, with JSON in its parameters', async () => {
    const parameters = new URLSearchParams({ msg, heartbeat: JSON.stringify(heartbeat), monitor: JSON.stringify(monitor) })
    assert.equal((await fetch(`${url()}&${parameters.toString()}`)).status, 200)
    assert.match(texts(relay).join(), expected)
    relay.simulator.clear()
    await assertSent(await fetch(`${url()}&${new URLSearchParams({ msg: 'Testing' }).toString()}`), 'Testing')
  })
})

// As https://docs.slack.dev and https://discord.com/developers/docs/resources/webhook have it, for what posts forms.
describe('a robot that is told in a form', () => {
  test('is one of Slack, with the field payload', async () => {
    const said = '#42 (https://ci.example.com/42) failed & more'
    const body = new URLSearchParams({ payload: JSON.stringify({ text: '<https://ci.example.com/42|#42> failed &amp; more' }) })
    await assertSent(await fetch(`${relay.url}/hooks/slack/ops?key=${apiKey}`, { method: 'POST', body }), said)
  })

  test('is one of Discord, with the part payload_json, and files beside it', async () => {
    const body = new FormData()
    body.append('payload_json', JSON.stringify({ content: '**#42** failed' }))
    body.append('files[0]', new Blob(['log']), 'build.log')
    const response = await fetch(`${relay.url}/hooks/discord/ops?key=${apiKey}&wait=true`, { method: 'POST', body })
    await assertSent(response, '#42 failed')
  })
})
