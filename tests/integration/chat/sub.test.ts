import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import type { Config } from '../../../src'
import { askAs, read } from '../../support/relay'
import { until } from '../../support/until'
import { Desk, group, operator } from './support'

const selfUrl = 'https://relay.example.org'

function open(t: TestContext, config: Config = {}): Promise<Desk> {
  return Desk.open(t, { selfUrl, path: '/relay', ...config })
}

/** What the bot says in the group once this is done. */
async function next({ relay: { simulator, logs } }: Desk, act: () => Promise<unknown>): Promise<string> {
  const count = simulator.ledger.length
  await act()
  await until(() => `the bot speaks: ${logs.slice(-3).join('\n')}`, () => simulator.ledger.length > count)
  return simulator.ledger[count]?.text ?? ''
}

async function keysOf({ relay }: Desk): Promise<unknown[]> {
  const { data } = await read(await relay.request('/relay/keys'))
  return Array.isArray(data.keys) ? data.keys.map(key => fieldsOf(key)) : []
}

/** A webhook of GitHub, signed with this secret. */
function github({ relay }: Desk, secret: string, event: string, payload: object, query = ''): Promise<Response> {
  const body = JSON.stringify(payload)
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const headers = { 'content-type': 'application/json', 'x-github-event': event, 'x-hub-signature-256': signature }
  return fetch(`${relay.url}/relay/hooks/github/onebot:group:${group}${query}`, { method: 'POST', body, headers })
}

const ping = { zen: 'Keep it logically awesome.', hook_id: 1, repository: { full_name: 'octo/hello' } }

test('GitHub is connected by a signature: the secret goes to the operator alone, and a ping ends the wait', async t => {
  const desk = await open(t)
  const [secretly, openly] = await desk.hear(2, 'relay.sub github events=push,release branch=main')
  const [, url, secret = ''] = /^把 github 接到 onebot:group:123456：\nPayload URL：(\S+)\nContent type：application\/json\nSecret：(\S{43})$/
    .exec(secretly?.text ?? '') ?? assert.fail(secretly?.text)
  assert.deepEqual([secretly?.target, url], [
    { type: 'private', id: operator }, `${selfUrl}/relay/hooks/github/onebot:group:${group}?events=push%2Crelease&branch=main`,
  ])
  assert.equal(openly?.text, 'github 的地址和密钥已私聊发给你。等它第一次调用，我会在这里告诉你（密钥名 github-123456）')
  const [key] = await keysOf(desk)
  const { name, allow, sources, targets } = fieldsOf(key)
  assert.deepEqual({ name, allow, sources, targets }, {
    name: 'github-123456', allow: ['hooks'], sources: ['github'], targets: [`onebot:group:${group}`],
  })
  assert.match(await next(desk, () => github(desk, 'not the secret', 'ping', ping)), /^github 来过一次，但被拒绝：.+。继续等待$/)
  assert.match(await next(desk, () => github(desk, secret, 'ping', ping)), /^github 连上了（这次没有消息：.+）$/)
  assert(desk.relay.logs.some(line => line.includes('the key "github-123456" was made (by onebot:10001 in the chat)')))
  // The adapter's own debug lines have what it sends.
  assert.deepEqual(desk.relay.logs.filter(line => line.includes(secret) && !line.startsWith('onebot debug')), [])
})

test('another source is connected by an address with its key, which is good for this chat and this source only', async t => {
  const desk = await open(t)
  const [secretly] = await desk.hear(2, 'relay.sub message lang=en-US')
  const [, key = ''] = /^地址：https:\/\/relay\.example\.org\/relay\/hooks\/message\/onebot:group:123456\?lang=en-US&key=(\S{43})$/m
    .exec(secretly?.text ?? '') ?? assert.fail(secretly?.text)
  const refused = await askAs(desk.relay, key, 'POST', '/relay/hooks/message/onebot:group:654321', { text: 'hi' })
  const elsewhere = await askAs(desk.relay, key, 'POST', `/relay/hooks/gotify/onebot:group:${group}`, { text: 'hi' })
  assert.deepEqual([refused.status, elsewhere.status], [403, 403])
  const { simulator } = desk.relay
  await fetch(`${desk.relay.url}/relay/hooks/message/onebot:group:${group}?key=${key}`, { method: 'POST', body: 'disk full' })
  await until('the chat is told', () => simulator.ledger.some(({ text }) => text === 'message 连上了'))
  assert(simulator.ledger.some(({ text, target }) => text === 'disk full' && target.id === group))
  await desk.hear(2, 'relay.sub message')
  assert.deepEqual((await keysOf(desk)).map(each => fieldsOf(each).name), ['message-123456', 'message-123456-2'])
})

test('without a private message there is no key', async t => {
  const desk = await open(t)
  desk.relay.simulator.fault({ fault: { kind: 'refuse' }, action: 'send_private_msg' })
  assert.equal(await desk.ask('relay.sub alertmanager'), '没能私聊你，所以没有生成 alertmanager 的密钥。请先加机器人为好友，再试一次')
  assert.deepEqual(await keysOf(desk), [])
  assert(desk.relay.logs.some(line => line.includes('the key "alertmanager-123456" was removed again')))
})

test('a private chat is connected as well', async t => {
  const desk = await open(t)
  const [secretly, openly] = await desk.hear(2, 'relay.sub apprise', {})
  assert.match(secretly?.text ?? '', /^把 apprise 接到本聊天：\n地址：jsons:\/\/relay:\S{43}@relay\.example\.org\/relay\/hooks\/apprise\/onebot:private:10001\n/)
  assert.match(openly?.text ?? '', /^等它第一次调用，我会在这里告诉你（密钥名 apprise-10001）$/)
})

test('an unknown source and wrong filters are told, and make no key', async t => {
  const desk = await open(t)
  assert.match(await desk.ask('relay.sub'), /^请写上来源，如 relay\.sub github events=push branch=main\n可用的来源：github /)
  assert.match(await desk.ask('relay.sub githup'), /^没有来源“githup”。其他系统请用 message\n可用的来源：github /)
  for (const filter of ['events:push', 'event=push', 'lang=de', 'events=', 'events=a events=b', '--branch', '--evnts push']) {
    assert.match(await desk.ask(`relay.sub github ${filter}`), /^看不懂过滤条件“.+”。可以写 events=、/, filter)
  }
  assert.deepEqual(await keysOf(desk), [])
})

test('a removed key is not waited for, and says nothing', async t => {
  const desk = await open(t)
  await desk.hear(2, 'relay.sub gitlab')
  await read(await desk.relay.request('/relay/keys/gitlab-123456', { method: 'DELETE' }))
  const [secretly] = await desk.hear(2, 'relay.sub gitlab')
  const [, key = ''] = /key=(\S+)/.exec(secretly?.text ?? '') ?? []
  const headers = { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': key, 'content-type': 'application/json' }
  const told = await next(desk, () => fetch(`${desk.relay.url}/relay/hooks/gitlab/onebot:group:${group}`, { method: 'POST', headers, body: '{"object_kind":"unheard-of"}' }))
  assert.match(told, /^gitlab 连上了（这次没有消息：.+）$/)
})
