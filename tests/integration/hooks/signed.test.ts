import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import { startRelay, type TestRelay } from '../../support/relay'
import { group, other, post, texts } from './support'

const secret = 'the-secret-of-github'
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

let relay: TestRelay

before(async () => {
  relay = await startRelay({
    config: {
      keys: [
        { name: 'github', secret, targets: [`group:${group}`] },
        { name: 'ci', key: 'the-key-of-the-ci-job', allow: ['send'] },
        { name: 'old', secret: 'the-secret-of-long-ago', expires: '2001-01-01' },
      ],
    },
  })
})
after(() => relay.stop())
afterEach(() => {
  relay.simulator.clear()
})

/** A push as GitHub posts it, signed with a secret. */
async function push(event: string, { by = secret, target = group, more = '', key = '' } = {}): Promise<number> {
  const signature = `sha256=${createHmac('sha256', by).update(body).digest('hex')}${more}`
  const headers = { 'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': event, 'x-hub-signature-256': signature }
  return (await post(relay, `github/group:${target}`, body, { key, headers })).status
}

describe('a signature', () => {
  test('proves who makes a hook, and the event is sent once', async () => {
    assert.deepEqual([await push('1'), await push('1')], [200, 200])
    assert.equal(texts(relay).length, 1)
    assert.match(relay.logs.join('\n'), /POST \/hooks\/:source\/:targets group:123456 key "github" 200 sent/)
  })

  test('that fits no secret is a 401, whatever is wrong with it', async () => {
    for (const wrong of [{ by: 'another-secret-of-16' }, { more: 'ab' }, { more: 'g' }, { by: 'the-key-of-the-ci-job' }, { by: 'the-secret-of-long-ago' }]) {
      assert.equal(await push('2', wrong), 401, JSON.stringify(wrong))
    }
    assert.deepEqual(texts(relay), [])
  })

  test('that may not reach the target is a 403', async () => {
    assert.equal(await push('3', { target: other }), 403)
  })

  test('need not fit where there is a right key', async () => {
    assert.equal(await push('4', { by: 'another-secret-of-16', key: 'a-key-for-tests' }), 200)
  })
})
