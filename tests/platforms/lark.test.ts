import { h } from 'koishi'
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { call } from '../integration/onebot-api/support'
import { upload } from '../integration/webhook/support'
import { askAs, read, type TestRelay } from '../support/relay'
import { until } from '../support/until'
import { callerOf, idsOf } from './caller'
import { group, Lark, refuse, self, user } from './lark'
import { signAll } from './platform'
import { PlatformServer } from './server'

const pixel = 'data:image/png;base64,iVBORw0KGgo='

describe('Feishu and Lark', () => {
  let lark: Lark
  let relay: TestRelay
  let callback: PlatformServer
  let chats = 0

  before(async () => {
    lark = await Lark.start()
    callback = await PlatformServer.start(() => ({ body: { reply: 'pong' } }))
    relay = await lark.relay({
      chatApiTimeout: 1, chatApiMaxRetries: 2, commandPrefix: '/', commandCallbackUrl: callback.url,
      commands: [{ name: 'stat' }, { name: 'here', groups: group }], targets: { ops: { to: `group:${group}`, platform: 'feishu' } },
      keys: [{ name: 'ci', key: 'the-secret-of-ci', allow: ['send'], targets: [`feishu:group:${group}`] }],
    })
  })
  after(async () => {
    await relay.stop()
    await lark.server.stop()
    await callback.stop()
  })
  afterEach(() => {
    lark.clear()
    callback.clear()
  })

  /** To a group that no other test has written to: a failure holds or pauses it. */
  const { ask, send, fail } = callerOf(() => relay, () => `feishu:group:oc_${++chats}`)
  const texts = (): string[] => lark.messages.map(({ text }) => text)
  const arrives = async (body: object): Promise<unknown[]> => {
    const ids = idsOf(await send(body))
    assert.deepEqual(ids, lark.messages.map(({ id }) => id))
    return ids
  }
  const fails = async (body: object, status: number, outcome: string | null, words: RegExp, calls = 1): Promise<void> => {
    const said = await fail(body, status)
    assert.match(said, words)
    assert.deepEqual([said.split(':')[0], lark.sends.length], [outcome ?? '', calls])
  }

  test('delivers text letter for letter', async () => {
    const text = '\n<at user_id="all"></at> **b** <b>x</b> [a](https://e.test) &lt; \\n @all\n\n  end'
    await arrives({ to: `lark:group:${group}`, msg: text })
    assert.deepEqual(lark.messages, [{ id: lark.messages[0]?.id, to: group, inThread: false, type: 'post', text }])
    assert.deepEqual(lark.sends.map(({ query }) => query.get('receive_id_type')), ['chat_id'])
  })

  test('divides a text that is too long for one message', async () => {
    const text = '第一行 "quoted" \\ and more of it\n'.repeat(3000)
    await arrives({ msg: text })
    assert(lark.messages.length > 3)
    assert.equal(texts().join(''), text)
    assert(texts().slice(0, -1).every(part => part.endsWith('\n')), 'each part ends with a line')
  })

  test('mentions whom an item names, in one message with the text and pictures after it', async () => {
    const at = [user, 'on_8ed6aa67826108097d9ee143816345', 'all']
    await arrives({ msg: 'look', at })
    await send({ messages: [{ type: 'at', user_id: user }, { msg: 'a\n' }, { type: 'image', url: pixel }, { msg: '\nb' }, { type: 'image', url: pixel }] })
    assert.deepEqual(texts(), [`${at.map(id => `[@${id}]`).join('')}look`, `[@${user}]a\n[file.png]\nb\n[file.png]`])
  })

  test('mentions nobody whom the text names, takes no other ID for everybody, and keeps a key to its chats', async () => {
    for (const [body, status] of [
      [{ to: `lark:group:${group}`, msg: '<at user_id="all"></at>' }, 200], [{ to: 'ops', msg: 'x' }, 200],
      [{ to: 'lark:group:oc_2', msg: 'x' }, 403],
    ] as const) {
      assert.equal((await askAs(relay, 'the-secret-of-ci', 'POST', '/webhook', body)).status, status)
    }
    assert.deepEqual(texts(), ['<at user_id="all"></at>', 'x'])
    lark.clear()
    await fails({ msg: 'x', at: 'ALL' }, 400, null, /ID of a mention must be/, 0)
  })

  test('answers another message', async () => {
    await arrives({ to: `feishu:group:${group}`, msg: 'yes', reply_to: 'om_dc13264520392913993dd051dba21dcf' })
    assert.deepEqual(lark.messages.map(({ to, inThread }) => [to, inThread]), [['om_dc13264520392913993dd051dba21dcf', false]])
    await fails({ msg: 'x', reply_to: '../../chats' }, 400, null, /not the om_… of a message/, 1)
  })

  test('answers no message of another chat, whatever its ID', async () => {
    for (const to of [`feishu:group:${group}:om_elsewhere`, `feishu:private:${user}:om_elsewhere`, `feishu:private:${user}:om_root`]) {
      await fails({ to, msg: 'x' }, 502, 'refused', /not in this chat/, 0)
    }
    await fails({ msg: 'x', reply_to: 'om_elsewhere' }, 502, 'refused', /not in this chat/, 0)
  })

  for (const [id, type] of [[user, 'open_id'], ['on_1', 'union_id'], ['a.b@example.com', 'email'], ['4c87bec3', 'user_id']] as const) {
    test(`writes to a user by ${type}`, async () => {
      await arrives({ to: `private:${id}`, platform: 'feishu', msg: 'hello' })
      assert.deepEqual(lark.sends.map(({ query, fields }) => [query.get('receive_id_type'), fields.receive_id]), [[type, id]])
    })
  }

  test('refuses targets that cannot be, such as a user in the place of a group', async () => {
    for (const to of [`group:${user}`, `private:${group}`, 'group:123', 'group:oc_1/../x']) {
      await fails({ to: `feishu:${to}`, msg: 'x' }, 400, null, /this is not the/, 0)
    }
  })

  test('sends pictures, files with their names, and what only looks like a video as a file', async () => {
    const link = (type: string, content = 'abc') => `data:${type};base64,${Buffer.from(content).toString('base64')}`
    await send({ messages: [
      { type: 'image', url: pixel }, { type: 'video', url: link('video/mp4') }, { type: 'video', url: link('video/webm') },
      { type: 'audio', url: link('audio/opus') }, { type: 'audio', url: link('audio/mpeg') }, { type: 'file', url: await upload(relay, '周报 7.pdf', '%PDF') },
    ] })
    assert.deepEqual(lark.messages.map(({ type, text }) => [type, text]), [
      ['image', '[file.png]'], ['media', '[file.mp4]'], ['file', '[file.webm]'], ['audio', '[file]'], ['file', '[file.mpga]'], ['file', '[周报 7.pdf]'],
    ])
    assert.deepEqual([...lark.uploads.values()].slice(-6).map(({ type }) => type), ['message', 'mp4', 'stream', 'opus', 'stream', 'pdf'])
    assert.equal([...lark.uploads.values()].at(-1)?.file?.data.toString(), '%PDF')
  })

  test('sends nothing where a link is dead, a picture is none, or the app may not upload', async () => {
    await fails({ type: 'image', url: `${lark.server.url}/gone.png` }, 502, 'refused', /file behind the link/, 0)
    await fails({ type: 'image', url: 'data:image/png;base64,YWJj' }, 502, 'refused', /Can't regonnize the image format/, 0)
    lark.server.fault({ path: /images/, answer: refuse(99991672, 'Access denied. One of the following scopes is required: [im:resource].') })
    await fails({ type: 'image', url: pixel }, 502, 'refused', /im:resource/, 0)
  })

  test('sends nothing where the upload gets no answer, and later what may still leave', async () => {
    lark.server.fault({ path: /images/, answer: 'cut' })
    await arrives({ type: 'image', url: pixel })
    assert.equal(lark.sends.length, 1)
    lark.server.fault({ path: /images/, answer: { status: 502, body: 'Bad Gateway' }, times: 3 })
    await fails({ type: 'image', url: pixel }, 503, 'unsent', /502/, 1)
  })

  for (const [what, answer, words] of [
    ['invalid content', refuse(230001, 'Your request contains an invalid request parameter, ext=invalid message content.'), /230001/],
    ['sensitive words', refuse(230022, 'The content of the message contains sensitive information.', 200), /sensitive information/],
    ['a proxy', { status: 403, body: '<h1>Forbidden</h1>' }, /HTTP 403/],
  ] as const) {
    test(`calls once what is refused for good: ${what}`, async () => {
      lark.server.fault({ path: /messages$/, answer })
      await fails({ msg: 'x' }, 502, 'refused', words)
    })
  }

  test('says that a chat or user is gone, and is called once', async () => {
    await fails({ to: 'feishu:group:oc_gone', msg: 'x' }, 502, 'refused', /no such group, or the bot is not in it \(platform: "The bot can not be outside the group. \(230002\)/)
    lark.clear()
    await fails({ to: 'feishu:private:ou_gone', msg: 'x' }, 502, 'refused', /no such user.*Bot has NO availability to this user. \(230013\)/)
  })

  test('says that a topic is gone, or its group closed to the bot, and is called once', async () => {
    const topic = `feishu:group:${group}:om_root`
    for (const [path, answer, words] of [
      [/messages\/om_root$/, refuse(230110, 'Action unavailable as the message has been deleted.'), /no such group.*has been deleted. \(230110\)/],
      [/messages\/om_root$/, refuse(230002, 'The bot can not be outside the group.'), /no such group.*outside the group. \(230002\)/],
      [/reply$/, refuse(230011, 'The message was withdrawn.'), /no such group.*withdrawn. \(230011\)/],
      [/reply$/, refuse(230019, 'The topic does NOT exist.'), /no such group.*topic does NOT exist. \(230019\)/],
    ] as const) {
      lark.clear()
      lark.server.fault({ path, answer })
      await fails({ to: topic, msg: 'x' }, 502, 'refused', words, path.test('/reply') ? 1 : 0)
    }
    // A message that is answered may be gone all the same.
    lark.clear()
    lark.server.fault({ path: /reply$/, answer: refuse(230011, 'The message was withdrawn.') })
    await fails({ to: `feishu:group:${group}`, msg: 'x', reply_to: 'om_asked' }, 502, 'refused', /message: The message was withdrawn/)
  })

  for (const [code, msg, to, words] of [
    [230013, 'Bot has NO availability to this user.', 'group:oc_p2p', /no such user/],
    [230053, 'The user has stopped the bot from sending messages.', 'group:oc_p2p', /blocked/],
    [230027, 'Lack of necessary permissions.', 'group:oc_external', /no permission to write here/],
    [230038, 'Cross tenant p2p chat operate forbid.', `private:${user}`, /no permission to write here/],
    [230075, 'Sending encrypted messages is not supported.', `private:${user}`, /no permission to write here/],
  ] as const) {
    test(`says that a chat is closed to the bot for good: ${msg}`, async () => {
      lark.server.fault({ path: /messages$/, answer: refuse(code, msg) })
      await fails({ to: `feishu:${to}`, msg: 'x' }, 502, 'refused', words)
    })
  }

  test('holds a muted group, and a bot that may not send', async () => {
    lark.server.fault({ path: /messages$/, answer: refuse(230035, 'Send Message Permission deny.') })
    await fails({ msg: 'x' }, 502, 'refused', /everybody is muted/)
    lark.clear()
    lark.server.fault({ path: /messages$/, answer: refuse(99991672, 'Access denied. One of the following scopes is required: [im:message:send_as_bot].') })
    await fails({ msg: 'x' }, 503, 'unsent', /im:message:send_as_bot/)
    lark.clear()
    lark.server.fault({ path: /messages$/, answer: refuse(99991663, 'Invalid access token for authorization.', 401) })
    await fails({ msg: 'x' }, 503, 'unsent', /Invalid access token/)
  })

  for (const [what, answer] of [
    ['502', { status: 502, body: 'Bad Gateway' }], ['no answer', 'none'], ['a cut connection', 'cut'],
    ['an internal error with 200', refuse(2200, 'internal error', 200)], ['half an answer', { body: '{"code":' }],
    ['230049', refuse(230049, 'The message is being sent.')],
    ['18121', refuse(18121, 'create request is being processed')],
  ] as const) {
    // Without a clear answer the call is made again, whatever was answered.
    for (const isCarriedOut of what === '502' || what === 'no answer' ? [true, false] : [true]) {
      test(`arrives once after ${what}, ${isCarriedOut ? '' : 'not '}carried out`, async () => {
        lark.server.fault({ path: /messages$/, answer, isCarriedOut })
        await arrives({ msg: what })
        assert.deepEqual(texts(), [what])
        assert.equal(lark.sends.length, 2)
        assert.equal(new Set(lark.sends.map(({ fields }) => fields.uuid)).size, 1)
      })
    }
  }

  test('waits as long as the platform wants, and never calls earlier', async () => {
    for (const answer of [
      refuse(99991400, 'request trigger frequency limit', 400, { 'x-ogw-ratelimit-reset': '1' }),
      refuse(99991400, 'request trigger frequency limit', 429, { 'x-ogw-ratelimit-reset': '1' }),
      refuse(230020, 'This operation triggers the frequency limit.'),
    ]) {
      lark.clear()
      lark.server.fault({ path: /messages$/, answer })
      const start = performance.now()
      await arrives({ msg: 'x' })
      assert(performance.now() - start >= 990 && lark.sends.length === 2, `${lark.sends.length} calls in ${performance.now() - start} ms`)
    }
  })

  test('waits in every chat for a limit of the account, also in the midst of a long text', async () => {
    const [long, short] = ['long', 'short'].map(name => `feishu:group:oc_limited_${name}`)
    const answer = refuse(99991400, 'request trigger frequency limit', 400, { 'x-ogw-ratelimit-reset': '1' })
    lark.server.fault({ path: /messages$/, answer: { body: { code: 0, data: { message_id: 'om_1' } } }, isCarriedOut: true })
    lark.server.fault({ path: /messages$/, answer })
    const first = send({ to: long, msg: 'a '.repeat(20_000) })
    await until('it is limited', () => lark.sends.length === 2)
    const at = performance.now()
    assert.equal((await send({ to: short, msg: 'b' })).status, 200)
    assert(performance.now() - at >= 900, `after ${performance.now() - at} ms`)
    assert.equal((await first).status, 200)
    assert.equal(texts().length, 3)
  })

  test('repeats nothing after a restart that another plugin may have changed', async () => {
    const end = signAll(relay)
    lark.server.fault({ path: /messages$/, answer: 'none', isCarriedOut: true })
    const { queue, reaches } = callerOf(() => relay, 'feishu:group:oc_restart')
    const id = await queue({ msg: 'once' })
    await until('it is there', () => lark.messages.length === 1)
    await relay.reload()
    await reaches(id, 'unanswered')
    end()
    assert.equal(lark.messages.length, 1)
  })

  test('mentions nobody in a text beside which another plugin has written', async () => {
    const end = signAll(relay)
    await send({ msg: '<at user_id="all"></at>' })
    end()
    assert.equal(lark.sends.length, 1)
    assert.doesNotMatch(String(lark.sends[0]?.fields.content), /<at/)
  })

  test('lists its groups, page by page, and recalls what it sent', async () => {
    const { data } = await ask(`/contacts?bot=feishu:${self}`)
    const groups = [{ id: group, name: 'ops' }, { id: 'oc_2', name: '值班' }]
    assert.deepEqual(data, { bot: `lark:${self}`, groups, friends: [] })
    const [id] = await arrives({ msg: 'oops' })
    assert.equal((await call(relay, 'delete_msg', { message_id: id })).retcode, 0)
    assert.deepEqual(lark.recalled, [id])
  })

  const inThread = { thread_id: 'omt_d4be107c616a', root_id: 'om_root', parent_id: 'om_root' }
  const mentions = [{ key: '@_user_1', id: { open_id: self }, name: 'bot' }, { key: '@_user_2', id: { open_id: user }, name: 'Tom' }]
  const post = { title: '', content: [[{ tag: 'at', user_id: '@_user_1' }, { tag: 'text', text: ' /stat 1' }], [], [{ tag: 'at', user_id: '@_user_2' }]] }
  for (const [where, message, content, posted, sent] of [
    ['a group', {}, { text: '/stat <b>now</b>\n&amp; @_all' }, ['<b>now</b>\n&amp; @all', group], [group, false]],
    ['a group, behind a mention of the bot', { mentions }, { text: '@_user_1 /stat @_user_2' }, [`@${user}`, group], [group, false]],
    ['a rich text', { mentions, message_type: 'post' }, post, [`1\n\n@${user}`, group], [group, false]],
    ['a topic', inThread, { text: '/here ' }, ['', `${group}:om_root`], ['om_root', true]],
    ['a private chat', { chat_type: 'p2p', chat_id: 'oc_p2p' }, { text: '/stat ' }, ['', undefined], [user, false]],
    ['a topic of a private chat', { ...inThread, root_id: 'om_p2p', chat_type: 'p2p' }, { text: '/stat ' }, ['', undefined], ['om_p2p', true]],
  ] as const) {
    test(`posts a command from ${where}, and sends the reply there`, async () => {
      await lark.say(relay, message, content)
      // What an earlier test sent may arrive late.
      const replies = (): typeof lark.messages => lark.messages.filter(({ text }) => text === 'pong')
      await until('it is answered', () => replies().length === 1)
      const told = callback.calls.map(({ fields }) => [fields.content, fields.group_id, fields.user_id])
      assert.deepEqual(told, [[...posted, user]])
      assert.deepEqual(replies().map(({ to, inThread }) => [to, inThread]), [sent])
    })
  }

  test('says why a list or a recall failed, and when to ask again', async () => {
    const [id] = await arrives({ msg: 'oops' })
    const limit = { status: 400, headers: { 'x-ogw-ratelimit-reset': '30' }, body: { code: 99991400, msg: 'request trigger frequency limit' } }
    for (const [answer, status, wait, words] of [
      [limit, 503, '30', /nothing was done, try again later: the platform limits how fast .*frequency limit/],
      [refuse(99991672, 'Access denied'), 502, null, /the platform refused it: the platform does not permit .*Access denied/],
    ] as const) {
      lark.server.fault({ path: /\/im\/v1\/(?:chats|messages)/, times: 2, answer })
      const listed = await read(await relay.request(`/contacts?bot=feishu:${self}`))
      const recalled = await call(relay, 'delete_msg', { message_id: id })
      assert.deepEqual([listed.status, recalled.retcode], [status, 1000 + status])
      for (const { headers } of [listed, recalled]) assert.equal(headers.get('retry-after'), wait)
      for (const text of [listed.msg, recalled.text]) assert.match(text, words)
    }
  })

  test('sends what another plugin has made of a message to the very topic, and answers no other chat', async () => {
    const end = signAll(relay, h('file', { src: 'data:text/plain;base64,YQ==', title: 'a.txt' }))
    const to = `feishu:group:${group}`
    for (const body of [{ to: `${to}:om_root` }, { to: `${to}:om_root`, reply_to: 'om_asked' }, { to, reply_to: 'om_asked' }]) {
      assert.equal((await send({ msg: 'a', ...body })).status, 200)
    }
    for (const body of [{ to: `${to}:om_elsewhere` }, { to, reply_to: 'om_elsewhere' }]) {
      await fails({ msg: 'b', ...body }, 502, 'refused', /not in this chat/, 6)
    }
    end()
    assert.deepEqual(lark.messages.map(({ to, inThread }) => [to, inThread]), [
      ['om_root', true], ['om_root', true], ['om_asked', true], ['om_root', true], ['om_asked', false], [group, false],
    ])
  })
})
