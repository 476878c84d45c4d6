import { h, Universal } from 'koishi'
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Config } from '../../src'
import { call } from '../integration/onebot-api/support'
import { upload } from '../integration/webhook/support'
import type { TestRelay } from '../support/relay'
import { until } from '../support/until'
import { callerOf, idsOf, outcomeOf } from './caller'
import { relayWith } from './platform'
import { features, Satori, type Entry } from './satori'
import { PlatformServer, type Answer } from './server'

const quick = { chatApiTimeout: 0.4, chatApiMaxRetries: 1 }
const pixel = 'data:image/png;base64,iVBORw0KGgo='

let relay: TestRelay
let callback: PlatformServer
let config: Config
/** Servers: one with everything; one without a history, whose platform is called `onebot`; one that declares no more than sending. */
let full: Satori
let plain: Satori
let bare: Satori
let chats = 0

before(async () => {
  full = await Satori.start()
  plain = await Satori.start({ platform: 'onebot', id: '20000', features: features.filter(name => name !== 'message.list') })
  bare = await Satori.start({ platform: 'bare', features: ['login.get'] })
  callback = await PlatformServer.start(() => ({ body: { reply: 'pong' } }))
  config = { ...quick, commandPrefix: '/', commandLength: 4, commandCallbackUrl: callback.url }
  const servers = [full, plain, bare]
  relay = await relayWith(servers.map(({ sid }) => sid), app => servers.forEach(server => server.connect(app)), config)
})
after(async () => {
  for (const server of [full, plain, bare]) await server.stop()
  await callback.stop()
  await relay.stop()
})
afterEach(() => {
  for (const server of [full, plain, bare]) server.clear()
  callback.clear()
})

/** Resolves when the login of a server is online, or is not. */
function becomes({ sid }: Satori, isOnline: boolean): Promise<void> {
  const isSo = (): boolean => relay.app.bots.some(bot => bot.sid === sid && bot.status === Universal.Status.ONLINE) === isOnline
  return until(`${sid} is ${isOnline ? 'online' : 'offline'}`, isSo)
}

/** One more server. */
async function further(platform: string): Promise<Satori> {
  const server = await Satori.start({ platform })
  server.connect(relay.app)
  await becomes(server, true)
  return server
}

/** A channel that no other test has written to: a failure holds or pauses it. */
function fresh(server = full): string {
  return `${server.sid}:group:fresh-${++chats}`
}

function only(server = full): Entry {
  const [entry] = server.ledger
  assert(entry && server.ledger.length === 1, `there are ${server.ledger.length}`)
  return entry
}

const { ask, send, queue, reaches } = callerOf(() => relay, fresh)

describe('a message', () => {
  test('arrives letter for letter', async () => {
    const texts = [
      '<at type="all"/>&lt;at id="1"/&gt;', '</p> <!-- a --> &amp; &#38; "\'', '\n a \n\n b\n ', '{{ x }} {@execute} [CQ:at,qq=all] @everyone', 'a\r\n',
    ]
    for (const msg of texts) assert.deepEqual(idsOf(await send({ msg })), [full.ledger.at(-1)?.id])
    assert.deepEqual(full.ledger.map(({ parts }) => parts), texts.map(each => [['text', each]]))
  })

  test('has mentions, a reply, pictures and links as elements, and breaks next to them stay', async () => {
    const url = 'http://127.0.0.1:9/a%2Fb.png?x=<&amp;"y">'
    const messages = [
      { type: 'reply', message_id: '2|g|<1>' }, { type: 'at', user_id: 'u:1@x' }, { msg: '\nlook\n' }, { type: 'image', url }, { type: 'at', user_id: 'all' },
      { msg: ' \n end' },
    ]
    assert.equal((await send({ messages })).status, 200)
    assert.deepEqual(only().parts, [
      ['quote', '<quote id="2|g|&lt;1&gt;"/>'], ['at', '<at id="u:1@x"/>'], ['text', '\nlook\n'],
      ['img', '<img src="http://127.0.0.1:9/a%2Fb.png?x=&lt;&amp;amp;&quot;y&quot;&gt;"/>'], ['at', '<at type="all"/>'], ['text', ' \n end'],
    ])
  })

  test('has files with name and type, in messages of their own', async () => {
    await relay.reload({ ...config, mediaTransport: 'base64' })
    const url = await upload(relay, '报告 a.pdf', 'bytes')
    await send({ messages: [{ msg: 'a' }, { type: 'video', url: 'http://127.0.0.1:9/a.mp4' }, { type: 'file', url }, { type: 'image', url: pixel }] })
    assert.deepEqual(full.ledger.map(({ parts }) => parts), [
      [['text', 'a']], [['video', '<video src="http://127.0.0.1:9/a.mp4"/>']], [['img', `<img src="${pixel}"/>`]],
      [['file', `<file src="data:application/pdf;base64,${Buffer.from('bytes').toString('base64')}" title="报告 a.pdf"/>`]],
    ])
    await relay.reload(config)
  })

  test('has inline media with the type of their name or their first bytes', async () => {
    const base64 = (bytes: string): string => `base64://${Buffer.from(bytes, 'latin1').toString('base64')}`
    const audio = ['ID3\x03', '\xff\xfb\x90\x00', 'OggS\0\x02', 'RIFF\x24\0\0\0WAVEfmt ', '#!AMR\n', '\0\0\0\x20ftypM4A '].map(base64)
    await send({ messages: [
      ...['\x89PNG\r\n', '\xff\xd8\xff\xe0', 'GIF89a', 'RIFF\x24\0\0\0WEBPVP8 '].map(bytes => ({ type: 'image', url: base64(bytes) })),
      { type: 'video', url: base64('\0\0\0\x20ftypisom\0') }, ...audio.map(url => ({ type: 'audio', url })),
      { type: 'file', url: base64('a,b'), name: 'a.csv' }, { type: 'file', url: base64('?') },
    ] })
    assert.deepEqual(full.ledger.flatMap(({ parts }) => parts.map(([, content]) => /src="data:(.*?);base64,/.exec(content)?.[1])), [
      'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'video/mp4', 'audio/mpeg', 'audio/mpeg', 'audio/ogg', 'audio/wav', 'audio/amr', 'audio/mp4',
      'text/csv', 'application/octet-stream',
    ])
  })

  test('goes to a user in the channel that the server names, which is asked for once', async () => {
    for (const msg of ['a', 'b']) idsOf(await send({ to: `${full.sid}:private:u7`, msg }))
    assert.deepEqual(full.ledger.map(({ channelId }) => channelId), ['private:u7', 'private:u7'])
    assert.equal(full.calls('user.channel.create').length, 1)
  })

  test('says so where the server does not name the channel of a user', async () => {
    full.fault('user.channel.create', { answer: 'none', times: 2 })
    const reply = await send({ to: `${full.sid}:private:u9`, msg: 'a' })
    assert.deepEqual(outcomeOf(reply), [503, 'unsent'])
    assert.match(reply.body.msg, /: the platform cannot be reached: it did not name the channel of the private chat in time$/)
    assert.deepEqual(full.calls('message.create'), [])
  })

  test('goes through a login whose platform is called onebot', async () => {
    assert.deepEqual(idsOf(await send({ to: fresh(plain), msg: 'a' })), [only(plain).id])
    assert.equal(relay.simulator.ledger.length, 0)
  })

  test('is recalled', async () => {
    const reply = await send({ msg: 'a' })
    assert.equal((await call(relay, 'delete_msg', { message_id: idsOf(reply)[0] })).retcode, 0)
    assert.equal(full.ledger.length, 0)
  })
})

describe('before anything leaves', () => {
  test('a mention takes no other ID for everybody', async () => {
    for (const at of ['here', 'ALL', '&1', '1><at type="all"/', '(met)', '@everyone', 'x@here', '@all']) {
      assert.equal((await send({ msg: 'a', at })).status, 400, at)
    }
    assert.deepEqual(full.calls(), [])
  })

  test('what the server does not offer is refused', async () => {
    const refused = await send({ to: fresh(bare), msg: 'a' })
    assert.deepEqual([refused.status, refused.body.msg], [400, 'the Satori server of this bot offers no sending (message.create)'])
    assert.match((await send({ to: `${bare.sid}:private:u1`, msg: 'a' })).body.msg, /offers no private chats/)
    assert.deepEqual(bare.calls(), [])
  })

  test('a plugin may change a message, or suppress it', async () => {
    const undo = relay.app.on('before-send', session => {
      if (session.elements?.[0]?.attrs.content === 'no') return true
      session.elements = [h.text('<made>\n'), h('face', { id: '14' })]
    })
    idsOf(await send({ msg: 'a' }))
    assert.deepEqual(only().parts, [['text', '<made>\n'], ['face', '<face id="14"/>']])
    const reply = await send({ msg: 'no' })
    undo()
    assert.match(reply.body.msg, /another plugin of the bot suppressed the message/)
    assert.equal(full.ledger.length, 1)
  })
})

describe('the answer', () => {
  const refusals: [Answer, number, RegExp][] = [
    [{ status: 400, body: '400 bad request\nchannel_id' }, 502, /400 bad request channel_id/],
    [{ status: 403, body: { message: 'no permission' } }, 502, /no permission/],
    [{ status: 404, body: 'method not found' }, 502, /does not know this action .*method not found/],
    [{ status: 404, body: 'Action \'message.create\' is not supported in current platform \'qq\'.' }, 502, /does not know this action/],
    [{ status: 405, body: '405 method not allowed' }, 502, /does not know this action/],
    [{ status: 501, body: '501 not implemented' }, 502, /does not know this action/],
    [{ status: 500, body: '当前处于被禁言状态' }, 502, /muted/],
    [{ status: 500, body: '发送消息失败 (code=110): removed' }, 502, /not in this group/],
    [{ status: 500, body: '/tmp/x 下载失败, 404' }, 502, /could not read or upload/],
  ]
  for (const [answer, status, words] of refusals) {
    test(`${answer.status} ${JSON.stringify(answer.body)} is a refusal, and called once`, async () => {
      full.fault('message.create', { answer, times: Infinity })
      const reply = await send({ msg: 'a' })
      assert.deepEqual(outcomeOf(reply), [status, 'refused'])
      assert.match(reply.body.msg, words)
      assert.equal(full.calls('message.create').length, 1)
    })
  }

  for (const answer of [{ status: 401, body: '401 unauthorized' }, { status: 403, body: 'login not found' }, { status: 403, body: 'invalid token' }]) {
    test(`${answer.status} ${answer.body} is about the account: nothing was sent`, async () => {
      full.fault('message.create', { answer, times: Infinity })
      assert.deepEqual(outcomeOf(await send({ msg: 'a' })), [503, 'unsent'])
      assert.equal(full.calls('message.create').length, 1)
    })
  }

  test('of QQ that only the echo was not seen is a success', async () => {
    full.fault('message.create', { answer: { status: 500, body: 'waitForSelfEcho timeout' }, isCarriedOut: true })
    assert.deepEqual(idsOf(await send({ msg: 'a' })), [])
  })

  test('may have several messages, or one without an ID', async () => {
    full.fault('message.create', { answer: { body: [{ id: 'a1' }, { id: 7 }] } })
    assert.deepEqual(idsOf(await send({ msg: 'a' })), ['a1', '7'])
    full.fault('message.create', { answer: { body: [{ content: 'a' }] } })
    assert.deepEqual(idsOf(await send({ msg: 'a' })), [])
  })

  const unclear: [string, Answer | 'cut' | 'none'][] = [
    ['an empty list', { body: [] }], ['nothing', 'none'], ['a cut connection', 'cut'], ['500', { status: 500, body: 'Internal Server Error' }],
    ['502 of a proxy', { status: 502, body: '<html>Bad Gateway</html>' }], ['a page', { body: '<html/>' }], ['OK', { body: 'OK' }],
  ]
  for (const [name, answer] of unclear) {
    test(`${name} is told as what it is: the message may have arrived`, async () => {
      plain.fault('message.create', { answer, isCarriedOut: true, times: Infinity })
      assert.deepEqual(outcomeOf(await send({ to: fresh(plain), msg: 'a' })), [504, 'unanswered'])
      assert.equal(plain.calls('message.create').length, 1)
      only(plain)
    })
  }

  test('that is unclear is looked up where the server has a history', async () => {
    full.fault('message.create', { answer: 'cut', isCarriedOut: true })
    // Discord keeps the backslashes of escaped characters; others make elements of links.
    full.show = content => content.replace(/[*_]/g, '\\$&').replace(/https:\S+/, '<a href="$&"/>')
    assert.deepEqual(idsOf(await send({ msg: 'a_b*c* \n https://example.com/x' })), [only().id])
  })
})

describe('a message without an answer', () => {
  test('is sent again once the history shows that it is not there', async t => {
    // A caller's time has to last until the first call has settled, and for a second one.
    await relay.reload({ ...config, chatApiTimeout: 2 })
    t.after(() => relay.reload(config))
    const to = fresh()
    await send({ to, msg: 'before' })
    full.fault('message.create', { answer: { status: 500, body: 'Internal Server Error' } })
    assert.deepEqual(idsOf(await send({ to, msg: 'a' })), [full.ledger.at(-1)?.id])
    assert.deepEqual(full.ledger.map(({ content }) => content), ['before', 'a'])
    assert.equal(full.calls('message.create').length, 3)
  })

  test('is not sent again for an empty history, or where that shows no mentions', async () => {
    full.fault('message.create', { answer: { body: [] }, isCarriedOut: true, times: Infinity })
    full.fault('message.list', { answer: { body: { data: [] } }, times: Infinity })
    assert.deepEqual(outcomeOf(await send({ msg: 'a' })), [504, 'unanswered'])
    assert.equal(full.ledger.length, 1)
    full.clear()
    const to = fresh()
    await send({ to, msg: 'before' })
    full.show = content => content.replace(/<at .*?>/, '')
    full.fault('message.create', { answer: { body: [] }, isCarriedOut: true, times: Infinity })
    assert.deepEqual(outcomeOf(await send({ to, msg: 'a', at: 'u1' })), [504, 'unanswered'])
    assert.equal(full.ledger.length, 2)
  })

  test('is known by the report of a server that has no history', async () => {
    plain.say('of another device', { user: '20000', channel: { id: 'c9', type: 0 } })
    const to = fresh(plain)
    plain.fault('message.create', { answer: 'none', isCarriedOut: true, times: Infinity })
    const reply = send({ to, msg: 'a <b>' })
    await until('it is there', () => plain.ledger.length === 1)
    plain.report(only(plain))
    assert.deepEqual(idsOf(await reply), [only(plain).id])
  })

  test('is not sent again after a restart where another plugin may have changed it', async () => {
    const to = fresh()
    await send({ to, msg: 'before' })
    const undo = relay.app.on('before-send', session => {
      session.elements = [...session.elements ?? [], h.text(' signed')]
    })
    full.fault('message.create', { answer: 'none', isCarriedOut: true })
    const id = await queue({ to, msg: 'once' })
    await until('it is there', () => full.ledger.length === 2)
    await relay.reload(config)
    await reaches(id, 'sent', 'unanswered')
    undo()
    assert.deepEqual(full.ledger.map(({ content }) => content), ['before', 'once signed'])
  })
})

describe('a limit', () => {
  const limited = (wait: string): Answer => ({ status: 429, headers: { 'retry-after': wait }, body: 'Too Many Requests' })

  for (const isDate of [false, true]) {
    test(`${isDate ? 'until a date is told to callers' : 'in seconds is waited for'}, in every chat of the account`, async t => {
      // A login of its own: the limit is about the whole account.
      const server = await further(`limited-${String(isDate)}`)
      t.after(() => server.stop())
      server.fault('message.create', { answer: limited(isDate ? new Date(Date.now() + 60_000).toUTCString() : '1') })
      const start = performance.now()
      const first = await send({ to: fresh(server), msg: 'a' })
      const second = await send({ to: fresh(server), msg: 'b' })
      const calls = server.calls('message.create').length
      if (!isDate) {
        assert.deepEqual([first, second].map(({ status }) => status), [503, 200])
        assert(performance.now() - start > 1_000)
        assert.deepEqual([calls, server.ledger.length], [2, 1])
      } else {
        assert.deepEqual([first, second].map(outcomeOf), [[503, 'unsent'], [503, 'unsent']])
        assert([first, second].every(({ headers }) => Number(headers.get('retry-after')) > 50))
        assert.deepEqual([calls, server.ledger.length], [1, 0])
      }
    })
  }
})

describe('a login', () => {
  test('lists its channels and friends, or nothing', async () => {
    const { data } = await ask(`/contacts?bot=${full.sid}`)
    assert.deepEqual(data, {
      bot: full.sid,
      groups: [{ id: 'g1-text', name: 'talk' }, { id: 'g2-text', name: 'talk' }],
      friends: [{ id: 'u1', name: 'Annie' }, { id: 'u2', name: 'Bob' }],
    })
    const none = await ask(`/contacts?bot=${bare.sid}`)
    assert.deepEqual(none.data, { bot: bare.sid, groups: [], friends: [] })
  })

  test('takes commands, and replies to the very chat', async () => {
    full.say('/ping &lt;at id="1"/&gt; <at id="u3"/> x<br/>y', { channel: { id: 'c5', type: 0 } })
    await until('the reply is there', () => full.ledger.length === 1)
    full.say('/here x', { channel: { id: 'dm-u8', type: 1 }, user: 'u8' })
    await until('the reply is there', () => full.ledger.length === 2)
    full.say('/mine x', { user: '10000' })
    assert.deepEqual(full.ledger.map(({ channelId, content }) => [channelId, content]), [['c5', 'pong'], ['dm-u8', 'pong']])
    assert.deepEqual(callback.calls.map(({ fields }) => fields.raw_message), ['/ping <at id="1"/> @u3 x\ny', '/here x'])
  })

  test('that is not connected sends nothing', async () => {
    const server = await further('gone')
    await server.stop()
    await becomes(server, false)
    assert.deepEqual(outcomeOf(await send({ to: fresh(server), msg: 'a' })), [503, 'unsent'])
  })
})

test('an unloaded relay listens to no sessions', async () => {
  await send({ msg: 'a' })
  relay.unload()
  await until('the relay has ended', () => !relay.app.lifecycle._hooks['internal/session']?.length)
})
