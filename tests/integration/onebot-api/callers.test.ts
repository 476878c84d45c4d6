import assert from 'node:assert/strict'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, afterEach, before, describe, test } from 'node:test'
import { apiKey, startRelay, type TestRelay } from '../../support/relay'
import { group, only, readReply, user } from './support'

/*
 * What programs send that know OneBot 11, and whether they would take the answer for a success. The requests are those of their sources;
 * what a user enters there is the address of the relay with `/onebot`, and a key.
 */

let relay: TestRelay
let root: string

before(async () => {
  relay = await startRelay()
  root = `${relay.url}/onebot`
})
after(() => relay.stop())
afterEach(() => {
  relay.simulator.clear()
})

/** What was delivered: where, and the text. */
function delivered(): string {
  const { target, text: said } = only(relay.simulator.ledger)
  return `${target.type}:${target.id} ${said}`
}

// Source: louislam/uptime-kuma, server/notification-providers/onebot.js
describe('Uptime Kuma', () => {
  const said = 'UptimeKuma Alert: [Website] [🔴 Down] connect ECONNREFUSED [CQ:at,qq=all]'
  const post = (recipient: object): Promise<Response> => {
    return fetch(`${root}/send_msg`, {
      method: 'POST',
      headers: { 'Accept': 'application/json, text/plain, */*', 'Content-Type': 'application/json', 'Authorization': `Bearer ${apiKey}` },
      body: JSON.stringify({ auto_escape: true, message: said, ...recipient }),
    })
  }

  test('writes to a group', async () => {
    // It takes any answer with 2xx for a success.
    assert((await post({ message_type: 'group', group_id: group })).ok)
    assert.equal(delivered(), `group:${group} ${said}`)
  })

  test('writes to a user', async () => {
    assert((await post({ message_type: 'private', user_id: user })).ok)
    assert.equal(delivered(), `private:${user} ${said}`)
  })
})

// Source: acmesh-official/acme.sh, notify/cqhttp.sh
test('acme.sh writes to a user', async () => {
  const message = 'A message from acme.sh: Renew example.com success\nCert success: ok, 100% & more'
  // Its _url_encode leaves letters, digits and -_.~ as they are.
  const encode = (value: string): string => encodeURIComponent(value).replace(/[!'()*]/g, each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)
  const url = `${root}/send_private_msg?access_token=${encode(apiKey)}&user_id=${user}&message=${encode(message)}`
  const answer = await (await fetch(url, { headers: { 'User-Agent': 'acme.sh/3.1.2 (https://github.com/acmesh-official/acme.sh)' } })).text()
  // Older releases look for both at once.
  assert(answer.includes('"retcode":0,"status":"ok"'), answer)
  assert.equal(delivered(), `private:${user} ${message}`)
})

// Source: whyour/qinglong, back/services/notify.ts, sample/notify.js, sample/notify.py
describe('the 青龙 panel', () => {
  for (const [recipient, expected] of [[`group_id=${group}`, `group:${group}`], [`user_id=${user}`, `private:${user}`]] as const) {
    const address = expected.startsWith('group') ? 'send_group_msg' : 'send_private_msg'

    test(`writes to ${expected} by itself`, async () => {
      const response = await fetch(`${root}/${address}?${recipient}`, {
        method: 'POST',
        headers: { 'Authorization': `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ message: '任务完成\n京东 签到' }),
      })
      assert.equal((await readReply(response)).body.retcode, 0)
      assert.equal(delivered(), `${expected} 任务完成\n京东 签到`)
    })

    test(`writes to ${expected} by its script in JavaScript, whose header stands there twice`, async () => {
      const sent = request(`${root}/${address}?access_token=${apiKey}&${recipient}`, {
        method: 'POST', headers: { 'content-type': ['application/json', 'application/json'] },
      })
      const answer = new Promise<string>((resolve, reject) => {
        sent.on('error', reject).on('response', response => {
          text(response).then(resolve, reject)
        })
      })
      sent.end(JSON.stringify({ message: '任务完成\n京东 签到' }))
      assert.match(await answer, /^\{"retcode":0,/)
      assert.equal(delivered(), `${expected} 任务完成\n京东 签到`)
    })

    test(`writes to ${expected} by its script in Python`, async () => {
      // The library that it uses encodes what may not stand in an address.
      const response = await fetch(encodeURI(`${root}/${address}?access_token=${apiKey}&${recipient}&message=标题:任务完成\n内容:京东 签到`))
      assert.equal((await readReply(response)).body.status, 'ok')
      assert.equal(delivered(), `${expected} 标题:任务完成\n内容:京东 签到`)
    })
  }
})

// Many an example on the web, after "HTTP" in OneBot 11.
test('curl writes with a form', async () => {
  const form = await fetch(`${root}/send_group_msg`, {
    method: 'POST', headers: { authorization: `Bearer ${apiKey}` }, body: new URLSearchParams({ group_id: group, message: '磁盘 91%' }),
  })
  assert.match(await form.text(), /^\{"retcode":0,"status":"ok",/)
  assert.equal(delivered(), `group:${group} 磁盘 91%`)
})
