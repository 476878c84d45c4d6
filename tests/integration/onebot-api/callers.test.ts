import assert from 'node:assert/strict'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { apiKey, useRelay } from '../../support/relay'
import { group, only, user } from './support'

/*
 * What programs send that know OneBot 11, and whether they would take the answer for a success. The requests are those of their sources;
 * what a user enters there is the address of the relay with `/onebot`, and a key.
 */

const relay = useRelay()

const bearer = { authorization: `Bearer ${apiKey}` }
const json = { ...bearer, 'content-type': 'application/json' }
/** What older releases of acme.sh look for, and those who look at one of both find. */
const success = /^\{"retcode":0,"status":"ok",/

/** Asserts that a program takes an answer for a success, and where which text was delivered. */
function assertSent(answer: string, expected: string): void {
  assert.match(answer, success)
  const { target, text: said } = only(relay.simulator.ledger)
  assert.equal(`${target.type}:${target.id} ${said}`, expected)
}

async function ask(path: string, init?: RequestInit): Promise<string> {
  return (await fetch(`${relay.url}/onebot/${path}`, init)).text()
}

// Source: louislam/uptime-kuma, server/notification-providers/onebot.js
for (const [target, recipient] of [[`group:${group}`, { message_type: 'group', group_id: group }], [`private:${user}`, { message_type: 'private', user_id: user }]] as const) {
  test(`Uptime Kuma writes to ${target}`, async () => {
    const message = 'UptimeKuma Alert: [Website] [🔴 Down] connect ECONNREFUSED [CQ:at,qq=all]'
    const headers = { ...json, accept: 'application/json, text/plain, */*' }
    assertSent(await ask('send_msg', { method: 'POST', headers, body: JSON.stringify({ auto_escape: true, message, ...recipient }) }), `${target} ${message}`)
  })
}

// Source: acmesh-official/acme.sh, notify/cqhttp.sh
test('acme.sh writes to a user', async () => {
  const message = 'A message from acme.sh: Renew example.com success\nCert success: ok, 100% & more'
  // Its _url_encode leaves letters, digits and -_.~ as they are.
  const encode = (value: string): string => encodeURIComponent(value).replace(/[!'()*]/g, each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)
  const headers = { 'User-Agent': 'acme.sh/3.1.2 (https://github.com/acmesh-official/acme.sh)' }
  assertSent(await ask(`send_private_msg?access_token=${encode(apiKey)}&user_id=${user}&message=${encode(message)}`, { headers }), `private:${user} ${message}`)
})

// Source: whyour/qinglong, back/services/notify.ts, sample/notify.js, sample/notify.py
describe('the 青龙 panel', () => {
  const body = JSON.stringify({ message: '任务完成\n京东 签到' })
  for (const [action, recipient, target] of [
    ['send_group_msg', `group_id=${group}`, `group:${group}`], ['send_private_msg', `user_id=${user}`, `private:${user}`],
  ] as const) {
    test(`writes to ${target} by itself`, async () => {
      assertSent(await ask(`${action}?${recipient}`, { method: 'POST', headers: json, body }), `${target} 任务完成\n京东 签到`)
    })

    test(`writes to ${target} by its script in JavaScript, whose header stands there twice`, async () => {
      const sent = request(`${relay.url}/onebot/${action}?access_token=${apiKey}&${recipient}`, {
        method: 'POST', headers: { 'content-type': ['application/json', 'application/json'] },
      })
      const answer = new Promise<string>((resolve, reject) => {
        sent.on('error', reject).on('response', response => {
          text(response).then(resolve, reject)
        })
      })
      sent.end(body)
      assertSent(await answer, `${target} 任务完成\n京东 签到`)
    })

    test(`writes to ${target} by its script in Python`, async () => {
      // The library that it uses encodes what may not stand in an address.
      const path = encodeURI(`${action}?access_token=${apiKey}&${recipient}&message=标题:任务完成\n内容:京东 签到`)
      assertSent(await ask(path), `${target} 标题:任务完成\n内容:京东 签到`)
    })
  }
})

// Many an example on the web, after "HTTP" in OneBot 11.
test('curl writes with a form', async () => {
  const form = new URLSearchParams({ group_id: group, message: '磁盘 91%' })
  assertSent(await ask('send_group_msg', { method: 'POST', headers: bearer, body: form }), `group:${group} 磁盘 91%`)
})
