import { Universal, type Context, type ForkScope } from 'koishi'
import { after, describe, test } from 'node:test'
import type { Language } from '../../../src/texts/language'
import { causes } from '../../../src/texts/table/causes'
import type { TextId } from '../../../src/texts/table'
import { Presence } from '../../../src/platform/presence'
import { watchLogins } from '../../../src/platform/onebot/login'
import { Simulator, type Fault } from '../../../simulator'
import { callerOf } from '../../support/caller'
import { addForward } from '../../support/onebot'
import { OtherBot, otherBot } from '../../support/other-bot'
import { useRelay, useStarted, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { refuse, Telegram } from '../../platforms/telegram'
import { addReverse } from '../onebot/support'
import { Texts } from './support'

const texts = new Texts(causes, {})

function send(relay: TestRelay, lang: Language, body: object): Promise<string> {
  return relay.request(`/webhook?lang=${lang}`, { method: 'POST', body: JSON.stringify({ msg: 'x', ...body }) }).then(response => response.text())
}

describe('what OneBot answers to a message', () => {
  /** How far the clock of the platform is behind, in milliseconds. */
  let behind = 3_600_000
  const relay = useRelay({ config: { chatApiMaxRetries: 0, chatApiTimeout: 1 }, simulator: { clock: () => Date.now() - behind } })
  const result = (code: number): string => (
    `EventChecker Failed: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg ListenerName:x EventRet:\n{"result": ${code}, "errMsg": ""}`
  )
  const refusals: [id: TextId, wording: string][] = [
    ['cause-muted', result(120)],
    ['cause-all-muted', '全员禁言中'],
    ['cause-too-fast', result(299)],
    ['cause-restricted', result(46)],
    ['cause-no-such-group', '群聊不存在'],
    ['cause-removed', result(110)],
    ['cause-not-friend', '发送失败，请先添加对方为好友'],
    ['cause-blocked', result(55)],
    ['cause-too-long', result(34)],
    ['cause-at-all-limit', result(121)],
    ['cause-empty', '消息体无法解析'],
    ['cause-media-failed', 'rich media transfer failed'],
    ['cause-unknown-action', '不支持的Api send_msg'],
    ['cause-empty-chat', '消息不存在'],
  ]
  for (const [index, [id, wording]] of refusals.entries()) {
    test(id, async () => {
      // A refusal may be about the group.
      const group = String(100 + index)
      relay.simulator.fault({ target: group, fault: { kind: 'refuse', wording } })
      const { headers } = await relay.send({ group_id: group, msg: 'x' })
      await texts.ask(relay, [id, 'cause-of-platform'], `/deliveries/${headers.get('x-request-id') ?? ''}`)
    })
  }

  test('whatever cannot be told for certain, until the account counts as restricted', async () => {
    const fates: [id: TextId, fault: Fault][] = [
      ['cause-unconfirmed', { kind: 'refuse', wording: 'fetch failed' }],
      ['cause-swallowed', { kind: 'swallowed' }],
      ['cause-swallowed', { kind: 'swallowed' }],
      ['cause-vanished', { kind: 'silent' }],
    ]
    const { accept, reaches } = callerOf(relay.request)
    // Without an old message in it, the history of a group shows nothing.
    for (const index of fates.keys()) await relay.send({ group_id: String(index + 1), msg: 'x' })
    behind = 0
    await Promise.all(fates.map(async ([id, fault], index) => {
      const group = String(index + 1)
      relay.simulator.fault({ target: group, fault })
      const delivery = await accept({ group_id: group, msg: 'y' })
      await reaches(delivery, 'unanswered')
      await texts.ask(relay, [id], `/deliveries/${delivery}`)
    }))
    await texts.ask(relay, ['cause-restricted-account'], '/statusz')
  })
})

describe('what other platforms answer', () => {
  let telegram: Telegram
  const relay = useStarted(async () => {
    telegram = await Telegram.start()
    return telegram.relay({ chatApiMaxRetries: 0 })
  })
  after(() => telegram.server.stop())

  const toChat = (id: string): object => ({ to: `telegram:group:${id}` })
  const answers: [id: TextId, body: object][] = [
    ['cause-forbidden', toChat('-100401')],
    ['cause-moved', toChat('-4001')],
    ['cause-dead-link', { ...toChat('-1'), type: 'image', url: 'http://127.0.0.1:1/a.png' }],
  ]
  for (const [id, body] of answers) test(id, () => texts.meet([id], lang => send(relay, lang, body)))

  test('cause-not-permitted', async () => {
    telegram.server.fault({ path: /sendMessage/, answer: refuse(403, 'Forbidden: FROZEN_METHOD_INVALID') })
    await texts.meet(['cause-not-permitted'], lang => send(relay, lang, toChat('-2')))
  })

  test('cause-rate-limited', async () => {
    telegram.server.fault({ path: /sendMessage/, answer: refuse(429, 'Too Many Requests: retry after 30', { retry_after: 30 }) })
    await texts.meet(['cause-rate-limited'], lang => send(relay, lang, toChat('-3')))
  })
})

describe('why an account cannot send', () => {
  const statuses: [id: TextId, status: Universal.Status][] = [['cause-connecting', Universal.Status.CONNECT], ['cause-disconnected', Universal.Status.OFFLINE]]
  let watch: ForkScope | undefined
  const relay = useRelay({
    config: { chatApiMaxRetries: 0 },
    setup(app) {
      app.plugin(OtherBot, {})
      // Looks more often than the relay does.
      watch = app.plugin({ name: 'watch', apply: (ctx: Context) => watchLogins(ctx, Presence.of(ctx), 50) })
    },
  })
  after(() => watch?.dispose())
  const shows = (words: string) => until(`${words} is shown`, async () => (await (await relay.request('/statusz')).text()).includes(words))

  for (const [id, status] of statuses) {
    test(id, async () => {
      const bot = otherBot(relay)
      Object.assign(bot, { status, error: new Error('wrong token') })
      await texts.ask(relay, [id, 'cause-with-detail'], '/statusz')
      bot.reset()
    })
  }

  test('cause-unreachable', () => texts.meet(['cause-unreachable'], lang => {
    otherBot(relay).failures = [() => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }))]
    return send(relay, lang, { platform: 'other', group_id: '1' })
  }))

  test('cause-old-adapter', async () => {
    const bot = otherBot(relay)
    Object.assign(bot, { status: 'online' })
    await texts.ask(relay, ['cause-old-adapter'], '/statusz')
    bot.reset()
  })

  test('cause-logged-out', () => texts.meet(['cause-logged-out', 'cause-of-platform'], lang => {
    relay.simulator.fault({ fault: { kind: 'logged-out' } })
    return send(relay, lang, { group_id: '1' })
  }))

  test('cause-silent', async () => {
    await until('it has answered that it is logged in', () => relay.logs.some(line => /bot onebot:10000 online after \d+ s offline/.test(line)))
    relay.simulator.fault({ action: /./, times: Infinity, fault: { kind: 'silent' } })
    await shows('does not answer')
    await texts.ask(relay, ['cause-silent'], '/statusz')
  })

  test('cause-kicked', async () => {
    relay.simulator.turn('loggedOut', true)
    await shows('logged out')
    await texts.ask(relay, ['cause-kicked'], '/statusz')
    relay.simulator.turn('loggedOut', false)
  })

  test('cause-token-refused', async t => {
    const other = await Simulator.start({ selfId: '20000', token: 'the-right-token' })
    t.after(() => other.close())
    const fork = addForward(relay.app, other.endpoint, { selfId: '20000', token: 'another-token' })
    t.after(() => fork.dispose())
    await shows('access token')
    await texts.ask(relay, ['cause-token-refused'], '/statusz')
  })

  test('cause-other-account', async t => {
    const fork = addReverse(relay.app, '20000')
    t.after(() => fork.dispose())
    const other = await Simulator.start({ selfId: '30000', reverse: { url: `${relay.url.replace('http', 'ws')}/onebot`, redialInterval: 50 } })
    t.after(() => other.close())
    await shows('another account')
    await texts.ask(relay, ['cause-other-account'], '/statusz')
  })

  test('cause-bot-removed', () => texts.meet(['cause-bot-removed'], async lang => {
    const fork = relay.app.plugin(OtherBot, { selfId: 'gone' })
    // An adapter of its own may leave the status as it was.
    otherBot(relay, 'gone').stop = () => Promise.resolve()
    const off = relay.app.on('before-send', () => void fork.dispose())
    const answer = await send(relay, lang, { platform: 'other', self_id: 'gone', group_id: '1' })
    off()
    return answer
  }))
})

texts.complete()
