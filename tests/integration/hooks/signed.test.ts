import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { request } from 'node:http'
import { describe, test } from 'node:test'
import { useRelay } from '../../support/relay'
import { group, other, post, texts } from './support'

const secret = 'the-secret-of-github'
const token = 'the-key-of-gitlab-hooks'
const body = JSON.stringify({
  ref: 'refs/heads/main',
  before: 'a'.repeat(40),
  after: 'b'.repeat(40),
  compare: 'https://github.com/a/b/compare/1',
  commits: [{ id: 'b'.repeat(40), message: 'Fix it', author: { name: 'eva' }, url: 'https://github.com/a/b/commit/1' }],
  repository: { full_name: 'a/b', html_url: 'https://github.com/a/b' },
  pusher: { name: 'eva' },
  sender: { login: 'eva' },
})

const relay = useRelay({
  config: {
    keys: [
      { name: 'github', secret, targets: [`group:${group}`] },
      { name: 'ci', key: 'the-key-of-the-ci-job', allow: ['send'] },
      { name: 'gitlab', key: `sha256:${createHash('sha256').update(token).digest('hex')}`, allow: ['hooks'], targets: [`group:${group}`] },
      { name: 'old', secret: 'the-secret-of-long-ago', expires: '2001-01-01' },
    ],
  },
})

/** A push as GitHub posts it, signed with a secret. */
async function push(event: string, options?: PushOptions): Promise<number> {
  return (await pushed(event, options)).status
}

interface PushOptions { by?: string, target?: string, more?: string, key?: string }

async function pushed(event: string, { by = secret, target = group, more = '', key = '' }: PushOptions = {}): Promise<{ status: number, msg: unknown }> {
  const signature = `sha256=${createHmac('sha256', by).update(body).digest('hex')}${more}`
  const headers = { 'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': event, 'x-hub-signature-256': signature }
  const { status, body: { msg } } = await post(relay, `github/group:${target}`, body, { key, headers })
  return { status, msg }
}

/** A payload as it is posted, with a header that proves who posts it. */
interface Way {
  source: string
  type?: string
  headers: Record<string, string>
  sent: string
}

const hmac = (...pieces: string[]): string => createHmac('sha256', secret).update(pieces.join('')).digest('hex')

/** A token, a signature of a form, and one with a time. tests/unit/hooks/signatures.test.ts has every way of every source. */
function ways(): Way[] {
  const alerts = JSON.stringify({ status: 'firing', alerts: [{ status: 'firing', labels: { alertname: 'HostDown' }, annotations: {} }] })
  const gitlab = JSON.stringify({
    object_kind: 'push', ref: 'refs/heads/main', commits: [{ id: 'b'.repeat(40), title: 'Fix it' }], total_commits_count: 1,
  })
  const form = new URLSearchParams({ payload: body }).toString()
  const gitee = JSON.stringify({ hook_name: 'push_hooks', ref: 'refs/heads/main', commits: [{ id: 'b'.repeat(40), message: 'Fix it' }] })
  const ms = String(Date.now())
  const now = ms.slice(0, -3)
  return [
    { source: 'gitlab', headers: { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': token }, sent: gitlab },
    { source: 'gitee', headers: { 'x-gitee-timestamp': ms, 'x-gitee-token': token }, sent: gitee },
    {
      source: 'gitee', sent: gitee,
      headers: { 'x-gitee-timestamp': ms, 'x-gitee-token': createHmac('sha256', secret).update(`${ms}\n${secret}`).digest('base64') },
    },
    {
      source: 'github', type: 'application/x-www-form-urlencoded', sent: form,
      headers: { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${hmac(form)}` },
    },
    {
      source: 'grafana', sent: alerts,
      headers: { 'x-grafana-alerting-signature': hmac(now, ':', alerts), 'x-grafana-alerting-timestamp': now },
    },
  ]
}

describe('each way to sign', () => {
  for (const { source, type = 'application/json', headers, sent } of ways()) {
    test(`proves who posts to ${source} as ${type} with ${Object.keys(headers).join(', ')}`, async () => {
      const by = { key: '', headers: { 'content-type': type, ...headers } }
      const { status, text } = await post(relay, `${source}/group:${group}`, sent, by)
      assert.equal(status, 200, text)
      assert.equal(texts(relay).length, 1)
      assert.equal((await post(relay, `${source}/group:${other}`, sent, by)).status, 403)
      const isOfBody = Object.keys(headers).some(name => name.endsWith('signature') || name.endsWith('signature-256'))
      if (isOfBody) assert.equal((await post(relay, `${source}/group:${group}`, sent.replace('e', 'E'), by)).status, 401)
      const unsigned = Object.fromEntries(Object.entries(headers).filter(([name]) => !/signature|token/.test(name)))
      const without = await post(relay, `${source}/group:${group}`, sent, { key: '', headers: { 'content-type': type, ...unsigned } })
      assert.equal(without.status, 401)
      assert.equal(texts(relay).length, 1)
    })
  }
})

describe('a signature', () => {
  test('proves who makes a hook, and the event is sent once', async () => {
    assert.deepEqual([await push('1'), await push('1')], [200, 200])
    assert.equal(texts(relay).length, 1)
    assert.match(relay.logs.join('\n'), /POST \/hooks\/[\w-]+\/:targets group:123456 key "github" 200 sent/)
  })

  test('that fits no secret is named in the answer, in the same words whatever keys there are', async () => {
    const msg = 'wrong signature: the secret matches no key; give the sender the secret of a key that is allowed hooks'
    for (const by of ['another-secret-of-16', 'the-secret-of-long-ago', 'the-key-of-the-ci-job']) {
      assert.deepEqual(await pushed('2', { by }), { status: 401, msg })
    }
    assert.deepEqual(await pushed('2', { by: 'another-secret-of-16', key: 'wrong' }), {
      status: 401, msg: 'neither the key nor the secret of the signature matches a key: give the sender one that is allowed hooks',
    })
    const { body: { msg: ofToken } } = await post(relay, `gitlab/group:${group}`, '{}', { key: '', headers: { 'x-gitlab-token': 'wrong' } })
    assert.equal(ofToken, 'wrong token: x-gitlab-token matches no key; give the sender a key that is allowed hooks')
  })

  test('is no key: a secret is refused in the header that GitLab puts its key into', async () => {
    const headers = { 'content-type': 'application/json', 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': secret }
    assert.equal((await post(relay, `gitlab/group:${group}`, '{"object_kind":"push"}', { key: '', headers })).status, 401)
  })

  test('need not fit where there is a right key', async () => {
    assert.equal(await push('4', { by: 'another-secret-of-16', key: 'a-key-for-tests' }), 200)
  })
})

describe('bodies that have yet to prove who sends them', () => {
  const size = 9 * 1024 * 1024

  /** Sends all but the end of a body with a signature that fits no secret, and tells what it is answered. */
  function begin(): { sent: Promise<void>, status: Promise<number>, end: () => void } {
    const url = `${relay.url}/hooks/github/group:${group}`
    const headers = { 'content-length': size + 1, 'x-github-event': 'push', 'x-hub-signature-256': 'sha256=00' }
    const outgoing = request(url, { method: 'POST', headers })
    const status = new Promise<number>((resolve, reject) => {
      outgoing.on('response', response => resolve(response.resume().statusCode ?? 0)).on('error', reject)
    })
    const sent = new Promise<void>(resolve => outgoing.write(Buffer.alloc(size, ' '), () => resolve()))
    return { sent, status, end: () => outgoing.end(' ') }
  }

  test('hold 32 MiB in all, and the oldest gives way', async () => {
    const bodies = []
    for (let count = 0; count < 4; count++) {
      const body = begin()
      bodies.push(body)
      await body.sent
    }
    const [oldest, ...others] = bodies
    assert.equal(await oldest?.status, 503)
    assert.equal(await push('5'), 200)
    for (const { end } of others) end()
    assert.deepEqual(await Promise.all(others.map(({ status }) => status)), [401, 401, 401])
    oldest?.end()
  })
})
