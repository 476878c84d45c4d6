import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { records } from '../../docs/support/json'
import { askAs } from '../../support/relay'
import { until } from '../../support/until'
import { group, relayWith, type StoredRelay } from '../deliveries/support'

const config = {
  path: '/relay', language: 'zh-CN' as const, targets: { ops: `group:${group}`, other: 'private:10001' },
  beats: { fixed: { every: '1d', to: 'ops' }, wrong: { every: 0, to: 'ops' } },
}

/** Makes a beat. @returns the path for its pings */
async function make(relay: StoredRelay, name = 'backup', rule: object = {}): Promise<string> {
  const { status, data, msg } = await relay.ask(`/relay/beats/${name}`, 'PUT', { every: '1d', grace: '1h', to: 'ops', ...rule })
  assert.equal(status, 201, msg)
  return String(data.ping)
}

async function ping(relay: StoredRelay, path: string, init?: RequestInit): Promise<string> {
  const response = await fetch(relay.url + path, init)
  assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
  assert.equal(response.headers.get('ping-body-limit'), response.ok ? '10000' : null)
  return `${response.status} ${await response.text()}`
}

async function state(relay: StoredRelay, name = 'backup'): Promise<unknown> {
  return (await relay.ask(`/relay/beats/${name}`)).data.state
}

/** Waits for the next message of a chat. */
async function told(relay: StoredRelay, count: number): Promise<string> {
  await until('it is told', () => relay.texts().length >= count)
  assert.equal(relay.texts().length, count)
  return relay.texts().at(-1) ?? ''
}

describe('beats', () => {
  test('a job pings, fails, is good again: one message each, in one thread', async t => {
    const relay = await relayWith(t, { config })
    const path = await make(relay)
    assert.match(path, /^\/relay\/ping\/[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    assert.equal(await state(relay), 'new')
    const rid = '123e4567-e89b-42d3-a456-426614174000'
    assert.equal(await ping(relay, `${path}/start?rid=${rid}`), '200 OK')
    assert.equal(await state(relay), 'started')
    const end = `${path}/3?rid=${rid.toUpperCase()}`
    assert.equal(await ping(relay, end, { method: 'POST', body: `${'0123456789'.repeat(2_000)}\n盘满了\n` }), '200 OK')
    assert.match(await told(relay, 1), /^backup 失败：退出码 3，用时 \d+ 秒\n\d{200}\n盘满了$/)
    const { data } = await relay.ask('/relay/beats/backup')
    assert.deepEqual([data.state, data.status, Buffer.byteLength(String(data.log))], ['down', 3, 10_000])
    assert.equal(await ping(relay, `${path}/fail`), '200 OK')
    assert.equal(await ping(relay, path, { method: 'HEAD' }), '200 ')
    assert.match(await told(relay, 2), /^backup 恢复，\d+ 秒前失败$/)
    const [over, on] = records((await relay.ask('/relay/deliveries')).data.deliveries)
    assert.deepEqual([over?.door, on?.door, over?.thread], ['beats', 'beats', 'replied'])
    assert.equal(await state(relay), 'up')
  })

  test('the requests in the documentation of healthchecks.io are answered as it says', async t => {
    const relay = await relayWith(t, { config })
    const path = await make(relay)
    const { hostname, port } = new URL(relay.url)
    const wire = async (lines: string, body = ''): Promise<string> => {
      const socket = connect(Number(port), hostname)
      socket.write(`${lines.replaceAll('\n', '\r\n')}\r\n\r\n${body}`)
      return readText(socket)
    }
    for (const [sign, after] of [['', 'up'], ['/start', 'started'], ['/fail', 'down'], ['', 'up'], ['/1', 'down'], ['/0', 'up'], ['?rid=123e4567-e89b-12d3-a456-426614174000', 'up']]) {
      const answer = await wire(`GET ${path}${sign} HTTP/1.0\nHost: hc-ping.com`)
      assert.match(answer, /^HTTP\/1\.1 200 OK\r\n[^]*\r\nContent-Type: text\/plain; charset=utf-8\r\n[^]*\r\n\r\nOK$/)
      assert.equal(await state(relay), after, sign)
    }
    const log = await wire(`POST ${path}/log HTTP/1.1\nHost: hc-ping.com\nContent-Type: text/plain\nContent-Length: 11\nConnection: close`, 'Hello World')
    assert.match(log, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nOK$/)
    assert.equal((await relay.ask('/relay/beats/backup')).data.log, 'Hello World')
    assert.match(await ping(relay, `${path}?rid=1`), /^400 invalid uuid format/)
    assert.match(await ping(relay, `${path}/256`), /^400 invalid url format/)
    assert.match(await ping(relay, `${path}/finish`), /^404 not found/)
    assert.equal(await ping(relay, '/relay/ping/123e4567-e89b-42d3-a456-426614174000'), '404 not found')
  })

  test('a start without an end, and a job that is silent, are told by themselves', async t => {
    const relay = await relayWith(t, { config })
    const [hung, late] = [await make(relay, 'hung', { grace: 1 }), await make(relay, 'late', { every: 1, grace: 0 })]
    await ping(relay, `${hung}/start`)
    assert.match(await told(relay, 1), /^hung \d\d:\d\d 开始后没有结束$/)
    await ping(relay, late)
    assert.match(await told(relay, 2), /^late 没有按时报到：上次 \d\d:\d\d$/)
    assert.equal((await relay.ask('/relay/beats/late/pause', 'POST')).data.state, 'paused')
    await ping(relay, late)
    assert.match(await told(relay, 3), /^late 恢复，迟到 \d+ 秒$/)
    assert.deepEqual([await state(relay, 'hung'), await state(relay, 'late')], ['down', 'paused'])
    assert.equal((await relay.ask('/relay/beats/late/resume', 'POST')).data.state, 'up')
    await told(relay, 4)
  })

  test('an alert to a name with `ack` is an incident, which the next good sign resolves', async t => {
    const targets = { ops: { to: `group:${group}`, ack: { from: 'warning' }, mention: { critical: 'all' } } }
    const relay = await relayWith(t, { config: { ...config, targets } })
    const path = await make(relay, 'backup', { severity: 'critical' })
    const incidents = async (): Promise<unknown> => records((await relay.ask('/relay/incidents')).data.incidents)
      .map(({ name, severity, thread, state }) => ({ name, severity, thread, state }))
    const incident = { name: 'ops', severity: 'critical', thread: 'beat:backup' }
    for (const again of [0, 1]) {
      await ping(relay, `${path}/fail`)
      assert.equal(await told(relay, again * 2 + 1), ' backup 失败')
      assert.deepEqual(relay.simulator.ledger.at(-1)?.segments[0], { type: 'at', data: { qq: 'all' } })
      assert.deepEqual(await incidents(), ['open', ...again ? ['resolved'] : []].map(state => ({ ...incident, state })))
      await ping(relay, path)
      assert.match(await told(relay, again * 2 + 2), /backup 恢复/)
    }
  })

  test('an outage alarms nobody, and the state, the secret and what is to be told outlive it', async t => {
    const relay = await relayWith(t, { config })
    const path = await make(relay, 'backup', { every: 3, grace: 0 })
    assert.equal(await ping(relay, path), '200 OK')
    await relay.reload(config, 3_100)
    await until('it is read', async () => await state(relay) === 'up')
    assert.deepEqual(relay.texts(), [])
    assert.equal(await ping(relay, `${path}/fail`), '200 OK')
    await relay.reload(config)
    assert.equal(await told(relay, 1), 'backup 失败')
    assert.equal(await ping(relay, path), '200 OK')
  })

  test('the secret is in no log, is shown to admin only, and can be changed', async t => {
    const keys = [
      { name: 'reader', key: 'secret-of-reader', allow: ['read', 'send'], targets: ['ops'] },
      { name: 'stranger', key: 'secret-of-stranger', allow: ['read', 'send'], targets: ['other'] },
    ]
    const relay = await relayWith(t, { config: { ...config, keys } })
    const path = await make(relay)
    const before = (await relay.ask('/relay/beats/backup')).data.ping
    assert.equal((await relay.ask('/relay/beats/backup', 'PUT', { every: '2d', to: 'ops' })).data.ping, path)
    assert.equal(before, path)
    const rotated = await relay.ask('/relay/beats/backup/rotate', 'POST')
    assert.notEqual(rotated.data.ping, path)
    assert.equal(await ping(relay, path), '404 not found')
    assert.equal(await ping(relay, String(rotated.data.ping)), '200 OK')
    assert(!relay.logs.some(line => [path, rotated.data.ping].some(each => line.includes(String(each).slice(-20)))))
    assert(relay.logs.some(line => line.includes('没有心跳使用这个密钥')))

    const seen = await askAs(relay, 'secret-of-reader', 'GET', '/relay/beats/backup')
    assert.deepEqual([seen.status, seen.data.ping, seen.data.target], [200, undefined, 'ops'])
    assert.equal((await askAs(relay, 'secret-of-reader', 'POST', '/relay/beats/backup/1')).data.state, 'down')
    assert.equal((await askAs(relay, 'secret-of-reader', 'POST', '/relay/beats/backup')).data.state, 'up')
    assert.equal((await askAs(relay, 'secret-of-reader', 'POST', '/relay/beats/backup/pause')).status, 403)
    for (const [method, address] of [['GET', ''], ['POST', ''], ['POST', '/start']] as const) {
      assert.equal((await askAs(relay, 'secret-of-stranger', method, `/relay/beats/backup${address}`)).status, 404)
    }
    assert.deepEqual((await askAs(relay, 'secret-of-stranger', 'GET', '/relay/beats')).data.beats, [])
    assert.equal((await askAs(relay, 'secret-of-reader', 'PUT', '/relay/beats/x', {})).status, 403)
  })

  test('those of the settings are there with the others; what is wrong or in use is refused', async t => {
    const relay = await relayWith(t, { config })
    assert(relay.logs.some(line => line.includes('every 应为时长')))
    await relay.ask('/relay/targets/made', 'PUT', `group:${group}`)
    await make(relay, 'backup', { to: ['made', 'other'], cron: '30 2 * * *', every: null, zone: 'Asia/Shanghai', severity: 'critical' })
    await until('both are there', async () => JSON.stringify((await relay.ask('/relay/beats')).data.beats) === JSON.stringify([
      { name: 'fixed', state: 'new', last: null, next: null, duration: null, target: 'ops', every: 86_400, grace: 300, severity: 'warning', source: 'settings' },
      { name: 'backup', state: 'new', last: null, next: null, duration: null, target: 'made,other', cron: '30 2 * * *', zone: 'Asia/Shanghai', grace: 3600, severity: 'critical', source: 'made' },
    ]))
    assert.match((await relay.ask('/relay/targets/made', 'DELETE')).msg, /used by the beat "backup"/)
    assert.equal((await relay.ask('/relay/beats/fixed', 'DELETE')).status, 409)
    const { status, msg } = await relay.ask('/relay/beats/backup', 'PUT', { cron: '0 0 30 2 *', to: 'ops' })
    assert.deepEqual([status, msg], [400, 'cron never comes'])
    assert.equal((await relay.ask('/relay/beats/backup', 'DELETE')).status, 200)
    assert.equal((await relay.ask('/relay/beats/backup')).status, 404)
    const metrics = await (await relay.request('/relay/metrics')).text()
    assert.match(metrics, /^message_relay_beats\{state="new"\} 1$/m)
  })
})
