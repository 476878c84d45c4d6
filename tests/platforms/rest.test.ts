import { h } from 'koishi'
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { fieldsOf, type JsonObject } from '../../src/lib/shape'
import { call } from '../integration/onebot-api/support'
import type { Reply, TestRelay } from '../support/relay'
import { until } from '../support/until'
import { callerOf } from './caller'
import { relayWith } from './platform'
import { places, platformNames, Platforms, sending } from './rest'
import type { Answer, Call } from './server'

type Platform = keyof typeof sending

const picture = 'base64://iVBORw0KGgo='
const report = 'data:application/pdf;base64,JVBERi0xLjQK'

let relay: TestRelay
let platforms: Platforms

before(async () => {
  platforms = await Platforms.start()
  const config = {
    chatApiTimeout: 1, chatApiMaxRetries: 1, chatPauseAfter: 0, commandCallbackUrl: `${platforms.server.url}/callback`, commandPrefix: '#', commandLength: 4,
  }
  relay = await relayWith(platformNames, app => platforms.load(app), config)
})
after(async () => {
  await relay.stop()
  await platforms.server.stop()
})
afterEach(() => platforms.server.clear())

const { ask, queue, reaches } = callerOf(() => relay, '')

/** The group of a platform; the user where there are no groups. */
function placeOf(platform: Platform): string {
  const place = places[platform]
  return `${platform}:${'group' in place ? `group:${place.group}` : `private:${place.user}`}`
}

function send(platform: Platform, body: object, to = placeOf(platform)): Promise<Reply> {
  return relay.send({ to, ...body })
}

/** What a platform does with the next send instead of carrying it out. */
function fault(platform: Platform, answer: Answer | 'cut' | 'none', isCarriedOut = false, times = 1): void {
  platforms.server.fault({ path: sending[platform], answer, isCarriedOut, times })
}

/** The fields of the message that is sent: DingTalk has them as JSON within a field. */
function messageOf({ fields, path }: Call): Record<string, unknown> {
  const { text, msgParam } = fields
  return { ...fields, ...fieldsOf(path.startsWith('/dingtalk') ? JSON.parse(String(msgParam)) : text) }
}

/** The text of the only send. */
function textSent(platform: Platform): unknown {
  const [call, ...more] = platforms.sends(platform)
  assert(call && more.length === 0, `${more.length + 1} sends of ${platform}`)
  const { content, body, text } = messageOf(call)
  return content ?? body ?? text
}

interface Failing {
  /** How it refuses a message for good, and the words that reach the caller. */
  refusal: Answer
  words: RegExp
  /** How it says that it gets too many. */
  limit: Answer
}

const soon = { 'retry-after': '0.5' }

const failing: Readonly<Record<Platform, Failing>> = {
  kook: {
    refusal: { body: { code: 40000, message: '你没有权限发送消息', data: [] } }, words: /你没有权限发送消息/,
    limit: { status: 429, headers: { 'x-rate-limit-reset': '0.5' }, body: { code: 429, message: 'Too Many Requests', data: [] } },
  },
  qq: {
    refusal: { status: 400, body: { message: 'invalid request', code: 11255, err_code: 11255 } }, words: /invalid request/,
    limit: { status: 429, headers: soon, body: { message: 'limit', code: 429 } },
  },
  qqguild: {
    refusal: { status: 403, body: { code: 304048, message: '不允许在此频道发主动消息' } }, words: /不允许在此频道发主动消息/,
    limit: { status: 400, headers: soon, body: { code: 20028, message: 'ChannelHitWriteRateLimit' } },
  },
  slack: {
    refusal: { body: { ok: false, error: 'channel_not_found' } }, words: /no such group.*channel_not_found/,
    limit: { status: 429, headers: soon, body: { ok: false, error: 'ratelimited' } },
  },
  dingtalk: {
    refusal: { status: 400, body: { code: 'resource.not.found', message: 'robot 不存在', requestid: 'r' } }, words: /robot 不存在/,
    limit: {
      status: 403, headers: soon, body: { code: 'Forbidden.AccessDenied.QpsLimitForAppkeyAndApi', message: 'qps limited', requestid: 'r' },
    },
  },
  wecom: {
    refusal: { body: { errcode: 81013, errmsg: 'user & party & tag all invalid' } }, words: /no such user.*user & party & tag all invalid/,
    limit: { headers: soon, body: { errcode: 45009, errmsg: 'api freq out of limit' } },
  },
  whatsapp: {
    refusal: { status: 400, body: { error: { message: '(#131047) Re-engagement message', type: 'OAuthException', code: 131047 } } },
    words: /no permission to write here.*Re-engagement message/,
    limit: { status: 400, headers: soon, body: { error: { message: '(#130429) Rate limit hit', type: 'OAuthException', code: 130429 } } },
  },
}

for (const name of platformNames) {
  describe(name, () => {
    test('a 5xx or a connection that is cut: may have arrived, called once', async () => {
      for (const [calls, answer] of [[1, { status: 502, body: '<h1>502 Bad Gateway</h1>' }], [2, 'cut']] as const) {
        fault(name, answer, true)
        const { status, headers } = await send(name, { msg: 'x' })
        assert.deepEqual([status, headers.get('relay-outcome'), platforms.sends(name).length], [504, 'unanswered', calls])
      }
    })

    test('the page of a proxy in place of an answer: may have arrived, called once', async () => {
      fault(name, { body: '<h1>Log in to the network</h1>' })
      const { status, headers } = await send(name, { msg: 'x' })
      assert.deepEqual([status, headers.get('relay-outcome'), platforms.sends(name).length], [504, 'unanswered', 1])
    })

    test('a refusal: in the words of the platform, called once', async () => {
      const { refusal, words } = failing[name]
      fault(name, refusal)
      const { status, body } = await send(name, { msg: 'x' })
      assert.equal(status, 502, body.msg)
      assert.match(body.msg, words)
      assert.equal(platforms.sends(name).length, 1)
    })

    test('a limit: waited for, never called earlier', async () => {
      fault(name, failing[name].limit)
      const begun = performance.now()
      const { status, body } = await send(name, { msg: 'x' })
      assert.equal(status, 200, body.msg)
      assert(performance.now() - begun >= 500, 'called too early')
      assert.equal(platforms.sends(name).length, 2)
    })
  })
}

describe('an account that may not send', () => {
  const unauthorized = { status: 401, body: { message: 'unauthorized', code: 11244 } }
  const refusals: [Platform, Answer, RegExp][] = [
    ['kook', { status: 401, body: { code: 401, message: '用户凭证错误', data: [] } }, /logged out.*用户凭证错误/],
    ['qq', unauthorized, /logged out.*unauthorized/],
    ['qqguild', unauthorized, /logged out.*unauthorized/],
    ['slack', { body: { ok: false, error: 'token_revoked' } }, /logged out.*token_revoked/],
    ['slack', { body: { ok: false, error: 'missing_scope', needed: 'chat:write', provided: 'users:read' } }, /does not permit.*missing_scope/],
    ['wecom', { body: { errcode: 60020, errmsg: 'not allow to access from your ip' } }, /does not permit.*from your ip/],
    ['whatsapp', { status: 401, body: { error: { message: 'Session has expired', type: 'OAuthException', code: 190 } } }, /logged out.*Session has expired/],
    ['whatsapp', { status: 400, body: { error: { message: '(#131031) Account has been locked', code: 131031 } } }, /does not permit.*locked/],
  ]
  for (const [name, answer, words] of refusals) {
    test(`${name}: ${JSON.stringify(answer.body)} keeps what is sent later`, async () => {
      fault(name, answer)
      const id = await queue({ to: placeOf(name), msg: 'x' })
      let delivery: JsonObject = {}
      await until('it is held', async () => {
        delivery = (await ask(`/deliveries/${id}`)).data
        return delivery.held !== undefined || !['queued', 'sending'].includes(String(delivery.state))
      })
      assert.match(JSON.stringify(delivery), words)
      const waiting = `${String(delivery.bot)}/${placeOf(name).slice(name.length + 1)}`
      await ask(`/queues/${encodeURIComponent(waiting)}/resume`, 'POST')
      await reaches(id, 'sent')
      assert.equal(platforms.sends(name).length, 2)
    })
  }
})

describe('a token that the platform takes no more', () => {
  const expired: [Platform, Answer, RegExp, string][] = [
    ['dingtalk', { status: 400, body: { code: 'InvalidAuthentication', message: '不合法的access_token' } }, /accessToken$/, 'dingtalk:private:other'],
    ['wecom', { body: { errcode: 42001, errmsg: 'access_token expired' } }, /gettoken$/, 'wecom:private:other'],
  ]
  for (const [name, answer, asking, other] of expired) {
    test(`${name} is asked for a new one, once a minute`, async () => {
      fault(name, answer)
      // A message whose caller does not wait leaves soon as well.
      const path = name === 'wecom' ? `/hooks/message/${placeOf(name)}` : '/webhook'
      const body = JSON.stringify({ to: placeOf(name), msg: 'x', text: 'x' })
      assert.equal((await relay.request(path, { method: 'POST', body, headers: { 'content-type': 'application/json' } })).status, 200)
      await until('it is sent', () => platforms.sends(name).length === 2)
      assert.equal(platforms.server.callsTo(asking).length, 1)
      fault(name, answer)
      const { status, body: { msg } } = await send(name, { msg: 'x' }, other)
      assert.deepEqual([status, platforms.sends(name).length, platforms.server.callsTo(asking).length], [503, 3, 1])
      assert.match(msg, /logged out.*access_token/)
    })
  }
})

describe('what an adapter swallows', () => {
  for (const error of ['internal_error', 'fatal_error', 'service_unavailable']) {
    test(`a ${error} of Slack, which comes with a 200, may have arrived`, async () => {
      fault('slack', { body: { ok: false, error } }, true)
      const { status, headers, body } = await send('slack', { msg: 'x' })
      assert.deepEqual([status, headers.get('relay-outcome'), platforms.sends('slack').length], [504, 'unanswered', 1])
      assert.match(body.msg, new RegExp(error))
    })
  }

  test('a WeCom that is too busy may have sent it', async () => {
    fault('wecom', { body: { errcode: -1, errmsg: 'system error' } }, true)
    assert.equal((await send('wecom', { msg: 'x' })).status, 504)
    assert.equal(platforms.sends('wecom').length, 1)
  })

  test('an answer that QQ has yet to decide about may have arrived', async () => {
    fault('qqguild', { status: 202, body: { code: 304023, message: 'push message is waiting for audit now' } })
    const { status, body } = await send('qqguild', { msg: 'x' })
    assert.equal(status, 504)
    assert.match(body.msg, /waiting for audit/)
  })

  test('a user whom DingTalk does not know is refused', async () => {
    fault('dingtalk', { body: { processQueryKey: 'k', invalidStaffIdList: ['manager4220'] } })
    const { status, body } = await send('dingtalk', { msg: 'x' }, `dingtalk:private:${places.dingtalk.user}`)
    assert.equal(status, 502)
    assert.match(body.msg, /there is no such user.*invalidStaffIdList/)
  })

  for (const [outcome, answer] of [
    [[502, undefined], { status: 400, body: { code: 50035, message: 'no' } }], [[504, undefined], { status: 500, body: {} }],
  ] as const) {
    test(`each item of a batch that takes several messages has its own outcome: ${outcome[0]}`, async () => {
      fault('qqguild', answer)
      const { data } = await send('qqguild', { messages: [{ type: 'image', url: picture }, { msg: 'x' }] })
      assert.deepEqual([data.results].flat().map(result => fieldsOf(result).code), outcome)
      assert.equal(platforms.sends('qqguild').length, 2)
    })
  }

  test('a message of which the adapter knows no part is refused', async t => {
    t.after(relay.app.on('before-send', session => {
      session.elements = [h('unknown')]
    }))
    const { status, body } = await send('kook', { msg: 'x' })
    assert.deepEqual([status, platforms.sends('kook').length], [502, 0], body.msg)
    assert.match(body.msg, /finds nothing in the message/)
  })

  test('a plugin that suppresses a message is told from an adapter', async t => {
    t.after(relay.app.on('before-send', () => true))
    const { status, body } = await send('qqguild', { msg: 'x' })
    assert.deepEqual([status, body.msg, platforms.sends('qqguild').length], [502, 'another plugin of the bot suppressed the message: nothing was sent', 0])
  })
})

describe('what an adapter cannot send', () => {
  const items = {
    'image': { type: 'image', url: picture }, 'video': { type: 'video', url: picture }, 'audio': { type: 'audio', url: picture },
    'file': { type: 'file', url: report }, 'at': { msg: 'x', at: 'manager4220' }, 'at-all': { msg: 'x', at: 'all' },
    'reply': { msg: 'x', reply_to: '1' },
  }
  const media = ['image', 'video', 'audio', 'file'] as const
  const lacking: [Platform, readonly (keyof typeof items)[]][] = [
    ['qq', ['audio', 'file', 'at', 'at-all', 'reply']], ['qqguild', ['video', 'audio', 'file']], ['slack', media],
    ['dingtalk', [...media, 'at', 'at-all', 'reply']], ['wecom', ['at', 'at-all', 'reply']], ['whatsapp', ['at', 'at-all']],
  ]
  for (const [name, types] of lacking) {
    test(`${name}: ${types.join(', ')} are refused before anything leaves`, async () => {
      for (const type of types) {
        const { status, body } = await send(name, items[type])
        assert.equal(status, 400, `${type}: ${body.msg}`)
        assert.match(body.msg, /cannot be sent by the adapter for/)
        assert.equal(body.msg.endsWith(': send a link to it as text'), media.some(each => each === type), body.msg)
      }
      assert.equal(platforms.sends(name).length, 0)
    })
  }

  test('of a batch, that item alone', async () => {
    const { data } = await send('slack', { messages: [{ msg: 'one' }, items.image] })
    assert.deepEqual([data.success, data.failed, textSent('slack')], [1, 1, 'one'])
  })

  test('a type of file that WhatsApp does not take', async () => {
    const { status, body } = await send('whatsapp', { type: 'file', url: 'data:application/zip;base64,UEsDBA==' })
    assert.deepEqual([status, platforms.server.callsTo(/whatsapp/).length], [502, 0])
    assert.match(body.msg, /takes no files of the type application\/zip/)
  })
})

describe('media', () => {
  test('keep their names and types', async () => {
    for (const [name, path, field] of [['kook', /asset\/create/, 'file'], ['wecom', /media\/upload/, 'media'], ['whatsapp', /1065\/media/, 'file']] as const) {
      assert.equal((await send(name, { type: 'file', url: `${platforms.server.url}/files/%E6%8A%A5%E5%91%8A.pdf` })).status, 200)
      const { name: sent, type, data } = platforms.server.callsTo(path)[0]?.files.get(field) ?? {}
      assert.deepEqual([sent, type, data?.toString('base64')], ['报告.pdf', 'application/pdf', 'JVBERi0xLjQK'], name)
    }
    assert.match(String(platforms.sends('kook')[0]?.fields.content), /"type":"file".*"title":"报告.pdf"/)
  })

  test('a picture goes to QQ as data, to its guilds in a form, and to WeCom as an image', async () => {
    assert.equal((await send('qq', { type: 'image', url: picture })).status, 200)
    assert.equal((await send('qq', { type: 'image', url: picture }, `qq:private:${places.qq.user}`)).status, 200)
    assert.deepEqual(platforms.server.callsTo(/\/files$/).map(({ path, fields }) => [path, fields.file_type, fields.file_data]), [
      [`/qq/v2/groups/${places.qq.group}/files`, 1, 'iVBORw0KGgo='], [`/qq/v2/users/${places.qq.user}/files`, 1, 'iVBORw0KGgo='],
    ])
    assert.equal((await send('qqguild', { type: 'image', url: picture })).status, 200)
    assert.equal(platforms.sends('qqguild')[0]?.files.get('file_image')?.type, 'image/png')
    assert.equal((await send('wecom', { type: 'image', url: picture })).status, 200)
    assert.equal(platforms.server.callsTo(/media\/upload/)[0]?.query.get('type'), 'image')
  })

  test('stay between the texts where they are, also on WeCom', async () => {
    assert.equal((await send('wecom', { messages: [{ msg: 'one' }, { type: 'image', url: picture }, { msg: 'two' }] })).status, 200)
    assert.deepEqual(platforms.sends('wecom').map(({ fields: { msgtype, text } }) => fieldsOf(text).content ?? msgtype), ['one', 'image', 'two'])
  })

  test('a dead link is refused, and nothing is sent', async () => {
    for (const name of ['kook', 'qq', 'qqguild', 'wecom', 'whatsapp'] as const) {
      const { status, body } = await send(name, { type: 'image', url: 'http://127.0.0.1:1/a.png' })
      assert.deepEqual([status, body.msg], [502, 'the platform refused the message: the file behind the link cannot be fetched'], name)
      assert.equal(platforms.sends(name).length, 0)
    }
  })
})

describe('texts', () => {
  const said = '<@1> <!channel> <@!1> <#2> <qqbot-at-everyone /> <emoji:4> @everyone (met)all(met) &lt;!here&gt; <a'
  const arrives: [Platform, string][] = [
    ['kook', String.raw`<@1> <!channel> <@!1> <#2> <qqbot-at-everyone /> <emoji:4> @everyone \(met\)all\(met\) &lt;!here&gt; <a`],
    ['qq', '<​@1> <!channel> <​@!1> <​#2> <​qqbot-at-everyone /> <​emoji:4> @​everyone (met)all(met) &lt;!here&gt; <a'],
    ['qqguild', '&lt;@1&gt; &lt;!channel&gt; &lt;@!1&gt; &lt;#2&gt; &lt;qqbot-at-everyone /&gt; &lt;emoji:4&gt; @​everyone (met)all(met) &amp;lt;!here&amp;gt; &lt;a'],
    ['slack', '&lt;@1&gt; &lt;!channel&gt; &lt;@!1&gt; &lt;#2&gt; &lt;qqbot-at-everyone /&gt; &lt;emoji:4&gt; @​everyone (met)all(met) &amp;lt;!here&amp;gt; &lt;a'],
    ['wecom', said],
    ['whatsapp', said],
  ]
  for (const [name, expected] of arrives) {
    test(`${name}: nothing in them mentions anybody`, async () => {
      assert.equal((await send(name, { msg: said })).status, 200)
      assert.equal(textSent(name), expected)
    })
  }

  test('links in them work on Slack and DingTalk, which would break at an underscore', async () => {
    const link = 'https://github.com/o/my_repo/runs?a=1&b=2'
    assert.equal((await send('slack', { msg: `my_repo: <${link}>, https://e.test/a.` })).status, 200)
    const escaped = link.replace('&', '&amp;')
    assert.equal(textSent('slack'), `my\u200b_repo: &lt;<${escaped}|${escaped.replace('_', '\u200b_')}>&gt;, https://e.test/a.`)
    assert.equal((await send('dingtalk', { msg: 'see https://e.test/my-repo or https://e.test/a-b%20c.' })).status, 200)
    assert.equal(textSent('dingtalk'), 'see [https://e.test/my\\-repo](https://e.test/my-repo) or https://e.test/a\\-b%20c.')
  })

  test('what a platform would cut is refused', async () => {
    for (const [name, longest] of [['wecom', '好'.repeat(682)], ['slack', 'x'.repeat(40_000)]] as const) {
      assert.equal((await send(name, { msg: longest })).status, 200)
      const { status, body } = await send(name, { msg: `${longest}xyz` })
      assert.deepEqual([status, body.msg], [502, 'the platform refused the message: the message is too long'])
      assert.equal(textSent(name), longest)
    }
  })

  test('the beginning of one that goes as a file fits', async () => {
    const { status } = await relay.request(`/send/${placeOf('wecom')}`, { method: 'POST', body: '好'.repeat(3000) })
    assert.deepEqual([status, ...platforms.sends('wecom').map(({ fields }) => fieldsOf(fields.text).content ?? fields.msgtype)], [200, '好'.repeat(682), 'file'])
  })

  test('mentions are those of the items', async () => {
    for (const [name, at, expected] of [
      ['kook', '1780328444', '(met)1780328444(met)'], ['kook', 'all', '(met)all(met)'], ['qqguild', '1234', '<@1234>'], ['qqguild', 'all', '@everyone'],
      ['slack', 'U024BE7LH', '<@U024BE7LH>'], ['slack', 'all', '<!everyone>'],
    ] as const) {
      assert.equal((await send(name, { msg: 'x', at })).status, 200)
      assert(String(textSent(name)).startsWith(expected), name)
      platforms.server.clear()
    }
  })

  test('the ID of a mention cannot be another mention', async () => {
    for (const [name, at] of [['kook', 'here'], ['kook', '1(met)(met)all'], ['slack', '!channel'], ['slack', 'U1> <!channel'], ['qqguild', '1> @everyone']] as const) {
      assert.equal((await send(name, { msg: 'x', at })).status, 400, at)
    }
  })
})

describe('chats', () => {
  test('a private chat is found by the ID of the user', async () => {
    for (const name of ['kook', 'qq', 'slack', 'dingtalk', 'wecom', 'whatsapp'] as const) {
      assert.equal((await send(name, { msg: 'hi' }, `${name}:private:${places[name].user}`)).status, 200, name)
      assert.equal(textSent(name), 'hi')
    }
    const fields = (name: Platform) => platforms.sends(name)[0]?.fields ?? {}
    assert.equal(fields('kook').chat_code, 'b4cd1ae5c3d2411e9f0a7c9d8e7f6a5b')
    assert.equal(fields('slack').channel, 'D024BE91L')
    assert.deepEqual(fields('dingtalk').userIds, ['manager4220'])
    assert.equal(fields('wecom').touser, 'zhangsan')
    assert.equal(fields('whatsapp').to, '16505551234')
  })

  test('what cannot be addressed is refused in plain words', async () => {
    const user = await send('qqguild', { msg: 'x' }, 'qqguild:private:1234')
    assert.deepEqual([user.status, user.body.msg], [400, 'the platform has a private chat with a user only for some minutes after the user wrote to the bot'])
    const group = await send('wecom', { msg: 'x' }, 'wecom:group:1')
    assert.deepEqual([group.status, group.body.msg], [400, 'WeCom has private chats only: write private:<ID of the user>'])
  })

  test('a channel that cannot be opened leaves nothing in doubt', async () => {
    platforms.server.fault({ path: /conversations\.open/, answer: { status: 500 }, times: 2 })
    const { status, headers } = await send('slack', { msg: 'x' }, 'slack:private:U1')
    assert.deepEqual([status, headers.get('relay-outcome'), platforms.sends('slack').length], [503, 'unsent', 0])
  })

  test('a channel that cannot be opened at first: the file still follows its text', async () => {
    platforms.server.fault({ path: /user-chat\/create$/, answer: { status: 500 }, times: 1 })
    const id = await queue({ to: 'kook:private:1780328444', messages: [{ msg: 'x' }, { type: 'file', url: report }] })
    await until('it is held', async () => JSON.stringify((await ask(`/deliveries/${id}`)).data.held ?? '').includes('unreachable'))
    await reaches(id, 'sent')
    assert.deepEqual(platforms.sends('kook').map(({ fields: { content } }) => String(content).includes('"type":"file"')), [false, true])
  })

  test('a reply in a thread of Slack arrives, although the adapter fails after it', async () => {
    const { status, body, data } = await send('slack', { msg: 'x', reply_to: '1503435956.000100' })
    assert.deepEqual([status, data.message_ids], [200, ['1503435956.000247']], body.msg)
    assert.equal(platforms.sends('slack')[0]?.fields.thread_ts, '1503435956.000100')
  })

  test('lists that an adapter does not have are empty', async () => {
    const contacts = async (bot: string): Promise<unknown> => fieldsOf(JSON.parse(await (await relay.request(`/contacts?bot=${bot}`)).text())).data
    assert.deepEqual(await contacts('kook:77'), { bot: 'kook:77', groups: [{ id: places.kook.group, name: 'general' }], friends: [] })
    assert.deepEqual(await contacts('dingtalk:ding'), { bot: 'dingtalk:ding', groups: [], friends: [] })
  })

  test('a recall that the platform refuses is none', async () => {
    const { data } = await send('kook', { msg: 'x' })
    const [id] = [data.message_ids].flat()
    const recall = async (): Promise<unknown> => (await call(relay, 'delete_msg', { message_id: id })).body.status
    platforms.server.fault({ path: /message\/delete/, answer: { body: { code: 40000, message: '你没有权限', data: [] } } })
    assert.deepEqual([await recall(), await recall()], ['failed', 'ok'])
  })

  test('a command from QQ is answered as an answer to it', async () => {
    platforms.say(' #ping x')
    await until('it is answered', () => platforms.sends('qq').length === 1)
    const { content, msg_id: id, msg_seq: seq } = platforms.sends('qq')[0]?.fields ?? {}
    assert.deepEqual([content, id, seq], ['pong', 'ROBOT1.0_asked', 1])
    assert.equal((await send('qq', { msg: 'later' })).status, 200)
    assert.equal(platforms.sends('qq')[1]?.fields.msg_seq, 2)
  })

  test('one from a group of DingTalk begins with the blank behind the mention of the bot', async () => {
    const timestamp = String(Date.now())
    const sign = createHmac('sha256', 's').update(`${timestamp}\ns`).digest('base64')
    const body = JSON.stringify({
      msgtype: 'text', text: { content: ' #ping x' }, conversationType: '2', conversationId: places.dingtalk.group, atUsers: [], msgId: 'm',
      senderStaffId: places.dingtalk.user, senderNick: 'x', chatbotUserId: 'b', robotCode: 'ding', createAt: Date.now(),
    })
    await fetch(`${relay.url}/dingtalk`, { method: 'POST', body, headers: { timestamp, sign, 'content-type': 'application/json' } })
    await until('it is answered', () => platforms.sends('dingtalk').length === 1)
    assert.equal(textSent('dingtalk'), 'pong')
  })

  test('so is one from a private chat of its guilds, which has an address no other way', async () => {
    platforms.say('#ping x', true)
    await until('it is answered', () => platforms.sends('qqguild').length === 1)
    const { path, fields } = platforms.sends('qqguild')[0] ?? {}
    assert.deepEqual([path, fields?.content, fields?.msg_id], ['/qq/dms/71/messages', 'pong', 'ROBOT1.0_asked'])
  })
})

test('a limit of one chat leaves the others alone, also with a 429', async () => {
  for (const [name, code, others] of [['qqguild', 20028, 'qqguild:group:633500001'], ['qq', 22009, 'qq:group:D9F778FE6ADF9D1D1DBE395BF744A33A']] as const) {
    const to = `${name}:group:${name === 'qq' ? 'E9F778FE6ADF9D1D1DBE395BF744A33A' : '633500002'}`
    fault(name, { status: 429, headers: { 'retry-after': '14' }, body: { code, message: 'limit' } })
    const statuses = [(await send(name, { msg: 'x' }, to)).status, (await send(name, { msg: 'x' }, others)).status, (await send(name, { msg: 'x' }, to)).status]
    assert.deepEqual(statuses, [503, 200, 503], name)
  }
})

test('QQ says that it takes only answers', async () => {
  const answer = { status: 400, body: { message: '主动消息失败, 无权限', code: 40034102, err_code: 40034102 } }
  fault('qq', answer)
  const { status, body } = await send('qq', { msg: 'x' }, 'qq:group:F9F778FE6ADF9D1D1DBE395BF744A33A')
  assert.equal(status, 502)
  assert.match(body.msg, /no permission to write here.*主动消息失败/)
})

test('a long limit is told to the caller', async () => {
  fault('kook', { status: 429, headers: { 'x-rate-limit-reset': '14' }, body: { code: 429, message: 'Too Many Requests', data: [] } })
  const { status, headers } = await send('kook', { msg: 'x' })
  assert.deepEqual([status, headers.get('retry-after'), headers.get('relay-outcome')], [503, '14', 'unsent'])
  assert.equal((await send('kook', { msg: 'x' })).status, 503)
  assert.equal(platforms.sends('kook').length, 1)
})

test('a slow link is fetched once, and named where it takes too long', async () => {
  const link = `${platforms.server.url}/slow.png`
  const answer = { headers: { 'content-type': 'image/png' }, body: 'picture' }
  platforms.server.fault({ path: /slow\.png/, answer, after: 400 })
  assert.equal((await send('whatsapp', { type: 'image', url: link })).status, 200)
  platforms.server.fault({ path: /slow\.png/, answer: 'none' })
  const { status, body } = await send('whatsapp', { type: 'image', url: link })
  assert.deepEqual([status, platforms.server.callsTo(/slow\.png/).length], [503, 2])
  assert.match(body.msg, /nothing was sent, try again later: .*its files came too slowly/)
})

test('an unloaded relay listens to no requests and no sessions', async () => {
  const { _hooks: hooks } = relay.app.lifecycle
  const count = (): unknown[] => (['http/fetch-init', 'internal/session'] as const).map(name => hooks[name]?.length ?? 0)
  await send('kook', { msg: 'x' })
  const listening = count()
  await relay.reload()
  await send('kook', { msg: 'x' })
  await until('the relay before has ended', () => isDeepStrictEqual(count(), listening))
  relay.unload()
  // The plugin for proxies listens as well.
  await until('the relay has ended', () => isDeepStrictEqual(count(), [1, 0]))
})
