import { h, Universal } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../../src'
import type { Simulator } from '../../../simulator'
import { askAs, relayFor } from '../../support/relay'
import { until } from '../../support/until'
import { otherBot, OtherBot } from '../../support/other-bot'
import { Desk, english, group, operator } from './support'

const key = 'a-key-of-sixteen-characters'
const later = { prefer: 'respond-async' }

/** What makes a message not arrive, and what the chat is told, in Chinese and in English. */
interface Cause {
  name: string
  config?: Config
  before?: (simulator: Simulator) => unknown
  /** Sends a message that does not arrive. */
  act: (desk: Desk) => Promise<unknown>
  zh: RegExp
  en: RegExp
  /** What is asked; by default `relay.why`. */
  ask?: string
}

const send = ({ relay }: Desk): Promise<unknown> => relay.send({ to: `group:${group}`, msg: 'hi' })
const sendLater = (more: object = {}) => ({ relay }: Desk): Promise<unknown> => relay.send({ to: `group:${group}`, msg: 'hi', ...more }, later)
const stay = (kind: 'muted' | 'not-member' | 'timeout') => (simulator: Simulator): unknown => simulator.fault({ fault: { kind }, target: group, times: Infinity })

const causes: readonly Cause[] = [
  {
    name: 'muted', before: stay('muted'), act: send,
    zh: /失败｜hi\n没有送达：平台拒绝了.*机器人在该群被禁言（.+）。排除原因后/, en: /failed \| hi\nIt did not arrive: .*the bot is muted in this group/,
  },
  {
    name: 'muted, and waiting', before: stay('muted'), act: sendLater(),
    zh: /等待中｜hi\n还没有送达：机器人在该群被禁言。排除原因后会自动发出/, en: /waiting \| hi\nIt has not arrived yet: the bot is muted in this group. Fix the cause/,
  },
  {
    name: 'not a member', before: stay('not-member'), act: send,
    zh: /没有送达：平台拒绝了.*机器人已不在该群（/, en: /It did not arrive: .*the bot is not in this group any more/,
  },
  {
    name: 'unanswered', before: stay('timeout'), act: send, config: { chatApiMaxRetries: 0, chatApiTimeout: 0.5 },
    zh: /结果未知｜hi\n不确定是否送达：/, en: /unknown \| hi\nIt is not known whether it arrived: /,
  },
  {
    name: 'expired', before: stay('muted'), act: async desk => {
      await sendLater({ expires_in: 1 })(desk)
      await until('it has expired', async () => JSON.stringify((await desk.relay.request('/deliveries').then(each => each.json()))).includes('"expired"'))
    },
    zh: /已过期｜hi\n没有送达：消息在送达之前已过期：没有发送。仍然需要的话/, en: /expired \| hi\nIt did not arrive: the message expired before it could be delivered/,
  },
  {
    name: 'rate', config: { keys: [{ name: 'ci', key, rate: 1 }] },
    act: async ({ relay }) => {
      await askAs(relay, key, 'POST', '/webhook', { to: 'group:777', msg: 'one' })
      assert.equal((await askAs(relay, key, 'POST', '/webhook', { to: 'group:777', msg: 'two' })).status, 429)
    },
    ask: 'relay.why webhook', zh: /^\d\d:\d\d webhook 的调用被拒绝：.+$/, en: /a call of webhook was refused: .*rate/,
  },
  {
    name: 'filtered by event',
    act: ({ relay }) => relay.request(`/hooks/github/group:${group}?events=release`, {
      method: 'POST', headers: { 'x-github-event': 'push', 'content-type': 'application/json' },
      body: JSON.stringify({ ref: 'refs/heads/main', commits: [{ id: 'a', message: 'm' }], repository: { full_name: 'octo/hello' }, after: 'a', pusher: { name: 'x' } }),
    }),
    ask: 'relay.why github', zh: /hooks\/github 调用成功，但没有产生消息：/, en: /hooks\/github called, and there was no message to send: not one of the events/,
  },
  {
    name: 'paused', config: { chatPauseAfter: 1, chatApiMaxRetries: 0 },
    before: stay('not-member'),
    act: async desk => {
      await send(desk)
      await sendLater()(desk)
    },
    zh: /还没有送达：.*机器人已不在该群.*，到 \d\d:\d\d（还有 .+）。排除原因后会自动发出$/,
    en: /It has not arrived yet: the bot is not in this group any more.*, until .+ from now\)\. Fix the cause, and it leaves by itself$/,
  },
  {
    name: 'quiet hours', act: sendLater({ to: 'night' }),
    config: { targets: { night: { to: `group:${group}`, quiet: { from: '00:00', to: '23:59' } } } },
    zh: /还没有送达：免打扰至 23:59，到 .*。无需处理/, en: /It has not arrived yet: quiet hours until 23:59, until /,
  },
  {
    name: 'digest', config: { targets: { hourly: { to: `group:${group}`, digest: 3600 } } },
    act: async desk => {
      await desk.relay.send({ to: 'hourly', msg: 'first' })
      await sendLater({ to: 'hourly' })(desk)
    },
    zh: /还没有送达：等待下一条汇总/, en: /It has not arrived yet: it waits for the next digest/,
  },
  {
    name: 'scheduled', act: sendLater({ send_at: 3600 }),
    zh: /定时｜hi\n还没有送达：定时发送，到 .+（还有 (?:1 小时|59 分钟).*）/,
    en: /scheduled \| hi\nIt has not arrived yet: it was ordered for later, until /,
  },
]

for (const { name, config, before, act, zh, en, ask = 'relay.why' } of causes) {
  test(`says why: ${name}`, async t => {
    const desk = await Desk.open(t, config)
    before?.(desk.relay.simulator)
    await act(desk)
    // In private, because nobody hears the bot in a group where it is muted.
    assert.match(await desk.ask(ask, {}), zh)
    assert.match(await desk.ask(ask, { user: english }), en)
  })
}

test('says why by an ID, or the end of one, of any chat', async t => {
  const desk = await Desk.open(t)
  const { data } = await desk.relay.send({ to: 'group:777', msg: 'hi' })
  const id = String(data.delivery_id)
  for (const end of [id, id.slice(-8), id.slice(-6).toUpperCase()]) assert.match(await desk.ask(`relay.why ${end}`), /已发送｜hi\n已送达，试了 1 次$/)
  assert.equal(await desk.ask('relay.why'), '最近的消息都已送达，也没有被拒绝或跳过的调用')
  assert.match(await desk.ask('relay.why deadbeef'), /^没有编号或来源是“deadbeef”的记录/)
  assert.match(await desk.ask(`relay.why ${id.replace(/^./, 'f')}`), /^没有办成：/)
})

test('says why: the bot is offline, and another one answers', async t => {
  const desk = await Desk.open(t, { chatOperators: [`other:${operator}`] }, {}, app => void app.plugin(OtherBot, {}))
  const { relay } = desk
  await relay.simulator.goOffline()
  await until('it is offline', async () => (await sendLater()(desk), JSON.stringify(await relay.request('/queues').then(each => each.json())).includes('offline')))
  const bot = otherBot(relay)
  bot.dispatch(bot.session({
    type: 'message', user: { id: operator }, channel: { id: 'dm', type: Universal.Channel.Type.DIRECT }, message: { id: '1', content: 'relay.why', elements: [h.text('relay.why')] },
  }))
  await until('it answers', () => bot.sent.length > 0)
  assert.match(bot.sent[0]?.elements.join('') ?? '', /等待中｜hi\n还没有送达：/)
})

test('says why: this relay stands by', async t => {
  const [first, desk] = [await relayFor(t), await Desk.open(t)]
  await desk.relay.reload({ chatCommands: true, chatOperators: [`onebot:${operator}`], dataDir: first.dataDir })
  assert.match(await desk.ask('relay.why'), /^没有办成：.*另一个进程/)
  assert.match(await desk.ask('relay.sub github'), /^没有办成：.*另一个进程/)
  assert.match(await desk.ask('relay.status'), /^这个进程是备用的，不发送消息/)
})
