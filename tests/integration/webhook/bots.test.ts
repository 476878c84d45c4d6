import { h, Universal, type Session } from 'koishi'
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test, type TestContext } from 'node:test'
import { serve } from '../../support/listen'
import { otherBot, OtherBot } from '../../support/other-bot'
import { useRelay, type Reply } from '../../support/relay'
import { until } from '../../support/until'
import { batchOf, failureOf, group, idsOf, oneBot, only, outline, reconnect, sends, upload, user } from './support'

const timeout = 500
const retries = 1
const config = { chatApiTimeout: timeout / 1000, chatApiMaxRetries: retries }

/** Two bots besides that of the simulator. */
let first: OtherBot
let second: OtherBot

const relay = useRelay({
  config,
  setup(app) {
    for (const selfId of ['f1', 'f2']) app.plugin(OtherBot, { platform: 'fake', selfId })
  },
})
beforeEach(() => {
  first = otherBot(relay, 'f1')
  second = otherBot(relay, 'f2')
})
afterEach(() => {
  for (const bot of [first, second]) bot.reset()
})

function send(body: object = {}): Promise<Reply> {
  return relay.send({ group_id: group, msg: 'hello', ...body })
}

const neverConnected = (): Promise<never> => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }))

describe('a bot of another platform', () => {
  test('sends to a channel and gives the ID', async () => {
    assert.deepEqual(idsOf(await send({ platform: 'fake', group_id: 'C-any.thing#1 x' })), ['f1-1'])
    const { channelId, elements } = only(first.sent)
    assert.equal(channelId, 'C-any.thing#1 x')
    assert.deepEqual(elements.map(element => [element.type, element.attrs]), [['text', { content: 'hello' }]])
    assert.equal(sends(relay).length, 0)
  })

  test('sends to a user in the direct channel that it opens', async () => {
    assert.deepEqual(idsOf(await send({ platform: 'fake', group_id: null, user_id: 'U1' })), ['f1-1'])
    assert.equal(only(first.sent).channelId, 'dm-U1')
  })

  test('sends text letter for letter', async () => {
    const texts = ['<img src=x>', '<at id="1"/>', '[CQ:at,qq=all]', '&amp;&lt;', '&#91;', ' \n blanks \n ', '{{ x }}', '<i18n path="a"/>', '<execute>help</execute>']
    for (const msg of texts) idsOf(await send({ platform: 'fake', msg }))
    assert.deepEqual(first.sent.map(({ elements }) => only(elements)).map(({ type, attrs }) => [type, attrs]), texts.map(content => ['text', { content }]))
  })

  test('sends images, videos and files as data, with their name and type', async t => {
    const server = await serve(t, (_, response) => response.writeHead(200, { 'content-type': 'application/pdf; x=y' }).end('%PDF'))
    const url = `${server}/a%2Fb/报告.pdf?x=<&amp;>`
    const attrs = { src: 'data:application/pdf;base64,JVBERg==', title: '报告.pdf', file: '报告.pdf' }
    const messages = ['image', 'video', 'file'].map(type => ({ type, url }))
    const data = batchOf(await relay.send({ platform: 'fake', group_id: 'C', messages: [{ msg: 'a' }, ...messages] }))
    assert.deepEqual(data.results.map(({ message_ids }) => message_ids), [['f1-1'], ['f1-1'], ['f1-2'], ['f1-3']])
    assert.deepEqual(first.sent.map(({ elements }) => elements.map(({ type, attrs }) => [type, attrs])), [
      [['text', { content: 'a' }], ['img', attrs]],
      [['video', attrs]],
      [['file', attrs]],
    ])
  })

  test('is called again only where nothing left', async () => {
    first.failures = [neverConnected]
    assert.deepEqual(idsOf(await send({ platform: 'fake' })), ['f1-1'])
    assert.equal(first.calls, 2)
    first.failures = [neverConnected, neverConnected]
    const reason = 'nothing was sent, try again later: the platform cannot be reached: connection refused (ECONNREFUSED)'
    assert.equal(failureOf(await send({ platform: 'fake' }), 503), reason)
  })

  describe('that fails is believed as far as its error tells', () => {
    const cases: [words: string, status: number, shown: RegExp][] = [
      ['chat not found', 504, /may have arrived: chat not found/],
      ['[400] {"message":"chat not found"}', 502, /chat not found/],
      ['[502] {}', 504, /may have arrived/],
      ['Telegram API error 502. Bad Gateway', 504, /may have arrived: Bad Gateway/],
    ]
    for (const [words, status, shown] of cases) {
      test(words, async () => {
        first.failures = [() => Promise.reject(new Error(words))]
        assert.match(failureOf(await send({ platform: 'fake' }), status), shown)
        assert.equal(first.calls, 1)
      })
    }

    test('[429] {"retry_after":0.4}', async () => {
      first.failures = [() => Promise.reject(new Error('[429] {"retry_after":0.4}'))]
      const start = performance.now()
      idsOf(await send({ platform: 'fake' }))
      assert(performance.now() - start >= 400, 'called too early')
      assert.equal(first.calls, 2)
    })
  })

  test('that divides a message gives the ID of each part, and does not send again what has arrived of it', async () => {
    const body = { platform: 'fake', messages: [{ msg: 'a' }, { type: 'image', url: 'base64://AAAA' }] }
    first.divides = true
    assert.deepEqual(batchOf(await send(body)).results.map(({ message_ids }) => message_ids), [['f1-1', 'f1-2'], ['f1-1', 'f1-2']])
    first.sent.length = 0
    first.failures = [() => Promise.resolve(), () => Promise.reject(new Error('no such picture'))]
    batchOf(await send(body))
    assert.equal(first.sent.filter(({ elements }) => elements.join('') === 'a').length, 1)
  })

  test('that does not answer is a 504 in time', async () => {
    first.failures = Array.from({ length: 10 }, () => () => new Promise<never>(() => undefined))
    const start = performance.now()
    failureOf(await send({ platform: 'fake' }), 504)
    assert(performance.now() - start < (1 + retries) * timeout + 300 + 500)
  })
})

describe('of several bots', () => {
  const sent = (): number[] => [first.sent.length, second.sent.length, relay.simulator.ledger.length]

  test('the OneBot one sends unless another is asked for, whichever came first', async () => {
    idsOf(await send())
    relay.app.bots.reverse()
    assert.equal(relay.app.bots[0]?.platform, 'fake')
    idsOf(await send())
    relay.app.bots.reverse()
    assert.deepEqual(sent(), [0, 0, 2])
  })

  test('the one with the platform and the account asked for sends', async () => {
    const { selfId } = relay.simulator
    for (const selector of [{ platform: 'fake', self_id: 'f2' }, { self_id: 'f2' }, { self_id: 'f1', platform: null }, { platform: 'fake' }, { platform: 'onebot' },
      { self_id: selfId }, { self_id: Number(selfId) }, { platform: 'onebot', self_id: selfId }]) {
      idsOf(await send(selector))
    }
    assert.deepEqual(sent(), [2, 2, 4])
  })

  test('none sends when the one asked for does not exist', async () => {
    for (const selector of [{ platform: 'onebot', self_id: 'f1' }, { platform: 'fake', self_id: '10000' }, { platform: 'other' }, { self_id: '999' }]) {
      assert.match(failureOf(await send(selector), 503), /^there is no bot with this platform and self_id/)
    }
    assert.deepEqual(sent(), [0, 0, 0])
  })

  test('one that is offline is passed over for another of its platform, and is a 503 when it was asked for', async () => {
    relay.simulator.disconnectAll()
    await until('the OneBot bot is offline', () => oneBot(relay).status === Universal.Status.OFFLINE)
    first.offline()
    assert.deepEqual(idsOf(await send({ platform: 'fake' })), ['f2-1'])
    assert.match(failureOf(await send(), 503), /^no OneBot bot is online: the bot is not connected/, 'the number may be somebody else\'s on another platform')
    failureOf(await send({ platform: 'onebot' }), 503)
    assert.match(failureOf(await send({ self_id: 'f1' }), 503), /^no bot with this platform and self_id is online/)
    second.offline()
    failureOf(await send(), 503)
    await reconnect(relay)
    idsOf(await send())
    assert.deepEqual(sent(), [0, 1, 1])
  })

  test('a hidden one is only used when it was asked for, and one of the sandbox needs not be online', async () => {
    for (const bot of [first, second]) bot.hidden = true
    const bot = oneBot(relay)
    bot.offline()
    failureOf(await send(), 503)
    assert.deepEqual(idsOf(await send({ self_id: 'f1' })), ['f1-1'])
    const { adapterName } = first
    first.adapterName = 'sandbox'
    first.offline()
    failureOf(await send(), 503)
    assert.deepEqual(idsOf(await send({ self_id: 'f1' })), ['f1-2'])
    first.adapterName = adapterName
    bot.online()
  })

  test('the IDs that OneBot cannot have are fine for another', async () => {
    failureOf(await send({ group_id: 'abc' }), 400)
    idsOf(await send({ group_id: 'abc', platform: 'fake' }))
    assert.equal(only(first.sent).channelId, 'abc')
  })
})

describe('other plugins', () => {
  for (const platform of ['onebot', 'fake'] as const) {
    describe(`of a bot on ${platform}`, () => {
      /** What has arrived, as markup. */
      function arrived(): string[] {
        if (platform === 'fake') return first.sent.map(({ elements }) => elements.join(''))
        return relay.simulator.ledger.map(({ segments, media, kind }) => kind === 'file'
          ? `[file ${only(media).name}]`
          : segments.map(({ type, data }) => type === 'text' ? h.escape(String(data.text)) : type === 'at' ? `<at id="${String(data.qq)}"/>` : `[${type}]`).join(''))
      }

      function onBeforeSend(t: TestContext, listener: (session: Session) => boolean | undefined | Promise<boolean | undefined>): void {
        t.after(relay.app.on('before-send', listener))
      }

      /** Has a plugin make other elements of each message. */
      function change(t: TestContext, make: (elements: h[]) => h[]): void {
        onBeforeSend(t, session => {
          session.elements = make(session.elements ?? [])
          return undefined
        })
      }

      const post = (body: object = {}) => send({ platform, ...body })

      test('see every message before it is sent, with its elements and where it goes', async t => {
        const seen: unknown[] = []
        onBeforeSend(t, ({ type, platform, selfId, channelId, isDirect, elements, content, bot }) => {
          seen.push({ type, platform, selfId, channelId, isDirect, types: elements?.map(({ type }) => type), content, bot: bot.sid })
          return undefined
        })
        const guilds: unknown[] = []
        t.after(relay.app.platform(platform).on('before-send', ({ guildId }) => {
          guilds.push(guildId)
        }))
        const url = 'base64://AAAA'
        await post({ msg: '<b>&' })
        await post({ messages: [{ msg: 'a' }, { type: 'image', url }, { type: 'video', url }, { type: 'file', url }] })
        await post({ group_id: null, user_id: user })
        const selfId = platform === 'fake' ? 'f1' : relay.simulator.selfId
        const common = { type: 'send', platform, selfId, bot: `${platform}:${selfId}` }
        const inGroup = { ...common, channelId: group, isDirect: false }
        const src = `src="data:application/octet-stream;base64,AAAA"`
        const named = platform === 'fake' ? `${src} title="file" file="file"` : src
        assert.deepEqual(seen, [
          { ...inGroup, types: ['text'], content: '&lt;b&gt;&amp;' },
          { ...inGroup, types: ['text', 'img'], content: `a<img ${named}/>` },
          { ...inGroup, types: ['video'], content: `<video ${named}/>` },
          { ...inGroup, types: ['file'], content: platform === 'fake' ? `<file ${named}/>` : `<file ${src} title="file"/>` },
          // Koishi leaves it to the adapter whether a channel is told to be direct, and the fake one does not.
          platform === 'fake'
            ? { ...common, channelId: `dm-${user}`, isDirect: true, types: ['text'], content: 'hello' }
            : { ...common, channelId: `private:${user}`, isDirect: true, types: ['text'], content: 'hello' },
        ])
        if (platform === 'onebot') assert.deepEqual(guilds, [group, group, group, group, undefined])
      })

      test('that listen to all events see it too', async t => {
        const names: unknown[] = []
        t.after(relay.app.on('internal/event', (_, name) => void names.push(name)))
        idsOf(await post())
        assert(names.includes('before-send'), names.join())
      })

      test('see nothing of a message for a bot that they do not listen to', async t => {
        let count = 0
        t.after(relay.app.platform(platform === 'fake' ? 'onebot' : 'fake').on('before-send', () => {
          count++
        }))
        await post()
        assert.equal(count, 0)
      })

      test('may change the text', async t => {
        onBeforeSend(t, session => {
          session.content = `${session.content ?? ''}&lt;changed&gt;`
          return undefined
        })
        idsOf(await post({ msg: '<b>' }))
        assert.deepEqual(arrived(), ['&lt;b&gt;&lt;changed&gt;'])
      })

      test('may add an element that the relay does not make itself', async t => {
        change(t, elements => [h.at('10002'), ...elements])
        const ids = idsOf(await post({ msg: '<b>&amp;' }))
        assert.deepEqual(arrived(), ['<at id="10002"/>&lt;b&gt;&amp;amp;'])
        assert.deepEqual(ids, [platform === 'fake' ? 'f1-1' : String(relay.simulator.ledger[0]?.messageId)])
        assert.equal(arrived().length, 1)
      })

      test('may keep a message from being sent: 502, which says so, and nothing is sent', async t => {
        let calls = 0
        onBeforeSend(t, () => {
          calls++
          return true
        })
        assert.match(failureOf(await post(), 502), /another plugin .* suppressed/)
        assert.deepEqual(arrived(), [])
        assert.equal(calls, 1)
      })

      test('may keep one message of a batch from being sent', async t => {
        onBeforeSend(t, ({ elements }) => elements?.some(({ type }) => type === 'video'))
        const url = 'base64://AAAA'
        const data = batchOf(await post({ messages: [{ msg: 'a' }, { type: 'video', url }, { msg: 'b' }] }))
        assert.deepEqual(data.results.map(({ success, code }) => success || code), [true, 502, true])
        assert.deepEqual(arrived(), ['a', 'b'])
      })

      test('that fail keep the message from being sent: 502, without their words, and the log tells where', async t => {
        let calls = 0
        const earlier = relay.logs.length
        onBeforeSend(t, () => {
          calls++
          throw new Error('a secret of the plugin')
        })
        const msg = failureOf(await post(), 502)
        assert.match(msg, /another plugin/)
        const logs = relay.logs.slice(earlier)
        assert(![msg, ...logs].some(text => text.includes('secret')))
        assert(logs.some(line => /before-send failed.*"Error" at ".*bots\.test/.test(line)), logs.join('\n'))
        assert.deepEqual(arrived(), [])
        assert.equal(calls, 1)
      })

      test('that hang are not waited for longer than a call may take, and nothing is sent when they come back', async t => {
        const resumptions: (() => void)[] = []
        const remove = relay.app.on('before-send', async ({ content }) => {
          if (content === 'held') await new Promise<void>(resolve => resumptions.push(resolve))
          return undefined
        })
        t.after(remove)
        const start = performance.now()
        assert.match(failureOf(await post({ msg: 'held' }), 503), /nothing was sent/)
        assert(performance.now() - start < (1 + retries) * timeout + 300 + 500)
        assert.equal(resumptions.length, 1 + retries)
        for (const resume of resumptions) resume()
        // What would leave now leaves before this.
        for (const msg of ['a', 'b', 'c']) idsOf(await post({ msg }))
        assert.deepEqual(arrived(), ['a', 'b', 'c'])
      })

      test('are asked again for each attempt, and do not see the changes of the last one', async t => {
        onBeforeSend(t, ({ elements }) => {
          elements?.push(h.text('!'))
          return undefined
        })
        first.failures = [neverConnected]
        relay.simulator.fault({ fault: { kind: 'refuse' } })
        idsOf(await post())
        assert.deepEqual(arrived(), ['hello!'])
      })

      if (platform === 'onebot') {
        test('see what was sent, with its ID', async t => {
          const seen: unknown[] = []
          t.after(relay.app.on('send', ({ type, messageId, channelId, guildId, isDirect, userId, platform, elements }) => {
            seen.push({ type, messageId, channelId, guildId, isDirect, userId, platform, types: elements?.map(element => element.type) })
          }))
          await post()
          await post({ group_id: null, user_id: user })
          await post({ type: 'file', url: 'base64://AAAA' })
          const [first, second] = relay.simulator.ledger
          const common = { type: 'send', userId: relay.simulator.selfId, platform }
          const inGroup = { ...common, channelId: group, guildId: group, isDirect: false }
          assert.deepEqual(seen, [
            { ...inGroup, messageId: String(first?.messageId), types: ['text'] },
            {
              ...common, messageId: String(second?.messageId), channelId: `private:${user}`, guildId: undefined, isDirect: true, types: ['text'],
            },
            { ...inGroup, messageId: '', types: ['file'] },
          ])
        })

        test('see a message that was sent after a refusal once, and one that was refused never', async t => {
          let count = 0
          t.after(relay.app.on('send', () => {
            count++
          }))
          relay.simulator.fault({ fault: { kind: 'refuse' } })
          idsOf(await post())
          assert.equal(count, 1)
          relay.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
          failureOf(await post(), 502)
          assert.equal(count, 1)
        })

        test('that fail after a message was sent do not make it unsent', async t => {
          t.after(relay.app.on('send', () => {
            throw new Error('a plugin failed')
          }))
          idsOf(await post())
          assert.deepEqual(arrived(), ['hello'])
        })

        test('may add an element that the adapter sends, to which the platform answers without data: it is sent once', async t => {
          change(t, elements => [h.at('10002'), ...elements])
          relay.simulator.fault({ fault: { kind: 'null-data' }, times: Infinity })
          const reply = await post()
          assert.deepEqual(arrived(), ['<at id="10002"/>hello'])
          assert.equal(reply.status, 200, reply.body.msg)
        })

        test('may add an element that the adapter sends to a group that the bot has left: one call, and the reason is told', async t => {
          change(t, elements => [h.at('10002'), ...elements])
          relay.simulator.fault({ fault: { kind: 'not-member' }, times: Infinity })
          const msg = failureOf(await post(), 502)
          assert.equal(sends(relay).length, 1)
          assert.match(msg, /移出/)
        })

        test('may add text to a file, which then goes first, and is not sent again where the file is refused', async t => {
          const url = await upload(relay, 'x.txt', 'content')
          change(t, elements => [h.text('see'), ...elements])
          assert.equal((await post({ type: 'file', url })).status, 200)
          assert.deepEqual(arrived(), ['see', '[file x.txt]'])
          relay.simulator.clear()
          relay.simulator.fault({ fault: { kind: 'refuse' }, action: /^upload_/ })
          await post({ type: 'file', url })
          assert.deepEqual(arrived().filter(text => text === 'see'), ['see'])
        })

        test('may leave nothing of a message: 502, and nothing is sent', async t => {
          change(t, () => [])
          assert.match(failureOf(await post(), 502), /another plugin/)
          assert.equal(outline(relay).length, 0)
          assert.equal(sends(relay).length, 0)
        })
      }
    })
  }
})
