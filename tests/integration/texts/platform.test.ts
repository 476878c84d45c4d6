import { after, describe, test } from 'node:test'
import { platform } from '../../../src/texts/table/platform'
import type { TextId } from '../../../src/texts/table'
import { startRelay, useRelay, useStarted, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { channel, Discord } from '../../platforms/discord'
import { endRefresh, group as larkGroup, Lark } from '../../platforms/lark'
import { loadPlatform, relayWith } from '../../platforms/platform'
import { places, platformNames, Platforms } from '../../platforms/rest'
import { PlatformServer, type Answer } from '../../platforms/server'
import { Satori } from '../../platforms/satori'
import { group as telegramGroup, refuse, Telegram } from '../../platforms/telegram'
import { Texts } from './support'

const texts = new Texts(platform, {
  log: [
    'adapter-threw', 'bot-back', 'bot-changed', 'bot-connection-broken', 'bot-in-state', 'bot-not-connected', 'bot-step-failed',
    'bot-turned', 'bots-present', 'frame-answers-nothing', 'frame-answers-nothing-code', 'frame-dropped', 'frame-event-lacks',
    'frame-not-json', 'frame-not-object', 'no-bot-yet', 'none-yet', 'started-again-connecting', 'started-again-offline',
    'state-connecting', 'state-offline', 'state-online', 'websocket-closed',
  ],
  unproven: [
    'adapter-does-not-say', 'adapter-failed-at-answer', 'adapter-not-ready', 'answer-too-late', 'cannot-encode', 'changed-by-plugin',
    'discord-files-too-large', 'discord-no-history', 'discord-no-look-up', 'file-gone', 'file-too-large', 'http-address-gone',
    'http-not-recallable', 'item-text', 'no-private-by-id', 'no-proxy-connection', 'no-proxy-on-this-node', 'not-a-message-id', 'not-one-message',
    'only-partly-arrived', 'qq-no-empty-file', 'satori-no-channel', 'unchangeable',
  ],
})

const post = (body: object): RequestInit => ({ method: 'POST', body: JSON.stringify({ msg: 'x', ...body }) })
const says = (relay: Pick<TestRelay, 'request'>, ids: TextId[], body: object): void => {
  test(ids.join(', '), () => texts.ask(relay, ids, '/webhook', post(body)))
}

describe('a bot of OneBot', () => {
  const relay = useRelay({ config: { chatApiMaxRetries: 0, chatApiTimeout: 1 } })
  says(relay, ['qq-group-number'], { group_id: 'x' })
  says(relay, ['qq-number'], { user_id: 'x' })
  says(relay, ['qq-mention'], { group_id: '1', at: ['x'] })

  test('suppressed-by-plugin', async () => {
    const off = relay.app.on('before-send', () => true)
    await texts.ask(relay, ['suppressed-by-plugin'], '/webhook', post({ group_id: '1' }))
    off()
  })
})

describe('bots of other platforms', () => {
  const stops: (() => Promise<void>)[] = []
  let telegram: Telegram | undefined
  const relay = useStarted(async () => {
    const [one, lark, discord, rest] = await Promise.all([Telegram.start(), Lark.start(), Discord.start(), Platforms.start()])
    telegram = one
    stops.push(...[one, lark, discord, rest].map(({ server }) => () => server.stop()))
    return endRefresh(await relayWith(['telegram', 'lark', 'discord', ...platformNames], app => {
      for (const each of [one, lark, discord]) loadPlatform(app, each)
      rest.load(app)
    }, { chatApiMaxRetries: 0, chatApiTimeout: 1 }))
  })
  after(() => Promise.all(stops.map(stop => stop())))

  const to = (chat: string, body: object = {}): object => ({ to: chat, ...body })
  says(relay, ['telegram-group-id'], to('telegram:group:x y'))
  says(relay, ['telegram-user-id'], to('telegram:private:x'))
  says(relay, ['telegram-mention'], to(`telegram:group:${telegramGroup}`, { at: ['!'] }))
  says(relay, ['telegram-no-everybody'], to(`telegram:group:${telegramGroup}`, { at: ['all'] }))
  says(relay, ['telegram-message-id'], to(`telegram:group:${telegramGroup}`, { reply_to: 'x' }))
  says(relay, ['answered-elsewhere'], to(`telegram:group:${telegramGroup}`, { reply_to: '-1:5' }))
  says(relay, ['lark-mention'], to(`lark:group:${larkGroup}`, { at: ['!'] }))
  says(relay, ['lark-group-id'], to('lark:group:x y'))
  says(relay, ['lark-user-id'], to('lark:private:x y'))
  says(relay, ['lark-message-id'], to(`lark:group:${larkGroup}`, { reply_to: 'x' }))
  says(relay, ['answered-not-here'], to(`lark:group:${larkGroup}`, { reply_to: 'om_elsewhere' }))
  says(relay, ['discord-mention'], to(`discord:group:${channel}`, { at: ['x'] }))
  says(relay, ['discord-channel-id'], to('discord:group:x'))
  says(relay, ['discord-user-id'], to('discord:private:x'))
  says(relay, ['discord-reply-id'], to(`discord:group:${channel}`, { reply_to: 'x' }))
  says(relay, ['not-a-group-id'], to('slack:group:..'))
  says(relay, ['not-a-user-id'], to('slack:private:..'))
  says(relay, ['mention-not-user'], to(`slack:group:${places.slack.group}`, { at: ['!'] }))
  says(relay, ['private-chats-only'], to('wecom:group:x'))
  says(relay, ['private-after-message'], to('qqguild:private:x'))
  const sends = (chat: string, type: string): object => to(chat, { type, url: 'http://127.0.0.1:1/a' })
  for (const type of ['image', 'video', 'audio', 'file'] as const) {
    says(relay, ['adapter-cannot-send', 'send-link-instead', `item-${type}`], sends(`slack:group:${places.slack.group}`, type))
  }
  says(relay, ['adapter-cannot-send', 'item-at'], to(`qq:group:${places.qq.group}`, { at: ['x'] }))
  says(relay, ['adapter-cannot-send', 'item-at-all'], to(`qq:group:${places.qq.group}`, { at: ['all'] }))
  says(relay, ['adapter-cannot-send', 'item-reply'], to(`qq:group:${places.qq.group}`, { reply_to: 'x' }))
  const zip = { type: 'file', url: 'data:application/zip;base64,UEsDBA==', name: 'a.zip' }
  says(relay, ['type-not-taken'], to(`whatsapp:private:${places.whatsapp.user}`, zip))

  const faults: [ids: TextId[], answer: Answer][] = [
    [['may-have-arrived'], { status: 500, body: { ok: false, error_code: 500, description: 'Internal Server Error' } }],
    [['may-have-arrived', 'unreadable-answer'], { body: 'no JSON' }],
    [['nothing-sent-try-later'], refuse(429, 'Too Many Requests: retry after 30', { retry_after: 30 })],
  ]
  for (const [index, [ids, answer]] of faults.entries()) {
    test(ids.join(', '), async () => {
      telegram?.server.fault({ path: /sendMessage/, answer, times: 2 })
      await texts.ask(relay, ids, '/webhook', post(to(`telegram:group:-${index + 10}`)))
    })
  }

  test('no-onebot-online', async () => {
    await relay.simulator.goOffline()
    await until('it is offline', async () => (await relay.send({ group_id: '1', msg: 'x' })).status === 503)
    await texts.ask(relay, ['no-onebot-online', 'try-again-later'], '/webhook', post({ group_id: '1' }))
    const named = { platform: 'onebot', self_id: '10000', group_id: '1' }
    await texts.ask(relay, ['no-bot-with-these-online'], '/webhook', post(named))
  })
})

describe('a Satori server', () => {
  let stop = (): Promise<void> => Promise.resolve()
  const relay = useStarted(async () => {
    const bare = await Satori.start({ platform: 'bare', features: ['login.get'] })
    const full = await Satori.start({ platform: 'full', id: '2' })
    stop = async () => {
      await Promise.all([bare, full].map(each => each.stop()))
    }
    const config = { chatApiMaxRetries: 0, chatApiTimeout: 1 }
    return relayWith([bare.sid, full.sid], app => [bare, full].forEach(each => each.connect(app)), config)
  })
  after(() => stop())
  says(relay, ['satori-no-private'], { to: 'bare:private:u1' })
  says(relay, ['satori-no-sending'], { to: 'bare:group:c1' })
  says(relay, ['satori-mention'], { to: 'full:group:c1', at: ['!'] })
})

describe('an HTTP address', () => {
  let receiver: PlatformServer | undefined
  const statuses: Readonly<Record<string, number>> = { '/answered': 400, '/redirected': 302, '/apprise': 204 }
  const relay = useStarted(async () => {
    receiver = await PlatformServer.start(({ path }) => ({ status: statuses[path] ?? 200 }))
    const { url } = receiver
    const targets = {
      answered: { first: [{ url: `${url}/answered` }] }, redirected: { first: [{ url: `${url}/redirected` }] },
      apprise: { first: [{ url: `${url}/apprise`, format: 'apprise' as const }] },
    }
    return startRelay({ config: { chatApiMaxRetries: 0, targets } })
  })
  after(() => receiver?.stop())
  for (const [id, name] of [['http-answered', 'answered'], ['http-redirected', 'redirected'], ['http-no-service', 'apprise']] as const) {
    test(id, async () => {
      await texts.ask(relay, [id], '/webhook', post({ to: name }))
    })
  }
})

texts.complete()
