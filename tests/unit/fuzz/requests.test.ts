import assert from 'node:assert/strict'
import fc from 'fast-check'
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { after } from 'node:test'
import { sources } from '../../../src/hooks/sources'
import { apiKey, useRelay } from '../../support/relay'
import { anything, holds, textsOf } from './support'

const relay = useRelay({ config: { chatApiMaxRetries: 0, chatApiTimeout: 1, chatPauseAfter: 1_000_000, targets: { ops: 'group:1' } } })
const agent = new Agent({ keepAlive: true })
after(() => agent.destroy())

const segments = fc.array(fc.oneof(
  fc.constantFrom(
    'ops', 'group:1', 'private:2', 'nobody', 'slack', 'github', 'services', 'robot', 'send', 'cgi-bin', 'webhook', 'api', 'webhooks', 'open-apis', 'bot', 'message',
    'push', apiKey, `bot${apiKey}`, `${apiKey}.send`, 'a+b', '%E4%BD%A0', '%ff', '%', '%2F', '..', '', 'send_group_msg', 'send_msg_async', 'retry', 'preview',
  ),
  fc.string({ maxLength: 8 }).map(encodeURIComponent),
), { maxLength: 6 })
const names = fc.constantFrom(
  'key', 'access_token', 'auth', 'token', 'pushkey', 'events', 'branch', 'status', 'lang', 'format', 'charset', 'dry_run', 'fail', 'expires_in', 'urgent', 'send_at',
  'thread', 'thread_mode', 'mention', 'to', 'msg', 'text', 'title', 'group_id', 'message', 'auto_escape', 'limit', 'before', 'state', '/slack', '/message?token', 'x',
)
const values = fc.oneof(
  fc.constantFrom(apiKey, `${apiKey}/slack`, Buffer.from(`Bearer ${apiKey}`).toString('base64'), '1', '0', 'true', 'zh', 'gbk', 'utf-16', 'markdown', 'html', '10', '-1', 'all'),
  textsOf('%', '%E4', '&', '=', '+', ';', '[CQ:at,qq=all]', '\0', '值班').map(text => text.slice(0, 500)),
)
const types = fc.constantFrom(
  '', 'application/json', 'application/json; charset=utf-16', 'application/x-www-form-urlencoded', 'application/x-www-form-urlencoded; charset=gbk',
  'multipart/form-data; boundary=x', 'multipart/form-data', 'text/plain; charset=gbk', 'text/plain', 'text/markdown', 'image/png', 'application/octet-stream', ';', '/',
)
const headers = fc.dictionary(fc.constantFrom(
  'authorization', 'x-api-key', 'x-gitlab-token', 'x-gitee-token', 'x-gitee-timestamp', 'x-hub-signature-256', 'x-gitea-signature', 'sentry-hook-signature',
  'x-github-event', 'x-gitlab-event', 'x-gitea-event', 'idempotency-key', 'prefer', 'accept-language', 'accept', 'title', 'tags', 'actions', 'priority', 'webhook-id', 'content-encoding',
), fc.oneof(fc.constantFrom(`Bearer ${apiKey}`, `Basic ${Buffer.from(`:${apiKey}`).toString('base64')}`, 'sha256=00', 'push', 'respond-async, wait=1', 'gzip'), values), { maxKeys: 4 })
const bodies = fc.oneof(
  textsOf('{', '}', '[', ']', '"text": "a"', '"msg": 1', ',', '&', '=', 'payload={', 'pushkey=', 'text', '%', '+', '--x\r\n', '--x--', '\r\n\r\n', 'Content-Disposition: form-data; name="text"', '; filename="a"'),
  anything.map(value => JSON.stringify(value)),
  fc.dictionary(names, fc.oneof(anything, values)).map(value => JSON.stringify(value)),
  fc.constantFrom('{"to":"ops","msg":"a"}', '{"group_id":1,"message":"a"}', '--x\r\nContent-Disposition: form-data; name="text"\r\n\r\na\r\n--x--\r\n'),
)

holds('any request is answered, and never by an error of the relay', fc.record({
  call: fc.oneof(
    fc.tuple(fc.constantFrom('POST', 'POST', 'GET', 'PUT'), fc.constantFrom('hooks', 'hooks/own', ...sources.map(({ name }) => `hooks/${name}`))),
    fc.tuple(fc.constantFrom('POST', 'GET'), fc.constantFrom(
      'webhook', 'send', 'onebot', 'upload', 'deliveries', 'targets', 'templates/own', 'payloads', 'queues', 'incidents', 'incidents/x/take', 'beats', 'keys',
      'keys/x/rotate', 'rotas/x/swaps',
    )),
    fc.tuple(fc.constant('PUT'), fc.constantFrom('targets', 'people', 'rotas', 'beats', 'templates')),
  ),
  segments, query: fc.array(fc.tuple(names, values), { maxLength: 4 }), headers, types, hasKey: fc.boolean(), bodies,
}), async ({ call: [method, door], segments, query, headers, types: type, hasKey, bodies: body }) => {
  const search = query.map(([name, value]) => `${encodeURI(name)}=${value.toWellFormed()}`).join('&').replace(/[^!$-;=?-~]/gu, encodeURIComponent)
  const sent = request(relay.url, {
    agent, method,
    path: `/${[door, ...segments].join('/')}${search && `?${search}`}`,
    headers: {
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace(/[^ -~\xa0-\xff]/g, '')])),
      ...type && { 'content-type': type }, ...hasKey && { 'x-api-key': apiKey },
    },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) => sent.once('response', resolve).once('error', reject))
  sent.end(method === 'GET' ? undefined : body)
  const answer = await answered
  answer.resume()
  await once(answer, 'end')
  assert.notEqual(answer.statusCode, 500, relay.logs.slice(-3).join('\n'))
})
