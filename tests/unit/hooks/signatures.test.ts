import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { sources } from '../../../src/hooks/sources'
import { gitea } from '../../../src/hooks/sources/gitea'
import { gitee } from '../../../src/hooks/sources/gitee'
import { github } from '../../../src/hooks/sources/github'
import { gitlab } from '../../../src/hooks/sources/gitlab'
import { grafana } from '../../../src/hooks/sources/alerts'
import { sentry } from '../../../src/hooks/sources/sentry'
import type { HookRequest, Source } from '../../../src/hooks/source'
import { requestOf } from './support'

const secret = 'a secret of sixteen or more 密钥'
const other = 'another secret of sixteen or more'
const payload = { text: '你好 😀', list: [1, null] }
const now = String(Math.floor(Date.now() / 1000))

function hmac(...pieces: (Buffer | string)[]): string {
  return pieces.reduce<ReturnType<typeof createHmac>>((hash, piece) => hash.update(piece), createHmac('sha256', secret)).digest('hex')
}

function request(headers: IncomingHttpHeaders, body?: string): HookRequest {
  const made = requestOf(payload, headers)
  return body === undefined ? made : { ...made, raw: Buffer.from(body) }
}

const { raw } = request({})
const form = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
const formType = { 'content-type': 'application/x-www-form-urlencoded' }

/** Each way to sign, with the header that holds the signature. */
const ways: { name: string, source: Source, header: string, made: HookRequest }[] = [
  { name: 'GitHub', source: github, header: 'x-hub-signature-256', made: request({ 'x-hub-signature-256': `sha256=${hmac(raw)}` }) },
  { name: 'GitHub, of a form', source: github, header: 'x-hub-signature-256', made: request({ ...formType, 'x-hub-signature-256': `sha256=${hmac(form)}` }, form) },
  { name: 'Gitea', source: gitea, header: 'x-gitea-signature', made: request({ 'x-gitea-signature': hmac(raw), 'x-gogs-signature': hmac(raw) }) },
  { name: 'Forgejo', source: gitea, header: 'x-forgejo-signature', made: request({ 'x-forgejo-signature': hmac(raw) }) },
  { name: 'Gogs', source: gitea, header: 'x-gogs-signature', made: request({ 'x-gogs-signature': hmac(raw) }) },
  { name: 'Gitea, like GitHub', source: gitea, header: 'x-hub-signature-256', made: request({ 'x-hub-signature-256': `sha256=${hmac(raw)}` }) },
  { name: 'Gitea, of a form', source: gitea, header: 'x-gitea-signature', made: request({ ...formType, 'x-gitea-signature': hmac(raw) }, form) },
  { name: 'Grafana', source: grafana, header: 'x-grafana-alerting-signature', made: request({ 'x-grafana-alerting-signature': hmac(raw) }) },
  {
    name: 'Grafana, with a time', source: grafana, header: 'x-grafana-alerting-signature',
    made: request({ 'x-grafana-alerting-signature': hmac(now, ':', raw), 'x-grafana-alerting-timestamp': now }),
  },
  { name: 'Sentry', source: sentry, header: 'sentry-hook-signature', made: request({ 'sentry-hook-signature': hmac(raw) }) },
]

for (const { name, source, header, made } of ways) {
  test(`a signature of ${name} is right for its secret and its body, and for no other`, () => {
    const signature = String(made.headers[header])
    const verify = (change: Partial<HookRequest>, by = secret) => source.verify?.({ ...made, ...change }, by)
    assert.equal(source.isSigned?.(made), true)
    assert.equal(verify({}), true)
    assert.equal(verify({}, other), false)
    assert.equal(verify({ raw: Buffer.concat([made.raw, Buffer.from(' ')]).subarray(1) }), false)
    for (const wrong of ['x', signature.slice(0, -1), `${signature}0`, `${signature} `, signature.replace(/.$/, 'g'), 'sha256=', '密'.repeat(64)]) {
      assert.equal(verify({ headers: { ...made.headers, 'x-gogs-signature': '', [header]: wrong } }), false, wrong)
    }
  })
}

test('what carries no signature is not signed, nor by the empty headers that Gitea sends without a secret', () => {
  for (const source of sources) assert.notEqual(source.isSigned?.(request({})), true, source.name)
  const headers = { 'x-gitea-signature': '', 'x-gogs-signature': '', 'x-hub-signature': 'sha1=', 'x-hub-signature-256': 'sha256=' }
  assert.equal(gitea.isSigned?.(request(headers)), false)
})

describe('a signature with a time', () => {
  const key = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const id = 'f5e57ebb-53f8-4bd6-a1ad-3a3ac5ad4a2b'

  const verifyGitlab = (made: HookRequest, by: string) => gitlab.verify?.(made, by)
  const verifyGrafana = (made: HookRequest) => grafana.verify?.(made, secret)

  function standard(time: Date, headers: IncomingHttpHeaders = {}): HookRequest {
    const signature = new Webhook(key).sign(id, time, raw.toString())
    const timestamp = String(Math.floor(time.getTime() / 1000))
    return request({ 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,AAAA ${signature}`, ...headers })
  }

  test('is one of the Standard Webhooks for GitLab', () => {
    assert.equal(gitlab.isSigned?.(standard(new Date())), true)
    assert.equal(verifyGitlab(standard(new Date()), key), true)
    assert.equal(verifyGitlab(standard(new Date()), secret), false)
    assert.equal(verifyGitlab(standard(new Date(), { 'webhook-id': 'another' }), key), false)
    assert.equal(verifyGitlab(standard(new Date(), { 'webhook-timestamp': String(Number(now) - 1) }), key), false)
  })

  test('is looked for among the first ten of a header only, for anyone may send thousands', () => {
    const { 'webhook-signature': signature } = standard(new Date()).headers
    for (const [others, isRight] of [[8, true], [1_000, false]] as const) {
      const header = `${'v1,BBBB '.repeat(others)}${String(signature).split(' ')[1] ?? ''}`
      assert.equal(verifyGitlab(standard(new Date(), { 'webhook-signature': header }), key), isRight)
    }
  })

  test('is wrong five minutes before and after, and for Grafana where it was made without the time', () => {
    const timeless = request({ 'x-grafana-alerting-signature': hmac(raw), 'x-grafana-alerting-timestamp': now })
    assert.equal(verifyGrafana(timeless), false)
    for (const seconds of [-302, 302, -1e9]) {
      assert.equal(verifyGitlab(standard(new Date(Date.now() + seconds * 1000)), key), false)
      const time = String(Math.floor(Date.now() / 1000) + seconds)
      const signed = request({ 'x-grafana-alerting-signature': hmac(time, ':', raw), 'x-grafana-alerting-timestamp': time })
      assert.equal(verifyGrafana(signed), false)
    }
  })

  test('is of the time alone for Gitee, for an hour, as it is or encoded for an address', () => {
    for (const [minutes, right] of [[0, true], [-59, true], [-61, false], [61, false]] as const) {
      const time = String(Date.now() + minutes * 60_000)
      const token = createHmac('sha256', secret).update(`${time}\n${secret}`).digest('base64')
      for (const each of [token, encodeURIComponent(token)]) {
        const made = request({ 'x-gitee-token': each, 'x-gitee-timestamp': time })
        assert.deepEqual([gitee.verify?.(made, secret), gitee.verify?.(made, other)], [right, false])
      }
      assert.equal(gitee.verify?.(request({ 'x-gitee-token': token, 'x-gitee-timestamp': `${time}0` }), secret), false)
    }
  })

  test('is wrong for a secret whose key would be empty', () => {
    const signature = createHmac('sha256', '').update(`${id}.${now}.`).update(raw).digest('base64')
    const forged = request({ 'webhook-id': id, 'webhook-timestamp': now, 'webhook-signature': `v1,${signature}` })
    for (const malformed of ['whsec_', 'whsec_!!!!!!!!!!!!!!!!']) assert.equal(verifyGitlab(forged, malformed), false, malformed)
  })
})

describe('the same event', () => {
  const alert = (status: string, more: object = {}) => ({
    groupKey: 'g',
    status,
    alerts: [
      { fingerprint: 'a', startsAt: '2026-03-02T01:51:03Z', status }, { fingerprint: 'b', startsAt: '2026-03-02T01:51:03Z', status: 'firing' },
    ],
    ...more,
  })
  const keyOf = (source: Source, body: unknown, headers: IncomingHttpHeaders = {}) => source.keyOf?.(requestOf(body, headers))

  test('is known by the number that its sender gave it, or by its body where one number of GitLab stands for several', () => {
    for (const [source, headers, text] of [
      [github, { 'x-github-delivery': '1' }, '1'], [gitea, { 'x-gitea-delivery': '2', 'x-gogs-delivery': '2' }, '2'],
      [gitea, { 'x-gogs-delivery': '3' }, '3'], [sentry, { 'request-id': '4' }, '4'],
      [gitlab, { 'idempotency-key': '5', 'x-gitlab-event-uuid': '6' }, '5'],
      // The signature of GitLab covers this one.
      [gitlab, { 'webhook-id': '5', 'idempotency-key': 'made up' }, '5'],
    ] as const) assert.deepEqual(keyOf(source, {}, headers), { text })
    const headers = { 'x-gitlab-event-uuid': '6' }
    assert.deepEqual(keyOf(gitlab, { a: 1 }, headers), keyOf(gitlab, { a: 1 }, headers))
    assert.notDeepEqual(keyOf(gitlab, { a: 1 }, headers), keyOf(gitlab, { a: 2 }, headers))
    for (const source of sources) assert.equal(source.keyOf?.(request({})), undefined, source.name)
  })

  test('is an event and its rules, where the older integration of Sentry gave it no number', () => {
    const keyOfRules = (id: string, ...rules: string[]) => keyOf(sentry, { triggering_rules: rules, event: { event_id: id } })
    assert.deepEqual(keyOfRules('a', 'One'), { text: 'a One' })
    assert.notDeepEqual(keyOfRules('a', 'Two'), keyOfRules('a', 'One'))
    assert.notDeepEqual(keyOfRules('b', 'One'), keyOfRules('a', 'One'))
  })

  test('is a group of alerts as it is, for five minutes', () => {
    const key = keyOf(grafana, alert('firing'))
    assert.equal(key?.lifetime, 300_000)
    assert.deepEqual(keyOf(grafana, alert('firing', { alerts: alert('firing').alerts.toReversed(), externalURL: 'x' })), key)
    assert.notDeepEqual(keyOf(grafana, alert('resolved')), key)
    assert.notDeepEqual(keyOf(grafana, alert('firing', { groupKey: 'h' })), key)
    assert.notDeepEqual(keyOf(grafana, alert('firing', { alerts: alert('resolved').alerts })), key, 'one of them is over')
  })
})
