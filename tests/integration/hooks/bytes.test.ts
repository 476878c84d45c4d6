import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { toText } from '../../../src/lib/shape'
import { useRelay } from '../../support/relay'
import { get, group, post, texts } from './support'

const relay = useRelay({ config: { chatApiMaxRetries: 0, targets: { ops: `group:${group}` } } })

const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const gbk = { 'content-type': 'application/x-www-form-urlencoded; charset=gbk' }

function multipart(fields: Record<string, string>): FormData {
  const made = new FormData()
  for (const [name, value] of Object.entries(fields)) made.append(name, value)
  return made
}

describe('JSON with raw control characters in its strings is read', () => {
  const slack = '{"text":"标题\n账号1：签到成功"}'
  const cases: [what: string, path: string, body: string | FormData, headers: Record<string, string> | undefined, text: string][] = [
    // `sample/notify.js` (chatNotify) and `sample/notify.py` (chat) of whyour/qinglong.
    ['in the form of 青龙', 'slack', `payload=${slack}`, form, '标题\n账号1：签到成功'],
    ['in the form of 青龙 with signs of forms', 'slack', `payload={"text":"签到 & 1+1\n${encodeURI('5%折扣 & x=1')}"}`, form, '签到 & 1+1\n5%折扣 & x=1'],
    ['in the form of 青龙 without a type', 'push', 'payload={"text": "A & 5%\\u6298\n"}', { 'content-type': '' }, 'A & 5%折'],
    ['in an escaped form', 'slack', `payload=${encodeURIComponent(slack)}`, form, '标题\n账号1：签到成功'],
    // `.github/workflows/develop-slack-notify.sh` of Matroskin94/vite-slack-integration.
    ['in a block', 'slack', '{\n  "blocks": [\n    {"type": "section", "text": {"type": "mrkdwn", "text": "a\r\nb"}}\n  ]\n}', json, 'a\nb'],
    // `src/test/resources/send_slack_notification.sh` of sperftest/gatling-tests.
    ['of a shell', 'message', '{"message": "error: a\n\tb"}', json, 'error: a\n  b'],
    ['for a source that also takes plain text', 'push', '{"title":"磁盘告警","content":"第一行\n第二行"}', { 'content-type': 'text/plain' }, '磁盘告警\n第一行\n第二行'],
    ['in a field of Discord', 'discord', multipart({ payload_json: '{"content":"a\nb"}' }), undefined, 'a\nb'],
    ['in JSON within JSON', 'feishu', JSON.stringify({ msg_type: 'text', content: '{"text":"a\nb"}' }), json, 'a\nb'],
    ['of a robot', 'wecom', '{"msgtype":"text","text":{"content":"a\nb"}}', json, 'a\nb'],
  ]
  for (const [what, path, body, headers, text] of cases) {
    test(what, async () => {
      const { status, text: answer } = await post(relay, `${path}/ops`, body, { ...headers && { headers } })
      assert(status === 200 || (status === 204 && path === 'discord'), answer)
      assert.deepEqual(texts(relay).map(each => each.replaceAll('\r', '')), [text])
    })
  }

  test('but not what is malformed beside, nor more than may be in a body', async () => {
    for (const [body, msg] of [
      ['{"text":"a\nb",}', /^invalid json: this cannot stand here \(line 2, column 4\)/], [`{"text":"a\nb","a":${'['.repeat(64)}${']'.repeat(64)}}`, /64 levels/],
    ] as const) {
      const { status, body: { errmsg } } = await post(relay, 'wecom/ops', body, { headers: json })
      assert.equal(status, 400)
      assert.match(toText(errmsg), msg)
    }
  })
})

describe('percent-encoded bytes', () => {
  const cases: [what: string, send: () => ReturnType<typeof post>, text: string | undefined][] = [
    ['of a form in the charset of its type', () => post(relay, 'message/ops', 'title=%B9%B9%BD%A8&text=%CA%A7%B0%DC+1', { headers: gbk }), '构建\n失败 1'],
    ['of a form, raw and escaped', () => post(relay, 'message/ops', 'title=构建&text=%E5%A4%B1%E8%B4%A5', { headers: form }), '构建\n失败'],
    ['of a form in the charset of the address', () => post(relay, 'message/ops?charset=big5', 'text=%A7A%A6n', { headers: form }), '你好'],
    ['of a form in a charset that nobody names', () => post(relay, 'message/ops', 'text=%B9%B9%BD%A8', { headers: form }), undefined],
    ['of Slack', () => post(relay, 'slack/ops', 'payload=%7B%22text%22%3A%22%B9%B9%BD%A8%22%7D', { headers: gbk }), '构建'],
    ['of Slack in a charset that nobody names', () => post(relay, 'slack/ops', 'payload=%7B%22text%22%3A%22%B9%B9%BD%A8%22%7D', { headers: form }), undefined],
    ['of a query', () => get(relay, 'message/ops?text=%E6%9E%84%E5%BB%BA'), '构建'],
    // `urllib.parse.quote` of Python with `encoding='gbk'`, and `iconv.encode` in scripts of Node.js.
    ['of a query that names its charset', () => get(relay, 'message/ops?text=%B9%B9%BD%A8&charset=gbk'), '构建'],
    ['of a query in a charset that nobody names', () => get(relay, 'message/ops?text=%B9%B9%BD%A8'), undefined],
    ['of the query of a POST, beside a text in another charset', () => post(relay, 'message/ops?title=%E6%9E%84', 'text=%CA%A7%B0%DC', { headers: gbk }), '构\n失败'],
    ['that are malformed', () => post(relay, 'message/ops?title=100%', 'text=5%+%zz', { headers: form }), '100%\n5% %zz'],
  ]
  for (const [what, send, text] of cases) {
    test(`${what} are ${text === undefined ? 'refused' : 'read'}`, async () => {
      const { status, text: answer } = await send()
      assert.equal(status, text === undefined ? 400 : 200, answer)
      if (text === undefined) assert.match(answer, /charset=gbk/)
      assert.deepEqual(texts(relay), text === undefined ? [] : [text])
    })
  }
})

test('a field of a multipart body is in the charset of its part, or UTF-8, or refused', async () => {
  const fieldOf = (type: string, bytes: string): [Buffer, Record<string, string>] => [
    Buffer.from(`--limit\r\nContent-Disposition: form-data; name="text"\r\n${type}\r\n${bytes}\r\n--limit--\r\n`, 'latin1'),
    { 'content-type': 'multipart/form-data; boundary=limit' },
  ]
  for (const [type, status] of [['Content-Type: text/plain; charset=gbk\r\n', 200], ['', 400]] as const) {
    const [body, headers] = fieldOf(type, '\xb9\xb9\xbd\xa8')
    assert.equal((await post(relay, 'message/ops', '', { body, headers })).status, status)
  }
  assert.deepEqual(texts(relay), ['构建'])
})

test('a title in a header is read in any charset', async () => {
  for (const title of ['=?GBK?B?ubm9qA==?=', '=?utf-8?Q?=E6=9E=84=E5=BB=BA?=', '\xb9\xb9\xbd\xa8']) {
    assert.equal((await post(relay, 'message/ops', 'failed', { headers: { title } })).status, 200)
  }
  assert.deepEqual(texts(relay), Array<string>(3).fill('构建\nfailed'))
})

// `sample/notify.js` (pushDeerNotify) of whyour/qinglong: `encodeURI` leaves `&`, `=` and `+` as they are.
test('the form of 青龙 for PushDeer keeps what it does not escape', async () => {
  const desp = encodeURI('账号1：获得 3+1 京豆 & 5%折扣\nhttps://example.com/?a=1&b=2')
  const bodies = ['pushkey=x&text=京东签到 A&B&desp=账号1：获得 3 京豆 & 5%25折扣%0A账号2：失效&type=markdown', `pushkey=x&text=签到&desp=${desp}&type=markdown`]
  for (const body of bodies) assert.equal((await post(relay, 'push/ops', body, { headers: form })).status, 200)
  assert.equal((await post(relay, 'push/ops', new URLSearchParams({ pushkey: 'x', text: 'a b', desp: '1+1 & 2' }))).status, 200)
  assert.deepEqual(texts(relay), [
    '京东签到 A&B\n账号1：获得 3 京豆 & 5%折扣\n账号2：失效', '签到\n账号1：获得 3+1 京豆 & 5%折扣\nhttps://example.com/?a=1&b=2', 'a b\n1+1 & 2',
  ])
})
