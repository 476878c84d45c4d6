import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { access } from '../../../src/texts/table/access'
import type { TextId } from '../../../src/texts/table'
import { apiKey, askAs, useRelay } from '../../support/relay'
import { until } from '../../support/until'
import { Texts } from './support'

const texts = new Texts(access, {
  // The settings, their keys and the files beside them are read before anybody can ask.
  start: [
    'default-used', 'digest-without-signature', 'entry-refused', 'entry-without-key', 'equals-another', 'in-koishi-yml', 'key-configured',
    'key-entry', 'key-entry-of', 'key-generated', 'key-not-written', 'leftover', 'leftovers', 'no-command-until-fixed',
    'no-incident-until-fixed', 'old-key-file', 'rule-accounts', 'rule-address', 'rule-base-address', 'rule-dictionary', 'rule-key',
    'rule-list', 'rule-path', 'rule-platform-flags', 'rule-seconds', 'rule-signing-secret', 'rule-size', 'rule-size-least', 'rule-texts',
    'rule-whole', 'rule-whole-least', 'rule-words', 'secret-checks-nothing', 'setting-malformed', 'settings-default', 'settings-set',
    'the-variable',
  ],
  // A caller is not told why a key is refused.
  log: [
    'key-expired-at', 'key-expires-at', 'key-has-expired', 'key-not-from-there', 'kind-key', 'kind-target', 'kind-template',
    'made-unreadable', 'no-created-at', 'no-key', 'skips-way', 'wrong-key', 'wrong-signature',
  ],
  // A test would have to make a thousand of them.
  limit: ['too-many-keys', 'too-many-made'],
})

const limited = 'a-key-that-is-limited'
const named = 'a-key-for-github-alone'

describe('keys and names', () => {
  const relay = useRelay({
    config: {
      keys: [
        { name: 'fixed', key: limited, allow: ['send'], targets: ['group:1'] },
        { name: 'source', key: named, sources: ['github'] },
      ],
      targets: { fixed: { to: 'group:1' } },
    },
  })
  const put = (path: string, body: unknown, method = 'PUT'): [string, RequestInit] => [path, { method, body: JSON.stringify(body) }]
  const key = (body: object): [string, RequestInit] => put('/keys', { name: 'new', ...body }, 'POST')

  const rows: [ids: TextId[], ...request: [path: string, init?: RequestInit]][] = [
    [['rule-key-name'], ...key({ name: 'x'.repeat(300) })],
    [['rule-expires'], ...key({ expires: 'soon' })],
    [['rule-from'], ...key({ from: ['x'] })],
    [['rule-targets'], ...key({ targets: [''] })],
    [['rule-allow'], ...key({ allow: ['x'] })],
    [['rule-sources'], ...key({ sources: ['a b'] })],
    [['rule-rate'], ...key({ rate: 0 })],
    [['rule-secret'], ...key({ secret: 'x' })],
    [['name-required'], ...key({ name: undefined })],
    [['name-of-console'], ...key({ name: 'console' })],
    [['names-of-plugins'], ...key({ name: 'plugin:x' })],
    [['allow-with-sources'], ...key({ sources: ['github'], allow: ['read'] })],
    [['key-left-out'], ...key({ key: 'x' })],
    [['signs-flag'], ...key({ signs: 1 })],
    [['signs-or-secret'], ...key({ signs: true, secret: 'x' })],
    [['expires-is-over'], ...key({ expires: '2020-01-01' })],
    [['key-name-rule'], ...key({ name: 'a b' })],
    [['secret-needs-hooks'], ...key({ secret: 'a-secret-for-signatures', allow: ['send'] })],
    [['key-exists'], ...key({ name: 'fixed' })],
    [['secret-exists'], ...key({ secret: limited })],
    [['grace-rule'], ...put('/keys/fixed/rotate', { grace: -1 }, 'POST')],
    [['key-is-fixed'], '/keys/fixed', { method: 'DELETE' }],
    [['no-such-key'], '/keys/none', { method: 'DELETE' }],
    [['no-such-kind', 'kind-name'], '/targets/none', { method: 'DELETE' }],
    [['made-is-fixed', 'kind-name'], '/targets/fixed', { method: 'DELETE' }],
    [['secret-true-without'], ...put('/targets/new', { first: [{ url: 'http://127.0.0.1/', secret: true }] })],
    [['too-many-targets-of-name'], ...put('/targets/new', { to: Array.from({ length: 101 }, (_, index) => `group:${index + 1}`) })],
    [['no-such-kind', 'kind-person'], '/people/none', { method: 'DELETE' }],
    [['no-such-kind', 'kind-rota'], '/rotas/none', { method: 'DELETE' }],
    [['no-such-kind', 'kind-beat'], '/beats/none', { method: 'DELETE' }],
  ]
  for (const [ids, path, init] of rows) test(ids.join(', '), () => texts.ask(relay, ids, path, init))

  const as = (ids: TextId[], secret: string, method: string, path: string, body?: unknown): void => {
    test(ids.join(', '), () => texts.meet(ids, async lang => JSON.stringify((await askAs(relay, secret, method, `${path}?lang=${lang}`, body)).body)))
  }
  as(['lacks-permission'], limited, 'GET', '/keys')
  as(['lacks-permission-and-limited'], named, 'DELETE', '/keys/none')
  as(['limited-to-sources'], named, 'POST', '/hooks/message/group:1', { message: 'x' })
  as(['may-not-send-to'], limited, 'POST', '/send/group:2', 'x')

  const strange: [id: TextId, path: string, headers: Record<string, string>][] = [
    ['flaw-bearer-in-key', '/statusz?', { 'x-api-key': 'Bearer x' }],
    ['flaw-nothing-after-bearer', '/statusz?', { authorization: 'Bearer' }],
    ['flaw-no-bearer', '/statusz?', { authorization: 'Token x' }],
    ['flaw-quotes-after-bearer', '/statusz?', { authorization: 'Bearer "x"' }],
    ['no-such-secret', '/hooks/github/group:1?', { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }],
    ['key-given-twice', '/onebot/get_status?access_token=a&access_token=b&', {}],
  ]
  for (const [id, path, headers] of strange) {
    const init = path.startsWith('/hooks') ? { method: 'POST', body: '{}' } : {}
    test(id, () => texts.meet([id], async lang => (await fetch(`${relay.url}${path}lang=${lang}`, { headers, ...init })).text()))
  }

  const make = async (method: string, path: string, body: object): Promise<void> => {
    const { status, msg } = await askAs(relay, apiKey, method, path, body)
    assert([200, 201].includes(status), `${path}: ${msg}`)
  }

  test('expired-on-rotation', async () => {
    const end = Date.now() + 2_000
    await make('POST', '/keys', { name: 'short', expires: new Date(end).toISOString() })
    await until('it has expired', () => Date.now() > end)
    await texts.ask(relay, ['expired-on-rotation'], '/keys/short/rotate', { method: 'POST' })
  })

  test('what is used cannot be removed', async () => {
    const used: [path: string, body: object][] = [
      ['/targets/used', { to: 'group:1' }],
      ['/targets/above', { to: 'group:2', ack: { escalate: [{ after: '5m', to: 'used' }] } }],
      ['/beats/nightly', { every: '1d', to: 'used' }],
      ['/people/ann', { onebot: '10001' }],
      ['/rotas/on-call', { people: ['ann'], every: '1d', from: '2026-11-30T09:00+08:00' }],
    ]
    for (const [path, body] of used) await make('PUT', path, body)
    await texts.ask(relay, ['made-is-used', 'the-name', 'the-beat'], '/targets/used', { method: 'DELETE' })
    await texts.ask(relay, ['made-is-used', 'the-rota'], '/people/ann', { method: 'DELETE' })
  })
})

texts.complete()
