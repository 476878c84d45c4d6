import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { read, useRelay, type TestRelay } from '../../support/relay'
import { failureOf, group, idsOf, only, sends, user } from './support'

let relay: TestRelay

useRelay({}, each => {
  relay = each
})

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
    const { status, body } = await relay.send({ group_id: group, msg: 'hello' })
    assert.equal(status, 200)
    const entry = only(relay.simulator.ledger)
    assert.deepEqual(entry.target, { type: 'group', id: group })
    assert.equal(entry.text, 'hello')
    assert.deepEqual(body, { code: 0, msg: 'ok', data: { message_ids: [String(entry.messageId)] } })
  })

  test('reaches a private chat, and the answer has the ID that the platform gave', async () => {
    const ids = idsOf(await relay.send({ user_id: user, type: 'text', msg: 'hello' }))
    const entry = only(relay.simulator.ledger)
    assert.deepEqual(entry.target, { type: 'private', id: user })
    assert.equal(entry.action, 'send_private_msg')
    assert.deepEqual(ids, [String(entry.messageId)])
  })

  test('may be addressed with a number', async () => {
    idsOf(await relay.send({ group_id: 123456, msg: 'a' }))
    idsOf(await relay.send({ user_id: 10001, msg: 'b' }))
    assert.deepEqual(relay.simulator.ledger.map(({ target }) => target), [{ type: 'group', id: group }, { type: 'private', id: user }])
  })

  test('may be addressed to an ID that is larger than a number holds exactly', async () => {
    const id = '90071992547409931'
    idsOf(await relay.send({ group_id: id, msg: 'a' }))
    assert.deepEqual(only(relay.simulator.ledger).target, { type: 'group', id })
  })

  test('may have null in every field that it does not use', async () => {
    const ids = idsOf(await relay.send({
      group_id: group, user_id: null, type: null, msg: 'a', url: null, messages: null, platform: null, self_id: null,
    }))
    assert.equal(ids.length, 1)
    assert.equal(delivered(), 'a')
  })

  test('treats an empty ID as absent', async () => {
    idsOf(await relay.send({ group_id: '', user_id: user, msg: 'a', platform: '', self_id: '' }))
    assert.deepEqual(only(relay.simulator.ledger).target, { type: 'private', id: user })
  })

  test('ignores fields that it does not know or need', async () => {
    idsOf(await relay.send({ group_id: group, msg: 'a', url: 'nonsense', title: 'x', messageType: {} }))
    assert.equal(delivered(), 'a')
  })

  test('of type file has an empty list of IDs, to a group and in private', async () => {
    for (const target of [{ group_id: group }, { user_id: user }]) {
      assert.deepEqual(idsOf(await relay.send({ ...target, type: 'file', url: 'base64://aGVsbG8=' })), [])
    }
    assert.deepEqual(relay.simulator.ledger.map(({ kind, action }) => `${kind} ${action}`), ['file upload_group_file', 'file upload_private_file'])
  })

  test('is one call to the platform', async () => {
    await relay.send({ group_id: group, msg: 'a' })
    assert.equal(sends(relay).length, 1)
  })
})

describe('text', () => {
  const texts: Record<string, string> = {
    'an element': '<img src=x>',
    'a closed element': '<at id="1"/> <b>bold</b> <message forward/>',
    'half an element': 'a < b > c <',
    'a CQ code': '[CQ:at,qq=all]',
    'XML entities': '&amp; &lt;b&gt; &quot; &#60; &nbsp;',
    'CQ entities': '&#91;CQ:face,id=1&#93;&#44;',
    'an interpolation': '{{ x }} {0} ${y} %s %o %c',
    'a back reference': '$& $1 \\1 \\n',
    'emoji': '😀👨‍👩‍👧‍👦🇨🇳 ✔️',
    'line breaks': 'a\nb\r\nc\n\n\nd',
    'inner blanks': 'a  b\t\tc\u00a0d\u3000e',
    'outer blanks': '  \t a \n ',
    'right-to-left text': 'שלום \u202eabc\u202c مرحبا',
    'invisible characters': 'a\u200bb\ufeffc\u00ad',
    'control characters': 'a\u0001\u0007\u0008\u001b[31mred\u001b[0m\u007f\u0085',
    'a combining sequence that is not normalized': 'e\u0301 é',
    '4,000 characters': '消息x<'.repeat(1000),
    'JSON': '{"group_id":"1","msg":"[]"}',
    'a command': '/help #help @all',
    'one character': '0',
  }
  for (const [what, text] of Object.entries(texts)) {
    test(`with ${what} arrives letter for letter`, async () => {
      idsOf(await relay.send({ group_id: group, msg: text }))
      assert.equal(delivered(), text)
      relay.simulator.clear()
      idsOf(await relay.send({ user_id: user, msg: text }))
      assert.equal(delivered(), text)
    })
  }

  test('with half of a surrogate pair arrives as UTF-8 can hold it', async () => {
    idsOf(await relay.send({ group_id: group, msg: 'a\ud83d b\ude00' }))
    assert.equal(delivered(), 'a\ufffd b\ufffd')
  })

  test('that is blank is refused', async () => {
    for (const msg of ['', ' ', '\n\t', '\u3000\u00a0']) failureOf(await relay.send({ group_id: group, msg }), 400)
    assert.equal(sends(relay).length, 0)
  })
})

describe('the body', () => {
  for (const type of [
    'application/json', 'application/x-www-form-urlencoded', 'text/plain; charset=utf-8', 'multipart/form-data; boundary=x',
    'application/octet-stream', 'nonsense', '',
  ]) {
    test(`is read as JSON when its type is "${type}"`, async () => {
      idsOf(await relay.send({ group_id: group, msg: 'a=b&c=%20+💡' }, { 'content-type': type }))
      assert.equal(delivered(), 'a=b&c=%20+💡')
    })
  }

  for (const body of ['', ' ', '{', '{"group_id":"1","msg":"a"', 'group_id=1&msg=a', '{\'msg\': 1}', 'undefined', '\u0000']) {
    test(`${JSON.stringify(body)} is no JSON`, async () => {
      const reply = await read(await relay.request('/webhook', { method: 'POST', body }))
      assert.equal(failureOf(reply, 400), 'invalid json')
    })
  }

  for (const body of [null, [], [{ group_id: group, msg: 'a' }], 'text', 1, true]) {
    test(`${JSON.stringify(body)} is no object`, async () => {
      failureOf(await relay.send(body), 400)
      assert.equal(sends(relay).length, 0)
    })
  }
})

describe('a target', () => {
  for (const id of ['0', '-1', '01', 'abc', '1.0', '1e3', '+1', ' 1', '1 ', '１２３', '٣', '1'.repeat(30), 'x'.repeat(300), '1\n', 'private:1', '#', 0, -1]) {
    const shown = JSON.stringify(id).slice(0, 40)
    test(`of ${shown} is refused for a OneBot bot`, async () => {
      for (const target of [{ group_id: id }, { user_id: id }]) {
        failureOf(await relay.send({ ...target, msg: 'a' }), 400)
        failureOf(await relay.send({ ...target, messages: [{ msg: 'a' }] }), 400)
      }
      assert.equal(sends(relay).length, 0)
      assert.equal(relay.simulator.ledger.length, 0)
    })
  }

  const ambiguous: Record<string, object> = {
    'missing': {},
    'null': { group_id: null, user_id: null },
    'empty': { group_id: '', user_id: '' },
    'given twice': { group_id: group, user_id: user },
  }
  for (const [what, target] of Object.entries(ambiguous)) {
    test(`that is ${what} is refused`, async () => {
      failureOf(await relay.send({ ...target, msg: 'a' }), 400)
      failureOf(await relay.send({ ...target, messages: [{ msg: 'a' }] }), 400)
      assert.equal(sends(relay).length, 0)
    })
  }
})

describe('a field of a wrong type is refused:', () => {
  const image = { type: 'image', url: 'base64://aGVsbG8=' }
  const wrong: [string, object, unknown[]][] = [
    ['group_id', { msg: 'a' }, [true, false, [], ['1'], {}, 1.5, 2 ** 53]],
    ['user_id', { msg: 'a' }, [true, false, [], ['1'], {}, 1.5, 2 ** 53]],
    ['type', { group_id: group, msg: 'a', url: image.url }, [1, true, false, [], ['text'], {}, '', 'TEXT', ' text', 'sound', 'toString', '__proto__']],
    ['msg', { group_id: group }, [undefined, null, 1, 0, true, false, [], ['a'], {}]],
    ['url', { group_id: group, type: 'image' }, [undefined, null, '', 1, true, false, [], [image.url], {}]],
    ['url', { group_id: group, type: 'video' }, [undefined, null, '', 1, true, false, [], [image.url], {}]],
    ['url', { group_id: group, type: 'file' }, [undefined, null, '', 1, true, false, [], [image.url], {}]],
    ['messages', { group_id: group, msg: 'a' }, [[], 0, 1, '', 'a', true, false, {}, { 0: { msg: 'a' }, length: 1 }]],
    ['platform', { group_id: group, msg: 'a' }, [1, true, false, [], ['onebot'], {}]],
    ['self_id', { group_id: group, msg: 'a' }, [true, false, [], ['10000'], {}, 1.5]],
  ]
  for (const [field, rest, values] of wrong) {
    for (const value of values) {
      test(`${field} ${JSON.stringify(value)}, with ${Object.keys(rest).join(' and ')}`, async () => {
        failureOf(await relay.send({ ...rest, [field]: value }), 400)
        assert.equal(sends(relay).length, 0)
      })
    }
  }

  test('and the text says which field it is', async () => {
    assert.match(failureOf(await relay.send({ group_id: true, msg: 'a' }), 400), /group_id/)
    assert.match(failureOf(await relay.send({ group_id: group, msg: 1 }), 400), /msg/)
    assert.match(failureOf(await relay.send({ group_id: group, type: 'image', url: 1 }), 400), /url/)
    assert.match(failureOf(await relay.send({ group_id: group, type: 'sound' }), 400), /type/)
    assert.match(failureOf(await relay.send({ group_id: group, messages: {} }), 400), /messages/)
  })
})
