import type { Bot } from 'koishi'
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { isObject, type JsonObject } from '../../src/lib/shape'
import { call } from '../integration/onebot-api/support'
import { upload } from '../integration/webhook/support'
import { serve } from '../support/listen'
import { freePort } from '../support/process'
import type { TestRelay } from '../support/relay'
import { until } from '../support/until'
import { callerOf } from './caller'
import { botId, channel, direct, Discord, errorOf, invalid, limited, messages, seen, thread, user, type Shown } from './discord'
import { signAll } from './platform'
import { PlatformServer } from './server'

const group = `discord:group:${channel}`
const config = { chatApiTimeout: 1, chatPauseAfter: 1000, commandPrefix: '/' }

let discord: Discord
let relay: TestRelay

before(async () => {
  discord = await Discord.start()
  relay = await discord.relay(config)
})
after(async () => {
  await relay.stop()
  await discord.server.stop()
})
afterEach(() => discord.clear())

const { ask, send, fail, queue, reaches } = callerOf(() => relay, group)

function bot(): Bot | undefined {
  return [...relay.app.bots].find(({ platform }) => platform === 'discord')
}

/** Sends what has to arrive, and gives what members see. */
async function deliver(body: JsonObject): Promise<Shown[]> {
  const from = discord.shown.length
  const { status, msg } = await send(body)
  assert.equal(status, 200, msg)
  return discord.shown.slice(from)
}

/** A picture, and a link to one. */
const picture = Buffer.from('iVBORw0KGgo=', 'base64')
const inline = `base64://${picture.toString('base64')}`

describe('a text', () => {
  test('arrives letter for letter, is no markup, and notifies nobody', async () => {
    const msg = `# **a** <@${user}> <@&165511591545143296> @everyone\n- [b](https://b.example/_b_) :smile: <t:1618953630> <at user_id="all"></at> &lt;`
    for (const body of [{ msg }, { messages: [{ msg: msg.slice(0, 20) }, { msg: msg.slice(20) }] }]) {
      const [shown] = await deliver(body)
      assert.equal(seen(shown?.content ?? ''), msg)
      assert.deepEqual(shown?.notified, [])
    }
  })

  test('that is too long for one message arrives in several, in order, and answers once', async () => {
    const msg = Array.from({ length: 700 }, (_, index) => `- line_${index}`).join('\n')
    const parts = await deliver({ msg, reply_to: '334385199974967042' })
    assert(parts.length > 3)
    assert.equal(parts.map(({ content }) => seen(content)).join('\n'), msg)
    assert.deepEqual(parts.map(({ replyTo }) => replyTo), ['334385199974967042', ...parts.slice(1).map(() => undefined)])
  })

  test('that would take more than 50 messages is refused', async () => {
    const { status, msg } = await send({ msg: 'x'.repeat(50 * 2000 + 1) })
    assert.deepEqual([status, discord.shown.length], [413, 0], msg)
  })

  test('goes to a thread, and to a user in the private chat that is opened once', async () => {
    for (const to of [`discord:group:${thread}`, `discord:private:${user}`, `discord:private:${user}`]) await deliver({ to, msg: 'x' })
    assert.equal((await relay.request(`/send/discord:group:${thread}`, { method: 'POST', body: '*y*' })).status, 200)
    assert.deepEqual(discord.shown.map(({ channel, content }) => [channel, content]), [
      [thread, 'x'], [direct, 'x'], [direct, 'x'], [thread, '\\*y\\*'],
    ])
    assert.equal(discord.server.callsTo(/^\/users\/@me\/channels$/).length, 1)
  })
})

describe('a mention', () => {
  test('tells those whom it names, and with them nobody whom the text names', async () => {
    const [one, all] = [await deliver({ at: user, msg: '<@1> @everyone' }), await deliver({ at: 'all', msg: `<@${user}>` })]
    assert.deepEqual([...one, ...all].map(({ content, notified }) => [content, notified]), [
      [`<@${user}> \\<@1> \\@everyone`, [user]], [`@everyone \\<@${user}>`, ['everyone']],
    ])
  })

  test('needs the ID of a user, as a target and a reply need IDs', async () => {
    for (const wrong of [{ at: '!1' }, { at: 'here' }, { to: 'discord:group:@me' }, { reply_to: 'x' }]) {
      assert.match(await fail({ msg: 'x', ...wrong }, 400), /must be a number/)
    }
    assert.equal(discord.server.calls.length, 0)
  })
})

describe('files', () => {
  test('share a message with the text above them, and keep their order, names and types', async () => {
    const [first, second, third] = await deliver({
      messages: [{ msg: 'a' }, { type: 'image', url: inline }, { msg: 'b' }, { type: 'file', url: await upload(relay, '报告 1.pdf', '%PDF') }],
    })
    const filesOf = (shown?: Shown) => shown?.files.map(({ name, type, data }) => [name, type, data.length])
    assert.deepEqual([first, second, third].map(shown => [shown?.content, filesOf(shown)]), [
      ['a', [['file.png', 'image/png', 8]]], ['b', []], ['', [['报告 1.pdf', 'application/pdf', 4]]],
    ])
  })

  test('are ten in a message at most', async () => {
    const shown = await deliver({ messages: Array.from({ length: 12 }, () => ({ type: 'image', url: inline })) })
    assert.deepEqual(shown.map(each => each.files.length), [10, 2])
  })

  test('behind links are fetched before the call: of a batch, a dead one alone fails, and nothing of it is sent', async t => {
    const url = await serve(t, (request, response) => {
      response.writeHead(request.url === '/a.png' ? 200 : 404, { 'content-type': 'image/png' }).end(picture)
    })
    const { data } = await send({ messages: [{ type: 'image', url: `${url}/b.png` }, { type: 'image', url: `${url}/a.png` }] })
    assert.deepEqual([data.success, data.failed], [1, 1])
    assert.deepEqual(discord.shown.map(({ files }) => files.map(({ name, data }) => [name, data.length])), [[['a.png', 8]]])
    assert.match(await fail({ type: 'image', url: `${url}/b.png` }), /^refused: .*cannot be fetched/)
    assert.equal(discord.posts().length, 1)
  })

  test('of more than 10 MB are refused before anything leaves', async () => {
    assert.match(await fail({ type: 'file', url: await upload(relay, 'a.bin', Buffer.alloc(10 * 2 ** 20 + 1)) }), /^refused: .*at most 10 MB/)
    assert.equal(discord.posts().length, 0)
  })
})

describe('a refusal', () => {
  const refusals: [ReturnType<typeof errorOf>, RegExp][] = [
    [errorOf(404, 10003, 'Unknown Channel'), /^refused: .*there is no such group, or the bot is not in it \(platform: "Unknown Channel"\)/],
    [errorOf(403, 50001, 'Missing Access'), /^refused: .*not in it/],
    [errorOf(403, 50013, 'Missing Permissions'), /^refused: .*the bot has no permission to write here/],
    [errorOf(403, 50007, 'Cannot send messages to this user'), /^refused: .*blocked/],
    [errorOf(403, 50278, 'Cannot send messages to this user due to having no mutual guilds'), /^refused: .*no such user/],
    [errorOf(413, 40005, 'Request entity too large'), /^refused: .*Request entity too large/],
    [errorOf(400, 200000, 'Message was blocked by automatic moderation'), /^refused: .*automatic moderation/],
    [invalid('content', 'Must be 2000 or fewer in length.'), /^refused: .*Invalid Form Body: Must be 2000 or fewer/],
    [errorOf(400, 50083, 'Thread is archived'), /^refused: .*the bot has no permission to write here/],
    [{ status: 403, body: '<html>blocked</html>' }, /^refused: .*HTTP 403/],
  ]
  test('for good is called once, and says why', async () => {
    for (const [answer, reason] of refusals) {
      discord.clear()
      discord.server.fault({ path: messages, answer })
      assert.match(await fail({ msg: 'x' }), reason)
      assert.equal(discord.posts().length, 1)
    }
  })

  const closed: [ReturnType<typeof errorOf>, RegExp][] = [
    [{ status: 401, body: { message: '401: Unauthorized', code: 0 } }, /logged out/],
    [errorOf(403, 40333, 'internal network error'), /does not permit.*internal network error/],
    [errorOf(403, 20026, 'Your bot has been flagged by our anti-spam system for abusive behavior.'), /does not permit.*flagged/],
    [errorOf(403, 40002, 'You need to verify your account in order to perform this action.'), /does not permit.*verify/],
  ]
  test('of the account holds the chat, and is told in plain words', async () => {
    for (const [answer, reason] of closed) {
      discord.clear()
      discord.server.fault({ path: messages, answer })
      const said = await fail({ to: `discord:private:${user}`, msg: 'x' }, 503)
      assert.match(said, /^unsent: /)
      assert.match(said, reason)
      assert.equal(discord.posts().length, 1)
      await ask(`/queues/${encodeURIComponent(`discord:${botId}/private:${user}`)}/resume`, 'POST')
    }
  })

  test('to open a private chat is one, and a failure to do so has sent nothing', async () => {
    assert.match(await fail({ to: 'discord:private:1', msg: 'x' }), /^refused: .*Invalid Form Body: Unknown user/)
    discord.server.fault({ path: /^\/users/, times: 3, answer: { status: 502, body: 'Bad Gateway' } })
    assert.match(await fail({ to: 'discord:private:2', msg: 'x' }, 503), /^unsent/)
    assert.equal(discord.posts().length, 0)
  })
})

describe('a call without an answer', () => {
  const broken = { status: 502, body: '<html>502 Bad Gateway</html>' }
  for (const [what, answer] of [['with a 502', broken], ['cut', 'cut'], ['never answered', 'none']] as const) {
    test(`${what}, but carried out, is sent: the history shows it, and nothing is called again`, async () => {
      discord.server.fault({ path: messages, answer, isCarriedOut: true })
      assert.equal((await deliver({ msg: `*once* ${what}` })).length, 1)
      assert.equal(discord.posts().length, 1)
    })

    test(`${what}, and not carried out, is made again`, async () => {
      discord.server.fault({ path: messages, answer })
      assert.equal((await deliver({ msg: 'x', at: user })).length, 1)
    })

    test(`${what} is repeated in vain, as its nonce says, where the history cannot be read`, async () => {
      discord.showsHistory = false
      discord.server.fault({ path: messages, answer, isCarriedOut: true })
      assert.equal((await deliver({ type: 'file', url: inline })).length, 1)
      assert.equal(discord.posts().length, 2)
    })
  }

  test('is looked for behind what others have written since, a page at a time', async () => {
    discord.fill(thread, 130)
    discord.server.fault({ path: messages, answer: 'cut' })
    await deliver({ to: `discord:group:${thread}`, msg: 'x' })
    const pages = discord.server.callsTo(messages).filter(({ method }) => method === 'GET').map(({ query }) => query)
    assert.deepEqual(pages.map(query => [query.get('limit'), query.has('before')]), [['50', false], ['100', false], ['100', true]])
  })

  test('in the midst of a long text repeats nothing that is there', async () => {
    const msg = 'a b '.repeat(1200)
    discord.server.fault({ path: messages, isCarriedOut: true, answer: { body: { id: '334385199974967042' } } })
    discord.server.fault({ path: messages, answer: 'cut' })
    const parts = await deliver({ msg })
    assert.equal(parts.map(({ content }) => content).join(' '), msg.trim())
    assert.equal(discord.posts().length, parts.length + 2)
  })

  test('is not made again where another plugin has changed the message, as nothing knows that again', async () => {
    const off = signAll(relay)
    try {
      discord.server.fault({ path: messages, answer: 'cut', isCarriedOut: true })
      assert.match(await fail({ msg: 'x' }, 504), /^unanswered/)
      assert.deepEqual(discord.shown.map(({ content }) => content), ['x**signed**'])
    } finally {
      off()
    }
  })

  test('is neither looked for nor made again while that is limited', async () => {
    // What earlier tests have left unanswered elsewhere is looked for once more, at any time.
    const path = new RegExp(`^/channels/${thread}/messages$`)
    discord.server.fault({ path, answer: 'cut' })
    discord.server.fault({ path, answer: limited(1.5) })
    await reaches(await queue({ to: `discord:group:${thread}`, msg: 'x' }), 'sent')
    const calls = discord.server.callsTo(path)
    const [look, next] = calls.slice(1)
    assert(look?.method === 'GET' && (next?.at ?? 0) - look.at >= 1500, calls.map(({ method, at }) => `${method} ${at}`).join(', '))
  })

  test('to a server that is not there is unsent', async () => {
    const config: unknown = Reflect.get(Reflect.get(bot() ?? {}, 'http'), 'config')
    assert(isObject(config))
    Reflect.set(config, 'endpoint', `http://127.0.0.1:${await freePort()}`)
    try {
      assert.match(await fail({ msg: 'x' }, 503), /^unsent/)
    } finally {
      Reflect.set(config, 'endpoint', discord.server.url)
    }
  })
})

describe('a limit', () => {
  /** How long after the first call each further one came. */
  const times = (): number[] => discord.posts().map(({ at }, _, [first]) => at - (first?.at ?? 0)).slice(1)

  test('that is short is waited for, and never called earlier', async () => {
    discord.server.fault({ path: messages, answer: limited(0.3) })
    await deliver({ msg: 'x' })
    assert(times().length === 1 && times().every(time => time >= 300), String(times()))
  })

  test('of one channel leaves the others alone, and a global one does not', async () => {
    for (const [scope, isFree] of [['shared', true], ['global', false]] as const) {
      discord.clear()
      discord.server.fault({ path: messages, answer: limited(0.7, scope) })
      const first = deliver({ msg: 'x' })
      await until('it is limited', () => discord.posts().length === 1)
      await deliver({ to: `discord:group:${thread}`, msg: 'y' })
      await first
      assert.deepEqual(times().map(time => time >= 700), [!isFree, true])
    }
  })

  test('that comes as a refusal is one all the same', async () => {
    const opens = /^\/users\/@me\/channels$/
    for (const [path, answer, to] of [
      [opens, errorOf(403, 40003, 'You are opening direct messages too fast'), 'discord:private:7'],
      [messages, errorOf(403, 40004, 'Send messages has been temporarily disabled'), 'discord:group:7'],
    ] as const) {
      discord.server.fault({ path, answer })
      const { status, headers, msg } = await send({ to, msg: 'x' })
      assert.deepEqual([status, headers.get('retry-after'), headers.get('relay-outcome')], [503, '60', 'unsent'], msg)
      assert.equal((await send({ to, msg: 'x' })).status, 503)
      assert.equal(discord.server.callsTo(path).length, 1)
    }
  })

  test('of Cloudflare counts for the whole account', async () => {
    discord.server.fault({ path: messages, answer: { status: 429, headers: { 'retry-after': '1' }, body: '<html>error code: 1015</html>' } })
    const id = await queue({ msg: 'a' })
    await until('it is limited', () => discord.posts().length === 1)
    await reaches(await queue({ to: `discord:group:${thread}`, msg: 'b' }), 'sent')
    await reaches(id, 'sent')
    assert(times().every(time => time >= 1000), String(times()))
  })

  test('that a success announces is kept, so that it is never reached', async () => {
    const headers = { 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset-after': '0.25', 'x-ratelimit-bucket': 'abcd1234' }
    discord.server.fault({ path: messages, answer: { headers, body: { id: '334385199974967042' } } })
    for (const msg of ['a', 'b']) assert.equal((await send({ msg })).status, 200)
    assert(times().every(time => time >= 250), String(times()))
  })
})

test('across a restart what was accepted before the first login arrives after it, as the token names the account', async () => {
  discord.isOpen = false
  discord.load(relay.app)
  assert.equal(bot()?.sid, `discord:${botId}`)
  const id = await queue({ msg: 'early', self_id: botId })
  discord.isOpen = true
  assert.equal((await reaches(id, 'sent')).bot, `discord:${botId}`)
  assert.deepEqual(discord.shown.map(({ content }) => content), ['early'])
})

test('a command is posted as it was typed, and answered in its own thread or channel', async () => {
  const callback = await PlatformServer.start(() => ({ body: { reply: '**pong**' } }))
  await relay.update({ ...config, commandCallbackUrl: callback.url, commands: [{ name: 'status' }, { name: 'deploy' }] })
  const typed = `/status &lt;b&gt; <b>x</b> <@${botId}> <:ok:216154654256398347>`
  discord.say(typed, { channel_id: thread })
  discord.say('/deploy now', { member: undefined, webhook_id: '5' })
  discord.say('/status', { guild_id: undefined, member: undefined, channel_id: direct })
  discord.say('/status', { author: { id: botId, username: 'relay' } })
  await until('all are answered', () => discord.shown.length === 3)
  await callback.stop()
  assert.deepEqual(callback.calls.map(({ fields: body }) => [body.raw_message, body.group_id, body.user_id]).sort(), [
    ['/deploy now', channel, user], [`/status &lt;b&gt; <b>x</b> @${botId} :ok:`, thread, user], ['/status', undefined, user],
  ])
  assert.deepEqual(discord.shown.map(each => each.channel).sort(), [channel, direct, thread].sort())
  assert(discord.shown.every(({ content }) => seen(content) === '**pong**'))
})

test('a message in an archived thread cannot be changed, but a new one opens the thread', async () => {
  const goOn = (msg: string) => send({ to: `discord:group:${thread}`, msg, thread: 'archived', thread_mode: 'update' })
  await goOn('queued')
  discord.server.fault({ path: /\/messages\/\d+$/, answer: errorOf(400, 50083, 'Thread is archived') })
  const { status, data, msg } = await goOn('done')
  assert.deepEqual([status, data.thread], [200, 'replied'], msg)
})

test('recalls a message', async () => {
  const [{ id } = { id: '' }] = await deliver({ msg: 'x' })
  assert.equal((await call(relay, 'delete_msg', { message_id: id })).retcode, 0)
  assert.deepEqual(discord.recalled, [`${channel} ${id}`])
})

test('lists channels and active threads as contacts, and no friends, of whom Discord tells nothing', async () => {
  const { data } = await ask(`/contacts?bot=discord:${botId}`)
  assert.deepEqual(data.groups, [{ id: channel, name: '#general (Team)' }, { id: thread, name: '#incident (Team)' }])
  assert.deepEqual(data.friends, [])
})
