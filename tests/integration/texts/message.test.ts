import { describe, test } from 'node:test'
import type { TextId } from '../../../src/texts/table'
import { message as table } from '../../../src/texts/table/message'
import { useRelay } from '../../support/relay'
import { Texts } from './support'

/** A body, and the texts of its answer. */
type Row = readonly [ids: readonly TextId[], body: unknown]

const headers = { 'content-type': 'application/json' }
const chat = { to: 'group:1' }
const text = { ...chat, msg: 'x' }
const many = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)
const long = (length: number): string => 'x'.repeat(length)
const picture = (url: string): object => ({ ...chat, type: 'image', url })
const item = (...messages: unknown[]): object => ({ ...chat, messages })
const steps = (...escalate: unknown[]): object => ({ ...chat, ack: { escalate } })

/** Bodies for /webhook. */
const messages: readonly Row[] = [
  [['body-object'], []],
  [['no-messages'], { ...chat, messages: [] }],
  [['must-be', 'array'], { ...chat, messages: 7 }],
  [['too-many-items'], item(...many(1001))],
  [['item-object'], item(7)],
  [['reply-alone'], item({ type: 'reply', message_id: '1' })],
  [['target-required', 'found-instead'], { chat_id: 7, msg: 'x' }],
  [['one-target-field'], { ...text, group_id: 1 }],
  [['to-text-or-list'], { to: 7, msg: 'x' }],
  [['to-empty'], { to: [], msg: 'x' }],
  [['group-or-user'], { group_id: 1, user_id: 1, msg: 'x' }],
  [['must-be', 'string'], { ...text, platform: 7 }],
  [['no-target-named'], { to: 'nobody', msg: 'x' }],
  [['too-many-targets'], { to: many(101).map(id => `group:${id}`), msg: 'x' }],
  [['two-bots'], { to: 'onebot:1:group:1', self_id: '2', msg: 'x' }],
  [['ways-have-bots'], { to: 'ops', platform: 'onebot', msg: 'x' }],
  [['id-type-rule'], { group_id: 1.5, msg: 'x' }],
  [['id-rule'], { group_id: ' ', msg: 'x' }],
  [['field-required'], chat],
  [['type-rule'], { ...text, type: 'card' }],
  [['msg-blank'], { ...chat, msg: ' ' }],
  [['too-many-mentions'], { ...text, at: many(1001) }],
  [['companions-rule'], { ...picture('https://a.example/x'), type: 'video', at: '1' }],
  [['mention-id-rule'], { ...text, at: '1 2' }],
  [['zero-is-nobody'], { ...text, at: '0' }],
  [['expiry-rule'], { ...text, expires_in: 0 }],
  [['send-at-rule'], { ...text, send_at: 'tomorrow' }],
  [['send-at-late'], { ...text, send_at: 31 * 24 * 60 * 60 }],
  [['must-be', 'short-text'], { ...text, thread: long(201) }],
  [['must-be', 'either'], { ...text, severity: 'bad' }],
  [['mention-severities'], { ...text, mention: { ok: 'all' } }],
  [['called'], { ...text, mention: [] }],
  [['nobody-alone'], { ...text, mention: 'none,all' }],
  [['unknown-person'], { ...text, mention: 'nobody' }],
  [['link-too-long'], picture(`https://a.example/${long(8192)}`)],
  [['no-link'], picture('ftp://a.example')],
  [['link-blanks'], picture('https://a.example/a b')],
  [['long-host'], picture(`https://${long(64)}.example`)],
  [['link-dots'], picture('https://a.example/?x=/../y')],
  [['malformed-base64'], picture('base64://A')],
]

/** Bodies for a name of targets. */
const targets: readonly Row[] = [
  [['must-be', 'text'], { ...chat, platform: 7 }],
  [['no-field'], { ...chat, colour: 'red' }],
  [['to-rule'], { to: 'nobody' }],
  [['to-or-first'], { ...chat, first: ['group:1'] }],
  [['first-rule'], { first: [] }],
  [['first-has-bots'], { first: ['group:1'], platform: 'onebot' }],
  [['only-with-first'], { ...chat, after: 60 }],
  [['way-rule'], { first: [7] }],
  [['way-to-one-chat'], { first: ['nobody'] }],
  [['secret-rule'], { first: [{ url: 'https://a.example', secret: 'whsec_!' }] }],
  [['format-rule'], { first: [{ url: 'https://a.example', format: 'xml' }] }],
  [['seconds-rule'], { ...chat, digest: 'often' }],
  [['object-rule'], { ...chat, quiet: 'at night' }],
  [['zone-rule'], { ...chat, quiet: { from: '22:00', to: '08:00', zone: 'Nowhere' } }],
  [['time-of-day-rule'], { ...chat, quiet: { from: '25:00', to: '08:00' } }],
  [['always-quiet'], { ...chat, quiet: { from: '08:00', to: '08:00' } }],
  [['no-field', 'rules-of-ack'], { ...chat, ack: { whom: 'all' } }],
  [['steps-rule'], { ...chat, ack: { escalate: 7 } }],
  [['people'], { ...chat, ack: { who: [] } }],
  [['who-rule'], { ...chat, ack: { who: 'all' } }],
  [['object-rule'], steps(7)],
  [['no-field', 'steps-of-ack'], steps({ after: '5m', mention: 'all', whom: 'all' })],
  [['duration-rule'], steps({ after: 'soon', mention: 'all' })],
  [['after-rule'], steps({ after: '5m', mention: 'all' }, { after: '5m', mention: 'all' })],
  [['empty-step'], steps({ after: '5m' })],
  [['only-last-step'], steps({ after: '5m', mention: 'all', again: '5m' }, { after: '9m', mention: 'all' })],
  [['step-to-rule'], steps({ after: '5m', to: '-' })],
  [['no-name'], steps({ after: '5m', to: 'nobody' })],
  [['leads-back'], steps({ after: '5m', to: 'new' })],
]

describe('a text about messages, targets and names', () => {
  const texts = new Texts(table, { log: ['left-out'] })
  const relay = useRelay({
    config: {
      targets: { ops: { first: ['group:1', 'group:2'] } },
      keys: [{ name: 'bound', key: 'a-key-of-two-sources', sources: ['github', 'grafana'] }],
    },
  })
  const rows = (method: string, path: string, list: readonly Row[]): void => {
    for (const [ids, body] of list) {
      test(ids.join(', '), () => texts.ask(relay, ids, path, { method, headers, body: JSON.stringify(body) }))
    }
  }

  describe('is in the answer to a message', () => rows('POST', '/webhook', messages))
  describe('is in the answer to a new name', () => rows('PUT', '/targets/new', targets))
  describe('is in the answer to a malformed name', () => rows('PUT', '/targets/-', [[['name-rule'], chat]]))
  describe('is in the answer to a target in the path', () => rows('POST', '/send/group:1', [[['target-in-path'], text]]))

  test('all', () => texts.meet(['all'], async lang => (
    (await fetch(`${relay.url}/webhook?lang=${lang}`, { method: 'POST', headers: { 'x-api-key': 'a-key-of-two-sources' }, body: JSON.stringify(text) })).text()
  )))

  texts.complete()
})
