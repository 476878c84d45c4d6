import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { relayFor, useRelay, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { call, failureOf, group, linkServer, messageIdOf, only, seen, sends, sha256, upload, user } from './support'

const relay = useRelay({ config: { chatApiTimeout: 0.5, chatApiMaxRetries: 0 } })

const base64 = (text: string): string => `base64://${Buffer.from(text).toString('base64')}`
const picture = base64('picture')

describe('a message', () => {
  const cases: [what: string, message: unknown, expected: string[]][] = [
    ['is a text', 'hello', ['hello']],
    ['has its line breaks and blanks', ' a\n b ', [' a\n b ']],
    ['has escaped characters', '&#91;CQ:at,qq=all&#93; &amp;', ['[CQ:at,qq=all] &']],
    ['has markup of others', '<at id="all"/> @all', ['<at id="all"/> @all']],
    ['has codes', `[CQ:at,qq=${user}] look: [CQ:image,file=${picture}]done`, [`@${user} look: [image]done`]],
    ['has a code with a data URL', `[CQ:image,file=data:image/png;base64,${btoa('picture')},cache=0]done`, ['[image]done']],
    ['mentions everybody', '[CQ:at,qq=all]', ['@all']],
    ['has an emoji, by a word', 'a[CQ:face,id=178]b', ['a[表情]b']],
    ['is one segment', { type: 'text', data: { text: '[CQ:at,qq=all]' } }, ['[CQ:at,qq=all]']],
    ['is a list of segments', [{ type: 'text', data: { text: 'a&amp;' } }, { type: 'at', data: { qq: 10001 } }, { type: 'image', data: { file: picture } }], ['a&amp;@10001[image]']],
    ['has a voice message, a video and a file, each by itself', [
      { type: 'text', data: { text: 'see' } }, { type: 'record', data: { file: base64('v') } }, { type: 'video', data: { file: base64('w') } },
      { type: 'file', data: { file: base64('f'), name: 'build.log' } },
    ], ['see', '[record]', '[video]', '[build.log]']],
    ['has blanks alone between its mentions', '[CQ:at,qq=1] [CQ:at,qq=2] x', ['@1@2 x']],
  ]
  for (const [what, message, expected] of cases) {
    test(what, async () => {
      messageIdOf(await call(relay, 'send_group_msg', { group_id: Number(group), message }))
      assert.deepEqual(seen(relay), expected)
    })
  }

  test('answers another one', async () => {
    const first = messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: 'first' }))
    messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: `[CQ:reply,id=${first}]second` }))
    assert.deepEqual(seen(relay), ['first', `>${first}second`])
  })

  test('is told by the ID of its first part', async () => {
    const id = messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message: `a[CQ:video,file=${base64('v')}]` }))
    assert.equal(relay.simulator.ledger[0]?.messageId, id)
  })

  test('is text as it is with auto_escape', async () => {
    const message = '[CQ:at,qq=all] &amp;'
    for (const flag of [true, 'true', 1, '1', 'yes']) messageIdOf(await call(relay, 'send_group_msg', { group_id: group, message, auto_escape: flag }))
    assert.deepEqual(seen(relay), Array.from({ length: 5 }, () => message))
    failureOf(await call(relay, 'send_group_msg', { group_id: group, message, auto_escape: 'perhaps' }), 1400)
  })

  const wrong: [what: string, message: unknown, expected: RegExp][] = [
    ['nothing', undefined, /^message must be/],
    ['a number', 7, /^message must be/],
    ['an empty text', ' \n', /^message must not be empty/],
    ['an empty list', [], /^message must not be empty/],
    ['what is no segment', ['a'], /^each segment of message/],
    ['a segment of another kind', 'a[CQ:json,data={}]', /^the segments of a message must be/],
    ['a forwarded message', { type: 'node', data: { id: '1' } }, /^the segments of a message must be/],
    ['a path', '[CQ:image,file=/etc/passwd]', /^image: file must be an http\(s\) link, base64 data or a file ID/],
    ['a file of this machine', '[CQ:image,file=file:///etc/passwd]', /^image: file must be/],
    ['the name of a received picture', { type: 'image', data: { file: '0123456789ABCDEF.image', url: 'http://127.0.0.1/' } }, /^image: file must be/],
    ['a link that climbs', '[CQ:video,file=http://x/%2e%2e%2f../etc/passwd]', /^video: file must not hold/],
    ['malformed data', '[CQ:image,file=base64://?]', /^image: the base64 data in file is empty or malformed/],
    ['a picture without a file', '[CQ:image]', /^image: file is required/],
    ['a mention of nobody', '[CQ:at]', /^at: qq is required/],
    ['a mention of the account 0, which some take for everybody', '[CQ:at,qq=0]', /^0 is the ID of nobody/],
    ['a reply to nothing', '[CQ:reply]a', /^reply: id is required/],
    ['a reply alone', '[CQ:reply,id=1]', /^a reply cannot be sent alone/],
    ['too many segments', '[CQ:at,qq=1]'.repeat(1001), /^message must have at most 1000 segments/],
  ]
  for (const [what, message, expected] of wrong) {
    test(`is refused as a whole with ${what}`, async () => {
      assert.match(failureOf(await call(relay, 'send_group_msg', { group_id: group, message }), 1400), expected)
      assert.equal(sends(relay).length, 0)
    })
  }
})

describe('the target', () => {
  const cases: [action: string, params: object, expected: object][] = [
    ['send_msg', { message_type: 'group', group_id: 1001 }, { type: 'group', id: '1001' }],
    ['send_msg', { message_type: 'private', user_id: user }, { type: 'private', id: user }],
    ['send_msg', { message_type: 'private', user_id: user, group_id: 1001 }, { type: 'private', id: user }],
    ['send_msg', { group_id: '1001' }, { type: 'group', id: '1001' }],
    ['send_msg', { user_id: 10001, group_id: null }, { type: 'private', id: user }],
    ['send_private_msg', { user_id: 10001, group_id: 1001 }, { type: 'private', id: user }],
    ['send_group_msg', { user_id: 10001, group_id: 1001 }, { type: 'group', id: '1001' }],
  ]
  for (const [action, params, expected] of cases) {
    test(`of ${action} ${JSON.stringify(params)}`, async () => {
      messageIdOf(await call(relay, action, { ...params, message: 'a' }))
      assert.deepEqual(only(relay.simulator.ledger).target, expected)
    })
  }

  test('is refused where it is none', async () => {
    for (const params of [{}, { message_type: 'discuss', group_id: group }, { message_type: 'group', user_id: user }, { group_id: 'abc' }, { group_id: true }]) {
      failureOf(await call(relay, 'send_msg', { ...params, message: 'a' }), 1400)
    }
    failureOf(await call(relay, 'send_group_msg', { user_id: user, message: 'a' }), 1400)
    assert.equal(sends(relay).length, 0)
  })
})

describe('a file', () => {
  test('is uploaded under its name, from a link, data or what was uploaded here', async t => {
    const id = await upload(relay, 'build.log', 'of the relay')
    const { url } = await linkServer(t, 'linked')
    for (const file of [base64('bytes'), id, `${url}/x.txt`]) {
      const { text, headers } = await call(relay, 'upload_group_file', { group_id: group, file, name: '../a b.log' })
      assert.equal(text, `{"retcode":0,"status":"ok","data":{"delivery_id":"${headers.get('x-request-id') ?? ''}"},"message":"","wording":""}`)
    }
    await call(relay, 'upload_private_file', { user_id: user, file: id })
    assert.deepEqual(seen(relay), ['[a b.log]', '[a b.log]', '[a b.log]', '[build.log]'])
    const digests = ['bytes', 'of the relay', 'linked', 'of the relay'].map(sha256)
    assert.deepEqual(relay.simulator.ledger.map(({ media }) => media[0]?.sha256), digests)
  })

  test('is refused where it is none', async () => {
    for (const file of [undefined, '', '/etc/passwd', 'file:///etc/passwd', 7]) {
      assert.match(failureOf(await call(relay, 'upload_group_file', { group_id: group, file, name: 'a' }), 1400), /^file: /)
    }
    assert.match(failureOf(await call(relay, 'upload_group_file', { group_id: group, file: '01a1f888-5efd-459b-8a19-306f0428960e/a' }), 1404), /^no such file/)
    assert.equal(sends(relay).length, 0)
  })
})

describe('a failure', () => {
  test('tells refused, not sent and unanswered apart', async () => {
    const message = { group_id: group, message: 'a' }
    relay.simulator.fault({ fault: { kind: 'refuse', wording: '消息不合规' } })
    const refused = await call(relay, 'send_group_msg', message)
    assert.equal(failureOf(refused, 1502), 'the platform refused the message: 消息不合规')
    assert.equal(refused.headers.get('relay-outcome'), 'refused')
    assert.deepEqual(refused.body.data, { delivery_id: refused.headers.get('x-request-id') })
    relay.simulator.clearFaults()
    relay.simulator.fault({ fault: { kind: 'silent' } })
    failureOf(await call(relay, 'send_group_msg', message), 1504)
    relay.simulator.clearFaults()
    await relay.simulator.goOffline()
    await until('the bot is offline', async () => (await call(relay, 'get_status')).text.includes('"online":false'))
    const unsent = await call(relay, 'send_group_msg', message)
    assert.match(failureOf(unsent, 1503), /^no bot is online/)
    assert.equal(unsent.headers.get('relay-outcome'), 'unsent')
    await relay.simulator.goOnline()
    await until('the bot is online again', async () => (await call(relay, 'get_status')).text.includes('"online":true'), 20_000)
  })

  test('says that a part was sent', async () => {
    relay.simulator.fault({ action: 'upload_group_file', fault: { kind: 'refuse', wording: '文件不合规' } })
    const message = [{ type: 'text', data: { text: 'a' } }, { type: 'file', data: { file: base64('f') } }]
    const why = failureOf(await call(relay, 'send_group_msg', { group_id: group, message }), 1502)
    assert.equal(why, 'the platform refused the message: 文件不合规 (the other parts of the message were sent)')
    assert.deepEqual(seen(relay), ['a'])
  })
})

test('echo is given back where it was given', async () => {
  for (const echo of ['a', 7, { b: [null] }]) {
    const { text } = await call(relay, 'can_send_image', { echo })
    assert.equal(text, `{"retcode":0,"status":"ok","data":{"yes":true},"message":"","wording":"","echo":${JSON.stringify(echo)}}`)
  }
  assert.equal((await call(relay, 'send_msg', { echo: 'a' })).body.echo, 'a')
})

describe('a repeat with the same Idempotency-Key', () => {
  const post = ({ url }: TestRelay) => fetch(`${url}/onebot/send_group_msg?group_id=${group}&message=once`, {
    headers: { 'authorization': 'Bearer a-key-for-tests', 'idempotency-key': 'nightly' },
  })

  test('sends nothing', async () => {
    const [first, second] = [await post(relay), await post(relay)]
    assert.equal(await first.text(), await second.text())
    assert.deepEqual([first, second].map(({ headers }) => headers.get('idempotent-replayed')), [null, 'true'])
    assert.equal(second.headers.get('content-location'), `/deliveries/${first.headers.get('x-request-id')}`)
    assert.deepEqual(seen(relay), ['once'])
  })

  test('learns when to come again while the platform may still carry the call out', async t => {
    const patient = await relayFor(t, { config: { chatApiTimeout: 0.5, chatApiMaxRetries: 0, chatSettleTime: 30 } })
    patient.simulator.fault({ fault: { kind: 'silent' }, times: Infinity })
    await post(patient)
    patient.simulator.clearFaults()
    const second = await post(patient)
    assert.match(await second.text(), /"retcode":1504/)
    assert(Number(second.headers.get('retry-after')) > 20)
    assert.deepEqual(seen(patient), [])
  })
})
