import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Simulator } from '../../simulator'
import { temporaryFolder } from '../support/folder'
import { rawRequest, record, records, start, startWithClient, text, Client } from './support'

const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

async function state(simulator: Simulator): Promise<Record<string, unknown>> {
  return record(await (await fetch(`${simulator.pageUrl}api/state`)).json())
}

async function chat(simulator: Simulator, id: string): Promise<Record<string, unknown>> {
  const found = records((await state(simulator)).chats).find(candidate => candidate.id === id)
  assert(found)
  return found
}

/** The parts of the newest message of a group. */
async function parts(simulator: Simulator): Promise<Record<string, unknown>[]> {
  return records(records((await chat(simulator, '123456')).messages).at(-1)?.parts)
}

test('serves the page with its types and a policy, and nothing beside it', async t => {
  const { port } = await start(t)
  for (const path of ['/', '/simulator']) {
    const { status, headers } = await rawRequest(port, { path })
    assert.deepEqual([status, headers.location], [302, '/simulator/'])
  }
  const page = await rawRequest(port, { path: '/simulator/' })
  assert.equal(page.status, 200)
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  assert.match(String(page.headers['content-security-policy']), /default-src 'self'.*object-src 'none'.*frame-ancestors 'none'/)
  assert.equal(page.headers['x-content-type-options'], 'nosniff')
  const script = /src="([^"]+\.js)"/.exec(page.body)?.[1] ?? ''
  const { status, headers } = await rawRequest(port, { path: new URL(script, 'http://x/simulator/').pathname })
  assert.deepEqual([status, headers['content-type']], [200, 'text/javascript; charset=utf-8'])
  for (const path of [
    '/simulator/../index.ts', '/simulator/../simulator.ts', '/simulator/%2e%2e/package.json', '/simulator/..%2f..%2fpackage.json',
    '/simulator//etc/hostname', '/simulator/../../package.json', '/simulator/..\\..\\package.json', '/simulator/.hidden.js',
    '/simulator/./index.html', '/simulator/absent.js', '/simulator/icon.svg/', '/simulator/%00.js', '/package.json', '/simulatorx/index.html',
  ]) assert.equal((await rawRequest(port, { path })).status, 404, path)
})

test('only reads, except for saying and switching', async t => {
  const { port } = await start(t)
  const refused = [
    ['POST', '/simulator/'], ['DELETE', '/simulator/api/state'], ['GET', '/simulator/api/say'], ['GET', '/simulator/api/react'],
    ['POST', '/simulator/api/constructor'],
  ] as const
  for (const [method, path] of refused) {
    assert.equal((await rawRequest(port, { method, path })).status, 405)
  }
})

test('serves the hosts of this machine and refuses others, over HTTP and WebSocket', async t => {
  const { port, endpoint } = await start(t)
  for (const host of ['evil.example', 'evil.example:80', '127.0.0.1.evil.example', '0.0.0.0', '[::]', 'localhost.evil.example']) {
    for (const path of ['/simulator/', '/simulator/api/state', '/simulator/media/1']) {
      assert.equal((await rawRequest(port, { path, headers: { host } })).status, 403, host)
    }
    await assert.rejects(Client.connect(t, endpoint, { headers: { host } }), /403/)
  }
  for (const host of ['127.0.0.1', 'localhost', '[::1]'].flatMap(name => [name, `${name}:${port}`])) {
    assert.equal((await rawRequest(port, { path: '/simulator/', headers: { host } })).status, 200, host)
    await Client.connect(t, endpoint, { headers: { host, origin: `http://${host}` } })
  }
})

for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1', 'http://localhost']) {
  test(`refuses the origin ${origin}`, async t => {
    const { simulator } = await startWithClient(t)
    const { port, endpoint } = simulator
    const body = JSON.stringify({ type: 'group', chat: '123456', user: '10001', text: 'a' })
    const headers = { origin, 'content-type': 'application/json' }
    assert.equal((await rawRequest(port, { path: '/simulator/api/say', method: 'POST', headers, body })).status, 403)
    const turn = { path: '/simulator/api/switch', method: 'POST', headers, body: JSON.stringify({ name: 'offline', on: true }) }
    assert.equal((await rawRequest(port, turn)).status, 403)
    assert.equal((await rawRequest(port, { ...turn, headers: { 'host': 'evil.example', 'content-type': 'application/json' } })).status, 403)
    assert.deepEqual(simulator.switches, [])
    assert.equal((await rawRequest(port, { path: '/simulator/api/events', headers: { origin } })).status, 403)
    await assert.rejects(Client.connect(t, endpoint, { origin }), /403/)
    assert.deepEqual((await chat(simulator, '123456')).messages, [])
  })
}

test('a picture is served as one, whole or in part', async t => {
  const { simulator, client } = await startWithClient(t)
  await client.call('send_group_msg', {
    group_id: 123456, message: [{ type: 'image', data: { file: `base64://${png.toString('base64')}`, name: '图.html' } }],
  })
  const [image] = await parts(simulator)
  assert.equal(image?.type, 'image')
  const url = new URL(String(image.src), simulator.pageUrl)
  const whole = await fetch(url)
  assert.equal(whole.status, 200)
  assert.equal(whole.headers.get('content-type'), 'image/png')
  assert.equal(whole.headers.get('content-disposition'), 'inline; filename*=UTF-8\'\'%E5%9B%BE.html')
  assert.equal(whole.headers.get('accept-ranges'), 'bytes')
  assert.deepEqual(Buffer.from(await whole.arrayBuffer()), png)
  const expected: [string, number, string | null, Buffer | null][] = [
    ['bytes=0-3', 206, 'bytes 0-3/16', png.subarray(0, 4)],
    ['bytes=12-', 206, 'bytes 12-15/16', png.subarray(12)],
    ['bytes=-2', 206, 'bytes 14-15/16', png.subarray(14)],
    ['bytes=8-99', 206, 'bytes 8-15/16', png.subarray(8)],
    ['bytes=16-', 416, 'bytes */16', null],
    ['bytes=3-1', 200, null, png],
    ['bytes=0-1,3-4', 200, null, png],
  ]
  for (const [range, status, contentRange, body] of expected) {
    const response = await fetch(url, { headers: { range } })
    assert.deepEqual([response.status, response.headers.get('content-range')], [status, contentRange], range)
    const received = Buffer.from(await response.arrayBuffer())
    if (body !== null) assert.deepEqual(received, body, range)
  }
})

test('a file that is no picture is only saved, never shown', async t => {
  const { simulator, client } = await startWithClient(t)
  const path = join(temporaryFolder(), 'a.html')
  await writeFile(path, '<script>alert(1)</script>')
  await client.call('upload_group_file', { group_id: 123456, file: path, name: '报告 (1).html' })
  const [file] = await parts(simulator)
  assert.deepEqual([file?.type, file?.name, file?.size], ['file', '报告 (1).html', 25])
  const message = records((await chat(simulator, '123456')).messages).at(-1)
  assert.equal(message?.id, null)
  const response = await fetch(new URL(String(file?.src), simulator.pageUrl))
  assert.equal(response.headers.get('content-type'), 'application/octet-stream')
  assert.equal(response.headers.get('content-disposition'), 'attachment; filename*=UTF-8\'\'%E6%8A%A5%E5%91%8A%20%281%29.html')
  assert.equal(await response.text(), '<script>alert(1)</script>')
  assert.equal((await fetch(`${simulator.pageUrl}media/99`)).status, 404)
  assert.equal((await fetch(`${simulator.pageUrl}media/x`)).status, 404)
})

/** A request of the page. */
async function ask({ pageUrl }: Simulator, name: string, body: unknown, type = 'application/json'): Promise<[number, Record<string, unknown>]> {
  const response = await fetch(`${pageUrl}api/${name}`, {
    method: 'POST', headers: { 'content-type': type }, body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return [response.status, record(await response.json())]
}

async function refuses(simulator: Simulator, name: string, bodies: readonly unknown[]): Promise<void> {
  for (const body of bodies) {
    const [code, { error }] = await ask(simulator, name, body)
    assert.deepEqual([code, typeof error], [400, 'string'], JSON.stringify(body))
  }
}

test('a member says something by the page, and quotes a message', async t => {
  const { simulator, client } = await startWithClient(t)
  const good = { type: 'group', chat: '123456', user: '10001', text: '#ping' }
  const [status, { id }] = await ask(simulator, 'say', good)
  assert.equal(status, 200)
  assert.deepEqual((await client.frame(frame => frame.message_id === id)).message, [text('#ping')])
  const [, privately] = await ask(simulator, 'say', { type: 'private', chat: '10002', user: '10002', text: 'hi' })
  assert.equal((await client.frame(frame => frame.message_id === privately.id)).user_id, 10002)
  const [, answer] = await ask(simulator, 'say', { type: 'private', chat: '10002', text: 'again', reply: privately.id })
  const { message } = await client.frame(frame => frame.message_id === answer.id)
  assert.deepEqual(message, [{ type: 'reply', data: { id: String(privately.id) } }, text('again')])
  await refuses(simulator, 'say', [
    'nonsense', [], { ...good, text: '' }, { ...good, text: 5 }, { ...good, type: 'guild' }, { ...good, chat: '999' }, { ...good, chat: 'x' },
    { ...good, user: '99' }, { ...good, user: '10000' }, { ...good, text: 'x'.repeat(64 * 1024) }, { ...good, reply: 5 },
    { ...good, reply: privately.id },
  ])
  assert.equal((await ask(simulator, 'say', good, 'text/plain'))[0], 400)
  assert.equal(records((await chat(simulator, '123456')).messages).length, 1)
})

test('a member reacts to a message by the page, and takes that back', async t => {
  const { simulator, client } = await startWithClient(t)
  const message = simulator.say({ group: '654321', user: '10004', text: 'x' })
  const good = { chat: '654321', user: '10001', message, emoji: '128064', on: true }
  const shown = async (): Promise<unknown> => records((await chat(simulator, '654321')).messages)[0]?.reactions
  await ask(simulator, 'react', good)
  // As NapCat sends it.
  const { time, ...notice } = await client.frame(frame => frame.post_type === 'notice')
  assert.deepEqual([typeof time, notice], ['number', {
    self_id: 10000, post_type: 'notice', notice_type: 'group_msg_emoji_like', group_id: 654321, user_id: 10001, message_id: message,
    likes: [{ emoji_id: '128064', count: 1 }], is_add: true,
  }])
  assert.deepEqual(await shown(), [{ emoji: '128064', users: [{ id: '10001', name: '小明（后端）' }] }])
  await ask(simulator, 'react', { ...good, on: false })
  assert.equal((await client.frame(frame => frame.is_add === false)).user_id, 10001)
  assert.deepEqual(await shown(), [])
  await refuses(simulator, 'react', [
    { ...good, chat: '123456' }, { ...good, user: '99' }, { ...good, message: 1 }, { ...good, emoji: '👀' }, { ...good, on: 1 },
  ])
})
