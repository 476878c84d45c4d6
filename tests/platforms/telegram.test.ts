import { h } from 'koishi'
import assert from 'node:assert/strict'
import { truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { fieldsOf } from '../../src/lib/shape'
import type { Config } from '../../src'
import { call } from '../integration/onebot-api/support'
import { batchOf, failureOf, upload } from '../integration/webhook/support'
import { askAs, type TestRelay } from '../support/relay'
import { until } from '../support/until'
import { callerOf } from './caller'
import { group, refuse, self, Telegram, topic, user } from './telegram'
import { PlatformServer } from './server'

const toGroup = { to: `telegram:group:${group}` }
const toUser = { to: `telegram:private:${user}` }
const picture = (content = 'picture', type = 'png') => ({ type: 'image', url: `data:image/${type};base64,${Buffer.from(content).toString('base64')}` })
const text = (msg: string) => ({ type: 'text', msg })

describe('Telegram', () => {
  let telegram: Telegram
  let relay: TestRelay
  let config: Config
  let callback: PlatformServer
  let reply: object = { reply: 'pong' }

  before(async () => {
    telegram = await Telegram.start()
    callback = await PlatformServer.start(() => ({ body: reply }))
    config = {
      chatApiTimeout: 0.5, chatPauseAfter: 100, commandPrefix: '/', commands: [{ name: 'deploy', callback: callback.url }],
      keys: [
        { name: 'plain', key: 'k'.repeat(32), allow: ['send'], targets: [`telegram:group:${group}`] },
        { name: 'topics', key: 't'.repeat(32), allow: ['send'], targets: [`telegram:group:${group}:*`] },
      ],
    }
    relay = await telegram.relay(config)
  })
  after(async () => {
    await relay.stop()
    await callback.stop()
    await telegram.server.stop()
  })
  afterEach(() => {
    telegram.clear()
    callback.clear()
  })

  const { ask, send, fail, queue } = callerOf(() => relay, toGroup.to)
  /** What has arrived, without the IDs. */
  const arrived = () => telegram.messages.map(({ id, ...message }) => (assert(id > 0), message))

  describe('a message', () => {
    test('arrives letter for letter, and mentions nobody', async () => {
      const msg = '<b>x</b> **b** _i_ [a](https://e.test) <at id="1"/> &lt; `c` https://e.test\n\n  @all end'
      const { status, body } = await send({ msg })
      assert.equal(status, 200, body.msg)
      assert.deepEqual(arrived(), [{ chat: group, method: 'sendMessage', text: msg }])
      assert.deepEqual(body.data, { message_ids: [`${group}:${telegram.messages[0]?.id}`], delivery_id: fieldsOf(body.data).delivery_id })
      const [call] = telegram.sends
      assert.deepEqual(call?.fields, { chat_id: group, text: msg, link_preview_options: { is_disabled: true } })
    })

    test('reaches a user, a public channel and a topic, also the general one', async () => {
      for (const to of [`private:${user}`, 'group:@release_notes', `group:${group}:${topic}`, `group:${group}:1`]) {
        assert.equal((await send({ to: `telegram:${to}`, msg: 'a' })).status, 200)
      }
      assert.deepEqual(arrived().map(({ chat, topic }) => [chat, topic]), [
        [user, undefined], ['@release_notes', undefined], [group, topic], [group, undefined],
      ])
    })

    test('mentions and answers whom it is to, and nobody else', async () => {
      await send({ msg: 'look', at: [user, '999', 'bob_y'], reply_to: `${group}:12` })
      assert.deepEqual(arrived(), [{
        chat: group, method: 'sendMessage', text: '@Ann @999 @bob_y look', replyTo: 12, mentions: [['@Ann', Number(user)], ['@999', 999]],
      }])
    })

    test('is divided where it is too long, and stays one', async () => {
      const msg = `${'word '.repeat(900)}\n${'😀'.repeat(2000)}\n\n${'\n'.repeat(5000)}end`
      const reply = await send({ messages: [{ type: 'at', user_id: user }, text(msg)] })
      assert.equal(reply.status, 200, reply.msg)
      const sent = arrived()
      assert.equal(sent.map(each => each.text).join('').replace(/\s/g, ''), `@Ann${msg}`.replace(/\s/g, ''))
      assert.deepEqual(sent.map(({ mentions }) => mentions?.length), [1, ...sent.slice(1).map(() => undefined)])
      const ids = telegram.messages.map(({ id }) => `${group}:${id}`)
      assert.deepEqual(batchOf(reply).results[1]?.message_ids, ids)
    })
  })

  describe('pictures and files', () => {
    test('go with their text, above or below it', async () => {
      await send({ messages: [text('a'), picture('1'), text('b'), picture('2'), picture('3')] })
      await send({ messages: [picture('4'), text('x'.repeat(1025)), picture('5', 'gif')] })
      assert.deepEqual(arrived().map(({ method, text, isAbove, files }) => [method, text.slice(0, 3), isAbove, files?.map(({ data }) => data).join('')]), [
        ['sendPhoto', 'a', true, '1'],
        ['sendMediaGroup', 'b', true, '23'],
        ['sendPhoto', '', undefined, '4'],
        ['sendMessage', 'xxx', undefined, undefined],
        ['sendAnimation', '', undefined, '5'],
      ])
      assert.deepEqual(telegram.messages[0]?.files, [{ name: 'file.png', type: 'image/png', data: '1' }])
    })

    test('keep their names and types', async () => {
      const url = await upload(relay, '报告 final.pdf', 'pdf')
      const audio = (type: string) => ({ type: 'audio', url: `data:audio/${type};base64,eA==` })
      const video = { type: 'video', url: 'data:video/mp4;base64,eA==' }
      const { status, body } = await send({ ...toUser, messages: [{ type: 'file', url }, audio('ogg'), audio('wav'), video] })
      assert.equal(status, 200, body.msg)
      assert.deepEqual(arrived().map(({ method, files }) => [method, files?.[0]?.name, files?.[0]?.type]), [
        ['sendVoice', 'file.oga', 'audio/ogg'],
        ['sendAudio', 'file.wav', 'audio/wav'],
        ['sendVideo', 'file.mp4', 'video/mp4'],
        ['sendDocument', '报告 final.pdf', 'application/pdf'],
      ])
    })

    test('behind a dead link are refused, and nothing leaves', async () => {
      for (const type of ['image', 'file']) {
        const msg = await fail({ type, url: `${telegram.server.url}/nothing.png` })
        assert.match(msg, /refused.*the file behind the link cannot be fetched/)
      }
      assert.deepEqual(telegram.sends, [])
    })

    test('that are too large are refused before they are read', async () => {
      const url = await upload(relay, 'large.bin', 'x')
      // More than fits into a buffer.
      await truncate(join(relay.uploadDir, url), 5 * 2 ** 30)
      assert.match(await fail({ type: 'file', url }), /refused.*at most 50 MB/)
      assert.deepEqual(telegram.sends, [])
    })

    test('that are refused are alone in that', async () => {
      const data = batchOf(await send({ messages: [text('a'), picture('no picture'), text('b')] }))
      assert.deepEqual(data.results.map(({ success }) => success), [true, false, true])
      assert.match(data.results[1]?.msg ?? '', /could not read.*IMAGE_PROCESS_FAILED/)
      assert.deepEqual(arrived().map(each => each.text), ['a', 'b'])
    })
  })

  describe('what cannot be on Telegram is refused before anything leaves', () => {
    test('as a chat', async () => {
      for (const to of ['group:7654321', 'private:-1001234567890', 'group:-0100', 'group:-1001234567890:x', 'group:a/../b', 'private:@name']) {
        assert.match(await fail({ to: `telegram:${to}`, msg: 'a' }, 400), /Telegram is/)
      }
      assert.deepEqual(telegram.sends, [])
    })

    test('as a mention or an answer, alone in its batch', async () => {
      assert.match(await fail({ msg: 'a', at: 'all' }, 400), /cannot mention everybody/)
      assert.match(await fail({ msg: 'a', at: 'A-B' }, 400), /number of a user/)
      assert.match(await fail({ msg: 'a', reply_to: 'x' }, 400), /the ID of a message on Telegram/)
      assert.match(await fail({ msg: 'a', reply_to: '-1009:12' }, 400), /in another chat/)
      assert.deepEqual(telegram.sends, [])
      const data = batchOf(await send({ messages: [{ type: 'at', user_id: 'all' }, text('a')] }))
      assert.deepEqual(data.results.map(({ code }) => code), [400, undefined])
      assert.deepEqual(arrived().map(each => each.text), ['a'])
    })

    test('as a right: a key for a group has no topics of it', async () => {
      const post = async (to: string, key: string, more: object = {}): Promise<number> => {
        return (await askAs(relay, key.repeat(32), 'POST', '/webhook', { to, msg: 'a', ...more })).status
      }
      const inTopic = `${toGroup.to}:${topic}`
      const statuses = await Promise.all([post(toGroup.to, 'k'), post(inTopic, 'k'), post(toGroup.to, 't'), post(inTopic, 't')])
      assert.deepEqual(statuses, [200, 403, 403, 200])
      assert.equal(await post(toGroup.to, 'k', { at: 'all' }), 403)
    })
  })

  describe('a refusal', () => {
    const refusals: [to: string, msg: RegExp][] = [
      ['group:-100404', /^refused: .*there is no such group.*chat not found/],
      ['private:404', /^refused: .*there is no such user.*chat not found/],
      ['group:-100403', /^refused: .*not in this group any more.*bot was kicked/],
      ['private:403', /^refused: .*blocked.*bot was blocked by the user/],
      ['private:405', /^refused: .*there is no such user.*can't initiate conversation/],
      ['group:-4001', /^refused: .*the group has another ID now.*-1004001 now/],
      ['group:-100400', /^refused: .*muted.*not enough rights to send text messages/],
      ['group:-100401', /^refused: .*no permission.*need administrator rights/],
      ['group:-100405', /^refused: .*no permission.*CHAT_GUEST_SEND_FORBIDDEN/],
      ['group:-100406', /^refused: .*no permission.*ALLOW_PAYMENT_REQUIRED_5/],
      ['private:406', /^refused: .*blocked.*PRIVACY_PREMIUM_REQUIRED/],
      [`group:${group}:46`, /^refused: .*no such group.*message thread not found/],
    ]
    for (const [to, words] of refusals) {
      test(`is told as it is, and called once: ${to}`, async () => {
        assert.match(await fail({ to: `telegram:${to}`, msg: 'a' }), words)
        assert.equal(telegram.sends.length, 1)
      })
    }

    test('of a message that is answered is final as well', async () => {
      assert.match(await fail({ msg: 'a', reply_to: 404 }), /message to be replied not found/)
      assert.equal(telegram.sends.length, 1)
    })

    test('of the token is about the account, and nothing was sent', async () => {
      telegram.server.fault({ path: /\/sendMessage/, answer: refuse(401, 'Unauthorized') })
      assert.match(await fail({ to: 'telegram:group:-100777', msg: 'a' }, 503), /^unsent: .*logged out.*Unauthorized/)
    })

    test('of a frozen bot is about the account as well', async () => {
      telegram.server.fault({ path: /\/sendMessage/, answer: refuse(400, 'Bad Request: FROZEN_METHOD_INVALID') })
      assert.match(await fail({ to: 'telegram:group:-100778', msg: 'a' }, 503), /^unsent: .*does not permit.*FROZEN_METHOD_INVALID/)
    })
  })

  describe('no clear answer', () => {
    const badGateway = { status: 502, body: '<html><head><title>502 Bad Gateway</title></head></html>' }
    const faults = {
      'a failing server that has sent it': { answer: badGateway, isCarriedOut: true },
      'a failing server that has not': { answer: refuse(500, 'Internal Server Error: restart') },
      'a connection that is cut': { answer: 'cut', isCarriedOut: true },
      'silence': { answer: 'none', isCarriedOut: true },
      'an answer that is none': { answer: { body: 'ok' }, isCarriedOut: true },
      'a proxy that waited too long': { answer: { status: 408, body: '<html>408 Request Time-out</html>' }, isCarriedOut: true },
    } as const
    const to = 'telegram:group:-2000'

    for (const [name, fault] of Object.entries(faults)) {
      test(`is "may have arrived", and called once: ${name}`, async () => {
        telegram.server.fault({ path: /\/sendMessage/, ...fault })
        assert.match(await fail({ to, msg: name }, 504), /^unanswered: .*may have arrived/)
        assert.equal(telegram.sends.length, 1)
        assert.deepEqual(arrived().map(each => each.text), 'isCarriedOut' in fault ? [name] : [])
      })
    }

    test('of the second part of what should be one message is "may have arrived", and the first is not repeated', async () => {
      telegram.server.fault({ path: /\/sendPhoto/, answer: badGateway })
      const { results } = batchOf(await send({ to, messages: [picture('1', 'gif'), picture('2')] }))
      assert.match(results[0]?.msg ?? '', /only a part of it has arrived/)
      assert.deepEqual(telegram.sends.map(({ path }) => path.replace(/.*\//, '')), ['sendAnimation', 'sendPhoto'])
    })

    for (const [code, fault] of [[504, badGateway], [502, refuse(400, 'Bad Request: no')]] as const) {
      test(`or a refusal of the second message of a batch leaves the first one sent: ${code}`, async () => {
        telegram.server.fault({ path: /\/sendPhoto/, answer: fault })
        const { results } = batchOf(await send({ to, messages: [text('x'.repeat(1025)), picture()] }))
        assert.deepEqual(results.map(({ code }) => code), [undefined, code])
        assert.deepEqual(telegram.sends.map(({ path }) => path.replace(/.*\//, '')), ['sendMessage', 'sendPhoto'])
      })
    }
  })

  describe('a limit', () => {
    const limit = (seconds: number) => refuse(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds })

    test('that is short is waited for, and the caller gets the result', async () => {
      telegram.server.fault({ path: /\/sendMessage/, answer: limit(1) })
      const start = performance.now()
      assert.equal((await send({ to: 'telegram:group:-1001', msg: 'a' })).status, 200)
      assert(performance.now() - start >= 1000)
      assert.equal(telegram.sends.length, 2)
    })
  })

  test('a limit in a topic holds its whole group', async () => {
    telegram.server.fault({ path: /\/sendMessage/, answer: refuse(429, 'Too Many Requests: retry after 30', { retry_after: 30 }) })
    for (const to of [`telegram:group:-1005:${topic}`, 'telegram:group:-1005']) {
      assert.match(await fail({ to, msg: 'a' }, 503), /limits how fast/)
    }
    assert.equal(telegram.sends.length, 1)
  })

  test('a limit that comes after a part of a message holds the chat as well', async () => {
    const to = 'telegram:group:-1004'
    telegram.server.fault({ path: /\/sendPhoto/, answer: refuse(429, 'Too Many Requests: retry after 30', { retry_after: 30 }) })
    const { results } = batchOf(await send({ to, messages: [text('x'.repeat(1025)), picture()] }))
    assert.deepEqual(results.map(({ code }) => code), [undefined, 503])
    const answer = await send({ to, msg: 'b' })
    assert.match(failureOf(answer, 503), /limits how fast/)
    assert.equal(answer.headers.get('retry-after'), '30')
    assert.equal(telegram.sends.length, 2)
  })

  describe('a command', () => {
    const inTopic = { message_thread_id: Number(topic), is_topic_message: true }
    const isReplied = () => until('there is a reply', () => telegram.messages.length > 0)

    test('with a slash is posted as it was typed, and answered where it was given', async () => {
      reply = { reply: 'done' }
      await telegram.say(relay, '/deploy@relay_bot v2 <b>\n--now')
      await isReplied()
      const raw = '/deploy@relay_bot v2 <b>\n--now'
      assert.deepEqual(callback.calls.map(({ fields }) => fields), [{
        command: 'deploy', content: 'v2 <b>\n--now', raw_message: raw, user_id: user, group_id: group, message_id: callback.calls[0]?.fields.message_id,
      }])
      assert.deepEqual(arrived().map(({ chat, topic, text }) => [chat, topic, text]), [[group, undefined, 'done']])
    })

    test('in a topic is answered there, and in a private chat there', async () => {
      reply = { messages: [{ type: 'text', msg: 'done' }] }
      await telegram.say(relay, '/deploy', inTopic)
      await isReplied()
      await telegram.say(relay, '/deploy x', { chat: { id: Number(user), type: 'private', first_name: 'Ann' } })
      await until('both are answered', () => telegram.messages.length === 2)
      assert.deepEqual(arrived().map(({ chat, topic }) => [chat, topic]), [[group, topic], [user, undefined]])
      assert.deepEqual(callback.calls.map(({ fields }) => fields.group_id), [`${group}:${topic}`, undefined])
    })

    test('of another bot is not posted, and one of Koishi still works', async () => {
      reply = {}
      relay.app.command('deploy').action(() => 'from Koishi')
      await telegram.say(relay, '/deploy@other_bot')
      await telegram.say(relay, '/deploy')
      await isReplied()
      assert.equal(callback.calls.length, 1)
      assert.deepEqual(arrived().map(each => each.text), ['from Koishi'])
      reply = { reply: 'done' }
      await telegram.say(relay, '/deploy')
      await until('there is another reply', () => telegram.messages.length === 2)
      assert.deepEqual(arrived().map(each => each.text), ['from Koishi', 'done'])
    })
  })

  test('takes a message back in its own chat', async () => {
    const { body } = await send({ msg: 'a' })
    await send({ ...toUser, msg: 'b' })
    const [id] = [fieldsOf(body.data).message_ids].flat()
    assert.equal((await call(relay, 'delete_msg', { message_id: id })).retcode, 0)
    assert.deepEqual(telegram.deleted, [id])
  })

  test('has no lists of chats, which is no failure', async () => {
    assert.deepEqual((await ask(`/contacts?bot=telegram:${self}`)).data, { bot: `telegram:${self}`, groups: [], friends: [] })
  })

  test('does not take silence of the adapter for a success', async () => {
    const end = relay.app.on('before-send', session => {
      session.elements = [h('unknown')]
    })
    const answer = await send({ to: 'telegram:group:-2101', msg: 'a' })
    end()
    assert.match(failureOf(answer, 504), /the adapter does not say/)
  })

  test('sends what another plugin has made of a message to the very topic', async () => {
    const changes: ((elements: h[]) => unknown)[] = [elements => elements.push(h('b', 'bold')), ([text]) => text && (text.attrs.content = 'bold')]
    for (const change of changes) {
      telegram.clear()
      const end = relay.app.on('before-send', ({ elements }) => void change(elements ?? []))
      assert.equal((await send({ to: `${toGroup.to}:${topic}`, msg: 'a' })).status, 200)
      end()
      assert.deepEqual(telegram.sends.map(({ fields }) => [fields.chat_id, fields.message_thread_id]), [[group, Number(topic)]])
      assert.match(telegram.messages[0]?.text ?? '', /bold/)
    }
  })

  test('shows a queue that a limit keeps, and until when', async () => {
    const to = 'telegram:group:-1006'
    telegram.server.fault({ path: /\/sendMessage/, answer: refuse(429, 'Too Many Requests: retry after 60', { retry_after: 60 }) })
    await queue({ to, msg: 'a' })
    const name = `telegram:${self}/group:-1006`
    const shown = async (path: string) => {
      const { queues } = (await ask(path)).data
      return fieldsOf([queues].flat().find(each => fieldsOf(each).queue === name))
    }
    await until('the queue is limited', async () => (await shown('/queues')).state === 'limited')
    const [{ reason, limited_until: end }, { limited_until: same }] = [await shown('/queues'), await shown('/statusz')]
    assert.equal(reason, 'the platform limits how fast messages may be sent')
    for (const time of [end, same]) assert(Math.abs(Date.parse(String(time)) - Date.now() - 60_000) < 10_000)
    await relay.request(`/queues/${encodeURIComponent(name)}`, { method: 'DELETE' })
  })
})
