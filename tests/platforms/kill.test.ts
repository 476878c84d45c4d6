import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayProcess } from '../faults/process'
import type { AdapterEntry } from '../support/adapter'
import { temporaryFolder } from '../support/folder'
import { apiKey } from '../support/relay'
import { until } from '../support/until'
import { callerOf } from './caller'
import { channel, direct, DiscordServer, messages, thread, user } from './discord'
import { Lark } from './lark'
import { SatoriServer } from './satori'
import type { PlatformServer } from './server'
import { Telegram } from './telegram'

/** A platform that stays while the relay is killed. */
interface Platform {
  server: PlatformServer
  adapter: AdapterEntry
  /** Chats: for a call with others behind it, for one that is not carried out, and for one with a key. */
  chats: readonly [open: string, lost: string, keyed: string]
  /** The path of the calls that send. */
  sending: RegExp
  /** What has arrived, in its order, and where. */
  arrived: () => readonly { to: string, text: string }[]
}

/** Each, and whether it can tell what became of a call that was open. */
const platforms: Readonly<Record<string, { start: () => Promise<Platform>, canTell: boolean }>> = {
  Telegram: {
    canTell: false,
    async start() {
      const { server, adapter, messages } = await Telegram.start()
      const arrived = () => messages.map(({ chat, text }) => ({ to: `telegram:group:${chat}`, text }))
      return { server, adapter, chats: ['telegram:group:-1', 'telegram:group:-2', 'telegram:group:-3'], sending: /\/sendMessage$/, arrived }
    },
  },
  Discord: {
    canTell: true,
    async start() {
      const { api: server, adapter, shown } = await DiscordServer.start()
      const placeOf = (id: string): string => id === direct ? `private:${user}` : `group:${id}`
      const arrived = () => shown.map(({ channel, content }) => ({ to: `discord:${placeOf(channel)}`, text: content }))
      const chats = [`discord:group:${channel}`, `discord:group:${thread}`, `discord:private:${user}`] as const
      return { server, adapter, chats, sending: messages, arrived }
    },
  },
  Feishu: {
    canTell: true,
    async start() {
      const { server, adapter, messages } = await Lark.start()
      const arrived = () => messages.map(({ to, text }) => ({ to: `feishu:group:${to}`, text }))
      const chats = ['feishu:group:oc_1', 'feishu:group:oc_2', 'feishu:group:oc_3'] as const
      return { server, adapter, chats, sending: /\/im\/v1\/messages$/, arrived }
    },
  },
  Satori: {
    canTell: true,
    async start() {
      const { api: server, adapter, sid, ledger } = await SatoriServer.start()
      // A history that does not reach back to before the call proves nothing.
      const old = ['c1', 'c2', 'c3'].map(channelId => ({ id: channelId, channelId, content: 'old', parts: [], at: Date.now() - 3_600_000 }))
      ledger.push(...old)
      const arrived = () => ledger.slice(old.length).map(({ channelId, content }) => ({ to: `${sid}:group:${channelId}`, text: content }))
      return { server, adapter, chats: [`${sid}:group:c1`, `${sid}:group:c2`, `${sid}:group:c3`], sending: /\/message\.create$/, arrived }
    },
  },
}

describe('after kill -9', { concurrency: 2 }, () => {
  for (const [name, { start, canTell }] of Object.entries(platforms)) {
    const outcome = canTell ? 'sent' : 'unanswered'

    test(`${name} has what was open once, or says that it is unknown, sends the rest in its order, and knows keys`, async t => {
      const { server, adapter, chats: [open, lost, keyed], sending, arrived } = await start()
      const folder = temporaryFolder()
      const launch = async (): Promise<RelayProcess> => {
        const config = { chatApiTimeout: 4, chatSettleTime: 1 }
        const launched = await RelayProcess.start({ apiKey, platform: { adapter }, folder, config })
        await until('the bot is online', async () => (await launched.request('/readyz')).status === 200, 20_000)
        return launched
      }
      let process = await launch()
      t.after(async () => {
        await process.end('SIGKILL')
        await server.stop()
      })
      const { send, queue, reaches } = callerOf(() => process, open)
      const texts = (chat: string): string[] => arrived().flatMap(({ to, text }) => to === chat ? [text] : [])
      const silence = (isCarriedOut: boolean) => server.fault({ path: sending, answer: 'none', isCarriedOut })

      const sent = await send({ to: keyed, msg: 'a' }, { 'idempotency-key': 'first' })
      assert.equal(sent.status, 200, sent.msg)
      silence(true)
      const delivered = await queue({ msg: 'open' })
      await until('it has arrived', () => texts(open).length === 1)
      const behind: string[] = []
      for (const msg of ['a', 'b', 'c', 'd']) behind.push(await queue({ msg }))
      silence(true)
      const caller = send({ to: keyed, msg: 'b' }, { 'idempotency-key': 'second' }).catch((error: unknown) => error)
      await until('it has arrived', () => texts(keyed).length === 2)
      silence(false)
      const undelivered = await queue({ to: lost, msg: 'lost' })
      const calls = (): number => server.callsTo(sending).filter(({ method }) => method === 'POST').length
      await until('each was called, and nothing behind one', () => calls() === 4)

      await process.end('SIGKILL')
      assert(await caller instanceof Error)
      process = await launch()
      for (const id of [delivered, undelivered]) await reaches(id, outcome)
      for (const id of behind) await reaches(id, 'sent')
      const again = await send({ to: keyed, msg: 'a' }, { 'idempotency-key': 'first' })
      assert.deepEqual([again.status, again.data.message_ids], [200, sent.data.message_ids])
      const { status, headers, msg } = await send({ to: keyed, msg: 'b' }, { 'idempotency-key': 'second' })
      assert.deepEqual([status, headers.get('relay-outcome')], [canTell ? 200 : 504, outcome], msg)
      assert.deepEqual([open, lost, keyed].map(texts), [['open', 'a', 'b', 'c', 'd'], canTell ? ['lost'] : [], ['a', 'b']])
    })
  }
})
