import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../src'
import type { TestRelay } from '../support/relay'
import { until } from '../support/until'
import { botId, channel, Discord, guild, user as mason } from './discord'
import { group as larkGroup, Lark, self, user as larkUser } from './lark'
import { relayWith, type Platform } from './platform'
import { Satori } from './satori'
import { group as telegramGroup, Telegram } from './telegram'

interface Stage {
  platform: Platform
  relay: TestRelay
  /** The ID of the message that was sent last. */
  last: () => string
  quote: (id: string, text: string) => unknown
  mention: (text: string) => unknown
  react?: (id: string, emoji: string, isAdded: boolean) => unknown
}

const people = { boss: { lark: larkUser, telegram: '1', name: '老板' } }

function configFor(to: string): Config {
  return { people, targets: { ops: { to, ack: {} } } }
}

/** What has arrived at a relay whose name `ops` is on each platform, the name of who speaks there, and how that is done. */
const stages: Record<string, readonly [name: string, start: () => Promise<Stage>]> = {
  Discord: ['Mason', async () => {
    const platform = await Discord.start()
    const from = { channel_id: channel, guild_id: guild }
    return {
      platform,
      relay: await platform.relay(configFor(`discord:group:${channel}`)),
      last: () => platform.shown.at(-1)?.id ?? '',
      quote: (id, text) => platform.say(text, { message_reference: { ...from, message_id: id } }),
      mention: text => platform.say(`<@${botId}> ${text}`),
      react: (id, emoji, isAdded) => platform.tell(isAdded ? 'MESSAGE_REACTION_ADD' : 'MESSAGE_REACTION_REMOVE', {
        ...from, user_id: mason, message_id: id, emoji: { id: null, name: emoji },
      }),
    }
  }],
  Satori: ['Annie', async () => {
    const platform = await Satori.start()
    const member = { channel: { id: 'c1', type: 0 }, user: { id: 'u1', name: 'Ann' }, member: { nick: 'Annie' } }
    const say = (content: string): void => platform.emit('message-created', { ...member, message: { id: String(Math.random()), content } })
    return {
      platform,
      relay: await relayWith([platform.sid], app => platform.connect(app), configFor(`${platform.sid}:group:c1`)),
      last: () => platform.ledger.at(-1)?.id ?? '',
      quote: (id, text) => say(`<quote id="${id}"/><at id="10000"/> ${text}`),
      mention: text => say(`<at id="10000"/> ${text}`),
      // LuckyLilliaBot has the ID of QQ, and a server of Koishi what the platform calls it.
      react: (id, emoji, isAdded) => platform.emit(isAdded ? 'reaction-added' : 'reaction-removed', {
        ...member, ...emoji === '👀' ? { message: { id }, emoji: { id: '128064' } } : { message: { id, content: emoji } },
      }),
    }
  }],
  Telegram: ['Ann', async () => {
    const platform = await Telegram.start()
    const relay = await platform.relay(configFor(`telegram:group:${telegramGroup}`))
    const now = (): number => Math.floor(Date.now() / 1000)
    return {
      platform,
      relay,
      last: () => String(platform.messages.at(-1)?.id ?? ''),
      quote: (id, text) => platform.say(relay, text, {
        date: now(),
        reply_to_message: { message_id: Number(id), date: now(), text: 'x', chat: { id: Number(telegramGroup), type: 'supergroup' }, from: { id: 5, first_name: 'Relay' } },
      }),
      mention: text => platform.say(relay, `@relay_bot ${text}`, { date: now(), entities: [{ type: 'mention', offset: 0, length: 10 }] }),
    }
  }],
  Feishu: ['老板', async () => {
    const platform = await Lark.start()
    const relay = await platform.relay(configFor(`feishu:group:${larkGroup}`))
    const time = (): object => ({ create_time: String(Date.now()) })
    const mentions = [{ key: '@_user_1', id: { open_id: self }, name: 'Relay' }]
    return {
      platform,
      relay,
      last: () => platform.messages.at(-1)?.id ?? '',
      quote: (id, text) => platform.say(relay, { ...time(), parent_id: id, root_id: id }, { text }),
      mention: text => platform.say(relay, { ...time(), mentions }, { text: `@_user_1 ${text}` }),
    }
  }],
}

for (const [name, [speaker, start]] of Object.entries(stages)) {
  test(`an incident on ${name} is acted on by quotes, mentions and, where the adapter passes them on, reactions`, async () => {
    const { platform, relay, last, quote, mention, react } = await start()
    const answer = async (act: () => unknown): Promise<string> => {
      const from = platform.arrived.length
      await act()
      await until(() => `an answer: ${relay.logs.slice(-5).join('\n')}`, () => platform.arrived.length > from)
      return platform.arrived.at(-1)?.text.replace(/^<quote[^>]*>/, '') ?? ''
    }
    try {
      const { status, msg } = await relay.send({ to: 'ops', msg: 'db is down', severity: 'critical', thread: 'db' })
      assert.equal(status, 200, msg)
      const id = last()
      const isTaken = new RegExp(`^${speaker} 在看`)
      assert.match(await answer(() => quote(id, '我来')), isTaken)
      assert.match(await answer(() => mention('谁')), isTaken)
      assert.match(await answer(() => quote(id, '放弃')), /放弃，等人认领$/)
      if (react) {
        // Nobody has another name for who reacts on Discord.
        assert.match(await answer(() => react(id, '👀', true)), name === 'Discord' ? new RegExp(`^${mason} 在看`) : isTaken)
        assert.match(await answer(() => react(id, '👀', false)), /放弃，等人认领$/)
        assert.match(await answer(() => react(id, '🔕', true)), /^静默到/)
        assert.match(await answer(() => react(id, '✅', true)), /已解决/)
      } else assert.match(await answer(() => quote(id, '解决')), /已解决/)
    } finally {
      await relay.stop()
      await platform.server.stop()
    }
  })
}
