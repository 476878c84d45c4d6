import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKey, useRelay } from '../../support/relay'
import { group, kinds, left, texts } from './support'

/*
 * What programs send that post a title and a text, or that know a robot, and whether they would take the answer for a success. The requests
 * are those of their sources; what a user enters there is what docs/doors/message.md says.
 */

const relay = useRelay({ config: { targets: { ops: `group:${group}` } } })

const json = { 'content-type': 'application/json' }
const post = (body: string | FormData | URLSearchParams, headers: Record<string, string> = {}): RequestInit => ({ method: 'POST', headers, body })
const postJson = (body: object, headers: Record<string, string> = {}): RequestInit => post(JSON.stringify(body), { ...json, ...headers })
const query = (fields: Record<string, string>): string => new URLSearchParams(fields).toString()

function parts(fields: Readonly<Record<string, string | Blob>>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  return form
}

/** For programs that know Gotify, and put `/message` behind any address. */
const gotify = `/hooks/push/group:123456?key=${apiKey}&`
const token = 'A4ZudDRdLT40L5X'
const proxmox = { title: 'vzdump backup status (pve): backup successful', message: 'Details\n100: ok', priority: 1 }
const withToken = (given: string) => ({ 'authorization': `Bearer ${given}`, 'x-gotify-key': given })

const home = { message: 'The front door is open & nobody is in', title: 'Home Assistant', target: 'ops' }
const homeSaid = 'Home Assistant\nThe front door is open & nobody is in'
const bearer = { authorization: `Bearer ${apiKey}` }

/** What a user enters where only an address can be entered. */
const address = `/hooks/message/ops?key=${apiKey}`
const watchtowerSaid = 'Watchtower updates on nas\nFound new shop:latest image'
const dsmSaid = 'A new system event occurred on your nas-1 on 22-11-2026 at 03:00.\nVolume 1 is degraded'
const nasText = 'TrueNAS @ nas-1  \n  \nNew alerts:\n\n  * Pool &#x27;tank&#x27; is DEGRADED\n\n'
const nasSaid = 'TrueNAS @ nas-1\n\nNew alerts:\n\n  * Pool \'tank\' is DEGRADED'
const kuma = `/hooks/uptime-kuma/ops?key=${apiKey}&lang=en-US`
const heartbeat = { monitorID: 7, status: 0, time: '2026-11-20 09:12:44.318', msg: 'timeout', important: true, ping: null }
const monitor = { id: 7, name: 'Shop', url: 'https://shop.example.com/health', hostname: null, port: null }
const down = { heartbeat, monitor, msg: '[Shop] [🔴 Down] timeout' }
const downSaid = /^❌ Down: Shop\ntimeout\n.*2026.*\nhttps:\/\/shop\.example\.com\/health$/
const legacySentry = {
  id: '7', project: 'shop', project_name: 'Shop', level: 'error', culprit: null, message: 'boom', triggering_rules: ['Any error'],
  url: 'https://sentry.example.com/issues/7/', event: { event_id: 'e4874d664c3540c1a32eab185f12c5ab', tags: [] },
}
const ding = { msgtype: 'markdown', markdown: { title: '[DOWN] Website', text: '## [DOWN] Website \n> timeout' } }
const dingTalk = `/hooks/dingtalk/ops?access_token=${apiKey}&timestamp=1795165964000&sign=c2ln%2B%2F%3D%3D`

const programs: Record<string, [how: string, path: string, init: RequestInit, said: string | RegExp][]> = {
  // Sources: louislam/uptime-kuma, server/notification-providers/gotify.js; proxmox-notify of Proxmox VE, src/endpoints/gotify.rs;
  // https://gotify.net/docs/pushmsg and ADD_MESSAGE_EXAMPLES.md of gotify/server
  'a program that knows Gotify': [
    ['Uptime Kuma', `${gotify}/message?token=${token}`, postJson({ message: '[Website] [🔴 Down] timeout', priority: 8, title: 'Uptime-Kuma' }), 'Uptime-Kuma\n[Website] [🔴 Down] timeout'],
    ['Proxmox VE', `${gotify}/message`, postJson(proxmox, withToken(token)), `${proxmox.title}\n${proxmox.message}`],
    ['Proxmox VE, whose token is the key', '/hooks/message/ops?/message', postJson(proxmox, withToken(apiKey)), `${proxmox.title}\n${proxmox.message}`],
    ['curl with a form of parts', `${gotify}/message?token=${token}`, post(parts({ title: 'my title', message: 'my message', priority: '5' })), 'my title\nmy message'],
    ['what posts a form', `${gotify}/message?token=${token}`, post(new URLSearchParams({ message: 'my message', title: 'my title' })), 'my title\nmy message'],
  ],
  // Sources: whyour/qinglong, back/services/notify.ts; louislam/uptime-kuma, server/notification-providers/pushdeer.js
  'a program that knows Bark or PushDeer': [
    ['青龙, with Bark', address.replace('message', 'push'), postJson({ title: '签到', body: '今天已签到', icon: '', sound: '', url: '' }), '签到\n今天已签到'],
    ['青龙, with PushDeer', address.replace('message', 'push'), post(new URLSearchParams({ pushkey: 'PDU1', text: '签到', desp: '**今天**已签到', type: 'markdown' })), '签到\n今天已签到'],
    ['Uptime Kuma, with PushDeer', `${gotify}/message/push`, postJson({ pushkey: 'PDU1', text: '## Uptime Kuma: Shop down', desp: 'timeout', type: 'markdown' }), 'Uptime Kuma: Shop down\ntimeout'],
  ],
  // Source: home-assistant/core, homeassistant/components/rest/notify.py
  'notify.rest of Home Assistant': [
    ['with JSON', '/hooks/message/ops', postJson(home, bearer), homeSaid],
    ['with a form, and parameters of its own in the address', '/hooks/message/ops?lang=zh-CN', post(new URLSearchParams(home), bearer), homeSaid],
    ['with GET, unless told otherwise', `/hooks/message/ops?${query(home)}`, { headers: bearer }, homeSaid],
    ['with Basic', '/hooks/message/ops', postJson(home, { authorization: `Basic ${Buffer.from(`relay:${apiKey}`).toString('base64')}` }), homeSaid],
  ],
  // Sources: pkg/services/generic of containrrr/shoutrrr and pkg/services/specialized/generic of nicholas-fedor/shoutrrr
  'the service "generic" of shoutrrr': [
    ['with the template json', address, postJson({ title: 'Watchtower updates on nas', message: 'Found new shop:latest image' }), watchtowerSaid],
    ['with text that it calls JSON', address, post('time="2026-11-20" level=info msg="Found new shop:latest image"', json), 'time="2026-11-20" level=info msg="Found new shop:latest image"'],
    ['with text', address, post('Found new shop:latest image', { 'content-type': 'text/plain' }), 'Found new shop:latest image'],
  ],
  // Sources: the captures that tests/fixtures/hooks/README.md names, and README.md of chmez/notification and addrum/synology-notifications
  'a webhook of its own kind in Synology DSM': [
    ['with its parameters as JSON', address, postJson({ text: dsmSaid }), dsmSaid],
    ['beside parameters that it needs and nobody else', address, postJson({ phone_number: '', message: dsmSaid }), dsmSaid],
    ['with GET', `${address}&user=na&password=na&to=na&text=${encodeURIComponent(dsmSaid)}`, {}, dsmSaid],
  ],
  // Source: truenas/middleware, src/middlewared/middlewared/alert/service/slack.py and mattermost.py
  'an alert service of TrueNAS': [
    ['of the kind Slack', `/hooks/slack/ops?key=${apiKey}`, postJson({ text: nasText }), nasSaid],
    ['of the kind Mattermost', `/hooks/slack/ops?key=${apiKey}`, postJson({ username: 'nas', channel: '', icon_url: '', text: nasText }), nasSaid],
  ],
  // Source: glitchtip-backend, apps/alerts/webhooks.py
  'an alert of GlitchTip, of its general kind': [
    ['with attachments, and sections for Teams', `/hooks/slack/ops?key=${apiKey}`, postJson({
      alias: 'GlitchTip', text: 'GlitchTip Alert', attachments: [{
        title: 'KeyError: \'total\'', title_link: 'https://glitchtip.example.com/acme/issues/7', text: 'checkout/sum', image_url: null, color: '#e52b50',
        fields: [{ title: 'Project', value: 'shop', short: true }], mrkdown_in: ['text'],
      }], sections: [{ activityTitle: 'KeyError', activitySubtitle: '[View](https://glitchtip.example.com)' }],
    }), 'GlitchTip Alert\n❌ KeyError: \'total\'\ncheckout/sum\nProject: shop\nhttps://glitchtip.example.com/acme/issues/7'],
  ],
  // Sources: server/notification-providers/dingding.js of louislam/uptime-kuma, notifier/notification.go of prometheus-webhook-dingtalk
  'a program that knows DingTalk, with the time and its signature behind the address': [
    ['by itself', dingTalk, postJson(ding), '[DOWN] Website\ntimeout'],
    ['with mentions', dingTalk, postJson({ ...ding, at: { atMobiles: ['13800000000'], isAtAll: true } }), '[DOWN] Website\ntimeout'],
  ],
  // Source: louislam/uptime-kuma, server/notification-providers/webhook.js
  'the provider "Webhook" of Uptime Kuma': [
    ['with JSON', kuma, postJson(down), downSaid],
    ['with a form of parts, one of which is JSON', kuma, post(parts({ data: JSON.stringify(down) })), downSaid],
    ['with GET, and JSON in its parameters', `${kuma}&${query({ ...down, heartbeat: JSON.stringify(heartbeat), monitor: JSON.stringify(monitor) })}`, {}, downSaid],
    ['with GET, to test it', `${kuma}&${query({ msg: 'Testing' })}`, {}, 'Testing'],
  ],
  // Source: getsentry/sentry, src/sentry/plugins/sentry_webhooks/plugin.py and client.py
  'the older integration "WebHooks" of Sentry': [
    ['with the key in its address', `/hooks/sentry/ops?key=${apiKey}&lang=en-US`, postJson(legacySentry), '🔥 [Shop] Alert: Any error\nboom\nhttps://sentry.example.com/issues/7/'],
  ],
  // As https://docs.slack.dev and https://discord.com/developers/docs/resources/webhook have it, for what posts forms.
  'a robot that is told in a form': [
    ['of Slack, with the field payload', `/hooks/slack/ops?key=${apiKey}`, post(new URLSearchParams({
      payload: JSON.stringify({ text: '<https://ci.example.com/42|#42> failed &amp; more' }),
    })), '#42 (https://ci.example.com/42) failed & more'],
    ['of Discord, with the part payload_json, and files beside it', `/hooks/discord/ops?key=${apiKey}&wait=true`, post(parts({
      'payload_json': JSON.stringify({ content: '**#42** failed' }), 'files[0]': new Blob(['log']),
    })), '#42 failed'],
  ],
}

for (const [program, ways] of Object.entries(programs)) {
  describe(program, () => {
    for (const [how, path, init, said] of ways) {
      test(how, async () => {
        const response = await fetch(relay.url + path, init)
        const text = await response.text()
        assert.equal(response.status, 200, text)
        await left(relay)
        if (path.startsWith('/hooks/dingtalk')) assert.equal(text, '{"errcode":0,"errmsg":"ok"}\n')
        const [told = '', ...others] = texts(relay)
        if (typeof said === 'string') assert.equal(told, said)
        else assert.match(told, said)
        // As text and nothing else; what belongs to a thread answers its beginning.
        assert.deepEqual([others, kinds(relay).filter(kind => kind !== 'reply')], [[], ['text']])
      })
    }
  })
}
