import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { useRelay } from '../../support/relay'
import { group, idsOf, only, sends, user } from './support'

const relay = useRelay()

/** The text of the one message that was delivered, and nothing but text. */
function delivered(): string {
  const { segments } = only(relay.simulator.ledger)
  const { type, data } = only(segments)
  assert.equal(type, 'text')
  assert(typeof data.text === 'string')
  return data.text
}

describe('a single message', () => {
  test('reaches a group, and the answer has the ID that the platform gave', async () => {
    const { status, headers, body } = await relay.send({ group_id: group, msg: 'hello' })
    assert.equal(status, 200)
    const entry = only(relay.simulator.ledger)
    assert.deepEqual(entry.target, { type: 'group', id: group })
    assert.equal(delivered(), 'hello')
    assert.equal(sends(relay).length, 1)
    assert.deepEqual(body, { code: 0, msg: 'ok', data: { message_ids: [String(entry.messageId)], delivery_id: headers.get('x-request-id') } })
  })

  test('reaches a private chat, and the answer has the ID that the platform gave', async () => {
    const ids = idsOf(await relay.send({ user_id: user, type: 'text', msg: 'hello' }))
    const entry = only(relay.simulator.ledger)
    assert.deepEqual(entry.target, { type: 'private', id: user })
    assert.equal(entry.action, 'send_private_msg')
    assert.deepEqual(ids, [String(entry.messageId)])
  })

  test('may be addressed to an ID that is larger than a number holds exactly', async () => {
    const id = '90071992547409931'
    idsOf(await relay.send({ group_id: id, msg: 'a' }))
    assert.deepEqual(only(relay.simulator.ledger).target, { type: 'group', id })
  })

  test('of type file has an empty list of IDs, to a group and in private', async () => {
    for (const target of [{ group_id: group }, { user_id: user }]) {
      assert.deepEqual(idsOf(await relay.send({ ...target, type: 'file', url: 'base64://aGVsbG8=' })), [])
    }
    assert.deepEqual(relay.simulator.ledger.map(({ kind, action }) => `${kind} ${action}`), ['file upload_group_file', 'file upload_private_file'])
  })
})

describe('text', () => {
  const texts: Record<string, string> = {
    'elements': '<img src=x> <at id="1"/> <b>bold</b> <message forward/> a < b > c <',
    'CQ codes and entities': '[CQ:at,qq=all] &#91;CQ:face,id=1&#93;&#44;',
    'XML entities': '&amp; &lt;b&gt; &quot; &#60; &nbsp;',
    'interpolations': '{{ x }} {0} ${y} %s %o %c $& $1 \\1 \\n',
    'emoji': '😀👨‍👩‍👧‍👦🇨🇳 ✔️',
    'blanks': '  \t a\nb\r\nc\n\n\nd  e\t\tf\u00a0g\u3000h \n ',
    'right-to-left and invisible characters': 'שלום \u202eabc\u202c مرحبا a\u200bb\ufeffc\u00ad',
    'control characters': 'a\u0001\u0007\u0008\u001b[31mred\u001b[0m\u007f\u0085',
    'a combining sequence that is not normalized': 'e\u0301 é',
    '4,000 characters': '消息x<'.repeat(1000),
    'JSON': '{"group_id":"1","msg":"[]"}',
    'a command': '/help #help @all',
    'one character': '0',
  }
  for (const [what, text] of Object.entries(texts)) {
    test(`with ${what} arrives letter for letter`, async () => {
      for (const target of [{ group_id: group }, { user_id: user }]) {
        relay.simulator.clear()
        idsOf(await relay.send({ ...target, msg: text }))
        assert.equal(delivered(), text)
      }
    })
  }
})
